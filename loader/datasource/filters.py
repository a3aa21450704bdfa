"""What of a query's `where` the source can use. Pure; no I/O.

Spark gives filters to Python sources only if `spark.sql.python.filterPushdown.enabled` is true.
Spark applies every filter again to the rows that it gets. So a filter that this module does not
know costs time, and never gives a wrong row.

Filters on `_topic`, `_partition`, `_kafka_offset` and `_timestamp` decide what is read. The other
filters that this module knows drop rows before they are copied to Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types
from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
    StringContains,
    StringEndsWith,
    StringStartsWith,
)

OFFSET_END: Final = 1 << 63
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

_OPERATORS: Final[Mapping[type[Filter], str]] = {
    EqualTo: "=",
    In: "in",
    GreaterThan: ">",
    GreaterThanOrEqual: ">=",
    LessThan: "<",
    LessThanOrEqual: "<=",
    StringStartsWith: "starts",
    StringEndsWith: "ends",
    StringContains: "contains",
}
_TESTS: Final[Mapping[str, Callable[[pa.Array, Any], pa.Array]]] = {
    "=": pc.equal,
    "in": lambda column, values: pc.is_in(column, pa.array(values, column.type)),
    ">": pc.greater,
    ">=": pc.greater_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    "starts": pc.starts_with,
    "ends": pc.ends_with,
    "contains": pc.match_substring,
}
_ORDERED: Final = frozenset({">", ">=", "<", "<="})


@dataclass(frozen=True, slots=True)
class Comparison:
    """One condition: `column operator value`. The value of `in` is a tuple."""

    column: str
    operator: str
    value: Any


@dataclass(frozen=True, slots=True)
class Filters:
    """Conditions that all have to be true."""

    comparisons: tuple[Comparison, ...] = ()

    @staticmethod
    def of(pushed: Iterable[Filter]) -> Filters:
        """The conditions among Spark's filters that this module knows."""
        return Filters(tuple(made for each in pushed for made in _comparisons(each)))

    def admits(self, topic: str, partition: int) -> bool:
        """Whether rows of this partition may pass."""
        return all(
            {"_topic": topic, "_partition": partition}[each.column] in _values(each)
            for each in self.comparisons
            if each.column in ("_topic", "_partition") and each.operator in ("=", "in")
        )

    def offsets(self) -> tuple[int, int]:
        """The rows that pass have offsets in [first, end)."""
        first, end = 0, OFFSET_END
        for each in self._of_column("_kafka_offset", int):
            low, high = _bounds(each.operator, each.value)
            first = first if low is None else max(first, low)
            end = end if high is None else min(end, high)
        return first, end

    def times_within(self, since: int | None, until: int | None) -> tuple[int | None, int | None]:
        """The rows that pass and have event times (in ms) in [since, until) have event times in the
        bounds returned. None means no bound."""
        for each in self._of_column("_timestamp", datetime):
            if each.value.tzinfo is None:
                continue
            low, high = (_ms(bound) for bound in _bounds(each.operator, _us(each.value)))
            if low is not None:
                since = low if since is None else max(since, low)
            if high is not None:
                until = high if until is None else min(until, high)
        return since, until

    def select(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """The rows that pass, as far as this module can tell."""
        for each in self.comparisons:
            if not rows.num_rows:
                break
            if each.column in rows.schema.names:
                rows = _select(rows, each)
        return rows

    def _of_column(self, name: str, kind: type) -> list[Comparison]:
        return [
            each
            for each in self.comparisons
            if each.column == name and type(each.value) is kind and each.operator != "in"
        ]


def _comparisons(pushed: Any) -> list[Comparison]:
    operator = _OPERATORS.get(type(pushed))
    if operator is None or len(pushed.attribute) != 1:
        return []  # it is unknown, or on a part of a column
    return [Comparison(pushed.attribute[0], operator, pushed.value)]


def _values(comparison: Comparison) -> tuple[Any, ...]:
    return tuple(comparison.value) if comparison.operator == "in" else (comparison.value,)


def _bounds(operator: str, value: int) -> tuple[int | None, int | None]:
    """The numbers that pass, as [low, high)."""
    return {
        "=": (value, value + 1),
        ">": (value + 1, None),
        ">=": (value, None),
        "<": (None, value),
        "<=": (None, value + 1),
    }.get(operator, (None, None))


def _us(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(microseconds=1)


def _ms(bound_us: int | None) -> int | None:
    """The first whole millisecond at or after a bound."""
    return None if bound_us is None else -(-bound_us // 1000)


def _select(rows: pa.RecordBatch, comparison: Comparison) -> pa.RecordBatch:
    column = rows.column(comparison.column)
    if not _is_comparable(column.type, comparison):
        return rows
    return rows.filter(_TESTS[comparison.operator](column, comparison.value))


def _is_comparable(column: pa.DataType, comparison: Comparison) -> bool:
    """Whether Arrow compares values of these types exactly as Spark does. Floating-point numbers
    are left to Spark (NaN), and so is the order of texts (collations)."""
    kinds = {type(each) for each in _values(comparison)}
    if types.is_string(column):
        return kinds == {str} and comparison.operator not in _ORDERED
    return types.is_integer(column) and kinds == {int} and _fits(column, comparison)


def _fits(column: pa.DataType, comparison: Comparison) -> bool:
    half = 1 << (column.bit_width - 1)
    return all(-half <= each < half for each in _values(comparison))
