"""Writes the canonical text of a schema: the text that Avro Java writes, without white space. The
registry stores this text.

For the registry, two texts are the same schema if they have the same canonical text. Unlike Avro's
Parsing Canonical Form, the canonical text contains doc, aliases, defaults and properties. So
schemas that differ in these parts count as different schemas. These parts matter: for example, a
default decides which value a reader gets. The canonical text has the same order of attributes, the
same escapes and the same digits of numbers as the text that `Schema.toString` of Avro Java 1.12
writes. So a registry that uses Avro Java, such as Confluent's, stores the same text. The tests in
tests/conformance/avro compare our texts with Java's.

With `normalize`, schemas that differ only in their spelling have the same text, as with Confluent's
parameter `normalize` (`AvroSchemaUtils.toNormalizedString` of confluentinc/schema-registry).
`normalize` sorts aliases and properties, drops the empty doc of a type (not of a field), writes an
error type as a record, and writes numbers in defaults in the form of their type (1.0 for a double).
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final

from skidway.schemas.avro_schema import (
    TYPES,
    Array,
    AvroType,
    DefaultCheck,
    Enum,
    Field,
    Fixed,
    Map,
    Named,
    Primitive,
    Record,
    Recursive,
    SchemaInvalid,
    Union,
    namespace_of,
)


def canonical(avro: AvroType, known: Collection[str] = (), *, normalize: bool = False) -> str:
    """Returns the canonical JSON text of a schema.

    `known`: the full names of the types that referenced schemas declare. The text uses these types
    by name, and does not declare them. Raises `SchemaInvalid` if the schema is nested too deeply
    or, with `normalize`, if its defaults are too large to be checked.
    """
    try:
        return _written(_Writer(known, normalize=normalize).json(avro, None))
    except RecursionError:
        raise SchemaInvalid("The schema is nested too deeply to be written.") from None


class _Writer:
    """Writes one schema, and remembers the names of the types that it has declared so far."""

    def __init__(self, known: Collection[str], *, normalize: bool) -> None:
        self._declared = set(known)
        self._normalize = normalize
        self._defaults = _Defaults()

    def json(self, avro: AvroType, namespace: str | None) -> Any:
        properties = self._properties(avro.properties)
        if isinstance(avro, Recursive):
            return self.json(avro.type, namespace)
        if isinstance(avro, Primitive):
            return {"type": avro.kind, **properties} if properties else avro.kind
        if isinstance(avro, Union):
            return [self.json(branch, namespace) for branch in avro.branches]
        if isinstance(avro, Array):
            return {"type": "array", "items": self.json(avro.items, namespace), **properties}
        if isinstance(avro, Map):
            return {"type": "map", "values": self.json(avro.values, namespace), **properties}
        return self._named(avro, namespace)

    def _named(self, avro: Named, namespace: str | None) -> Any:
        own, short = namespace_of(avro.name), avro.name.rpartition(".")[2]
        # a name such as `int` without a namespace always means the primitive
        if avro.name in self._declared:
            return short if own == namespace and short not in TYPES else avro.name
        self._declared.add(avro.name)
        is_error = isinstance(avro, Record) and avro.is_error and not self._normalize
        made: dict[str, Any] = {"type": "error" if is_error else avro.kind, "name": short}
        if own != namespace:
            made["namespace"] = own or ""
        if avro.doc is not None and not (self._normalize and avro.doc == ""):
            made["doc"] = avro.doc
        made |= self._content(avro, own)
        made |= self._properties(avro.properties)
        if avro.aliases:
            made["aliases"] = [_relative(alias, own) for alias in self._in_order(avro.aliases)]
        return made

    def _content(self, avro: Named, own: str | None) -> dict[str, Any]:
        if isinstance(avro, Record):
            return {"fields": [self._field(each, own) for each in avro.fields]}
        if isinstance(avro, Fixed):
            return {"size": avro.size}
        return _enum_content(avro)

    def _field(self, field: Field, namespace: str | None) -> dict[str, Any]:
        made: dict[str, Any] = {"name": field.name, "type": self.json(field.type, namespace)}
        if field.doc is not None:
            made["doc"] = field.doc
        if field.has_default:
            made["default"] = self._default(field)
        if field.order != "ascending":
            made["order"] = field.order
        if field.aliases:
            made["aliases"] = [*self._in_order(field.aliases)]
        return made | self._properties(field.properties)

    def _default(self, field: Field) -> Any:
        if not self._normalize:
            return field.default
        return self._defaults.normalized(field.type, field.default)

    def _properties(self, properties: Mapping[str, Any]) -> dict[str, Any]:
        made: dict[str, Any] = _sorted(properties) if self._normalize else dict(properties)
        return made

    def _in_order(self, names: Iterable[str]) -> Iterable[str]:
        return sorted(names) if self._normalize else names


def _enum_content(avro: Enum) -> dict[str, Any]:
    made: dict[str, Any] = {"symbols": list(avro.symbols)}
    if avro.default is not None:
        made["default"] = avro.default
    return made


def _relative(alias: str, own: str | None) -> str:
    short = alias.rpartition(".")[2]
    return short if namespace_of(alias) == own and short not in TYPES else alias


def _sorted(value: Any) -> Any:
    """Returns the JSON value `value` with the keys of every object sorted, at all levels."""
    if isinstance(value, Mapping):
        return {key: _sorted(value[key]) for key in sorted(value)}
    return [_sorted(each) for each in value] if isinstance(value, list) else value


class _Defaults:
    """Writes the defaults of one schema in the form of their types. For example, the default 1 of a
    double becomes 1.0."""

    def __init__(self) -> None:
        self._check = DefaultCheck()
        self._types: dict[int, dict[str, AvroType]] = {}

    def normalized(self, avro: AvroType, value: Any) -> Any:
        if self._check.of(avro, value):
            return value
        return _sorted(self._in_digits_of(avro, value))

    def _in_digits_of(self, avro: AvroType, value: Any) -> Any:
        if isinstance(avro, Union):
            fitting = (each for each in avro.branches if self._check.of(each, value) is None)
            branch = next(fitting, None)
            return value if branch is None else self._in_digits_of(branch, value)
        if avro.kind in ("float", "double") and isinstance(value, int):
            return float(value)
        if isinstance(avro, Array):
            return [self._in_digits_of(avro.items, each) for each in value]
        if isinstance(avro, Map):
            return {key: self._in_digits_of(avro.values, each) for key, each in value.items()}
        if isinstance(avro, Record):
            types = self._types_of(avro)
            return {
                key: self._in_digits_of(types[key], each) if key in types else each
                for key, each in value.items()
            }
        return value

    def _types_of(self, record: Record) -> dict[str, AvroType]:
        if id(record) not in self._types:
            self._types[id(record)] = {each.name: each.type for each in record.fields}
        return self._types[id(record)]


def _written(value: Any) -> str:
    """Returns the JSON text that Jackson (Java's JSON library) would write. Its hexadecimal escapes
    have capital letters, and its floating-point numbers have the form of Java's `Double`."""
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, dict):
        inside = (f"{_text(key)}:{_written(each)}" for key, each in value.items())
        return "{" + ",".join(inside) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_written, value)) + "]"
    return _floating(value) if isinstance(value, float) else json.dumps(value)


_ESCAPES: Final = {
    code: f"\\u{code:04X}" for code in range(0x20) if chr(code) not in "\b\t\n\f\r"
} | {ord(character): json.dumps(character)[1:-1] for character in '\b\t\n\f\r"\\'}


def _text(value: str) -> str:
    return f'"{value.translate(_ESCAPES)}"'


def _floating(value: float) -> str:
    """Returns the number as `Double.toString` of Java 19 and later writes it: with as few digits as
    possible, and in scientific notation below 1e-3 and from 1e7 on."""
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    digits, _, exponent = f"{value!r}".partition("e")
    sign = "-" if digits.startswith("-") else ""
    whole, _, fraction = digits.lstrip("-").partition(".")
    fraction = "" if fraction == "0" else fraction
    point = len(whole) + int(exponent or 0)
    significant = (whole + fraction).lstrip("0")
    point -= len(whole + fraction) - len((whole + fraction).lstrip("0"))
    significant = significant.rstrip("0") or "0"
    return f"{sign}{significant[0]}.{significant[1:] or '0'}E{point - 1}"
