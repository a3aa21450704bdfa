"""May this schema follow that one? Avro's rules of schema resolution, and Confluent's levels.

A reader can read what a writer wrote if, walking both schemas together, every pair of types fits
(Avro 1.12 specification, "Schema Resolution"). What does not fit is reported with its type, its
place in the reader's schema and a sentence, in the order of the schema and always the same.
The verdicts are those of Avro Java's `SchemaCompatibility`, which Confluent's registry asks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum as Enumeration
from typing import Final

from schemas.avro_schema import (
    Array,
    AvroType,
    Enum,
    Field,
    Fixed,
    Map,
    Named,
    Primitive,
    Record,
    SchemaInvalid,
    Union,
)


class Level(Enumeration):
    """Confluent's compatibility levels."""

    NONE = "NONE"
    BACKWARD = "BACKWARD"
    BACKWARD_TRANSITIVE = "BACKWARD_TRANSITIVE"
    FORWARD = "FORWARD"
    FORWARD_TRANSITIVE = "FORWARD_TRANSITIVE"
    FULL = "FULL"
    FULL_TRANSITIVE = "FULL_TRANSITIVE"

    @property
    def is_transitive(self) -> bool:
        """Whether all earlier versions count, not the latest alone."""
        return self.value.endswith("_TRANSITIVE")

    @property
    def new_reads_old(self) -> bool:
        """Whether the new schema must read what the old one wrote."""
        return self.value.startswith(("BACKWARD", "FULL"))

    @property
    def old_reads_new(self) -> bool:
        """Whether the old schema must read what the new one writes."""
        return self.value.startswith(("FORWARD", "FULL"))


@dataclass(frozen=True, slots=True)
class Incompatibility:
    """One thing that does not fit. `path` as in `/fields/1/type`; `detail` as Avro Java words it.

    `reader` and `writer` say which schema is which: "new" or "old".
    """

    kind: str
    path: str
    detail: str
    reader: str = "new"

    @property
    def description(self) -> str:
        """One sentence for people."""
        writer = "old" if self.reader == "new" else "new"
        return _SENTENCES[self.kind].format(
            detail=self.detail, path=self.path, reader=self.reader, writer=writer
        )

    def __str__(self) -> str:
        """Confluent's form of a message."""
        return (
            f"{{errorType:'{self.kind}', description:'{self.description}', "
            f"additionalInfo:'{self.detail}'}}"
        )


REPORTED_MAX: Final = 50
"""Messages for one pair of types: a type that is used in many places would multiply them."""

PAIRS_MAX: Final = 200_000
"""Pairs of types in one comparison: large unions would otherwise stop the registry for hours."""

_SENTENCES: Final = {
    "NAME_MISMATCH": "The name of the type at {path} in the {reader} schema is not that of the "
    "{writer} one ({detail})",
    "FIXED_SIZE_MISMATCH": "The size of the fixed at {path} in the {reader} schema is not that of "
    "the {writer} one ({detail})",
    "MISSING_ENUM_SYMBOLS": "The {reader} schema lacks the symbols {detail} of the {writer} one "
    "at {path}, and the enum has no default",
    "READER_FIELD_MISSING_DEFAULT_VALUE": "The field {detail} at {path} in the {reader} schema has "
    "no default value and is missing in the {writer} schema",
    "READER_FIELD_AMBIGUOUS": "The field at {path} in the {reader} schema is several fields of the "
    "{writer} one by its name and aliases ({detail})",
    "TYPE_MISMATCH": "The type at {path} in the {reader} schema cannot be read from that of the "
    "{writer} one ({detail})",
    "MISSING_UNION_BRANCH": "The union at {path} in the {reader} schema lacks a type of the "
    "{writer} one ({detail})",
}

_PROMOTIONS: Final = {
    "long": ("int",),
    "float": ("int", "long"),
    "double": ("int", "long", "float"),
    "bytes": ("string",),
    "string": ("bytes",),
}


def check(
    new: AvroType, earlier: Sequence[tuple[int, AvroType]], level: Level
) -> tuple[int, list[Incompatibility]] | None:
    """The first earlier version, newest first, that `new` may not follow, and why; or None.

    `earlier`: (version, schema) in ascending order. Raises `SchemaInvalid` where the schemas are
    nested too deeply or have too many types to be compared.
    """
    compared = list(reversed(earlier))
    for version, old in compared if level.is_transitive else compared[:1]:
        found = _differences(new, old, level)
        if found:
            return version, found
    return None


def incompatibilities(reader: AvroType, writer: AvroType) -> list[Incompatibility]:
    """What hinders `reader` from reading all that `writer` writes; nothing if it can."""
    try:
        return _Comparison().of(reader, writer, "")
    except RecursionError:
        raise SchemaInvalid("The schemas are nested too deeply to be compared.") from None


def _differences(new: AvroType, old: AvroType, level: Level) -> list[Incompatibility]:
    found = incompatibilities(new, old) if level.new_reads_old else []
    if level.old_reads_new:
        found += [
            Incompatibility(each.kind, each.path, each.detail, reader="old")
            for each in incompatibilities(old, new)
        ]
    return found


class _Comparison:
    """Walks two schemas together; remembers pairs, so that cycles end and nothing is done twice."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int], list[Incompatibility]] = {}
        self._good: list[tuple[int, int]] = []
        self._compared = 0

    def of(self, reader: AvroType, writer: AvroType, path: str) -> list[Incompatibility]:
        pair = (id(reader), id(writer))
        if pair not in self._known:
            self._compared += 1
            if self._compared > PAIRS_MAX:
                raise SchemaInvalid("The schemas have too many types to be compared.")
            self._known[pair] = []  # while it is being compared, a cycle finds nothing wrong
            self._known[pair] = self._compare_pair(pair, reader, writer, path)
        return self._known[pair]

    def _compare_pair(
        self, pair: tuple[int, int], reader: AvroType, writer: AvroType, path: str
    ) -> list[Incompatibility]:
        inside = len(self._good)
        found = self._compare(reader, writer, path)[:REPORTED_MAX]
        if not found:
            self._good.append(pair)
            return []
        for each in self._good[inside:]:  # good perhaps only if this pair had been good
            del self._known[each]
        del self._good[inside:]
        return found

    def _compare(self, reader: AvroType, writer: AvroType, path: str) -> list[Incompatibility]:
        if isinstance(writer, Union):
            return self._from_union(reader, writer, path)
        if isinstance(reader, Union):
            if any(not self.of(branch, writer, path) for branch in reader.branches):
                return []
            return [_lacking(writer, path)]
        if isinstance(reader, Array) and isinstance(writer, Array):
            return self.of(reader.items, writer.items, f"{path}/items")
        if isinstance(reader, Map) and isinstance(writer, Map):
            return self.of(reader.values, writer.values, f"{path}/values")
        if isinstance(reader, Record) and isinstance(writer, Record):
            return _name(reader, writer, path) + self._fields(reader, writer, path)
        return _leaf(reader, writer, path)

    def _from_union(self, reader: AvroType, writer: Union, path: str) -> list[Incompatibility]:
        found: list[Incompatibility] = []
        for at, branch in enumerate(writer.branches):
            inside = self.of(reader, branch, path)
            if inside and isinstance(reader, Union):
                found.append(_lacking(branch, f"{path}/{at}"))
            else:
                found += inside
        return found

    def _fields(self, reader: Record, writer: Record, path: str) -> list[Incompatibility]:
        written = {each.name: each for each in writer.fields}
        found: list[Incompatibility] = []
        for at, field in enumerate(reader.fields):
            here, sources = f"{path}/fields/{at}", _sources(field, written)
            if len(sources) > 1:
                names = ", ".join(each.name for each in sources)
                found.append(Incompatibility("READER_FIELD_AMBIGUOUS", here, names))
            elif sources:
                found += self.of(field.type, sources[0].type, f"{here}/type")
            elif not field.has_default:
                found.append(
                    Incompatibility("READER_FIELD_MISSING_DEFAULT_VALUE", here, field.name)
                )
        return found


def _sources(field: Field, written: dict[str, Field]) -> list[Field]:
    """The writer's fields that this one is read from by name or alias; Java reads no two as one."""
    names = dict.fromkeys((field.name, *field.aliases))
    return [written[name] for name in names if name in written]


def _leaf(reader: AvroType, writer: AvroType, path: str) -> list[Incompatibility]:
    if isinstance(reader, Fixed) and isinstance(writer, Fixed):
        return _name(reader, writer, path) + _size(reader, writer, path)
    if isinstance(reader, Enum) and isinstance(writer, Enum):
        return _name(reader, writer, path) + _symbols(reader, writer, path)
    both_primitive = isinstance(reader, Primitive) and isinstance(writer, Primitive)
    if both_primitive and writer.kind in (reader.kind, *_PROMOTIONS.get(reader.kind, ())):
        return []
    detail = (
        f"reader type: {reader.kind.upper()} not compatible with writer type: {writer.kind.upper()}"
    )
    return [Incompatibility("TYPE_MISMATCH", path or "/", detail)]


def _name(reader: Named, writer: Named, path: str) -> list[Incompatibility]:
    """Unqualified names count, as in Avro Java; an alias counts with its namespace."""
    same = reader.name.rpartition(".")[2] == writer.name.rpartition(".")[2]
    if same or writer.name in reader.aliases:
        return []
    return [Incompatibility("NAME_MISMATCH", f"{path}/name", f"expected: {writer.name}")]


def _size(reader: Fixed, writer: Fixed, path: str) -> list[Incompatibility]:
    if reader.size == writer.size:
        return []
    detail = f"expected: {writer.size}, found: {reader.size}"
    return [Incompatibility("FIXED_SIZE_MISMATCH", f"{path}/size", detail)]


def _symbols(reader: Enum, writer: Enum, path: str) -> list[Incompatibility]:
    known = set(reader.symbols)
    missing = [each for each in writer.symbols if each not in known]
    if not missing or reader.default is not None:
        return []
    return [Incompatibility("MISSING_ENUM_SYMBOLS", f"{path}/symbols", f"[{', '.join(missing)}]")]


def _lacking(writer: AvroType, path: str) -> Incompatibility:
    detail = f"reader union lacking writer type: {writer.kind.upper()}"
    return Incompatibility("MISSING_UNION_BRANCH", path or "/", detail)
