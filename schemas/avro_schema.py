"""Avro schemas as values: a strict parser for the Avro 1.12 specification ("Schema Declaration").

`parse` turns a JSON text into a tree of the types below, or refuses it with one sentence that says
where. It is stricter than the libraries that people use to write schemas, because what it lets
through is kept for ever: names and defaults are checked, fields and symbols are unique, a union
has no two branches that a reader could not tell apart.

A named type that refers to itself gives a graph with a cycle; `Record.fields` is filled last.
Limits: `NESTING_MAX` levels, so that no schema can exhaust the stack.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NoReturn

from skidway.errors import SkidwayError

PRIMITIVES: Final = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
TYPES: Final = (*PRIMITIVES, "record", "error", "enum", "fixed", "array", "map", "union")
"""Names that Avro gives a meaning; a named type of such a name is referred to by its full one."""
NESTING_MAX: Final = 64
"""Java's parser takes a few hundred; no schema that people write comes near this."""

_BARE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_INT_MAX: Final = 2**31 - 1
_LONG_MAX: Final = 2**63 - 1
_FLOAT_MAX: Final = (2 - 2**-23) * 2.0**127
_MISSING: Final = object()


class SchemaInvalid(SkidwayError):
    """A text that is no Avro schema; the sentence names the place, as in `/fields/2/type`."""


@dataclass(frozen=True, slots=True)
class Primitive:
    """One of `PRIMITIVES`, perhaps with a logical type and properties of the writer's own."""

    kind: str
    properties: Mapping[str, Any] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class Field:
    """A field of a record. `default` is the JSON value; only meaningful with `has_default`."""

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
    """A record; `is_error` marks the protocol's `error` type, which is a record otherwise.

    `is_complete` is false only while its fields are being read.
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
    """An enum; `default` is the symbol a reader takes for one that it does not know."""

    name: str
    symbols: tuple[str, ...]
    default: str | None
    doc: str | None
    aliases: tuple[str, ...]
    properties: Mapping[str, Any]
    kind: str = "enum"


@dataclass(slots=True, eq=False)
class Fixed:
    """`size` bytes, no more and no fewer."""

    name: str
    size: int
    doc: str | None
    aliases: tuple[str, ...]
    properties: Mapping[str, Any]
    kind: str = "fixed"


@dataclass(slots=True, eq=False)
class Array:
    """Any number of items."""

    items: AvroType
    properties: Mapping[str, Any]
    kind: str = "array"


@dataclass(slots=True, eq=False)
class Map:
    """Any number of values, by string."""

    values: AvroType
    properties: Mapping[str, Any]
    kind: str = "map"


@dataclass(slots=True, eq=False)
class Union:
    """One of several branches; never directly another union."""

    branches: tuple[AvroType, ...]
    kind: str = "union"

    @property
    def properties(self) -> Mapping[str, Any]:
        """A union cannot carry any."""
        return {}


AvroType = Primitive | Record | Enum | Fixed | Array | Map | Union
Named = Record | Enum | Fixed


def parse(text: str | dict[str, Any] | list[Any]) -> AvroType:
    """The schema in `text` (JSON text, or the same already read). Raises `SchemaInvalid`."""
    try:
        return _Parser().type_of(_read(text), "", None, 0)
    except RecursionError:
        raise SchemaInvalid("The schema is nested too deeply to be read.") from None


def fullname(name: str, namespace: str | None) -> str:
    """`name` with `namespace` before it, unless it brings its own."""
    return name if "." in name or not namespace else f"{namespace}.{name}"


def namespace_of(name: str) -> str | None:
    """What stands before the last dot of a full name."""
    return name.rpartition(".")[0] or None


def logical_type(avro: AvroType) -> str | None:
    """The `logicalType` property if it is a text; unknown ones are for the reader to ignore."""
    name = avro.properties.get("logicalType")
    return name if isinstance(name, str) else None


def default_fault(avro: AvroType, value: Any) -> str | None:
    """Why the JSON `value` is no default of that type, or None. A union takes any branch's."""
    return _DefaultCheck().fault(avro, value)


def _read(text: str | dict[str, Any] | list[Any]) -> Any:
    value = _json(text) if isinstance(text, str) else text
    try:
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, TypeError):
        raise SchemaInvalid(
            "The schema contains a number or a character that cannot be written as UTF-8 JSON."
        ) from None
    return value


def _json(text: str) -> Any:
    if _BARE_NAME.fullmatch(text.strip()):
        return text.strip()  # Java's parser takes a bare name too
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except ValueError as error:
        raise SchemaInvalid(f"The schema is no JSON: {error}.") from None


def _refuse_constant(name: str) -> NoReturn:
    raise SchemaInvalid(f"The schema contains {name}, which JSON does not have.")


def _refuse(path: str, what: str) -> NoReturn:
    raise SchemaInvalid(f"The schema is invalid at {path or '/'}: {what}.")


def _shown(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _kind(avro: AvroType) -> str:
    return f"{avro.kind} {avro.name}" if isinstance(avro, Named) else avro.kind


def _is_leaf_default(avro: Primitive | Enum | Fixed, value: Any) -> bool:
    if isinstance(avro, Enum):
        return isinstance(value, str) and value in avro.symbols
    if isinstance(avro, Fixed):
        return _is_byte_text(value) and len(value) == avro.size
    return _LEAF_CHECKS[avro.kind](value)


def _is_byte_text(value: Any) -> bool:
    return isinstance(value, str) and all(ord(character) < 256 for character in value)


def _is_number(value: Any, limit: float) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and -limit <= value <= limit


def _is_integer(value: Any, limit: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and -limit - 1 <= value <= limit


_LEAF_CHECKS: Final[dict[str, Callable[[Any], bool]]] = {
    "null": lambda value: value is None,
    "boolean": lambda value: isinstance(value, bool),
    "int": lambda value: _is_integer(value, _INT_MAX),
    "long": lambda value: _is_integer(value, _LONG_MAX),
    "float": lambda value: _is_number(value, _FLOAT_MAX),
    "double": lambda value: _is_number(value, sys.float_info.max),
    "bytes": _is_byte_text,
    "string": lambda value: isinstance(value, str),
}


class _DefaultCheck:
    """Checks one default; each value with each type once, for unions in unions would multiply."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int], str | None] = {}

    def fault(self, avro: AvroType, value: Any) -> str | None:
        pair = (id(avro), id(value))  # both live as long as the default that is checked
        if pair not in self._known:
            self._known[pair] = self._checked(avro, value)
        return self._known[pair]

    def _checked(self, avro: AvroType, value: Any) -> str | None:
        if isinstance(avro, Union):
            if any(self.fault(branch, value) is None for branch in avro.branches):
                return None
            return f"{_shown(value)} fits no branch of the union"
        if isinstance(avro, Record):
            return self._record(avro, value)
        if isinstance(avro, Array):
            if not isinstance(value, list):
                return f"{_shown(value)} is no array"
            return self._items(avro.items, value)
        if isinstance(avro, Map):
            if not isinstance(value, dict):
                return f"{_shown(value)} is no map"
            return self._items(avro.values, value.values())
        return None if _is_leaf_default(avro, value) else f"{_shown(value)} is no {_kind(avro)}"

    def _record(self, record: Record, value: Any) -> str | None:
        if not record.is_complete:
            return f"record {record.name} cannot be a default inside itself"
        if not isinstance(value, dict):
            return f"{_shown(value)} is no record {record.name}"
        for each in record.fields:
            if each.name in value:
                fault = self.fault(each.type, value[each.name])
                if fault:
                    return fault
            elif not each.has_default:  # a default was checked where it was declared
                return f"field {each.name} is missing in {_shown(value)}"
        return None

    def _items(self, avro: AvroType, items: Iterable[Any]) -> str | None:
        return next((fault for item in items if (fault := self.fault(avro, item))), None)


class _Parser:
    """Reads one schema; owns the names it has declared so far."""

    def __init__(self) -> None:
        self._names: dict[str, Named] = {}

    def type_of(self, value: Any, path: str, namespace: str | None, depth: int) -> AvroType:
        if depth > NESTING_MAX:
            _refuse(path, f"it is nested more than {NESTING_MAX} levels deep")
        if isinstance(value, str):
            return self._by_name(value, path, namespace)
        if isinstance(value, list):
            return self._union(value, path, namespace, depth)
        if isinstance(value, dict):
            return self._declared(value, path, namespace, depth)
        _refuse(path, f"{_shown(value)} is neither a name nor a type")

    def _by_name(self, name: str, path: str, namespace: str | None) -> AvroType:
        if name in PRIMITIVES:
            return Primitive(name)
        known = self._names.get(fullname(name, namespace)) or self._names.get(name)
        if known is None:
            _refuse(path, f"there is no type {_shown(name)}")
        return known

    def _union(self, value: list[Any], path: str, namespace: str | None, depth: int) -> AvroType:
        branches = tuple(
            self.type_of(each, f"{path}/{at}", namespace, depth + 1)
            for at, each in enumerate(value)
        )
        seen: set[str] = set()
        for at, branch in enumerate(branches):
            if isinstance(branch, Union):
                _refuse(f"{path}/{at}", "a union stands directly in a union")
            name = branch.name if isinstance(branch, Named) else branch.kind
            if name in seen:
                _refuse(f"{path}/{at}", f"the union has {name} twice")
            seen.add(name)
        return Union(branches)

    def _declared(
        self, value: dict[str, Any], path: str, namespace: str | None, depth: int
    ) -> AvroType:
        kind = value.get("type", _MISSING)
        if kind is _MISSING:
            _refuse(path, '"type" is missing')
        if isinstance(kind, dict | list):
            return self.type_of(kind, f"{path}/type", namespace, depth + 1)
        if not isinstance(kind, str):
            _refuse(f"{path}/type", f"{_shown(kind)} is no type")
        if kind in PRIMITIVES:
            return Primitive(kind, _properties(value, _RESERVED["primitive"]))
        if kind == "array":
            items = self.type_of(_need(value, "items", path), f"{path}/items", namespace, depth + 1)
            return Array(items, _properties(value, _RESERVED["array"]))
        if kind == "map":
            values = self.type_of(
                _need(value, "values", path), f"{path}/values", namespace, depth + 1
            )
            return Map(values, _properties(value, _RESERVED["map"]))
        if kind in ("record", "error", "enum", "fixed"):
            return self._named(kind, value, path, namespace, depth)
        return self._by_name(kind, f"{path}/type", namespace)

    def _named(
        self, kind: str, value: dict[str, Any], path: str, namespace: str | None, depth: int
    ) -> Named:
        name = _full_name(value, path, namespace)
        inner = namespace_of(name)
        aliases = _aliases(value, path, inner)
        doc = _text(value, "doc", path)
        if kind == "enum":
            made: Named = _enum(value, path, name, doc, aliases)
        elif kind == "fixed":
            made = _fixed(value, path, name, doc, aliases)
        else:
            properties = _properties(value, _RESERVED["record"])
            error = kind == "error"
            made = Record(name, [], doc, aliases, properties, is_error=error, is_complete=False)
        if name in self._names:
            _refuse(path, f"the name {name} is declared twice")
        self._names[name] = made  # before the fields, which may name it
        if isinstance(made, Record):
            made.fields.extend(self._fields(value, path, inner, depth))
            made.is_complete = True
        return made

    def _fields(
        self, value: dict[str, Any], path: str, namespace: str | None, depth: int
    ) -> Iterator[Field]:
        declared = _need(value, "fields", path)
        if not isinstance(declared, list):
            _refuse(f"{path}/fields", '"fields" is no list')
        seen: set[str] = set()
        for at, each in enumerate(declared):
            made = self._field(each, f"{path}/fields/{at}", namespace, depth)
            if made.name in seen:
                _refuse(f"{path}/fields/{at}", f"field {made.name} is declared twice")
            seen.add(made.name)
            yield made

    def _field(self, value: Any, path: str, namespace: str | None, depth: int) -> Field:
        if not isinstance(value, dict):
            _refuse(path, f"{_shown(value)} is no field")
        name = _need(value, "name", path)
        if not isinstance(name, str) or not _NAME.match(name):
            _refuse(path, f"{_shown(name)} is no name of a field")
        avro = self.type_of(_need(value, "type", path), f"{path}/type", namespace, depth + 1)
        order = value.get("order", "ascending")
        if order not in ("ascending", "descending", "ignore"):
            _refuse(path, f"{_shown(order)} is no order")
        made = Field(
            name,
            avro,
            value.get("default"),
            "default" in value,
            _text(value, "doc", path),
            order,
            _alias_texts(value, path),
            _properties(value, _RESERVED["field"]),
        )
        fault = default_fault(avro, made.default) if made.has_default else None
        if fault:
            _refuse(path, f"the default of field {name} is invalid: {fault}")
        return made


_RESERVED: Final[dict[str, frozenset[str]]] = {
    "primitive": frozenset({"type"}),
    "array": frozenset({"type", "items"}),
    "map": frozenset({"type", "values"}),
    "record": frozenset({"type", "name", "namespace", "doc", "aliases", "fields"}),
    "enum": frozenset({"type", "name", "namespace", "doc", "aliases", "symbols", "default"}),
    "fixed": frozenset({"type", "name", "namespace", "doc", "aliases", "size"}),
    "field": frozenset({"name", "type", "doc", "default", "order", "aliases"}),
}


def _properties(value: dict[str, Any], reserved: frozenset[str]) -> dict[str, Any]:
    return {key: each for key, each in value.items() if key not in reserved}


def _need(value: dict[str, Any], key: str, path: str) -> Any:
    if key not in value:
        _refuse(path, f'"{key}" is missing')
    return value[key]


def _text(value: dict[str, Any], key: str, path: str) -> str | None:
    text = value.get(key)
    if text is not None and not isinstance(text, str):
        _refuse(path, f'"{key}" is no text')
    return text


def _alias_texts(value: dict[str, Any], path: str) -> tuple[str, ...]:
    aliases = value.get("aliases", [])
    if not isinstance(aliases, list) or not all(isinstance(each, str) for each in aliases):
        _refuse(path, '"aliases" is no list of names')
    return tuple(dict.fromkeys(aliases))


def _aliases(value: dict[str, Any], path: str, namespace: str | None) -> tuple[str, ...]:
    aliases = _alias_texts(value, path)
    for alias in aliases:
        if not all(_NAME.match(part) for part in alias.split(".")):
            _refuse(path, f"{_shown(alias)} is no name")
    return tuple(dict.fromkeys(fullname(alias, namespace) for alias in aliases))


def _full_name(value: dict[str, Any], path: str, namespace: str | None) -> str:
    name, own = _need(value, "name", path), _text(value, "namespace", path)
    if not isinstance(name, str):
        _refuse(path, '"name" is no text')
    full = fullname(name, namespace if own is None else own).lstrip(".")
    if not all(_NAME.match(part) for part in full.split(".")):
        _refuse(path, f"{_shown(full)} is no name")
    if full in PRIMITIVES:
        _refuse(path, f"{full} is the name of a primitive type")
    return full


def _enum(
    value: dict[str, Any], path: str, name: str, doc: str | None, aliases: tuple[str, ...]
) -> Enum:
    symbols, default = _need(value, "symbols", path), _text(value, "default", path)
    if not isinstance(symbols, list):
        _refuse(path, '"symbols" is no list')
    for symbol in symbols:
        if not isinstance(symbol, str) or not _NAME.match(symbol):
            _refuse(path, f"{_shown(symbol)} is no symbol")
    if len(set(symbols)) != len(symbols):
        _refuse(path, f"enum {name} has a symbol twice")
    if default is not None and default not in symbols:
        _refuse(path, f"the default {_shown(default)} is no symbol of enum {name}")
    properties = _properties(value, _RESERVED["enum"])
    return Enum(name, tuple(symbols), default, doc, aliases, properties)


def _fixed(
    value: dict[str, Any], path: str, name: str, doc: str | None, aliases: tuple[str, ...]
) -> Fixed:
    size = _need(value, "size", path)
    if not _is_integer(size, _INT_MAX) or size < 0:
        _refuse(path, f"{_shown(size)} is no size of a fixed")
    return Fixed(name, size, doc, aliases, _properties(value, _RESERVED["fixed"]))
