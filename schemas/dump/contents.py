"""Turns the records of a `_schemas` topic into the state that they describe, and a state into
records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from skidway.schemas.client.answers import EXTRA, Reference, Registered, references_of
from skidway.schemas.dump.records import DumpRefused, Record

Key = tuple[str, int]
"""Subject and version."""


@dataclass(frozen=True, slots=True)
class StoredVersion:
    """A version of a subject. `deleted`: whether the version is soft-deleted."""

    subject: str
    version: int
    id: int
    schema: str
    references: tuple[Reference, ...] = ()
    schema_type: str = "AVRO"
    deleted: bool = False
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> Key:
        """Returns the subject and the number of the version."""
        return self.subject, self.version

    def registered(self) -> Registered:
        """Returns the version in the form in which a registry's client has it."""
        return Registered(
            self.subject,
            self.version,
            self.id,
            self.schema,
            self.references,
            self.schema_type,
            self.extra,
        )

    def __str__(self) -> str:
        return f"{self.subject} version {self.version}"


@dataclass(slots=True)
class Contents:
    """The whole contents of a registry. `levels` maps each subject that has its own compatibility
    level to this level, and `modes` does the same for modes. The key None has the global level and
    mode, which all other subjects use.

    The values of `levels` are configurations with the key `compatibilityLevel`. `highest_id`: the
    highest schema id that was ever assigned, as far as the records show it. `passed_over`: for each
    kind of record that this module ignores, the number of these records.
    """

    versions: dict[Key, StoredVersion] = field(default_factory=dict)
    levels: dict[str | None, Mapping[str, Any]] = field(default_factory=dict)
    modes: dict[str | None, str] = field(default_factory=dict)
    highest_id: int = 0
    passed_over: Counter[str] = field(default_factory=Counter)

    def add(self, version: StoredVersion) -> None:
        """Adds a version. If the subject has a version with the same number, replaces that
        version."""
        self.versions[version.key] = version
        self.highest_id = max(self.highest_id, version.id)

    def of(self, subject: str) -> list[StoredVersion]:
        """Returns the versions of a subject, in ascending order of their numbers."""
        return sorted(
            (each for each in self.versions.values() if each.subject == subject),
            key=lambda each: each.version,
        )

    def subjects(self) -> list[str]:
        """Returns every subject that has a version."""
        return sorted({subject for subject, _ in self.versions})


def replay(records: Iterable[Record]) -> Contents:
    """Returns the contents after all records are applied in order. Raises `DumpRefused` if a record
    does not have the form in which a schema registry writes it."""
    found = Contents()
    for number, record in enumerate(records, 1):
        try:
            _apply(found, record)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise DumpRefused(
                f"Record {number} ({record.kind}) is not as a schema registry writes it "
                f"({type(error).__name__}: {error})."
            ) from error
    return found


def records(contents: Contents) -> Iterator[Record]:
    """Yields the records that describe these contents. Each version comes after the versions that
    it references."""
    yield Record({"keytype": "NOOP", "magic": 0}, {"maxId": contents.highest_id})
    yield from _settings(contents, lambda subject: subject is None)
    for each in in_order(contents.versions.values()):
        yield _schema_record(each)
    yield from _settings(contents, lambda subject: subject is not None)


def in_order(versions: Iterable[StoredVersion]) -> list[StoredVersion]:
    """Returns the versions in the order of id, subject and version, except that a version always
    comes after the versions that it references."""
    waiting = sorted(versions, key=lambda each: (each.id, each.subject, each.version))
    by_key = {each.key: each for each in waiting}
    done: dict[Key, StoredVersion] = {}
    for each in waiting:
        _place(each, by_key, done)
    return list(done.values())


def only(contents: Contents, subjects: Iterable[str]) -> Contents:
    """Returns the part of the contents that belongs to these subjects, together with the versions
    of other subjects that their versions reference."""
    wanted = set(subjects)
    keys: dict[Key, StoredVersion] = {}
    for each in contents.versions.values():
        if each.subject in wanted:
            _place(each, contents.versions, keys)
    found = Contents(highest_id=0)
    for each in keys.values():
        found.add(each)
    found.levels = {s: value for s, value in contents.levels.items() if s in wanted}
    found.modes = {s: value for s, value in contents.modes.items() if s in wanted}
    return found


def _place(
    version: StoredVersion, known: Mapping[Key, StoredVersion], done: dict[Key, StoredVersion]
) -> None:
    """Adds `version` to `done`. Before that, adds all versions that `version` references, directly
    or through other versions. This function does not recurse, because chains of references may be
    too long for the stack."""
    stack: list[tuple[StoredVersion, bool]] = [(version, False)]
    open_now: set[Key] = set()
    while stack:
        each, complete = stack.pop()
        if complete:
            done.setdefault(each.key, each)
        elif each.key not in done and each.key not in open_now:
            open_now.add(each.key)
            stack.append((each, True))
            needed = [known.get((r.subject, r.version)) for r in each.references]
            stack.extend((one, False) for one in reversed(needed) if one is not None)


def _apply(contents: Contents, record: Record) -> None:
    key, value = record.key, record.value
    if record.kind == "SCHEMA":
        _apply_schema(contents, (str(key["subject"]), int(key["version"])), value)
    elif record.kind == "CONFIG":
        _set(contents.levels, key.get("subject"), value)
    elif record.kind == "MODE":
        mode = None if value is None else str(value["mode"])
        _set(contents.modes, key.get("subject"), mode)
    elif record.kind == "DELETE_SUBJECT":
        if value is not None:
            _delete_up_to(contents, str(key["subject"]), int(value["version"]))
    elif record.kind == "CLEAR_SUBJECT":
        _clear(contents, str(key["subject"]))
    elif record.kind == "NOOP":
        contents.highest_id = max(contents.highest_id, int((value or {}).get("maxId", 0)))
    else:
        contents.passed_over[record.kind] += 1


def _apply_schema(contents: Contents, key: Key, value: Mapping[str, Any] | None) -> None:
    if value is None:
        contents.versions.pop(key, None)
        return
    contents.add(
        StoredVersion(
            *key,
            id=int(value["id"]),
            schema=str(value["schema"]),
            references=references_of(value.get("references") or ()),
            schema_type=str(value.get("schemaType") or "AVRO"),
            deleted=bool(value.get("deleted", False)),
            extra={name: value[name] for name in EXTRA if value.get(name)},
        )
    )


def _set(settings: dict[str | None, Any], subject: str | None, value: Any) -> None:
    if value is None:
        settings.pop(subject, None)
    else:
        settings[subject] = value


def _delete_up_to(contents: Contents, subject: str, version: int) -> None:
    for each in contents.of(subject):
        if each.version <= version:
            contents.versions[each.key] = replace(each, deleted=True)


def _clear(contents: Contents, subject: str) -> None:
    for each in contents.of(subject):
        if each.deleted:
            del contents.versions[each.key]


def _settings(contents: Contents, wanted: Callable[[str | None], bool]) -> Iterator[Record]:
    for subject, level in sorted(contents.levels.items(), key=lambda item: item[0] or ""):
        if wanted(subject):
            yield Record({"keytype": "CONFIG", "subject": subject, "magic": 0}, level)
    for subject, mode in sorted(contents.modes.items(), key=lambda item: item[0] or ""):
        if wanted(subject):
            value = {"subject": subject, "mode": mode}
            yield Record({"keytype": "MODE", "subject": subject, "magic": 0}, value)


def _schema_record(each: StoredVersion) -> Record:
    value: dict[str, Any] = {"subject": each.subject, "version": each.version, "id": each.id}
    if each.schema_type != "AVRO":
        value["schemaType"] = each.schema_type
    if each.references:
        value["references"] = [one.document() for one in each.references]
    value |= {**each.extra, "schema": each.schema, "deleted": each.deleted}
    key = {
        "keytype": "SCHEMA",
        "subject": each.subject,
        "version": each.version,
        "magic": 1,
    }
    return Record(key, value)
