"""A model of the schema registry for tests. It implements the registry's correct behaviour a second
time, as simply as possible.

The model has no log, no JSON and no Avro. A schema is only a key, and a refusal is only an error
code. Tests send the same requests to the model and to the real registry. Then they compare the
answers of both, and the versions, schemas and modes that each of them has.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

ALL = "*"
"""The key in `Model.modes` for the mode that applies to subjects without a mode of their own."""

READ_ONLY = ("READONLY", "READONLY_OVERRIDE")
WITH_IDS = ("IMPORT", "FORWARD")


class Refused(Exception):
    """Raised if the model refuses a request. `code` is the error code that the registry must answer
    with."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


@dataclass(frozen=True)
class Uses:
    """Stands for a schema that references the version `version` of `subject`. `id` is the schema id
    of this version."""

    subject: str
    version: int
    id: int


Schema = int | Uses


@dataclass(frozen=True)
class Row:
    """A version of a subject."""

    id: int
    deleted: bool = False


@dataclass
class Model:
    """The model of the whole registry."""

    rows: dict[str, dict[int, Row]] = field(default_factory=dict)
    highest: dict[str, int] = field(default_factory=dict)
    schemas: dict[int, Schema] = field(default_factory=dict)
    ids: dict[Schema, int] = field(default_factory=dict)
    """The id of each schema. If a schema has several ids, this is the id that was written last."""
    modes: dict[str, str] = field(default_factory=dict)

    def register(self, subject: str, schema: Schema) -> int:
        """Registers a schema that comes without an id, and returns its id."""
        self._check_reference(schema)
        live = self._live(subject)
        same = {n: row.id for n, row in live.items() if self.schemas[row.id] == schema}
        if same:
            return self.ids[schema] if self.ids[schema] in same.values() else same[max(same)]
        if self._mode(subject) != "READWRITE":
            raise Refused(42205)
        schema_id = self.ids.get(schema, max(self.schemas, default=0) + 1)
        self._put(subject, self.highest.get(subject, 0) + 1, schema_id, schema)
        return schema_id

    def put(self, subject: str, schema: Schema, schema_id: int, version: int) -> int:
        """Registers a schema that comes with its id and version, and returns the id."""
        self._check_reference(schema, deleted=True)
        there = self._live(subject).get(version)
        if there and there.id == schema_id and self.schemas[schema_id] == schema:
            return schema_id
        taken = schema_id in self.schemas and self.schemas[schema_id] != schema
        if self._mode(subject) not in WITH_IDS or taken or there:
            raise Refused(42205)
        if version in self.rows.get(subject, {}):
            self._check_unused(subject, version)
        self._put(subject, version, schema_id, schema)
        return schema_id

    def delete_subject(self, subject: str, permanent: bool) -> list[int]:
        """Deletes a subject, and returns the deleted versions."""
        if self._mode(subject) in READ_ONLY:
            raise Refused(42205)
        if not self.rows.get(subject):
            raise Refused(40401)
        live = self._live(subject)
        if not permanent and not live:
            raise Refused(40404)
        gone = sorted(self.rows[subject] if permanent else live)
        for version in gone:
            self._check_unused(subject, version)
        if permanent and live:
            raise Refused(40405)
        for version in gone:
            self._drop(subject, version, permanent)
        return gone

    def delete_version(self, subject: str, version: int, permanent: bool) -> int:
        """Deletes a version, and returns its number."""
        if self._mode(subject) in READ_ONLY:
            raise Refused(42205)
        if not self.rows.get(subject):
            raise Refused(40401)
        if version not in self.rows[subject]:
            raise Refused(40402)
        self._check_unused(subject, version)
        row = self.rows[subject][version]
        if row.deleted is not permanent:
            raise Refused(40406 if row.deleted else 40407)
        self._drop(subject, version, permanent)
        return version

    def set_mode(self, subject: str, mode: str, force: bool) -> None:
        """Sets the mode of one subject, or the mode of all subjects."""
        if mode in WITH_IDS and self._mode(subject) not in WITH_IDS and not force:
            affected = [*self.rows] if subject == ALL else [subject]
            if any(self._live(each) for each in affected):
                raise Refused(42205)
        self.modes[subject] = mode

    def reset_mode(self, subject: str) -> None:
        """Removes a subject's own mode, or sets the mode of all subjects back to READWRITE."""
        if subject not in self.modes and subject != ALL:
            raise Refused(40401)
        self.modes.pop(subject, None)

    def summary(self) -> Any:
        """The versions, schemas and modes that every registry must have after the same requests."""
        rows = {each: dict(sorted(rows.items())) for each, rows in self.rows.items() if rows}
        return rows, self.schemas, self.modes

    def _mode(self, subject: str) -> str:
        above = self.modes.get(ALL, "READWRITE")
        return above if above == "READONLY_OVERRIDE" else self.modes.get(subject, above)

    def _live(self, subject: str) -> dict[int, Row]:
        return {n: row for n, row in self.rows.get(subject, {}).items() if not row.deleted}

    def _put(self, subject: str, version: int, schema_id: int, schema: Schema) -> None:
        rows = self.rows.setdefault(subject, {})
        for number, row in [*rows.items()]:
            returned = row.deleted and row.id == schema_id and number < version
            if returned and not self._is_used(subject, number):
                del rows[number]
        rows[version] = Row(schema_id)
        self.highest[subject] = max(version, self.highest.get(subject, 0))
        self.schemas[schema_id] = schema
        self.ids[schema] = schema_id

    def _drop(self, subject: str, version: int, permanent: bool) -> None:
        rows = self.rows[subject]
        if permanent:
            del rows[version]
        else:
            rows[version] = replace(rows[version], deleted=True)
        if not rows:
            self.modes.pop(subject, None)
            self.highest.pop(subject)

    def _check_reference(self, schema: Schema, *, deleted: bool = False) -> None:
        if isinstance(schema, Uses):
            row = self.rows.get(schema.subject, {}).get(schema.version)
            if row is None or row.id != schema.id or (row.deleted and not deleted):
                raise Refused(42201)

    def _check_unused(self, subject: str, version: int) -> None:
        if self._is_used(subject, version):
            raise Refused(42206)

    def _is_used(self, subject: str, version: int) -> bool:
        """Whether any version that is not deleted references this version. A version may reference
        itself. A reference names only the subject and the version number, so the version's schema
        does not matter."""
        live = [row for each in self.rows for row in self._live(each).values()]
        used = [self.schemas[row.id] for row in live]
        named = [(each.subject, each.version) for each in used if isinstance(each, Uses)]
        return (subject, version) in named
