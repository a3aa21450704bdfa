"""What the source makes of Spark's filters. Spark applies all of them again, so the source must
never drop a row that passes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringContains,
    StringEndsWith,
    StringStartsWith,
)

from skidway.loader.datasource.filters import OFFSET_END, Filters

MOMENT = datetime(2026, 1, 31, 7, tzinfo=UTC)
MS = 1_769_842_800_000
TICK = timedelta(microseconds=1)


@pytest.mark.parametrize(
    ("kind", "since", "until"),
    [
        (EqualTo, MS, MS + 1),
        (GreaterThan, MS + 1, None),
        (GreaterThanOrEqual, MS, None),
        (LessThan, None, MS),
        (LessThanOrEqual, None, MS + 1),
    ],
)
def test_comparisons_of_time_are_bounds(kind: Any, since: int | None, until: int | None) -> None:
    """A comparison with `_timestamp` bounds the event times that are read, in ms."""
    assert Filters.of([kind(("_timestamp",), MOMENT)]).times_within(None, None) == (since, until)


def test_bounds_between_two_milliseconds_are_rounded_outwards() -> None:
    """Event times are whole milliseconds; a bound in between keeps exactly the rows that pass."""
    after = Filters.of([GreaterThan(("_timestamp",), MOMENT + TICK)])
    before = Filters.of([LessThanOrEqual(("_timestamp",), MOMENT + TICK)])
    assert (after.times_within(None, None), before.times_within(None, None)) == (
        (MS + 1, None),
        (None, MS + 1),
    )


def test_several_bounds_hold_together() -> None:
    """Of several bounds the narrowest counts. A time without time zone is left to Spark."""
    found = Filters.of(
        [
            GreaterThan(("_kafka_offset",), 3),
            GreaterThanOrEqual(("_kafka_offset",), 2),
            LessThan(("_kafka_offset",), 9),
            LessThan(("_timestamp",), datetime(2026, 1, 1)),  # noqa: DTZ001 - as Spark may send it
        ]
    )
    assert found.offsets() == (4, 9)
    late = Filters.of([GreaterThanOrEqual(("_timestamp",), MOMENT)])
    assert late.times_within(MS - 1, MS + 5) == (MS, MS + 5)
    assert late.times_within(MS + 1, None) == (MS + 1, None)
    assert found.times_within(None, None) == (None, None)
    assert Filters().offsets() == (0, OFFSET_END)


def test_partitions_that_cannot_pass_are_left_out() -> None:
    """Equality with `_topic` and `_partition` decides which partitions are read."""
    found = Filters.of([In(("_partition",), (1, 2)), EqualTo(("_topic",), "logs")])
    assert [found.admits("logs", number) for number in range(4)] == [False, True, True, False]
    assert not found.admits("web", 1)


ROWS = pa.record_batch(
    {
        "text": ["ab", "b", None, "abc"],
        "count": pa.array([1, 2, 3, None], pa.int32()),
        "share": [0.5, float("nan"), None, 1.0],
    }
)


@pytest.mark.parametrize(
    ("pushed", "left"),
    [
        (EqualTo(("text",), "ab"), [0]),
        (In(("text",), ("b", "abc")), [1, 3]),
        (StringStartsWith(("text",), "ab"), [0, 3]),
        (StringEndsWith(("text",), "b"), [0, 1]),
        (StringContains(("text",), "b"), [0, 1, 3]),
        (GreaterThan(("count",), 1), [1, 2]),
        (LessThanOrEqual(("count",), 1), [0]),
        (In(("count",), (3, 1)), [0, 2]),
        (EqualTo(("count",), 1 << 40), [0, 1, 2, 3]),
        (GreaterThan(("text",), "a"), [0, 1, 2, 3]),
        (GreaterThan(("share",), 0.7), [0, 1, 2, 3]),
        (EqualTo(("count",), True), [0, 1, 2, 3]),
        (EqualTo(("other",), 1), [0, 1, 2, 3]),
        (EqualTo(("text", "part"), "ab"), [0, 1, 2, 3]),
        (EqualNullSafe(("text",), None), [0, 1, 2, 3]),
        (Not(EqualTo(("text",), "ab")), [0, 1, 2, 3]),
        (IsNotNull(("text",)), [0, 1, 2, 3]),
    ],
)
def test_rows_that_cannot_pass_are_dropped(pushed: Any, left: list[int]) -> None:
    """Equality, ranges of whole numbers and parts of texts drop rows. What Arrow might compare in
    another way than Spark is left to Spark."""
    numbered = ROWS.append_column("row", pa.array(range(4)))
    assert Filters.of([pushed]).select(numbered).column("row").to_pylist() == left
