"""Evaluates conditions on Arrow columns.

A comparison with null is false. So `not level = "DEBUG"` is true for a record without a level, and
`level != "DEBUG"` is false for such a record. Texts are compared byte by byte.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from skidway.agent.shaping import rules as r
from skidway.agent.shaping.rules import Condition, Literal

_ORDERS: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    r.EQUALS: pc.equal, r.NOT_EQUALS: pc.not_equal, r.LESS: pc.less, r.AT_MOST: pc.less_equal,
    r.MORE: pc.greater, r.AT_LEAST: pc.greater_equal,
}  # fmt: skip
_SEARCHES: Final[Mapping[str, Callable[[Any, str], Any]]] = {
    r.MATCHES: pc.match_substring_regex, r.CONTAINS: pc.match_substring,
    r.STARTS_WITH: pc.starts_with, r.ENDS_WITH: pc.ends_with,
}  # fmt: skip


def holds(condition: Condition, batch: pa.RecordBatch) -> pa.BooleanArray:
    """Returns, for each row, whether the condition is true; never null."""
    match condition:
        case r.Comparison(field, how, value):
            column = _column(batch, field.name)
            if how in _SEARCHES:
                return _SEARCHES[how](column, str(value)).fill_null(False)
            return _ORDERS[how](column, _scalar(value, column.type)).fill_null(False)
        case r.Membership(field, values):
            column = _column(batch, field.name)
            # `pc.is_in` is not used, because for it -0.0 is not equal to 0.0
            equal = (pc.equal(column, _scalar(value, column.type)) for value in values)
            return reduce(pc.or_, equal).fill_null(False)
        case r.IsNull(field):
            return pc.is_null(batch.column(field.name))
        case r.Not(part):
            return pc.invert(holds(part, batch))
        case r.AllOf(parts):
            return reduce(pc.and_, (holds(part, batch) for part in parts))
        case r.AnyOf(parts):
            return reduce(pc.or_, (holds(part, batch) for part in parts))


def _scalar(value: Literal, kind: pa.DataType) -> pa.Scalar:
    return pa.scalar(float(value) if types.is_floating(kind) else value, kind)


def _column(batch: pa.RecordBatch, name: str) -> pa.Array:
    """Returns a column. Rules may compare it with values that its own type does not have, such as
    larger integers. So integers are converted to 64 bits, and symbols of an enum to strings."""
    column = batch.column(name)
    if types.is_dictionary(column.type):
        return column.cast(pa.string())
    if types.is_integer(column.type):
        return column.cast(pa.int64())
    return column
