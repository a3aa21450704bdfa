"""Finds the steps that bring a registry to the state of a dump. Refuses the restore if the dump and
the registry contradict each other. This module does no I/O.

If an id or a version has one schema in the registry and another schema in the dump, nothing at all
is restored. Subjects and versions that only the registry has are kept. If the registry already has
the state of the dump, there are no steps to do. So after an interruption, an operator can repeat
the restore.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from skidway.schemas.avro_schema import SchemaInvalid, parse
from skidway.schemas.canonical import canonical
from skidway.schemas.dump.contents import Contents, Key, StoredVersion, in_order
from skidway.schemas.dump.meaning import meaning
from skidway.schemas.dump.records import DumpRefused

NAMED_MAX: Final = 5
"""The message of a refusal lists at most this many conflicts, and says how many other conflicts
there are."""
CONTEXT: Final = ":."
"""The name of a subject that is not in the registry's default context begins with these
characters."""
LEVEL: Final = "compatibilityLevel"


@dataclass(frozen=True, slots=True)
class Steps:
    """The steps of a restore: first `imports`, then `deletions`, `reserve`, `levels` and `modes`.
    `reserve` is an id that one step uses up: after this step, the registry never assigns this id or
    a lower id to a new schema."""

    imports: tuple[StoredVersion, ...] = ()
    deletions: tuple[StoredVersion, ...] = ()
    levels: Mapping[str | None, Mapping[str, Any]] = field(default_factory=dict)
    modes: Mapping[str | None, str] = field(default_factory=dict)
    reserve: int | None = None

    def __bool__(self) -> bool:
        return bool(
            self.imports or self.deletions or self.levels or self.modes or self.reserve is not None
        )


def steps(wanted: Contents, there: Contents, *, with_modes: bool = True) -> Steps:
    """Returns the steps from `there` (the contents of the registry) to `wanted` (the contents of
    the dump). Raises `DumpRefused` for three kinds of conflicts: an id or a version has different
    schemas in the two, the dump has two schemas with one id, or neither of the two has a referenced
    version. The error's message names some of these conflicts and says how many there are."""
    found = list(_conflicts(wanted, there))
    if found:
        named = "; ".join(found[:NAMED_MAX])
        more = f"; and {len(found) - NAMED_MAX} more" if len(found) > NAMED_MAX else ""
        raise DumpRefused(f"Nothing was restored, because the registry has others: {named}{more}.")
    ordered = in_order(wanted.versions.values())
    imports = [each for each in ordered if _is_to_import(each, there)]
    deletions = [each for each in reversed(ordered) if _is_to_delete(each, there)]
    highest = max((there.highest_id, *(each.id for each in imports)))
    return Steps(
        tuple(replace(each, deleted=False) for each in imports),
        tuple(deletions),
        {s: level for s, level in wanted.levels.items() if not _same_level(level, there, s)},
        {s: m for s, m in wanted.modes.items() if with_modes and there.modes.get(s) != m},
        wanted.highest_id if wanted.highest_id > highest else None,
    )


def live_losses(planned: Steps, there: Contents) -> list[StoredVersion]:
    """Returns the versions that are live in the registry now, and that the restore would
    soft-delete."""
    return [
        each
        for each in planned.deletions
        if each.key in there.versions and not there.versions[each.key].deleted
    ]


def unsupported(contents: Contents, types: Collection[str]) -> list[str]:
    """Returns one sentence for each part of the contents that the registry cannot store. `types`:
    the types of schemas that the registry accepts.

    If the registry accepts only Avro, it is Skidway's registry, which has one context, and no
    rules, tags or metadata.
    """
    ours = set(types) == {"AVRO"}
    return [
        *(
            f"{each} is of type {each.schema_type}"
            for each in contents.versions.values()
            if each.schema_type not in types
        ),
        *(
            f"{each} has {', '.join(each.extra)}"
            for each in contents.versions.values()
            if ours and each.extra
        ),
        *(f"subject {each} is in another context" for each in _elsewhere(contents) if ours),
        *(
            f"the configuration of {subject or 'all subjects'} has {', '.join(_more(level))}"
            for subject, level in contents.levels.items()
            if ours and _more(level)
        ),
    ]


def supported(contents: Contents, types: Collection[str]) -> Contents:
    """Returns the contents without the parts that `unsupported` reports, and without the versions
    that reference these parts."""
    ours = set(types) == {"AVRO"}
    kept = Contents(highest_id=contents.highest_id)
    for each in in_order(contents.versions.values()):
        refers = all((r.subject, r.version) in kept.versions for r in each.references)
        elsewhere = ours and _is_elsewhere(each.subject)
        if each.schema_type in types and refers and not elsewhere:
            kept.add(replace(each, extra={}) if ours else each)
    for subject, level in contents.levels.items():
        if not (ours and _is_elsewhere(subject)):
            kept.levels[subject] = {LEVEL: level[LEVEL]} if ours and LEVEL in level else level
    for subject, mode in contents.modes.items():
        if not (ours and _is_elsewhere(subject)):
            kept.modes[subject] = mode
    return kept


def same_schema(one: StoredVersion, other: StoredVersion) -> bool:
    """Returns whether both versions have the same schema, even if they write its text
    differently."""
    if (one.schema_type, one.references) != (other.schema_type, other.references):
        return False
    return one.schema == other.schema or _spelled(one) == _spelled(other)


def _mean_the_same(
    one: StoredVersion, there: Contents, other: StoredVersion, wanted: Contents
) -> bool:
    """Returns whether `one`, a version in the registry, and `other`, a version in the dump, have
    the same schema, even if only one of them declares a type that the other one references."""
    if same_schema(one, other):
        return True
    meant = meaning(one, there)
    return meant is not None and meant == meaning(other, wanted)


def _is_elsewhere(subject: str | None) -> bool:
    """Returns whether a subject is in another context than the default context. Returns False for
    None, which stands for all subjects."""
    return subject is not None and subject.startswith(CONTEXT)


def _elsewhere(contents: Contents) -> list[str]:
    """Returns the subjects in other contexts that have a version, a level or a mode."""
    named = {*contents.subjects(), *contents.levels, *contents.modes}
    return sorted(each for each in named if each is not None and _is_elsewhere(each))


def _conflicts(wanted: Contents, there: Contents) -> Iterator[str]:
    by_id = {each.id: each for each in there.versions.values()}
    own: dict[int, StoredVersion] = {}
    for each in in_order(wanted.versions.values()):
        known = own.setdefault(each.id, each)
        if not same_schema(known, each):
            yield f"the dump has two schemas with id {each.id} ({known} and {each})"
        found = by_id.get(each.id)
        if found is not None and not _mean_the_same(found, there, each, wanted):
            yield f"id {each.id}, in the dump {each}, is {found} there"
        there_now = there.versions.get(each.key)
        if there_now is not None and there_now.id != each.id:
            yield f"{each} has id {there_now.id} there and {each.id} in the dump"
        for reference in each.references:
            key: Key = (reference.subject, reference.version)
            if key not in wanted.versions and key not in there.versions:
                yield f"{each} refers to {key[0]} version {key[1]}, which is nowhere"


def _is_to_import(each: StoredVersion, there: Contents) -> bool:
    known = there.versions.get(each.key)
    return known is None or (known.deleted and not each.deleted)


def _is_to_delete(each: StoredVersion, there: Contents) -> bool:
    known = there.versions.get(each.key)
    return each.deleted and (known is None or not known.deleted)


def _same_level(level: Mapping[str, Any], there: Contents, subject: str | None) -> bool:
    now = there.levels.get(subject)
    return now is not None and _meaning(level) == _meaning(now)


def _meaning(level: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in level.items() if value}


def _more(level: Mapping[str, Any]) -> list[str]:
    return sorted(name for name in _meaning(level) if name != LEVEL)


def _spelled(version: StoredVersion) -> Any:
    """Returns a value that is the same for all texts of the same schema. If the version's text is
    not JSON (as in Protobuf), the value is the text itself."""
    try:
        if version.schema_type == "AVRO" and not version.references:
            return canonical(parse(version.schema, check_defaults=False))
        return json.loads(version.schema)
    except (SchemaInvalid, ValueError, RecursionError):
        return version.schema
