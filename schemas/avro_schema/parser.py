"""A strict parser for the Avro 1.12 specification ("Schema Declaration")."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NoReturn

from skidway.schemas.avro_schema.defaults import DefaultCheck, is_integer
from skidway.schemas.avro_schema.model import (
    PRIMITIVES,
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
    fullname,
    namespace_of,
    shown,
)
from skidway.text_file import MARK

NESTING_MAX: Final = 64
"""Types may be nested to at most this many levels. Java's parser accepts a few hundred levels.
Schemas that people write have far fewer than 64 levels."""
VALUE_NESTING_MAX: Final = 100
"""A default or a property may be nested to at most this many levels, because programs that read the
schema walk recursively through defaults and properties, and their stack is limited."""
CHARACTERS_MAX: Final = 4_000_000
"""A schema has at most this many characters, which is enough for about ten thousand fields, each
with its doc. The registry accepts only shorter schemas, because it limits the size of requests."""
FULL_NAME_MAX: Final = 1000
"""A full name has at most this many characters, because a namespace is written once, but each name
within it becomes a full name."""

_BARE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_FULL_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*\Z")
_INT_MAX: Final = 2**31 - 1
_MISSING: Final = object()


def parse(
    text: str | dict[str, Any] | list[Any],
    known: Mapping[str, Named] | None = None,
    *,
    check_defaults: bool = True,
) -> AvroType:
    """Returns the schema in `text`, which is a JSON text or its parsed value. Raises
    `SchemaInvalid`.

    `known` maps full names to the types of the schemas that the text references (see
    `named_types`). The text may use these types, but must not declare them again. With
    `check_defaults=False`, defaults are not checked. Callers use this for schemas that a registry
    may already have, because such a schema must stay readable even if it has an invalid default.
    """
    try:
        return _Parser(known or {}, check_defaults=check_defaults).type_of(_read(text), "", None, 0)
    except RecursionError:
        raise SchemaInvalid("The schema is nested too deeply to be read.") from None


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
    if len(text) > CHARACTERS_MAX:
        raise SchemaInvalid(f"The schema has more than {CHARACTERS_MAX} characters.")
    if text.startswith(MARK):
        raise SchemaInvalid("The schema begins with a byte order mark: send the text without it.")
    if _BARE_NAME.fullmatch(text.strip()) and text.strip() != "null":
        return text.strip()  # some people write the name of a type without quotation marks
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except ValueError as error:
        raise SchemaInvalid(f"The schema is no JSON: {error}.") from None


def _refuse_constant(name: str) -> NoReturn:
    raise SchemaInvalid(f"The schema contains {name}, which JSON does not have.")


def _refuse(path: str, what: str) -> NoReturn:
    raise SchemaInvalid(f"The schema is invalid at {path or '/'}: {what}.")


class _Parser:
    """Parses one schema, and remembers the named types that the schema has declared so far."""

    def __init__(self, known: Mapping[str, Named], *, check_defaults: bool) -> None:
        self._names = dict(known)
        self._defaults = DefaultCheck() if check_defaults else None

    def type_of(self, value: Any, path: str, namespace: str | None, depth: int) -> AvroType:
        if depth > NESTING_MAX:
            _refuse(path, f"it is nested more than {NESTING_MAX} levels deep")
        if isinstance(value, str):
            return self._by_name(value, path, namespace)
        if isinstance(value, list):
            return self._union(value, path, namespace, depth)
        if isinstance(value, dict):
            return self._declared(value, path, namespace, depth)
        _refuse(path, f"{shown(value)} is neither a name nor a type")

    def _by_name(self, name: str, path: str, namespace: str | None) -> AvroType:
        if name in PRIMITIVES:
            return Primitive(name)
        known = self._names.get(fullname(name, namespace)) or self._outside(name)
        if known is None:
            _refuse(path, f"there is no type {shown(name)}")
        return known

    def _outside(self, name: str) -> Named | None:
        """Resolves a reference `name` that is written inside a namespace, but means a type outside
        of it: the type that is called `name` and has no namespace. Returns None if there is no such
        type. As in Avro's Java library, such a reference finds a record only after the record's
        declaration has ended."""
        known = self._names.get(name)
        return None if isinstance(known, Record) and not known.is_complete else known

    def _union(self, value: list[Any], path: str, namespace: str | None, depth: int) -> AvroType:
        branches = tuple(
            self.type_of(each, f"{path}/{at}", namespace, depth + 1)
            for at, each in enumerate(value)
        )
        seen: set[str] = set()
        for at, branch in enumerate(branches):
            if isinstance(branch, Union):
                _refuse(f"{path}/{at}", "a union is directly in a union")
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
        if not isinstance(kind, str):
            _refuse(f"{path}/type", f"{shown(kind)} is no type")
        if kind in PRIMITIVES:
            return Primitive(kind, _properties(value, path))
        if kind == "array":
            items = self.type_of(_need(value, "items", path), f"{path}/items", namespace, depth + 1)
            return Array(items, _properties(value, path))
        if kind == "map":
            values = self.type_of(
                _need(value, "values", path), f"{path}/values", namespace, depth + 1
            )
            return Map(values, _properties(value, path))
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
            properties = _properties(value, path)
            error = kind == "error"
            made = Record(name, [], doc, aliases, properties, is_error=error, is_complete=False)
        if name in self._names:
            _refuse(path, f"the name {name} is declared twice")
        self._names[name] = made  # set before the fields are read, because they may refer to `made`
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
            _refuse(path, f"{shown(value)} is no field")
        name = _need(value, "name", path)
        if not isinstance(name, str) or not _NAME.match(name):
            _refuse(path, f"{shown(name)} is no name of a field")
        avro = self.type_of(_need(value, "type", path), f"{path}/type", namespace, depth + 1)
        order = value.get("order", "ascending")
        if order not in ("ascending", "descending", "ignore"):
            _refuse(path, f"{shown(order)} is no order")
        made = Field(
            name,
            avro,
            value.get("default"),
            "default" in value,
            _text(value, "doc", path),
            order,
            _alias_texts(value, path),
            _properties(value, path, _FIELD_RESERVED),
        )
        _check_nesting(made.default, path)
        check = self._defaults if made.has_default else None
        fault = None if check is None else check.of(avro, made.default)
        if fault:
            _refuse(path, f"the default of field {name} is invalid: {fault}")
        return made


_RESERVED: Final = frozenset(
    {
        "type",
        "name",
        "namespace",
        "doc",
        "aliases",
        "fields",
        "symbols",
        "size",
        "items",
        "values",
    }
)
"""Keys in the JSON object of a type that are never properties (attributes that users define). If
such a key has no meaning for the type, for example `symbols` for a record, the parser drops it, as
Avro Java does."""
_ENUM_RESERVED: Final = _RESERVED | {"default"}
_FIELD_RESERVED: Final = frozenset({"name", "type", "doc", "default", "order", "aliases"})


def _properties(
    value: dict[str, Any], path: str, reserved: frozenset[str] = _RESERVED
) -> dict[str, Any]:
    found = {key: each for key, each in value.items() if key not in reserved}
    for each in found.values():
        _check_nesting(each, path)
    return found


def _check_nesting(value: Any, path: str) -> None:
    """Raises `SchemaInvalid` if a default or property is nested too deeply. This function does not
    recurse itself, because it protects the recursive functions that are called later."""
    level = [value]
    for _ in range(VALUE_NESTING_MAX):
        level = [inside for each in level for inside in _inside(each)]
        if not level:
            return
    _refuse(path, f"a default or property is nested more than {VALUE_NESTING_MAX} levels deep")


def _inside(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


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
    aliases = dict.fromkeys(fullname(each, namespace) for each in _alias_texts(value, path))
    for alias in aliases:
        _check_full_name(path, alias)
    return tuple(aliases)


def _full_name(value: dict[str, Any], path: str, namespace: str | None) -> str:
    name, own = _need(value, "name", path), _text(value, "namespace", path)
    if not isinstance(name, str):
        _refuse(path, '"name" is no text')
    full = name[1:] if name.startswith(".") else fullname(name, namespace if own is None else own)
    _check_full_name(path, full)
    if full in PRIMITIVES:
        _refuse(path, f"{full} is the name of a primitive type")
    return full


def _check_full_name(path: str, name: str) -> None:
    if len(name) > FULL_NAME_MAX:
        _refuse(path, f"{shown(name)} is a name of more than {FULL_NAME_MAX} characters")
    if not _FULL_NAME.match(name):
        _refuse(path, f"{shown(name)} is no name")


def _enum(
    value: dict[str, Any], path: str, name: str, doc: str | None, aliases: tuple[str, ...]
) -> Enum:
    symbols, default = _need(value, "symbols", path), _text(value, "default", path)
    if not isinstance(symbols, list):
        _refuse(path, '"symbols" is no list')
    for symbol in symbols:
        if not isinstance(symbol, str) or not _NAME.match(symbol):
            _refuse(path, f"{shown(symbol)} is no symbol")
    if len(set(symbols)) != len(symbols):
        _refuse(path, f"enum {name} has a symbol twice")
    if default is not None and default not in symbols:
        _refuse(path, f"the default {shown(default)} is no symbol of enum {name}")
    properties = _properties(value, path, _ENUM_RESERVED)
    return Enum(name, tuple(symbols), default, doc, aliases, properties)


def _fixed(
    value: dict[str, Any], path: str, name: str, doc: str | None, aliases: tuple[str, ...]
) -> Fixed:
    size = _need(value, "size", path)
    if not is_integer(size, _INT_MAX) or size < 0:
        _refuse(path, f"{shown(size)} is no size of a fixed")
    return Fixed(name, size, doc, aliases, _properties(value, path))
