"""Tests how the rows of a line are found in one file of the loader."""

from __future__ import annotations

import io

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from skidway.audit.recount.named_files import ROWS, NamedFile
from skidway.audit.tracing.lines import LineRecord, Point
from skidway.audit.tracing.row_search import Sought, rows_in
from skidway.row_columns import columns

NAMED = NamedFile("a.parquet", "a.parquet", 1, ROWS, 1, 1, 4, 1, 60_000)
TIME_MS = 1_700_000_000_000


@pytest.mark.parametrize(
    "sought", [Point(7, 1, 25), LineRecord("logs", 2, 102, TIME_MS, None, None)]
)
@pytest.mark.parametrize("values", [[5, None, 7, 8], ["a", "b", "c", "d"], [1.5, 2.5, 3.5, 4.5]])
def test_a_field_may_have_the_name_of_a_column_of_rejects(
    sought: Sought, values: list[object]
) -> None:
    """A file of rows is known by its entry in the manifest, not by the names of its columns. So a
    schema may have a field `timestamp_ms`, of any type. Of several row groups, the right one is
    read."""
    count = len(values)
    origin = [np.full(count, 7), np.full(count, 1), np.arange(count) * 10, np.full(count, 10)]
    own = {
        **dict(zip(["_agent", "_file_id", "_offset", "_length"], origin, strict=True)),
        "_timestamp": pa.array(np.full(count, TIME_MS)).cast(pa.timestamp("ms", "UTC")),
        "_partition": np.full(count, 2, np.int32),
        "_kafka_offset": np.arange(count) + 100,
    }
    assert set(own) <= {each.name for each in columns()}
    file = io.BytesIO()
    pq.write_table(pa.table({"timestamp_ms": values, **own}), file, row_group_size=1)
    file.seek(0)
    [row] = rows_in(file, NAMED, sought)
    assert (row.offset, row.origin.first, row.time_ms, row.is_reject) == (102, 20, TIME_MS, False)
