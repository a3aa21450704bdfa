"""Tests how the contents of a registry are computed from the records of a `_schemas` topic."""

from __future__ import annotations

import json

import pytest
from hypothesis import given

from skidway.schemas.client import Reference
from skidway.schemas.dump.contents import Contents, StoredVersion, in_order, only, records, replay
from skidway.schemas.dump.records import DumpRefused, Record, line, read_lines
from support.registry_dumps import contents, stored


def schema_record(version: int, schema_id: int, *, deleted: bool = False) -> Record:
    key = {"keytype": "SCHEMA", "subject": "s", "version": version, "magic": 1}
    value = {"subject": "s", "version": version, "id": schema_id, "schema": '"int"'}
    return Record(key, {**value, "deleted": deleted})


def about(kind: str, value: object, subject: str | None = "s") -> Record:
    return Record({"keytype": kind, "subject": subject, "magic": 0}, value)  # type: ignore[arg-type]


@given(contents())
def test_a_dump_gives_back_its_contents(wanted: Contents) -> None:
    """The contents of a registry that are read back from a dump have the same versions, deletions,
    references, levels, modes and highest id."""
    lines = [line(each) for each in records(wanted)]
    assert replay(read_lines(lines)) == wanted


@given(contents())
def test_what_is_referenced_comes_first(wanted: Contents) -> None:
    """In a dump each version comes after the versions that it references, so that a reader never
    finds an unknown reference."""
    seen: set[tuple[str, int]] = set()
    ordered = in_order(wanted.versions.values())
    assert len(ordered) == len(wanted.versions)
    for each in ordered:
        for reference in each.references:
            key = (reference.subject, reference.version)
            assert key in seen or key not in wanted.versions
        seen.add(each.key)


def test_deletions_are_those_of_the_registry() -> None:
    """In the topic `_schemas`, a DELETE_SUBJECT record soft-deletes all versions of a subject up to
    a version number. A CLEAR_SUBJECT record permanently deletes the soft-deleted versions. A
    tombstone (a record without a value) deletes one version."""
    log = [schema_record(1, 1), schema_record(2, 2), about("DELETE_SUBJECT", {"version": 1})]
    found = replay(log)
    assert [(each.version, each.deleted) for each in found.of("s")] == [(1, True), (2, False)]
    assert [each.version for each in replay([*log, about("CLEAR_SUBJECT", {})]).of("s")] == [2]
    gone = Record({"keytype": "SCHEMA", "subject": "s", "version": 2, "magic": 1}, None)
    found = replay([*log, gone])
    assert [each.version for each in found.of("s")] == [1]
    assert found.highest_id == 2  # an id that was assigned once is never assigned again


def test_levels_and_modes_end_with_a_tombstone() -> None:
    """If the topic `_schemas` has several records about one level or one mode, the record with the
    highest offset is valid. A tombstone (a record without a value) removes the level or mode."""
    level, mode = {"compatibilityLevel": "FULL"}, {"mode": "READONLY"}
    log = [about("CONFIG", level, None), about("CONFIG", level), about("MODE", mode)]
    found = replay(log)
    assert (found.levels, found.modes) == ({None: level, "s": level}, {"s": "READONLY"})
    found = replay([*log, about("CONFIG", None), about("MODE", None)])
    assert (found.levels, found.modes) == ({None: level}, {})


def test_a_newer_confluent_registry_is_read() -> None:
    """Records of a newer Confluent registry can be read. Rules are kept, other unknown keys are
    dropped, and records of unknown kinds are counted."""
    value = {
        "subject": "s", "version": 1, "id": 7, "md5": "x", "guid": "y", "ts": 1, "offset": 2,
        "schemaType": "AVRO", "references": [], "metadata": None, "schema": '"int"',
        "ruleSet": {"domainRules": []}, "deleted": False,
    }  # fmt: skip
    log = [Record(schema_record(1, 7).key, value), about("CONTEXT", {}), about("NOOP", None)]
    found = replay(log)
    assert found.of("s") == [
        StoredVersion("s", 1, 7, '"int"', extra={"ruleSet": {"domainRules": []}})
    ]
    assert found.passed_over == {"CONTEXT": 1}


@pytest.mark.parametrize(
    "value", [{"id": 1}, {"id": "x", "schema": "s"}, {"id": 1, "schema": "s", "references": [1]}]
)
def test_a_damaged_record_is_refused_by_its_number(value: dict[str, object]) -> None:
    """A damaged record of a `_schemas` topic is refused, and the error names the record's number
    and kind."""
    with pytest.raises(DumpRefused, match=r"Record 2 \(SCHEMA\)"):
        replay([about("NOOP", None), Record(schema_record(1, 1).key, value)])


def test_one_subject_brings_what_it_refers_to() -> None:
    """A dump of one subject also has the versions that the subject references, but no other
    versions of other subjects, and no global level."""
    made = Contents(levels={None: {"compatibilityLevel": "NONE"}})
    made.add(stored("base", 1, 1))
    made.add(stored("other", 1, 2))
    made.add(stored("top", 1, 3, references=(Reference("r", "base", 1),)))
    found = only(made, ["top"])
    assert sorted(found.versions) == [("base", 1), ("top", 1)]
    assert (found.levels, found.highest_id) == ({}, 3)


def test_a_long_chain_of_references_is_no_deep_recursion() -> None:
    """A chain of 5,000 references is sorted without deep recursion."""
    made = Contents()
    for number in range(5000, 0, -1):
        takes = () if number == 5000 else (Reference("r", f"s{number + 1}", 1),)
        made.add(stored(f"s{number}", 1, number, references=takes))
    assert [each.id for each in in_order(made.versions.values())] == list(range(5000, 0, -1))
    assert json.loads(line(next(records(made))))["value"] == {"maxId": 5000}
