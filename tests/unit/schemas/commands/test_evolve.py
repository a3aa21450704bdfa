"""`skidway schemas register|check`: what passes, what does not, and what it says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.registry_http import Registry, record

V1 = record(a=None)
BROKEN = record(a=None, must=None)


@pytest.fixture(autouse=True)
def _files(tmp_path: Path) -> None:
    (tmp_path / "good.avsc").write_text(V1)
    (tmp_path / "broken.avsc").write_text(BROKEN)


def test_a_check_of_an_unknown_subject_is_no_good(registry: Registry, run: Any) -> None:
    """A mistyped name must not pass a build; a subject to be made is named as one."""
    registry.register("users", V1)
    for more in ([], ["--version", "1"], ["--json"]):
        done = run("check", "user", "good.avsc", *more)
        assert (done.status, done.out) == (1, "")
        assert "no such subject: user" in done.err
    assert run("check", "user", "good.avsc", "--new-subject").status == 0
    assert run("check", "users", "good.avsc").status == 0
    assert run("register", "user", "good.avsc", "--dry-run").status == 0
