"""Tests one Parquet file of a load: its bytes, and how its columns are encoded."""

from __future__ import annotations

import io

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from skidway.loader.state.parquet_file import new_file, write_table
from support.memory_store import MemoryStore

ROWS = 5_000
TABLE = pa.table(
    {
        "level": pa.array([("INFO", "WARN", None)[k % 3] for k in range(ROWS)]),
        "message": pa.array([f"block {k * 7919}" for k in range(ROWS)]),
        "status": pa.array(np.arange(ROWS) % 60),
        "bytes": pa.array((np.arange(ROWS) * 7919) % 100_003),
        "_offset": pa.array(np.arange(ROWS) * 10),
        "pair": pa.array([{"a": k, "b": str(k)} for k in range(ROWS)]),
    }
)


def written(table: pa.Table) -> tuple[pa.Table, dict[str, set[str]]]:
    """Writes a table as a Parquet file. Returns the table that is read from this file, and the
    encodings of each column."""
    store = MemoryStore()
    write_table(store, table, "rows", "target", "staged")
    file = pq.ParquetFile(io.BytesIO(store.read("staged") or b""))
    group = file.metadata.row_group(0)
    chunks = [group.column(index) for index in range(group.num_columns)]
    return file.read(), {each.path_in_schema: set(each.encodings) for each in chunks}


def test_only_columns_whose_values_repeat_have_a_dictionary() -> None:
    """A column whose values seldom repeat has no dictionary, because a dictionary would only make
    the file larger. The rows that are read from the file equal the rows that were written."""
    rows, encodings = written(TABLE)
    assert rows.equals(TABLE)
    with_dictionary = {name for name, found in encodings.items() if "RLE_DICTIONARY" in found}
    assert {"level", "status"} <= with_dictionary
    assert not with_dictionary & {"message", "bytes", "_offset"}
    assert "DELTA_BINARY_PACKED" in encodings["bytes"] & encodings["_offset"]


@pytest.mark.parametrize("rows", [0, 1, 10])
def test_files_of_few_rows_are_read_as_they_were(rows: int) -> None:
    """A file of few rows, or of none, has the same columns and rows as the table that was written
    to it."""
    table = TABLE.slice(0, rows)
    assert written(table)[0].equals(table)


def test_a_file_without_a_table_has_the_columns() -> None:
    """A file to which no table was written has the columns of its schema, and no rows."""
    store = MemoryStore()
    with new_file(store, TABLE.schema, "staged", "zstd") as writer:
        file = writer.close("rows", "target")
    assert file.rows == 0
    found = pq.read_table(io.BytesIO(store.read("staged") or b""))
    assert found.equals(TABLE.schema.empty_table())


def test_a_footer_names_the_calendar() -> None:
    """The footer of each file says that dates are those of the calendar that Spark has used since
    3.0. Without it, Spark 3 refuses a file that has a time before 1900."""
    store = MemoryStore()
    write_table(store, TABLE, "rows", "target", "staged")
    footer = pq.read_metadata(io.BytesIO(store.read("staged") or b"")).metadata
    assert footer[b"org.apache.spark.version"] >= b"3.1.0"
