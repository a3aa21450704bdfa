"""Makes the sentence that says which part of a JSON value does not have the type of its field.

    a        the field itself         a[]    an item of the array a
    a.b      the member b of a        a{}    a value of the map a

    field order.lines[].price: not a value of double

The last line above is an example. The sentence contains names of the schema, but no text of the
line.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyarrow import types

from skidway.agent.parsing.json_times import holds_times, is_time, with_numbers
from skidway.schemas.codec.arrow import avro_name


def detail(value: Any, field: pa.Field, now_ms: int) -> str:
    """Returns the sentence for a value that does not fit its field. If several parts of the value
    do not fit, the sentence names the first. now_ms: the moment at which the line was read.
    """
    if holds_times(field.type):
        value = with_numbers([value], field.type, now_ms)[0]
    found = _misfit(value, field)
    place, why = ("", f"not a value of {avro_name(field.type)}") if found is None else found
    return f"field {field.name}{place}: {why}"


def plain_types(kind: pa.DataType) -> set[type]:
    """Returns the Python types of the JSON values that fit `kind`. If `kind` contains other types,
    as a list does, returns only the type of None, because the other values must be checked part by
    part."""
    none = type(None)
    if types.is_integer(kind) or is_time(kind):
        return {int, none}
    if types.is_floating(kind):
        return {int, float, none}
    if types.is_string(kind):
        return {str, none}
    if types.is_boolean(kind):
        return {bool, none}
    return {none}


def _misfit(value: Any, field: pa.Field) -> tuple[str, str] | None:
    """Returns which part of a value does not fit, and why; None if the whole value fits."""
    kind = field.type
    if value is None:
        return None if field.nullable else ("", "the value is missing or null")
    if types.is_struct(kind):
        if type(value) is not dict:
            return "", "not an object"
        inside = ((f".{each.name}", value.get(each.name), each) for each in kind)
    elif types.is_list(kind):
        if type(value) is not list:
            return "", "not an array"
        inside = (("[]", each, kind.value_field) for each in value)
    elif types.is_map(kind):
        if type(value) is not dict:
            return "", "not an object"
        inside = (("{}", each, kind.item_field) for each in value.values())
    else:
        return None if _is_leaf(value, kind) else ("", _why(value, kind))
    for place, each, own in inside:
        found = _misfit(each, own)
        if found is not None:
            return place + found[0], found[1]
    return None


def _why(value: Any, kind: pa.DataType) -> str:
    if types.is_string(kind) and type(value) is str:
        return "the text has half of a surrogate pair"
    return f"not a value of {avro_name(kind)}"


def _is_leaf(value: Any, kind: pa.DataType) -> bool:
    if type(value) not in plain_types(kind):
        return False
    try:
        pa.array([value], kind)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, ValueError, TypeError):
        return False  # a number is too large, or a text has an unpaired surrogate
    return True
