"""Makes a column of the values that one member of JSON lines has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pyarrow as pa
from pyarrow import types

from skidway.agent.parsing.json_times import UNFIT, holds_times, with_numbers
from skidway.agent.parsing.misfits import plain_types

_FLOAT_MAX: Final = float(np.finfo(np.float32).max)

MISSING: Final = object()
"""Stands for the value of a missing member whose field has no default."""


def column(
    values: list[Any], field: pa.Field, now_ms: int, odd: set[str]
) -> tuple[pa.Array, list[int]]:
    """Returns an array of the values in the field's type, and the indexes of the values that do not
    fit this type. In the array, these values are null. If records inside the values have members
    without a field, adds the field's name to `odd`.
    """
    unfit: list[int] = []
    if holds_times(field.type):
        values = with_numbers(values, field.type, now_ms)
    kinds = set(map(type, values))
    # `object` in `kinds` means that some values are MISSING or UNFIT, which Arrow cannot convert.
    is_plain = kinds <= plain_types(field.type) and object not in kinds
    if not is_plain or types.is_float32(field.type):
        fits = _fits(field.type, lambda: odd.add(field.name))
        for index, value in enumerate(values):
            if value is MISSING:
                values[index] = None
            elif value is UNFIT or (value is not None and not fits(value)):
                values[index] = None
                unfit.append(index)
    try:
        return pa.array(values, field.type), unfit
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, ValueError, TypeError):
        return _one_by_one(values, field, unfit)


def _one_by_one(values: list[Any], field: pa.Field, unfit: list[int]) -> tuple[pa.Array, list[int]]:
    """Converts the values one at a time, to find those that Arrow refuses: numbers that are too
    large, and strings with an unpaired surrogate. The refused values become null, and their indexes
    are added to `unfit`.
    """
    for index, value in enumerate(values):
        try:
            pa.array([value], field.type)
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, ValueError, TypeError):
            values[index] = None
            unfit.append(index)
    return pa.array(values, field.type), unfit


def _fits(kind: pa.DataType, note: Callable[[], None]) -> Callable[[Any], bool]:
    """Returns a function that says whether a JSON value, with every value inside it, has the type
    `kind`. The function calls `note` for a record with members that have no field.
    """
    if types.is_struct(kind):
        return _fits_record(kind, note)
    if types.is_list(kind) or types.is_map(kind):
        inner = kind.value_field if types.is_list(kind) else kind.item_field
        fits, nullable = _fits(inner.type, note), inner.nullable
        if types.is_list(kind):
            return lambda value: (
                type(value) is list
                and all(nullable if each is None else fits(each) for each in value)
            )
        return lambda value: (
            type(value) is dict
            and all(nullable if each is None else fits(each) for each in value.values())
        )
    allowed = plain_types(kind) - {type(None)}
    if types.is_float32(kind):  # Arrow makes infinity of numbers that are too large for the type
        return lambda value: type(value) in allowed and abs(value) <= _FLOAT_MAX
    return lambda value: type(value) in allowed


def _fits_record(kind: pa.StructType, note: Callable[[], None]) -> Callable[[Any], bool]:
    members = [(field.name, _fits(field.type, note), field.nullable) for field in kind]
    names = {field.name for field in kind}

    def fits_record(value: Any) -> bool:
        if type(value) is not dict:
            return False
        known = 0
        for name, fits, nullable in members:
            each = value.get(name)
            if each is not None:
                if not fits(each):
                    return False
                known += 1
            elif not nullable:
                return False
        if known != len(value) and not value.keys() <= names:
            note()
        return True

    return fits_record
