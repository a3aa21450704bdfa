"""What the log means: subjects, versions, ids, levels. Pure: changes in, answers out.

The state after n entries is the same in every registry. `apply` refuses what cannot follow
(`StateRefused`): a gap in the ids or two schemas under one id would mean that somebody else wrote.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from schemas.avro_schema import AvroType, parse
from schemas.compatibility import Level
from schemas.registry.changes import Change, LevelSet, VersionRegistered, VersionsDeleted
from schemas.registry.refusals import (
    config_not_found,
    schema_not_found,
    subject_not_found,
    version_not_found,
)
from skidway.errors import StateRefused

PARSED_MAX: Final = 1000


@dataclass(frozen=True, slots=True)
class Version:
    """A version of a subject."""

    version: int
    id: int
    deleted: bool = False


@dataclass(slots=True)
class Subject:
    """Versions in ascending order; `highest` counts also what is gone for ever."""

    versions: dict[int, Version] = field(default_factory=dict)
    highest: int = 0

    def live(self) -> list[Version]:
        """Versions that are not deleted."""
        return [each for each in self.versions.values() if not each.deleted]


class State:
    """Owned by one thread at a time (`schemas.registry.store` holds a lock around it)."""

    def __init__(self) -> None:
        self.subjects: dict[str, Subject] = {}
        self.levels: dict[str | None, Level] = {}
        self.last_id = 0
        self._schemas: dict[int, str] = {}
        self._ids: dict[str, int] = {}
        self._uses: dict[int, set[tuple[str, int]]] = {}
        self._parsed: dict[int, AvroType] = {}

    def apply(self, change: Change) -> None:
        """The state after one more entry. Raises `StateRefused` for one that cannot follow."""
        if isinstance(change, VersionRegistered):
            self._register(change)
        elif isinstance(change, VersionsDeleted):
            self._delete(change)
        else:
            self._set_level(change)

    def id_of(self, canonical: str) -> int | None:
        """The id that this schema has, in whatever subject, or once had."""
        return self._ids.get(canonical)

    def schema(self, schema_id: int) -> str:
        """The schema of an id that some version uses, even a softly deleted one."""
        if not self._uses.get(schema_id):
            raise schema_not_found(schema_id)
        return self._schemas[schema_id]

    def parsed(self, schema_id: int) -> AvroType:
        """The schema of an id, parsed once while it is in use."""
        if schema_id not in self._parsed:
            if len(self._parsed) >= PARSED_MAX:
                self._parsed.clear()
            self._parsed[schema_id] = parse(self._schemas[schema_id])
        return self._parsed[schema_id]

    def uses(self, schema_id: int, *, deleted: bool = False) -> list[tuple[str, int]]:
        """(subject, version) that have this id, in order."""
        self.schema(schema_id)
        return sorted(
            (name, version)
            for name, version in self._uses[schema_id]
            if deleted or not self.subjects[name].versions[version].deleted
        )

    def subject_names(self, *, deleted: bool = False, live: bool = True) -> list[str]:
        """Subjects with a live version, or with deleted ones only, or both."""
        return sorted(
            name
            for name, each in self.subjects.items()
            if each.versions and (live if each.live() else deleted)
        )

    def versions(self, subject: str, *, deleted: bool = False) -> list[Version]:
        """Versions of a subject, ascending. Raises `NotFound` where there is none."""
        known = self.subjects.get(subject)
        found = [] if known is None else [*(known.versions.values() if deleted else known.live())]
        if not found:
            raise subject_not_found(subject)
        return found

    def version(self, subject: str, version: int | None, *, deleted: bool = False) -> Version:
        """That version, or the latest (None). Raises `NotFound`."""
        found = self.versions(subject, deleted=deleted)
        if version is None:
            return found[-1]
        for each in found:
            if each.version == version:
                return each
        raise version_not_found(version)

    def find(self, subject: str, canonical: str, *, deleted: bool = False) -> Version | None:
        """The newest version of the subject that has this schema. Raises `NotFound` (subject)."""
        schema_id = self._ids.get(canonical)
        found = self.versions(subject, deleted=deleted)
        return next((each for each in reversed(found) if each.id == schema_id), None)

    def level(self, subject: str | None) -> Level:
        """The level set for a subject (None: for all). Raises `NotFound` if none is set."""
        if subject not in self.levels:
            raise config_not_found(subject or "")
        return self.levels[subject]

    def _register(self, change: VersionRegistered) -> None:
        self._learn(change)
        subject = self.subjects.setdefault(change.subject, Subject())
        if change.version != subject.highest + 1:
            raise StateRefused(f"Version {change.version} of {change.subject} does not follow.")
        replaced = [v.version for v in subject.versions.values() if v.deleted and v.id == change.id]
        for version in replaced:  # the same schema again takes its deleted version's place
            self._forget(change.subject, version)
        subject.highest = change.version
        subject.versions[change.version] = Version(change.version, change.id)
        self._uses.setdefault(change.id, set()).add((change.subject, change.version))

    def _learn(self, change: VersionRegistered) -> None:
        if change.schema is None:
            if change.id not in self._schemas:
                raise StateRefused(f"Schema id {change.id} is used before it has a schema.")
            return
        if change.id != self.last_id + 1 or change.schema in self._ids:
            raise StateRefused(f"Schema id {change.id} does not follow {self.last_id}.")
        self.last_id = change.id
        self._schemas[change.id] = change.schema
        self._ids[change.schema] = change.id

    def _delete(self, change: VersionsDeleted) -> None:
        subject = self.subjects[change.subject]
        for version in change.versions:
            if change.permanent:
                self._forget(change.subject, version)
            else:
                old = subject.versions[version]
                subject.versions[version] = Version(old.version, old.id, deleted=True)
        if not subject.versions:  # nothing is left: the subject begins anew
            del self.subjects[change.subject]
            self.levels.pop(change.subject, None)

    def _forget(self, subject: str, version: int) -> None:
        gone = self.subjects[subject].versions.pop(version)
        self._uses[gone.id].discard((subject, version))

    def _set_level(self, change: LevelSet) -> None:
        if change.level is None:
            self.levels.pop(change.subject, None)
        else:
            self.levels[change.subject] = change.level
