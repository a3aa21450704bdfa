"""A restore changes a registry's contents to those of a dump. The steps of a restore leave nothing
out and do nothing twice, and the registry refuses none of them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skidway.schemas.client import Reference
from skidway.schemas.dump.contents import Contents, StoredVersion
from skidway.schemas.dump.records import DumpRefused
from skidway.schemas.dump.restoring import Steps, live_losses, steps, supported, unsupported
from support.registry_dumps import contents, stored


def carried_out(planned: Steps, there: Contents) -> Contents:
    """Returns the registry's contents after the steps. Asserts that a registry would refuse none of
    the steps."""
    made = Contents(dict(there.versions), dict(there.levels), dict(there.modes), there.highest_id)
    for each in planned.imports:
        assert all((r.subject, r.version) in made.versions for r in each.references)
        made.add(each)
    for each in planned.deletions:
        referring = [
            other
            for other in made.versions.values()
            if not other.deleted
            and any((r.subject, r.version) == each.key for r in other.references)
        ]
        assert not referring
        made.add(replace(each, deleted=True))
    made.levels |= planned.levels
    made.modes |= planned.modes
    made.highest_id = max(made.highest_id, planned.reserve or 0)
    return made


def without_live_users_of_deleted(wanted: Contents) -> Contents:
    """Marks as deleted each version in `wanted` that references a deleted version, and returns
    `wanted`. The reason: a registry refuses to delete a version that a live version references."""
    for each in list(wanted.versions.values()):
        for reference in each.references:
            target = wanted.versions[reference.subject, reference.version]
            if target.deleted and not each.deleted:
                wanted.versions[each.key] = replace(each, deleted=True)
    return wanted


@given(contents())
def test_an_empty_registry_gets_everything(wanted: Contents) -> None:
    """A restore into an empty registry creates everything that is in the dump, referenced versions
    first and deletions last. A second restore changes nothing."""
    wanted = without_live_users_of_deleted(wanted)
    planned = steps(wanted, Contents())
    there = carried_out(planned, Contents())
    assert there == wanted
    assert not steps(wanted, there)


@given(contents(), st.data())
def test_an_interrupted_restore_is_repeated(wanted: Contents, data: st.DataObject) -> None:
    """Wherever a restore was interrupted, a second restore brings the registry to the same contents
    as a restore without an interruption."""
    wanted = without_live_users_of_deleted(wanted)
    planned = steps(wanted, Contents())
    stop = data.draw(st.integers(0, len(planned.imports)))
    there = carried_out(Steps(imports=planned.imports[:stop]), Contents())
    assert carried_out(steps(wanted, there), there) == wanted


def test_another_schema_under_an_id_is_refused_before_anything() -> None:
    """If an id has one schema in the dump and another in the registry, the restore is refused, and
    nothing is changed. The error names the version in the dump and the version in the registry, and
    gives the number of further conflicts."""
    wanted, there = Contents(), Contents()
    for number in range(1, 8):
        wanted.add(stored("users", number, number))
        there.add(replace(stored("orders", number, number), schema='"int"'))
    with pytest.raises(DumpRefused) as caught:
        steps(wanted, there)
    assert "id 1, in the dump users version 1, is orders version 1 there" in str(caught.value)
    assert "and 2 more" in str(caught.value)


def test_another_id_of_a_version_is_refused() -> None:
    """A dump is refused if a version has one id in the dump and another in the registry, because
    records with the dump's id would then be read with another schema."""
    wanted, there = Contents(), Contents()
    wanted.add(stored("s", 1, 1))
    there.add(stored("s", 1, 2))
    with pytest.raises(DumpRefused, match="s version 1 has id 2 there and 1 in the dump"):
        steps(wanted, there)


def test_a_dump_that_contradicts_itself_is_refused() -> None:
    """A dump with two schemas under one id, or a reference to a missing version, is refused."""
    wanted = Contents()
    wanted.add(stored("s", 1, 1))
    wanted.add(replace(stored("t", 1, 1), schema='"int"'))
    wanted.add(stored("u", 1, 3, references=(Reference("r", "none", 4),)))
    with pytest.raises(DumpRefused) as caught:
        steps(wanted, Contents())
    assert "two schemas with id 1" in str(caught.value)
    assert "u version 1 refers to none version 4, which is nowhere" in str(caught.value)


def test_another_spelling_is_the_same_schema() -> None:
    """In a restore, the texts of a schema in the dump and in the registry count as the same schema
    if they have the same canonical text. The reason is that Confluent's registry may store a schema
    as its author wrote it."""
    wanted, there = Contents(), Contents()
    wanted.add(StoredVersion("s", 1, 1, '{ "type": "int" }'))
    there.add(StoredVersion("s", 1, 1, '"int"'))
    assert not steps(wanted, there)


def test_what_is_live_here_and_deleted_there_is_named() -> None:
    """`live_losses` lists the versions that are live in the registry and deleted in the dump, so
    that the command can ask the user before the restore."""
    wanted, there = Contents(), Contents()
    wanted.add(stored("s", 1, 1, deleted=True))
    there.add(stored("s", 1, 1))
    planned = steps(wanted, there)
    assert [each.key for each in live_losses(planned, there)] == [("s", 1)]
    assert not live_losses(steps(wanted, Contents()), Contents())


def test_ids_of_what_is_gone_are_not_given_out_again() -> None:
    """If no version in the dump has the highest id that was ever assigned, a restore reserves this
    id, so that it is not assigned again."""
    wanted = Contents()
    wanted.add(stored("s", 1, 1))
    wanted.highest_id = 9
    assert steps(wanted, Contents()).reserve == 9
    assert steps(wanted, Contents(highest_id=9)).reserve is None


def test_modes_stay_if_asked() -> None:
    """A restore can leave out modes. A registry is often set to READONLY before its contents are
    copied to a new registry, but the new registry must be writable."""
    wanted = Contents(modes={None: "READONLY"})
    assert steps(wanted, Contents()).modes == {None: "READONLY"}
    assert not steps(wanted, Contents(), with_modes=False)


def test_what_a_registry_cannot_keep_is_told_and_left_out() -> None:
    """A restore into Skidway's registry leaves out and reports what this registry does not support:
    schemas of types other than Avro, rules, contexts, and configuration other than compatibility
    levels. It also leaves out schemas that use schemas of other types."""
    wanted = Contents(
        levels={"s": {"compatibilityLevel": "FULL", "alias": "t", "normalize": False}}
    )
    wanted.add(stored("s", 1, 1))
    wanted.add(stored("p", 1, 2, schema_type="PROTOBUF"))
    wanted.add(stored("q", 1, 3, references=(Reference("r", "p", 1),)))
    wanted.add(stored("r", 1, 4, extra={"ruleSet": {"domainRules": [1]}}))
    wanted.add(stored(":.ctx:s", 1, 5))
    assert unsupported(wanted, ["AVRO"]) == [
        "p version 1 is of type PROTOBUF",
        "r version 1 has ruleSet",
        "subject :.ctx:s is in another context",
        "the configuration of s has alias",
    ]
    kept = supported(wanted, ["AVRO"])
    assert sorted(kept.versions) == [("r", 1), ("s", 1)]
    assert not unsupported(kept, ["AVRO"])
    assert not unsupported(wanted, ["AVRO", "JSON", "PROTOBUF"])


def test_settings_of_subjects_in_other_contexts_are_told_and_left_out() -> None:
    """A restore into Skidway's registry leaves out and reports levels and modes of subjects in
    other contexts, even if these subjects have no versions. Levels and modes of other subjects are
    restored."""
    level = {"compatibilityLevel": "FULL"}
    wanted = Contents(
        levels={None: level, "s": level, ":.ctx:s": level},
        modes={None: "READWRITE", "s": "READONLY", ":.ctx:t": "READONLY"},
    )
    assert unsupported(wanted, ["AVRO"]) == [
        "subject :.ctx:s is in another context",
        "subject :.ctx:t is in another context",
    ]
    kept = supported(wanted, ["AVRO"])
    assert kept.levels == {None: level, "s": level}
    assert kept.modes == {None: "READWRITE", "s": "READONLY"}
    assert supported(wanted, ["AVRO", "JSON"]).levels == wanted.levels
    assert supported(wanted, ["AVRO", "JSON"]).modes == wanted.modes
