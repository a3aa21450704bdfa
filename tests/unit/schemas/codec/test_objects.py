"""Every decoded value can be shown to people, and an odd one hides none of its neighbours."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skidway.schemas.codec.objects import Map, objects, values

MS = pa.timestamp("ms", "UTC")
NEW_YEAR = datetime(2026, 1, 1, tzinfo=UTC)
NEW_YEAR_MS = 1_767_225_600_000
FAR_MS = 1_764_230_400_000_000


@pytest.mark.parametrize(
    ("kind", "number", "shown"),
    [
        (MS, NEW_YEAR_MS, NEW_YEAR),
        (MS, FAR_MS, FAR_MS),
        (MS, -62_135_596_800_000, datetime(1, 1, 1, tzinfo=UTC)),
        (MS, -62_135_596_800_001, -62_135_596_800_001),
        (pa.timestamp("ms"), NEW_YEAR_MS, NEW_YEAR.replace(tzinfo=None)),
        (pa.timestamp("us"), 1 << 62, 1 << 62),
        (pa.timestamp("ns", "UTC"), NEW_YEAR_MS * 1_000_000, NEW_YEAR),
        (pa.timestamp("ns", "UTC"), 1, "1970-01-01T00:00:00.000000001Z"),
        (pa.timestamp("ns"), -1, "1969-12-31T23:59:59.999999999"),
        (pa.date32(), 20_000, date(2024, 10, 4)),
        (pa.date32(), 3_000_000, 3_000_000),
        (pa.date32(), -719_528, -719_528),
        (pa.time32("ms"), 1, time(microsecond=1_000)),
    ],
)
def test_an_odd_time_is_a_number_and_its_neighbours_are_times(
    kind: pa.DataType, number: int, shown: Any
) -> None:
    """A time outside of Python's range is the number that Avro stores, nanoseconds are text; the
    other rows, and the same in records, lists and maps, stay what they are."""
    column = pa.array([0, number, None], pa.int64()).cast(
        pa.int32() if kind.bit_width == 32 else pa.int64()
    )
    first, found, last = values(column.cast(kind))
    assert (found, last) == (shown, None)
    assert first == values(column.cast(kind).slice(0, 1))[0]
    inner = column.cast(kind)
    record = pa.StructArray.from_arrays([inner], ["at"])
    assert values(record) == [{"at": first}, {"at": shown}, {"at": None}]
    assert values(pa.ListArray.from_arrays([0, 2, 2, 3], inner)) == [[first, shown], [], [None]]
    keys = pa.array(["a", "b", "c"])
    assert values(pa.MapArray.from_arrays([0, 2, 3], keys, inner)) == [
        Map(a=first, b=shown),
        Map(c=None),
    ]


KINDS = pa.struct(
    [
        ("n", pa.int64()),
        ("at", MS),
        ("list", pa.list_(pa.struct([("s", pa.string())]))),
        ("map", pa.map_(pa.string(), pa.list_(pa.date32()))),
    ]
)
ROWS = st.lists(
    st.none()
    | st.fixed_dictionaries(
        {
            "n": st.none() | st.integers(-5, 5),
            "at": st.none()
            | st.datetimes(timezones=st.just(UTC)).map(lambda at: at.replace(microsecond=0)),
            "list": st.none()
            | st.lists(st.none() | st.fixed_dictionaries({"s": st.text(max_size=3)}), max_size=3),
            "map": st.none()
            | st.dictionaries(
                st.text(max_size=2), st.none() | st.lists(st.none() | st.dates(), max_size=2)
            ),
        }
    ),
    max_size=6,
)


@given(rows=ROWS, begin=st.integers(0, 3))
def test_ordinary_values_are_as_arrow_has_them(rows: list[Any], begin: int) -> None:
    """For values that Python's types can hold, the objects are those of Arrow, also in a slice of a
    column; only maps are dicts instead of lists of pairs."""
    pairs = [row and {**row, "map": row["map"] and list(row["map"].items())} for row in rows]
    column = pa.array(pairs, KINDS).slice(begin)
    found = values(column)
    for row in found:
        if row is not None and row["map"] is not None:
            assert isinstance(row["map"], Map)
            row["map"] = list(row["map"].items())
    assert found == column.to_pylist()
    shown = objects(pa.RecordBatch.from_pydict({"c": column}))
    assert shown == [{"c": row} for row in values(column)]


def test_a_record_without_fields_is_an_empty_object() -> None:
    """Rows without columns are empty objects, as many as there are rows."""
    batch = pa.RecordBatch.from_struct_array(pa.array([{}, {}], pa.struct([])))
    assert objects(batch) == [{}, {}]
