"""Reads a registry's contents over its REST API, and carries out the steps of a restore."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Final

from skidway.schemas.avro_schema import SchemaInvalid
from skidway.schemas.client import (
    MODE_UNSET,
    SUBJECT_UNKNOWN,
    Registered,
    RegistryAdministration,
    RegistryRefused,
)
from skidway.schemas.client.answers import AVRO
from skidway.schemas.dump.contents import Contents, StoredVersion
from skidway.schemas.dump.meaning import meaning
from skidway.schemas.dump.restoring import LEVEL, Steps

IMPORT: Final = "IMPORT"
READWRITE: Final = "READWRITE"
READONLY_OVERRIDE: Final = "READONLY_OVERRIDE"
RESERVED_SUBJECT: Final = "skidway-restore-reserved"
"""A restore registers a version of this subject with the highest id of the dump, and deletes this
version again. After that, the registry assigns only higher ids, so it never assigns an id of the
dump to another schema."""

Tell = Callable[[int, int], None]
"""A function that is called with the number of steps that are done, and the number of all steps."""


def read(client: RegistryAdministration, tell: Tell | None = None) -> Contents:
    """Returns everything that the registry lists. Calls `tell` each time that it has read the level
    and the mode of a subject, or the global level and mode. Raises the client's errors.

    The first request lists all versions, also deleted ones; the second lists only live versions. If
    a version is added or deleted between the two requests, the second answer counts. The result
    does not include levels and modes of subjects without versions.

    If a soft-deleted version references another version, a registry may delete that other version
    permanently, and give its number to another schema. If this has happened, the result has the
    soft-deleted version with a text that itself declares the types that its references meant, and
    without references.
    """
    found = Contents()
    everything = {_key(each): each for each in client.all_versions(deleted=True)}
    live = {_key(each): each for each in client.all_versions()}
    for key, each in (everything | live).items():
        found.add(_stored(each, deleted=key not in live))
    for lasting in [*_with_lasting_texts(client, found)]:
        found.add(lasting)
    known = next(iter(found.versions.values()), None)
    if known is not None:
        found.highest_id = max(found.highest_id, client.highest_id(known.id) or 0)
    names = [None, *found.subjects()]
    for number, subject in enumerate(names, 1):
        _read_settings(client, subject, found)
        if tell is not None:
            tell(number, len(names))
    return found


def carry_out(
    client: RegistryAdministration, planned: Steps, there: Contents, tell: Tell | None = None
) -> None:
    """Carries out the steps of a restore. Sets the mode IMPORT, imports and deletes versions, and
    then sets the previous modes again, even after an error. Finally sets the compatibility levels
    and modes of the dump.

    While the mode is IMPORT, the registry assigns no ids itself, so no other schema gets an id of
    the dump.
    """
    total, done = len(planned.imports) + len(planned.deletions), 0
    with _importing(client, planned, there):
        for each in planned.imports:
            client.import_version(each.registered())
            done += 1
            _tell(tell, done, total)
        for each in planned.deletions:
            client.delete_version(each.subject, each.version)
            done += 1
            _tell(tell, done, total)
        if planned.reserve is not None:
            _reserve(client, planned.reserve)
    for subject, level in planned.levels.items():
        client.set_level(subject, _to_set(dict(level)))
    for subject, mode in planned.modes.items():
        client.set_mode(subject, mode, force=True)


@contextlib.contextmanager
def _importing(client: RegistryAdministration, planned: Steps, there: Contents) -> Iterator[None]:
    subjects = {each.subject for each in (*planned.imports, *planned.deletions)}
    if not subjects and planned.reserve is None:
        yield
        return
    scopes: list[str | None] = [None, *sorted(s for s in subjects if s in there.modes)]
    for scope in scopes:
        client.set_mode(scope, IMPORT, force=True)
    try:
        yield
    finally:
        for scope in reversed(scopes):
            _set_back(client, scope, there.modes.get(scope))


def _set_back(client: RegistryAdministration, scope: str | None, before: str | None) -> None:
    """Sets the mode of `scope` (a subject, or None for all subjects) back to `before`, its value
    before this restore. If `before` is IMPORT, an earlier restore has set this mode and was
    interrupted. In this case, removes the mode."""
    if before is None or before == IMPORT:
        if scope is None:
            client.set_mode(None, READWRITE)
        else:
            _reset_mode(client, scope)
    else:
        client.set_mode(scope, before)


def _reset_mode(client: RegistryAdministration, subject: str) -> None:
    """Removes a subject's mode. Raises no error if the mode is already gone, because older
    registries remove the mode together with the subject's last live version."""
    try:
        client.reset_mode(subject)
    except RegistryRefused as refused:
        if refused.error_code not in (SUBJECT_UNKNOWN, MODE_UNSET):
            raise


def _reserve(client: RegistryAdministration, highest_id: int) -> None:
    """Registers a version with the id `highest_id` and deletes it again, so that the registry
    assigns only higher ids afterwards."""
    schema = f'{{"type":"fixed","name":"Id{highest_id}","namespace":"skidway.reserved","size":1}}'
    client.import_version(Registered(RESERVED_SUBJECT, 1, highest_id, schema))
    client.delete_subject(RESERVED_SUBJECT)
    client.delete_subject(RESERVED_SUBJECT, permanent=True)


def _with_lasting_texts(client: RegistryAdministration, found: Contents) -> Iterator[StoredVersion]:
    """Yields each version whose references no longer mean what they meant at its registration, with
    a text that needs no references. References can lose their meaning only if no live version has
    the same schema id, because a registry does not delete what a live version references."""
    live = {each.id for each in found.versions.values() if not each.deleted}
    for each in found.versions.values():
        if each.references and each.schema_type == AVRO and each.id not in live:
            try:
                text = client.schema(each.id)
            except (RegistryRefused, SchemaInvalid):
                continue  # the registry itself cannot resolve the references
            if text != meaning(each, found):
                yield replace(each, schema=text, references=())


def _read_settings(client: RegistryAdministration, subject: str | None, found: Contents) -> None:
    level, mode = client.level(subject), client.mode(subject)
    if level is not None:
        found.levels[subject] = level
    if subject is not None and mode == READONLY_OVERRIDE:
        return  # the global mode READONLY_OVERRIDE hides the subject's own mode
    if mode is not None and not (subject is None and mode == READWRITE):
        found.modes[subject] = mode


def _to_set(level: dict[str, Any]) -> dict[str, Any]:
    """Returns the configuration in the form for PUT requests, which has the key `compatibility`.
    Answers to GET requests have the key `compatibilityLevel` instead."""
    given = level.pop(LEVEL, None)
    return {**({} if given is None else {"compatibility": given}), **level}


def _key(each: Registered) -> tuple[str, int]:
    return each.subject, each.version


def _stored(each: Registered, *, deleted: bool) -> StoredVersion:
    return StoredVersion(
        each.subject,
        each.version,
        each.id,
        each.schema,
        each.references,
        each.schema_type,
        deleted,
        each.extra,
    )


def _tell(tell: Tell | None, done: int, total: int) -> None:
    if tell is not None:
        tell(done, total)
