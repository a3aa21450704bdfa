"""Checks a schema against earlier schemas, by the rules of Avro's schema resolution and Confluent's
compatibility levels.

The check walks through the reader's and the writer's schema together. A reader can read what a
writer wrote if each type of the reader's schema fits the corresponding type of the writer's schema
(Avro 1.12 specification, "Schema Resolution"). The check reports each incompatibility with its
kind, its path in the reader's schema and a sentence. The reports follow the order of the reader's
schema, so their order is always the same. The verdicts are the same as those of Avro Java's
`SchemaCompatibility`, which Confluent's registry uses. One is stricter: if a branch of a reader's
union has a type's full name, no other branch makes the type compatible, because Avro Java's reader
does not take another either.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum as Enumeration
from typing import Final

from skidway.schemas.avro_schema import (
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
    candidates,
    has_name,
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
        """Returns whether the new schema is checked against all earlier versions, not only against
        the latest version."""
        return self.value.endswith("_TRANSITIVE")

    @property
    def new_reads_old(self) -> bool:
        """Returns whether the new schema must be able to read datums of the old schema."""
        return self.value.startswith(("BACKWARD", "FULL"))

    @property
    def old_reads_new(self) -> bool:
        """Returns whether the old schema must be able to read datums of the new schema."""
        return self.value.startswith(("FORWARD", "FULL"))


@dataclass(frozen=True, slots=True)
class Incompatibility:
    """One incompatibility of two schemas. `path` and `detail` have the form of Avro Java.

    `reader` and `writer` say which of the two schemas is the reader's and which is the writer's:
    "new" or "old". `reader_place` and `writer_place` point to the two types that do not fit, each
    in its own schema, as in `/fields/1/type/0` (the first branch of a union). Both of these paths
    may lead through references to named types. `path` differs from `reader_place` in two ways: it
    also contains the branches of the writer's unions, and it ends with the part of the type that
    does not fit (a field, `/name`, `/size` or `/symbols`).
    """

    kind: str
    path: str
    detail: str
    reader: str = "new"
    reader_place: str = ""
    writer_place: str = ""

    @property
    def writer(self) -> str:
        """Returns which of the two schemas is the writer's: "new" or "old"."""
        return "old" if self.reader == "new" else "new"

    @property
    def description(self) -> str:
        """Returns the incompatibility as one sentence."""
        return _SENTENCES[self.kind].format(
            detail=self.detail, path=self.path or "/", reader=self.reader, writer=self.writer
        )

    def __str__(self) -> str:
        """Returns the message that Confluent's registry would give for this incompatibility."""
        return (
            f"{{errorType:'{self.kind}', description:'{self.description}', "
            f"additionalInfo:'{self.detail}'}}"
        )

    def inside(self, path_step: str, reader_step: str, writer_step: str) -> Incompatibility:
        """Returns the same incompatibility, with paths that begin at the enclosing types: puts
        `path_step` before `path`, `reader_step` before `reader_place`, and `writer_step` before
        `writer_place`."""
        return replace(
            self,
            path=f"{path_step}{self.path}",
            reader_place=f"{reader_step}{self.reader_place}",
            writer_place=f"{writer_step}{self.writer_place}",
        )


REPORTED_MAX: Final = 50
"""At most this many incompatibilities are reported for a pair of types. Without this limit, a type
that a schema uses many times would multiply the reports."""

STEPS_MAX: Final = 250_000
"""A comparison has at most this many steps, which take a second or two. Each pair of types is a
step. Each field and each alias of a field of the reader's record is a further step, and so is each
symbol of both enums. The comparison of two large unions compares each branch of one with each
branch of the other. Without this limit, such a comparison could block the registry for hours.
"""

_SENTENCES: Final = {
    "NAME_MISMATCH": "The name of the type at path '{path}' in the {reader} schema is not that of "
    "the {writer} schema",
    "FIXED_SIZE_MISMATCH": "The size of the fixed type at path '{path}' in the {reader} schema is "
    "not that of the {writer} schema",
    "MISSING_ENUM_SYMBOLS": "The enum at path '{path}' in the {reader} schema has no default and "
    "lacks the symbols '{detail}' of the {writer} schema",
    "READER_FIELD_MISSING_DEFAULT_VALUE": "The field '{detail}' at path '{path}' in the {reader} "
    "schema has no default value and is missing in the {writer} schema",
    "READER_FIELD_AMBIGUOUS": "The field at path '{path}' in the {reader} schema is, by its name "
    "and aliases, several fields of the {writer} schema",
    "TYPE_MISMATCH": "The type at path '{path}' in the {reader} schema cannot be read from the "
    "type in the {writer} schema",
    "MISSING_UNION_BRANCH": "The union at path '{path}' in the {reader} schema lacks a type of the "
    "{writer} schema",
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
    """Returns the newest of the earlier versions with which `new` is not compatible, and the
    reasons. Returns None if `new` is compatible.

    `earlier`: (version, schema) in ascending order. Raises `SchemaInvalid` if the schemas are
    nested too deeply or have too many types to be compared.
    """
    compared = list(reversed(earlier))
    for version, old in compared if level.is_transitive else compared[:1]:
        found = _differences(new, old, level)
        if found:
            return version, found
    return None


def incompatibilities(reader: AvroType, writer: AvroType) -> list[Incompatibility]:
    """Returns the reasons why `reader` cannot read all datums of `writer`. The list is empty if
    `reader` can read them all.

    Raises `SchemaInvalid` if the schemas are nested too deeply or have too many types.
    """
    try:
        found = _Comparison().of(reader, writer)
    except RecursionError:
        raise SchemaInvalid("The schemas are nested too deeply to be compared.") from None
    return [each if each.path else replace(each, path="/") for each in found]


def _differences(new: AvroType, old: AvroType, level: Level) -> list[Incompatibility]:
    found = incompatibilities(new, old) if level.new_reads_old else []
    if level.old_reads_new:
        found += [replace(each, reader="old") for each in incompatibilities(old, new)]
    return found


class _Comparison:
    """Walks through two schemas together. If a pair of types contains itself, the inner pair counts
    as compatible while the outer pair is compared, so the walk ends. If a pair of types occurs
    several times, the walk usually compares the pair only once.

    The walk remembers the incompatibilities of each pair of types, with paths that begin at the
    pair. Each time that the pair occurs, the walk reports these incompatibilities, and puts the
    path of the occurrence before their paths.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[int, int], list[Incompatibility]] = {}
        self._good: list[tuple[int, int]] = []
        self._positions: dict[int, dict[str, int]] = {}
        self._steps = 0

    def of(self, reader: AvroType, writer: AvroType) -> list[Incompatibility]:
        pair = (id(reader), id(writer))
        if pair not in self._known:
            self._count(1)
            # if the pair occurs inside itself, the inner occurrence counts as compatible
            self._known[pair] = []
            self._known[pair] = self._compare_pair(pair, reader, writer)
        return self._known[pair]

    def _count(self, steps: int) -> None:
        self._steps += steps
        if self._steps > STEPS_MAX:
            raise SchemaInvalid("The schemas have too many types to be compared.")

    def _compare_pair(
        self, pair: tuple[int, int], reader: AvroType, writer: AvroType
    ) -> list[Incompatibility]:
        inside = len(self._good)
        found = self._compare(reader, writer)[:REPORTED_MAX]
        if not found:
            self._good.append(pair)
            return []
        # During its comparison, `pair` counted as compatible, but now it is found incompatible. So
        # the pairs inside `pair` that were found compatible must be compared again.
        for each in self._good[inside:]:
            del self._known[each]
        del self._good[inside:]
        return found

    def _compare(self, reader: AvroType, writer: AvroType) -> list[Incompatibility]:
        if isinstance(writer, Union):
            return self._from_union(reader, writer)
        if isinstance(reader, Union):
            self._count(len(reader.branches))
            of_union = candidates(writer, reader.branches)
            if any(not self.of(reader.branches[at], writer) for at in of_union):
                return []
            return [_lacking(writer)]
        if isinstance(reader, Array) and isinstance(writer, Array):
            return self._below(reader.items, writer.items, "/items")
        if isinstance(reader, Map) and isinstance(writer, Map):
            return self._below(reader.values, writer.values, "/values")
        if isinstance(reader, Record) and isinstance(writer, Record):
            return _name(reader, writer) + self._fields(reader, writer)
        if isinstance(reader, Enum) and isinstance(writer, Enum):
            self._count(len(reader.symbols) + len(writer.symbols))
        return _leaf(reader, writer)

    def _below(
        self, reader: AvroType, writer: AvroType, step: str, writer_step: str | None = None
    ) -> list[Incompatibility]:
        found = self.of(reader, writer)
        return [each.inside(step, step, writer_step or step) for each in found]

    def _from_union(self, reader: AvroType, writer: Union) -> list[Incompatibility]:
        found: list[Incompatibility] = []
        for at, branch in enumerate(writer.branches):
            inside = self.of(reader, branch)
            if inside and isinstance(reader, Union):
                inside = [_lacking(branch)]
            found += [each.inside(f"/{at}", "", f"/{at}") for each in inside]
            if len(found) >= REPORTED_MAX:
                break
        return found

    def _fields(self, reader: Record, writer: Record) -> list[Incompatibility]:
        self._count(len(reader.fields))
        written = self._positions.get(id(writer))
        if written is None:
            written = {each.name: at for at, each in enumerate(writer.fields)}
            self._positions[id(writer)] = written
        found: list[Incompatibility] = []
        for at, field in enumerate(reader.fields):
            if len(found) >= REPORTED_MAX:
                break
            self._count(len(field.aliases))
            here, sources = f"/fields/{at}", _sources(field, written)
            if len(sources) > 1:
                names = ", ".join(writer.fields[each].name for each in sources)
                found.append(Incompatibility("READER_FIELD_AMBIGUOUS", here, names))
            elif sources:
                source = writer.fields[sources[0]].type
                there = f"/fields/{sources[0]}/type"
                found += self._below(field.type, source, f"{here}/type", there)
            elif not field.has_default:
                found.append(
                    Incompatibility("READER_FIELD_MISSING_DEFAULT_VALUE", here, field.name)
                )
        return found


def _sources(field: Field, written: dict[str, int]) -> list[int]:
    """Returns the indexes of the writer's fields that match this field by name or alias. If several
    fields match, Avro Java reads none of them. Other programs read one of the fields, but different
    programs may choose different fields. (The module `resolution` says which field Skidway
    reads.)"""
    names = dict.fromkeys((field.name, *field.aliases))
    return [written[name] for name in names if name in written]


def _leaf(reader: AvroType, writer: AvroType) -> list[Incompatibility]:
    if isinstance(reader, Fixed) and isinstance(writer, Fixed):
        return _name(reader, writer) + _size(reader, writer)
    if isinstance(reader, Enum) and isinstance(writer, Enum):
        return _name(reader, writer) + _symbols(reader, writer)
    both_primitive = isinstance(reader, Primitive) and isinstance(writer, Primitive)
    if both_primitive and writer.kind in (reader.kind, *_PROMOTIONS.get(reader.kind, ())):
        return []
    detail = (
        f"reader type: {reader.kind.upper()} not compatible with writer type: {writer.kind.upper()}"
    )
    return [Incompatibility("TYPE_MISMATCH", "", detail)]


def _name(reader: Named, writer: Named) -> list[Incompatibility]:
    """Returns an incompatibility if the two names do not match, compared as Avro Java does."""
    if has_name(writer, reader):
        return []
    return [Incompatibility("NAME_MISMATCH", "/name", f"expected: {writer.name}")]


def _size(reader: Fixed, writer: Fixed) -> list[Incompatibility]:
    if reader.size == writer.size:
        return []
    detail = f"expected: {writer.size}, found: {reader.size}"
    return [Incompatibility("FIXED_SIZE_MISMATCH", "/size", detail)]


def _symbols(reader: Enum, writer: Enum) -> list[Incompatibility]:
    known = set(reader.symbols)
    missing = sorted(each for each in writer.symbols if each not in known)
    if not missing or reader.default is not None:
        return []
    return [Incompatibility("MISSING_ENUM_SYMBOLS", "/symbols", f"[{', '.join(missing)}]")]


def _lacking(writer: AvroType) -> Incompatibility:
    detail = f"reader union lacking writer type: {writer.kind.upper()}"
    return Incompatibility("MISSING_UNION_BRANCH", "", detail)
