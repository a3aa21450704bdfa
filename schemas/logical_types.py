"""Finds the logical types in a schema that have no effect.

A reader ignores a logical type that it does not know, or that does not fit its type; Avro demands
this, so the parser and the registry accept such a schema. Then a time is a plain long in every row.
So the commands that take a schema name each such logical type.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from skidway.schemas.avro_schema import Fixed, parse
from skidway.schemas.avro_schema.model import shown
from skidway.schemas.codec.arrow import DECIMAL256_DIGITS, decimal_type

_KEY: Final = "logicalType"
_BASES: Final = {
    "big-decimal": ("bytes",),
    "date": ("int",),
    "decimal": ("bytes", "fixed"),
    "duration": ("fixed",),
    "local-timestamp-micros": ("long",),
    "local-timestamp-millis": ("long",),
    "local-timestamp-nanos": ("long",),
    "time-micros": ("long",),
    "time-millis": ("int",),
    "timestamp-micros": ("long",),
    "timestamp-millis": ("long",),
    "timestamp-nanos": ("long",),
    "uuid": ("string", "fixed"),
}
"""The types to which each logical type of Avro 1.12 belongs."""
_SIZES: Final = {"duration": 12, "uuid": 16}


def ignored(text: str) -> list[str]:
    """Returns a sentence for each logical type that readers ignore, in the order of the schema.
    text: a schema that the parser accepts."""
    try:
        schema = json.loads(text)
    except ValueError:
        return []  # the name of a type without quotation marks
    return [sentence for each in _types(schema) if (sentence := _sentence(*each)) is not None]


_Placed = tuple[str, Any, dict[str, Any]]
"""A type, with its place before it, such as `order.lines[].price`, and the field that has the type
after it. If no field has it, but a union, array or map, the field is empty."""


def _types(schema: Any) -> Iterator[_Placed]:
    waiting: list[_Placed] = [("", schema, {})]
    while waiting:
        placed = waiting.pop()
        yield placed
        waiting += reversed([*_inside(*placed[:2])])


def _inside(place: str, value: Any) -> Iterator[_Placed]:
    if isinstance(value, list):
        yield from ((place, branch, {}) for branch in value)
    elif isinstance(value, dict):
        if value["type"] in ("record", "error"):
            for field in value["fields"]:
                yield f"{place}.{field['name']}".lstrip("."), field["type"], field
        elif value["type"] == "array":
            yield f"{place}[]", value["items"], {}
        elif value["type"] == "map":
            yield f"{place}{{}}", value["values"], {}


def _sentence(place: str, value: Any, field: dict[str, Any]) -> str | None:
    key = _key_in(value)
    if key is not None:
        fault, read = _fault(key, value), value["type"]
    else:
        key, read = _key_in(field), value
        fault = None if key is None else f"{key} stands beside the type and not in it"
    return fault and f"{place or 'the schema'}: {fault}, so readers take {shown(read)}"


def _key_in(value: Any) -> str | None:
    """Returns the key of a logical type, also if it is misspelled."""
    if not isinstance(value, dict):
        return None
    return next(
        (x for x in value if x.lower().replace("_", "").replace("-", "") == _KEY.lower()), None
    )


def _fault(key: str, value: dict[str, Any]) -> str | None:
    name, kind = value[key], value["type"]
    if key != _KEY:
        return f"{key} is no property of Avro ({_KEY} is one)"
    if not isinstance(name, str) or name not in _BASES:
        return f"Avro has no logical type {shown(name)}"
    if kind not in _BASES[name]:
        return f"{name} belongs to {' or '.join(_BASES[name])}"
    avro = parse(value, check_defaults=False)
    if name == "decimal" and decimal_type(avro) is None:
        return (
            f"decimal needs a precision from 1 to {DECIMAL256_DIGITS} that its bytes can hold, and "
            "a scale from 0 to the precision, as numbers"
        )
    if isinstance(avro, Fixed) and avro.size != _SIZES.get(name, avro.size):
        return f"{name} has {_SIZES[name]} bytes"
    return None
