"""`skidway schemas level` and `mode` show, set and remove compatibility levels and modes; `skidway
schemas versions` lists versions."""

from __future__ import annotations

from typing import Any

import pytest

from support.registry_http import Registry, record


@pytest.mark.parametrize(
    ("verb", "first", "value"), [("level", "BACKWARD", "FULL"), ("mode", "READWRITE", "READONLY")]
)
def test_levels_and_modes_are_shown_set_and_taken_away(
    run: Any, verb: str, first: str, value: str
) -> None:
    """A compatibility level or mode can be shown, set and removed, for all subjects or for one
    subject. The output names the subject for which the value is set, or says "all"."""

    def shown(*arguments: str) -> tuple[str, str]:
        done = run(verb, *arguments, "--json")
        assert done.status == 0, done.err
        (row,) = done.document
        return row[verb], row["set_for"]

    assert shown() == (first, "all")
    assert shown("--subject", "s") == (first, "all")
    assert shown(value.lower(), "--subject", "s") == (value, "s")
    assert shown("--subject", "t") == (first, "all")
    assert shown("--reset", "--subject", "s") == (first, "all")
    assert shown(value) == (value, "all")
    assert shown("--subject", "s") == (value, "all")
    assert shown("--reset") == (first, "all")
    assert run(verb).out.splitlines()[0].split() == ["SUBJECT", verb.upper(), "SET", "FOR"]


def test_what_makes_no_sense_is_status_2(run: Any) -> None:
    """If `skidway schemas level` or `mode` gets an unknown level or mode, or gets a level or mode
    together with --reset, the command ends with exit status 2. If the registry refuses the request,
    the exit status is 1."""
    for verb in ("level", "mode"):
        assert run(verb, "SOME").status == 2
    assert run("level", "FULL", "--reset").status == 2
    assert run("level", "--reset", "--subject", "s").status == 1


def test_import_where_schemas_are_needs_force(registry: Registry, run: Any) -> None:
    """If the registry has schemas, it accepts the mode IMPORT only with --force (in the REST API,
    force=true)."""
    registry.register("s", record(a=None))
    assert run("mode", "IMPORT").status == 1
    assert run("mode", "IMPORT", "--force").status == 0


def test_versions_of_a_subject(registry: Registry, run: Any) -> None:
    """`skidway schemas versions` lists live versions. With --deleted it also lists deleted
    versions, and says of each version whether it is deleted."""
    registry.register("s", record(a=None))
    registry.register("s", record(a=None, b=0))
    registry.good("DELETE", "/subjects/s/versions/1")
    assert run("versions", "s", "--json").document == [{"subject": "s", "version": 2, "id": 2}]
    rows = run("versions", "s", "--deleted", "--json").document
    assert [(row["version"], row["deleted"]) for row in rows] == [(1, True), (2, False)]
    registry.good("DELETE", "/subjects/s")
    assert run("versions", "s").status == 1
    assert len(run("versions", "s", "--deleted", "--json").document) == 2
