"""Makes decisions about new versions, imported versions and lookups.

The checks come in the same order as in Confluent's registry. If the subject already has the schema,
the registry answers the request without any check, even in mode READONLY. Otherwise it checks mode
and id. Unless the request is an import, it also compares the schema with earlier versions.
"""

from __future__ import annotations

from skidway.schemas.avro_schema import SchemaInvalid
from skidway.schemas.compatibility import Level
from skidway.schemas.registry.changes import VersionImported, VersionRegistered
from skidway.schemas.registry.decisions.comparison import Comparison, with_all
from skidway.schemas.registry.decisions.decision import Decision, check_subject, check_writable
from skidway.schemas.registry.decisions.submission import Submitted
from skidway.schemas.registry.kept import ID_MAX
from skidway.schemas.registry.refusals import (
    id_does_not_match,
    incompatible,
    invalid_schema,
    not_permitted,
    reference_exists,
    reference_not_found,
    schema_not_found,
)
from skidway.schemas.registry.state import RegistryState, Version


def register(state: RegistryState, subject: str, schema: Submitted) -> Decision:
    """Returns the decision about a registration. The answer is the subject's `Version` that has the
    schema. If no version has the schema, the decision adds a new version."""
    check_subject(subject)
    known = already_there(state, subject, schema)
    if known is not None:
        return Decision(known, None)
    check_writable(state, subject)
    _check_references(state, schema)
    mode = state.mode(subject)
    if schema.id is not None:
        if not mode.takes_ids:
            raise not_permitted(f"Subject {subject} is not in import mode")
        return _import(state, subject, schema, schema.id)
    if mode.takes_ids:
        raise not_permitted(f"Subject {subject} is not in read-write mode")
    return _new_version(state, subject, schema)


def comparison(state: RegistryState, subject: str, schema: Submitted) -> Comparison:
    """Returns the comparison that `register` will make. The returned object no longer needs the
    state. So the caller can call its slow method `messages` without holding a lock."""
    mode = state.mode(subject)
    is_measured = not (mode.takes_ids or mode.is_read_only or schema.id is not None)
    return with_all(state, subject) if is_measured else Comparison((), Level.NONE, state.parsed)


def already_there(state: RegistryState, subject: str, schema: Submitted) -> Version | None:
    """Returns the subject's live version that already has the request's schema, or None. If the
    request contains a version number or an id, the subject's version must also have that number or
    id.

    The request's schema may itself declare types that the version's schema takes from references.
    The two schemas count as the same if this is their only difference.
    """
    wanted = [
        each
        for each in state.live(subject)
        if schema.version in (None, each.version) and schema.id in (None, each.id)
    ]
    return _newest_same(state, wanted, schema)


def lookup(state: RegistryState, subject: str, schema: Submitted, *, deleted: bool) -> Version:
    """Returns the subject's newest version that has the schema. Raises `NotFound` if no version has
    it."""
    found = _newest_same(state, state.versions(subject, deleted=deleted), schema)
    if found is None:
        raise schema_not_found()
    return found


def _newest_same(
    state: RegistryState, versions: list[Version], schema: Submitted
) -> Version | None:
    """Returns the newest of `versions` that has the schema, or None if none of them has it. If the
    schema has several ids, prefers a version with the id that was written to the log last."""
    latest_id = state.id_of(schema.identity)
    for each in reversed(versions):
        if each.id == latest_id:
            return each
    for each in reversed(versions):
        if _is_same(state, each, schema):
            return each
    return None


def _is_same(state: RegistryState, version: Version, schema: Submitted) -> bool:
    kept = state.schema(version.id)
    if kept.identity == schema.identity:
        return True
    if schema.references or not kept.references:
        return False
    try:
        return state.parsed.of(kept).inlined() == schema.canonical
    except SchemaInvalid:
        return False


def _new_version(state: RegistryState, subject: str, schema: Submitted) -> Decision:
    version = state.next_version(subject)
    if schema.version not in (None, version):
        raise invalid_schema("Version is not one more than previous version")
    failed = with_all(state, subject).messages(schema)
    if failed:
        raise incompatible(subject, failed)
    known = state.id_of(schema.identity)
    if known is not None:
        made = Version(version, known)
        return Decision(made, VersionRegistered(subject, version, known, None))
    new_id = state.last_id + 1
    if new_id > ID_MAX:
        raise not_permitted(f"Every id up to {ID_MAX} is taken")
    change = VersionRegistered(subject, version, new_id, schema.canonical, schema.references)
    return Decision(Version(version, new_id), change)


def _import(state: RegistryState, subject: str, schema: Submitted, schema_id: int) -> Decision:
    version = schema.version or state.next_version(subject)
    kept = state.kept(schema_id)
    if kept is not None and kept.identity != schema.identity:
        raise not_permitted(f"Overwrite new schema with id {schema_id} is not permitted.")
    for each in state.live(subject):
        if each.version == version:
            raise not_permitted(
                f"Subject {subject} has version {version} already, with id {each.id}"
            )
        if schema.version is None and _is_same(state, each, schema):
            raise id_does_not_match(each.id, schema_id)
    # A deleted version may have the number `version`. If another schema references this deleted
    # version, the import must not replace it.
    if state.referenced_by(subject, version):
        raise reference_exists(subject, version)
    text, references = (schema.canonical, schema.references) if kept is None else (None, ())
    change = VersionImported(subject, version, schema_id, text, references)
    return Decision(Version(version, schema_id), change)


def _check_references(state: RegistryState, schema: Submitted) -> None:
    """Raises a refusal if a version that the schema references was deleted or changed after the
    schema was parsed."""
    for each in schema.references:
        deleted = schema.id is not None
        now = state.reference(each.name, each.subject, each.version, deleted=deleted)
        if now != each:
            raise reference_not_found(each.name, each.subject, each.version)
