"""May this be done, and which change does it? Pure: a state and a request in, a decision out.

Each function gives the answer for the client and the change that makes it true; a change of None
means that it is true already. Refusals are raised. The store runs a decision again, on a newer
state, whenever another registry was first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from schemas.avro_schema import AvroType, SchemaInvalid, parse
from schemas.canonical import canonical
from schemas.compatibility import Incompatibility, Level, check
from schemas.registry.changes import Change, LevelSet, VersionRegistered, VersionsDeleted
from schemas.registry.refusals import (
    config_not_found,
    incompatible,
    invalid_level,
    invalid_schema,
    invalid_subject,
    not_permitted,
    schema_not_found,
    subject_not_deleted,
    subject_was_deleted,
    version_not_deleted,
    version_was_deleted,
)
from schemas.registry.state import State, Version

SUBJECT_CHARACTERS_MAX: Final = 1000
_RESERVED: Final = frozenset({"__GLOBAL", "__EMPTY"})


@dataclass(frozen=True, slots=True)
class Submitted:
    """A schema that a client sent: parsed, and the text under which it is kept."""

    avro: AvroType
    canonical: str


@dataclass(frozen=True, slots=True)
class Decision:
    """What to answer, and the change that has to be in the log before (None: nothing)."""

    answer: Any
    change: Change | None


def submitted(body: dict[str, Any]) -> Submitted:
    """The schema of a request body. Raises a refusal for one that cannot be kept."""
    kind = body.get("schemaType") or "AVRO"
    if kind != "AVRO":
        raise invalid_schema(f"schema type {kind} is not supported; this registry takes AVRO")
    if body.get("references"):
        raise invalid_schema("references to other subjects are not supported")
    if body.get("metadata") or body.get("ruleSet"):
        raise invalid_schema("metadata and rules are not supported")
    text = body.get("schema")
    if not isinstance(text, str) or not text.strip():
        raise invalid_schema("the request has no schema")
    try:
        avro = parse(text)
    except SchemaInvalid as error:
        raise invalid_schema(str(error)) from None
    return Submitted(avro, canonical(avro))


def refuse_import(body: dict[str, Any]) -> None:
    """Refuses a registration that brings its own id: under another one its records are unreadable.

    Confluent's clients send null or -1 where they have none.
    """
    if body.get("id") not in (None, -1):
        raise not_permitted("The request has an id, and this registry has no mode IMPORT")


def register(state: State, subject: str, schema: Submitted, default: Level) -> Decision:
    """The schema's id under that subject; a new version if it is not there yet."""
    _check_subject(subject)
    known = _live(state, subject)
    schema_id = state.id_of(schema.canonical)
    if any(each.id == schema_id for each in known):
        return Decision(schema_id, None)
    failed = _check(state, known, schema.avro, effective_level(state, subject, default))
    if failed:
        raise incompatible(subject, failed)
    version = state.subjects[subject].highest + 1 if subject in state.subjects else 1
    if schema_id is not None:
        return Decision(schema_id, VersionRegistered(subject, version, schema_id, None))
    new_id = state.last_id + 1
    return Decision(new_id, VersionRegistered(subject, version, new_id, schema.canonical))


def lookup(state: State, subject: str, schema: Submitted, *, deleted: bool) -> Version:
    """The version under which the subject has the schema. Raises `NotFound`."""
    found = state.find(subject, schema.canonical, deleted=deleted)
    if found is None:
        raise schema_not_found()
    return found


def compatibility(
    state: State, subject: str, schema: Submitted, version: int | str, default: Level
) -> list[str]:
    """Why the schema may not follow; nothing if it may.

    `version`: a number, or "latest", or "all" (as many as the level says). A subject without
    schemas takes any, but a number that is not there is `NotFound`.
    """
    level = effective_level(state, subject, default)
    known = _live(state, subject)
    if isinstance(version, int):
        known = [state.version(subject, version)]
    elif version == "latest":
        known = known[-1:]
    return _check(state, known, schema.avro, level)


def delete_subject(state: State, subject: str, *, permanent: bool) -> Decision:
    """Every version of it; the answer is their numbers."""
    every = state.versions(subject, deleted=True)
    live = [each.version for each in every if not each.deleted]
    if permanent and live:
        raise subject_not_deleted(subject)
    if not permanent and not live:
        raise subject_was_deleted(subject)
    versions = [each.version for each in every] if permanent else live
    return Decision(versions, VersionsDeleted(subject, tuple(versions), permanent))


def delete_version(state: State, subject: str, version: int | None, *, permanent: bool) -> Decision:
    """One version (None: the latest); the answer is its number."""
    found = state.version(subject, version, deleted=version is not None)
    if permanent and not found.deleted:
        raise version_not_deleted(subject, found.version)
    if not permanent and found.deleted:
        raise version_was_deleted(subject, found.version)
    return Decision(found.version, VersionsDeleted(subject, (found.version,), permanent))


def set_level(state: State, subject: str | None, body: dict[str, Any]) -> Decision:
    """A compatibility level for a subject, or (None) for all that have none of their own."""
    asked = body.get("compatibility")
    try:
        level = Level(str(asked).upper())
    except ValueError:
        raise invalid_level(asked) from None
    if subject is not None:
        _check_subject(subject)
    done = state.levels.get(subject) is level
    return Decision({"compatibility": level.value}, None if done else LevelSet(subject, level))


def reset_level(state: State, subject: str | None, default: Level) -> Decision:
    """Back to the level above; the answer is the one that was set."""
    if subject not in state.levels:
        if subject is not None:
            raise config_not_found(subject)
        return Decision({"compatibilityLevel": default.value}, None)
    before = state.levels[subject].value
    return Decision({"compatibilityLevel": before}, LevelSet(subject, None))


def effective_level(state: State, subject: str, default: Level) -> Level:
    """The subject's own level, or that for all, or the program's."""
    return state.levels.get(subject) or state.levels.get(None) or default


def _live(state: State, subject: str) -> list[Version]:
    known = state.subjects.get(subject)
    return [] if known is None else known.live()


def _check(state: State, known: list[Version], avro: AvroType, level: Level) -> list[str]:
    if level is Level.NONE or not known:
        return []
    compared = known if level.is_transitive else known[-1:]
    try:
        failed = check(avro, [(each.version, state.parsed(each.id)) for each in compared], level)
    except SchemaInvalid as error:
        raise invalid_schema(str(error)) from None
    return [] if failed is None else _messages(state, known, failed, level)


def _messages(
    state: State, known: list[Version], failed: tuple[int, list[Incompatibility]], level: Level
) -> list[str]:
    version, found = failed
    old = next(each for each in known if each.version == version)
    return [
        *map(str, found),
        f"{{oldSchemaVersion: {version}}}",
        f"{{oldSchema: '{state.schema(old.id)}'}}",
        f"{{validateFields: 'false', compatibility: '{level.value}'}}",
    ]


def _check_subject(subject: str) -> None:
    good = 0 < len(subject) <= SUBJECT_CHARACTERS_MAX and subject.isprintable()
    if not good or subject in _RESERVED:
        raise invalid_subject(subject)
