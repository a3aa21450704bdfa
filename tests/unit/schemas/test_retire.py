"""`skidway schemas delete` permanently deletes only the versions that the user has confirmed."""

from __future__ import annotations

import argparse
from typing import Any

import pytest

from skidway.errors import SkidwayError
from skidway.schemas.commands import retire
from support import registry_http
from support.registry_http import InProcess, Registry, record, reference


def test_a_version_that_comes_behind_the_plan_is_not_deleted_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """`skidway schemas delete` shows which versions it would delete, and asks the user. If a
    producer registers a version before the user answers, nothing is deleted permanently."""
    registry = Registry()
    registry.register("s", record(a=None))
    monkeypatch.setattr(
        retire, "connect", lambda args: registry_http.administration(InProcess(registry))
    )

    def agreed(*given: Any) -> bool:
        registry.register("s", record(a=None, b=0))
        return True

    monkeypatch.setattr(retire, "agreed", agreed)
    args = argparse.Namespace(subject="s", version=None, permanent=True, json=False, yes=True)
    with pytest.raises(SkidwayError, match="got version 2 meanwhile"):
        retire._delete(args)
    assert registry.good("GET", "/subjects/s/versions?deleted=true") == [1, 2]
    assert registry.good("GET", "/schemas/ids/2")


def test_a_version_whose_references_mean_another_schema_does_not_come_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """`skidway schemas undelete` registers nothing if a version that the deleted version references
    was deleted permanently, and its number has another schema now."""
    registry = Registry()
    registry.register("part", record("Part", a=None))
    registry.register("whole", record("Whole", part="Part"), reference("Part", "part"))
    for path in ("/subjects/whole", "/subjects/part", "/subjects/part?permanent=true"):
        registry.good("DELETE", path)
    registry.register("part", record("Part", z="string"))
    monkeypatch.setattr(
        retire, "connect", lambda args: registry_http.administration(InProcess(registry))
    )
    args = argparse.Namespace(subject="whole", version=None, dry_run=False, json=True)
    with pytest.raises(SkidwayError, match="whole version 1 cannot come back"):
        retire._undelete(args)
    assert registry.good("GET", "/subjects/whole/versions?deleted=true") == [1]
    assert registry.good("GET", "/subjects") == ["part"]
