"""Computes the state that the log's entries describe: subjects, versions, ids, compatibility levels
and modes. The module does no I/O.

The state after n entries is the same in every registry. `apply` raises `StateRefused` for an entry
that cannot follow the earlier entries. For example, a gap in the ids, or two schemas under one id,
would mean that a program other than a registry wrote to the log.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from skidway.errors import StateRefused
from skidway.schemas.compatibility import Level
from skidway.schemas.registry.changes import (
    Change,
    LevelSet,
    ModeSet,
    VersionImported,
    VersionRegistered,
    VersionsDeleted,
)
from skidway.schemas.registry.kept import ID_MAX, Identity, Kept, Reference
from skidway.schemas.registry.modes import Mode
from skidway.schemas.registry.parsed import ParsedSchemas
from skidway.schemas.registry.refusals import (
    NotFound,
    reference_not_found,
    schema_not_found,
    subject_not_found,
    version_not_found,
)


@dataclass(frozen=True, slots=True)
class Version:
    """A version of a subject."""

    version: int
    id: int
    deleted: bool = False


@dataclass(slots=True)
class Subject:
    """The versions of a subject in ascending order. `highest` is the highest number that a version
    of the subject ever had. Permanently deleted versions count, too, as long as the subject has
    another version."""

    versions: dict[int, Version] = field(default_factory=dict)
    highest: int = 0

    def live(self) -> list[Version]:
        """Returns the versions that are not deleted."""
        return [each for each in self.versions.values() if not each.deleted]

    def put(self, version: Version) -> None:
        """Adds a version. Replaces the version of the same number, if there is one."""
        in_order = version.version in self.versions or version.version > self.highest
        self.versions[version.version] = version
        self.highest = max(self.highest, version.version)
        if not in_order:
            self.versions = dict(sorted(self.versions.items()))


class RegistryState:
    """The registry's whole state. Only one thread at a time may use the object
    (`skidway.schemas.registry.store` has a lock for this).

    `default_level`, a setting of the program, applies if no level is set. `parsed` caches parsed
    schemas and has a lock of its own.
    """

    def __init__(self, default_level: Level = Level.BACKWARD) -> None:
        self.default_level = default_level
        self.subjects: dict[str, Subject] = {}
        self.levels: dict[str | None, Level] = {}
        self.modes: dict[str | None, Mode] = {}
        self.last_id = 0
        self.parsed = ParsedSchemas()
        self._kept: dict[int, Kept] = {}
        self._ids: dict[Identity, int] = {}
        self._guids: dict[str, list[int]] = {}
        self._uses: dict[int, set[tuple[str, int]]] = {}
        self._referring: dict[tuple[str, int], set[int]] = {}

    def apply(self, change: Change) -> None:
        """Applies the next entry of the registry's log. Raises `StateRefused` for an entry that
        cannot follow the earlier entries, or KeyError if the entry deletes or references what does
        not exist."""
        if isinstance(change, VersionRegistered):
            self._register(change)
        elif isinstance(change, VersionsDeleted):
            self._delete(change)
        elif isinstance(change, LevelSet):
            self._set_level(change)
        else:
            self._set_mode(change)

    def id_of(self, identity: Identity) -> int | None:
        """Returns the id that this schema has or once had, under any subject. Returns None if the
        schema never had an id.

        If the schema has several ids because of imports, returns the id that was written to the log
        last.
        """
        return self._ids.get(identity)

    def kept(self, schema_id: int) -> Kept | None:
        """Returns the schema of an id, even if no version uses the schema. Returns None if the id
        is unknown."""
        return self._kept.get(schema_id)

    def schema(self, schema_id: int) -> Kept:
        """Returns the schema of an id that a version uses, even if that version is soft-deleted.
        Raises `NotFound` if no version uses the id."""
        if not self._uses.get(schema_id):
            raise schema_not_found(schema_id)
        return self._kept[schema_id]

    def ids_of_guid(self, guid: str) -> list[int]:
        """Returns the ids of the schema with this guid in ascending order, but only ids that a
        version uses. Raises `NotFound` if there are none."""
        found = [each for each in self._guids.get(guid.lower(), ()) if self._uses.get(each)]
        if not found:
            raise schema_not_found(guid)
        return sorted(found)

    def uses(self, schema_id: int, *, deleted: bool = False) -> list[tuple[str, int]]:
        """Returns, sorted, the subject and the number of each version whose schema has this id.
        `deleted` says whether to include deleted versions."""
        self.schema(schema_id)
        return sorted(
            (name, version)
            for name, version in self._uses[schema_id]
            if deleted or not self.subjects[name].versions[version].deleted
        )

    def referenced_by(self, subject: str, version: int) -> list[int]:
        """Returns the ids of the schemas that reference this version, in ascending order. Includes
        only schemas that a live version uses.

        As long as there is one of these schemas, the referenced version can be neither deleted nor
        replaced. So all references to the version mean the same schema.
        """
        return sorted(
            each for each in self._referring.get((subject, version), ()) if self._is_live(each)
        )

    def reference(
        self, name: str, subject: str, version: int | None, *, deleted: bool = False
    ) -> Reference:
        """Returns a reference to a version. If `version` is None, the reference is to the latest
        version. Raises `NotFound` if the subject has no such version."""
        try:
            found = self.version(subject, version, deleted=deleted)
        except NotFound:
            raise reference_not_found(name, subject, version) from None
        return Reference(name, subject, found.version, found.id)

    def needs(self, references: Iterable[Reference]) -> tuple[Kept, ...]:
        """Returns the schemas to which these references refer, in the same order."""
        return tuple(self._kept[each.id] for each in references)

    def subject_names(self, *, deleted: bool = False, live: bool = True) -> list[str]:
        """Returns the names of subjects. `live` says whether to include subjects with a live
        version, and `deleted` says whether to include subjects with only deleted versions."""
        return sorted(
            name
            for name, each in self.subjects.items()
            if each.versions and (live if each.live() else deleted)
        )

    def versions(self, subject: str, *, deleted: bool = False) -> list[Version]:
        """Returns the versions of a subject in ascending order. Raises `NotFound` if there are
        none."""
        known = self.subjects.get(subject)
        found = [] if known is None else [*(known.versions.values() if deleted else known.live())]
        if not found:
            raise subject_not_found(subject)
        return found

    def live(self, subject: str) -> list[Version]:
        """Returns the subject's versions that are not deleted. The list is empty if the subject
        does not exist."""
        known = self.subjects.get(subject)
        return [] if known is None else known.live()

    def version(self, subject: str, version: int | None, *, deleted: bool = False) -> Version:
        """Returns the version with this number. If `version` is None, returns the latest version.
        Raises `NotFound` if the subject has no such version."""
        found = self.versions(subject, deleted=deleted)
        if version is None:
            return found[-1]
        for each in found:
            if each.version == version:
                return each
        raise version_not_found(version)

    def next_version(self, subject: str) -> int:
        """Returns the number that the subject's next version gets."""
        return self.subjects[subject].highest + 1 if subject in self.subjects else 1

    def level(self, subject: str | None) -> Level:
        """Returns the compatibility level that applies to a subject. If `subject` is None, returns
        the level that applies to all subjects without a level of their own."""
        return self.levels.get(subject) or self.levels.get(None) or self.default_level

    def mode(self, subject: str | None) -> Mode:
        """Returns the mode that applies to a subject. If `subject` is None, returns the mode that
        applies to all subjects without a mode of their own."""
        above = self.modes.get(None, Mode.READWRITE)
        return above if above is Mode.READONLY_OVERRIDE else self.modes.get(subject, above)

    def _register(self, change: VersionRegistered) -> None:
        imported = isinstance(change, VersionImported)
        if not imported and change.version != self.next_version(change.subject):
            raise StateRefused(f"Version {change.version} of {change.subject} does not follow.")
        self._learn(change, imported=imported)
        self._ids[self._kept[change.id].identity] = change.id
        subject = self.subjects.setdefault(change.subject, Subject())
        # If a schema is registered again under a subject where it was deleted, the new version
        # replaces the deleted version. But if the schema of a live version references the deleted
        # version, the deleted version stays, because stock clients look for it by subject and
        # version. (Confluent's registry removes it even then.)
        for each in [*subject.versions.values()]:
            returned = each.deleted and each.id == change.id and each.version < change.version
            returned = returned and not self.referenced_by(change.subject, each.version)
            if returned or each.version == change.version:
                self._forget(change.subject, each.version)
        subject.put(Version(change.version, change.id))
        self._uses.setdefault(change.id, set()).add((change.subject, change.version))

    def _learn(self, change: VersionRegistered, *, imported: bool) -> None:
        if change.schema is None:
            if change.id not in self._kept:
                raise StateRefused(f"Schema id {change.id} is used before it has a schema.")
            return
        identity = change.schema, change.references
        follows = change.id == self.last_id + 1 and identity not in self._ids
        is_new = 0 < change.id <= ID_MAX and change.id not in self._kept
        if not ((is_new and imported) or follows):
            raise StateRefused(f"Schema id {change.id} does not follow {self.last_id}.")
        kept = Kept(change.id, change.schema, change.references, self.needs(change.references))
        self.last_id = max(self.last_id, change.id)
        self._kept[change.id] = kept
        self._guids.setdefault(kept.guid, []).append(change.id)
        for each in change.references:
            self._referring.setdefault((each.subject, each.version), set()).add(change.id)

    def _delete(self, change: VersionsDeleted) -> None:
        subject = self.subjects[change.subject]
        for version in change.versions:
            if change.permanent:
                self._forget(change.subject, version)
            else:
                old = subject.versions[version]
                subject.put(Version(old.version, old.id, deleted=True))
        if not subject.versions:  # no version is left, so the subject is forgotten
            del self.subjects[change.subject]
            self.levels.pop(change.subject, None)
            self.modes.pop(change.subject, None)

    def _forget(self, subject: str, version: int) -> None:
        gone = self.subjects[subject].versions.pop(version)
        self._uses[gone.id].discard((subject, version))

    def _set_level(self, change: LevelSet) -> None:
        if change.level is None:
            self.levels.pop(change.subject, None)
        else:
            self.levels[change.subject] = change.level

    def _set_mode(self, change: ModeSet) -> None:
        if change.recursive:
            self.modes.clear()
        if change.mode is None:
            self.modes.pop(change.subject, None)
        else:
            self.modes[change.subject] = change.mode

    def _is_live(self, schema_id: int) -> bool:
        return any(
            not self.subjects[name].versions[version].deleted
            for name, version in self._uses.get(schema_id, ())
        )
