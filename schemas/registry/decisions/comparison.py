"""Compares a schema with the earlier versions of its subject. Leaves out deleted versions."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass

from skidway.schemas.avro_schema import SchemaInvalid
from skidway.schemas.compatibility import Incompatibility, Level, check
from skidway.schemas.registry.decisions.submission import Submitted
from skidway.schemas.registry.kept import Kept
from skidway.schemas.registry.parsed import ParsedSchemas
from skidway.schemas.registry.refusals import Refusal, invalid_schema, version_not_found
from skidway.schemas.registry.state import RegistryState, Version


@dataclass(frozen=True, slots=True)
class Comparison:
    """The earlier versions with which a schema is compared (the highest number first), and the
    compatibility level. The methods of a `Comparison` do not need the registry's state. Only the
    functions that make a `Comparison` need the state."""

    earlier: tuple[tuple[int, Kept], ...]
    level: Level
    schemas: ParsedSchemas

    def messages(self, schema: Submitted) -> list[str]:
        """Returns the reasons why the schema is incompatible, as messages in Confluent's form. The
        list is empty if the schema is compatible. Raises a refusal if the schemas are too large to
        be compared."""
        for version, kept in self.earlier:
            found = self._found(version, kept, schema)
            if isinstance(found, Refusal):
                raise found
            if found:
                return _messages(version, kept, found, self.level)
        return []

    def prepare(self, schema: Submitted) -> None:
        """Makes the slow comparison in advance. The caller calls this method before it acquires the
        store's lock, for which other writers wait. A later call of `messages` uses the result."""
        # a refusal is ignored here; `messages` raises it again during the decision
        with contextlib.suppress(Refusal):
            self.messages(schema)

    def _found(
        self, version: int, kept: Kept, schema: Submitted
    ) -> list[Incompatibility] | Refusal:
        pair = kept.id, self.level
        if pair not in schema.compared:
            schema.compared[pair] = self._check(version, kept, schema)
        return schema.compared[pair]

    def _check(
        self, version: int, kept: Kept, schema: Submitted
    ) -> list[Incompatibility] | Refusal:
        try:
            old = self.schemas.of(kept).avro
            failed = check(schema.parsed.avro, [(version, old)], self.level)
        except SchemaInvalid as error:
            return invalid_schema(str(error))
        return [] if failed is None else failed[1]


def with_all(state: RegistryState, subject: str) -> Comparison:
    """Returns the comparison for a registration: a new version must be compatible with the latest
    version, or with all versions, as the subject's level says."""
    return _comparison(state, subject, state.live(subject))


def with_latest(state: RegistryState, subject: str) -> Comparison:
    """Returns the comparison with the latest version. A subject without versions accepts every
    schema."""
    return _comparison(state, subject, state.live(subject)[-1:])


def with_version(state: RegistryState, subject: str, version: int) -> Comparison:
    """Returns the comparison with the given version. If the subject does not have this version, or
    does not exist at all, raises the refusal of an unknown version."""
    if not state.live(subject):
        raise version_not_found(version)
    return _comparison(state, subject, [state.version(subject, version)])


def _comparison(state: RegistryState, subject: str, known: list[Version]) -> Comparison:
    level = state.level(subject)
    if level is Level.NONE:
        known = []
    compared = known[::-1] if level.is_transitive else known[-1:]
    earlier = tuple((each.version, state.schema(each.id)) for each in compared)
    return Comparison(earlier, level, state.parsed)


def _messages(version: int, old: Kept, found: list[Incompatibility], level: Level) -> list[str]:
    return [
        *map(str, found),
        f"{{oldSchemaVersion: {version}}}",
        f"{{oldSchema: '{old.text}'}}",
        f"{{validateFields: 'false', compatibility: '{level.value}'}}",
    ]
