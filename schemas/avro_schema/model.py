"""Defines Avro types as values. A schema is a graph of these values, because a named type may
contain itself."""

from __future__ import annotations

import json
from collections.abc import Container, Iterator, Mapping
from dataclasses import field
from typing import Any, Final

from skidway.dataclass import dataclass
from skidway.errors import SkidwayError

PRIMITIVES: Final = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
TYPES: Final = (*PRIMITIVES, "record", "enum", "fixed", "array", "map", "union")
"""The names of Avro's own types. If a schema declares a type with one of these names in a
namespace, references to this declared type must use its full name."""


SHOWN_MAX: Final = 60
"""An error message shows at most this many characters of a value."""


class SchemaInvalid(SkidwayError):
    """Raised if a text is no Avro schema, or if a schema is too large or nested too deeply. If the
    mistake is at one place in the schema, the error message names its path, such as
    `/fields/2/type`."""


@dataclass(frozen=True, slots=True)
class Primitive:
    """One of the types in `PRIMITIVES`. `properties`: the logical type and other properties, if the
    schema has any."""

    kind: str
    properties: Mapping[str, Any] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class Field:
    """A field of a record. `default` is the JSON value of the field's default; `default` has a
    meaning only if `has_default` is true."""

    name: str
    type: AvroType
    default: Any
    has_default: bool
    doc: str | None
    order: str
    aliases: tuple[str, ...]
    properties: Mapping[str, Any]


@dataclass(slots=True, eq=False)
class Record:
    """The type record. `is_error`: whether the schema declares it as an `error` (a type of Avro's
    protocols). Apart from this keyword, an error is the same as a record.

    `is_complete` is false only while the parser reads the record's fields.
    """

    name: str
    fields: list[Field]
    doc: str | None
    aliases: tuple[str, ...]
    properties: Mapping[str, Any]
    is_error: bool = False
    is_complete: bool = True
    kind: str = "record"


@dataclass(slots=True, eq=False)
class Enum:
    """The type enum: one of several symbols. `default` is the symbol that a reader uses instead of
    a symbol that the reader's enum lacks."""

    name: str
    symbols: tuple[str, ...]
    default: str | None
    doc: str | None
    aliases: tuple[str, ...]
    properties: Mapping[str, Any]
    kind: str = "enum"


@dataclass(slots=True, eq=False)
class Fixed:
    """The type fixed: a value of exactly `size` bytes."""

    name: str
    size: int
    doc: str | None
    aliases: tuple[str, ...]
    properties: Mapping[str, Any]
    kind: str = "fixed"


@dataclass(slots=True, eq=False)
class Array:
    """The type array: any number of items of one type."""

    items: AvroType
    properties: Mapping[str, Any]
    kind: str = "array"


@dataclass(slots=True, eq=False)
class Map:
    """The type map: any number of values of one type, each with a key, which is a string."""

    values: AvroType
    properties: Mapping[str, Any]
    kind: str = "map"


@dataclass(slots=True, eq=False)
class Union:
    """The type union: a value of one of several types, the branches. No branch is itself a
    union. The members are the branches except null. null_at: the index of the branch null, or None;
    it is computed once, because a union may have many branches, and each value needs it."""

    branches: tuple[AvroType, ...]
    kind: str = "union"
    null_at: int | None = field(init=False)

    def __post_init__(self) -> None:
        kinds = enumerate(each.kind for each in self.branches)
        self.null_at = next((at for at, kind in kinds if kind == "null"), None)

    @property
    def members_count(self) -> int:
        """Returns the number of branches except null."""
        return len(self.branches) - (self.null_at is not None)

    def member_at(self, number: int) -> int:
        """Returns the index of a branch, which has this index among the members."""
        return number + (self.null_at is not None and number >= self.null_at)

    def member_number(self, at: int) -> int:
        """Returns the index among the members of the branch that has the index `at`."""
        return at - (self.null_at is not None and at > self.null_at)

    @property
    def properties(self) -> Mapping[str, Any]:
        """Always empty, because a union cannot have properties."""
        return {}


AvroType = Primitive | Record | Enum | Fixed | Array | Map | Union
Named = Record | Enum | Fixed


def fullname(name: str, namespace: str | None) -> str:
    """Returns the full name: `namespace`, a dot and `name`. If `name` has a namespace of its own,
    or if there is no `namespace`, returns `name` unchanged."""
    return name if "." in name or not namespace else f"{namespace}.{name}"


def namespace_of(name: str) -> str | None:
    """Returns the namespace of a full name, which is the part before the last dot. Returns None if
    the name has no namespace."""
    return name.rpartition(".")[0] or None


def logical_type(avro: AvroType) -> str | None:
    """Returns the type's property `logicalType` if it is a text, otherwise None. Readers ignore
    logical types that they do not know."""
    name = avro.properties.get("logicalType")
    return name if isinstance(name, str) else None


def type_name(avro: AvroType) -> str:
    """Returns a short name for a type, such as `int`, `enum n.Level`, `array of string` or `null or
    long`. The logical type of a type other than array or map follows in parentheses, as in `fixed
    n.Price (decimal)`."""
    if isinstance(avro, Union):
        return " or ".join(map(type_name, avro.branches)) or "union of nothing"
    if isinstance(avro, Array):
        return f"array of {type_name(avro.items)}"
    if isinstance(avro, Map):
        return f"map of {type_name(avro.values)}"
    name = f"{avro.kind} {avro.name}" if isinstance(avro, Named) else avro.kind
    logical = logical_type(avro)
    return name if logical is None else f"{name} ({logical})"


def named_types(avro: AvroType, known: Container[str] = ()) -> dict[str, Named]:
    """Returns every record, enum and fixed of the schema by its full name, in the order of
    declaration. Leaves out those whose names are in `known`, and does not search inside them."""
    found: dict[str, Named] = {}
    waiting = [avro]
    while waiting:
        each = waiting.pop()
        if isinstance(each, Named):
            if each.name in found or each.name in known:
                continue
            found[each.name] = each
        waiting.extend(reversed([*_inside(each)]))
    return found


def shown(value: Any) -> str:
    """Returns a JSON value as text for an error message, cut to at most `SHOWN_MAX` characters."""
    text = json.dumps(_pruned(value, 3, iter(range(SHOWN_MAX))))
    return text if len(text) <= SHOWN_MAX else text[: SHOWN_MAX - 3] + "..."


def _pruned(value: Any, levels: int, left: Iterator[int]) -> Any:
    """Returns the value, cut to `levels` levels of nesting, and to as many inner values as `left`
    has items. So `shown` need not turn a huge value into text only to cut off most of the text."""
    if isinstance(value, str):
        return value[:SHOWN_MAX]
    if isinstance(value, dict) and levels:
        first = zip(left, value.items(), strict=False)
        return {key[:SHOWN_MAX]: _pruned(each, levels - 1, left) for _, (key, each) in first}
    if isinstance(value, list) and levels:
        return [_pruned(each, levels - 1, left) for _, each in zip(left, value, strict=False)]
    return "..." if isinstance(value, dict | list) else value


def _inside(avro: AvroType) -> Iterator[AvroType]:
    if isinstance(avro, Record):
        yield from (each.type for each in avro.fields)
    elif isinstance(avro, Union):
        yield from avro.branches
    elif isinstance(avro, Array):
        yield avro.items
    elif isinstance(avro, Map):
        yield avro.values
