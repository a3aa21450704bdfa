"""Writes and syncs one Parquet file of a load, and computes the file's length and checksums."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import google_crc32c
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import types

from skidway.audit.counts import checksum
from skidway.loader.state.manifest import DataFile
from skidway.loader.store import Store, StoreWriter
from skidway.row_columns import ORIGIN, columns

ROW_GROUP_ROWS: Final = 512 * 1024

SAMPLE_ROWS: Final = 16 * 1024
SAMPLE_LEAST: Final = 256
"""The first SAMPLE_ROWS rows of a file decide whether a column gets a dictionary. If a file has at
most SAMPLE_LEAST rows, every column gets a dictionary, except timestamps and the columns in RISING.
(The numbers in these columns rise from row to row.)"""

FOOTER: Final = {"org.apache.spark.version": "3.1.0"}
"""Spark 2 wrote dates before 1582-10-15 and times before 1900 in another calendar than Parquet's.
So Spark 3 refuses to read such values in a file whose footer does not name a version since 3.0
(https://spark.apache.org/docs/3.5.0/sql-data-sources-parquet.html, `datetimeRebaseMode`)."""

RISING: Final = frozenset(each.name for each in columns() if each.rises)


def write_table(
    store: Store, table: pa.Table, kind: str, path: str, staged: str, compression: str = "zstd"
) -> DataFile:
    """Writes and syncs one Parquet file at the path `staged`. The caller moves it to `path` later.
    Returns the file's entry for the manifest. Raises StoreFailed and StoreUnreachable."""
    with new_file(store, table.schema, staged, compression) as writer:
        writer.write(table)
        return writer.close(kind, path)


@contextmanager
def new_file(
    store: Store, schema: pa.Schema, staged: str, compression: str
) -> Iterator[ParquetFileWriter]:
    """Yields the writer of a new Parquet file to a `with` block. The block must write the rows and
    call the writer's `close`. If the block raises an error, the file is abandoned."""
    file = store.create(staged)
    try:
        yield ParquetFileWriter(file, schema, staged, compression)
    except BaseException:
        file.abandon()
        raise


class ParquetFileWriter:
    """Writes a Parquet file table by table."""

    def __init__(self, file: StoreWriter, schema: pa.Schema, staged: str, compression: str) -> None:
        self._file, self._staged = file, staged
        self._sink = _Measured(file)
        self._rows = self._checksum = 0
        self._schema, self._compression = schema, compression
        self._writer: pq.ParquetWriter | None = None

    def write(self, table: pa.Table) -> None:
        """Appends the rows of `table`, in row groups of at most `ROW_GROUP_ROWS`. Raises
        StoreFailed and StoreUnreachable."""
        self._open(table).write_table(table, ROW_GROUP_ROWS)
        self._rows += table.num_rows
        self._checksum = checksum.add(self._checksum, _checksum(table))

    def close(self, kind: str, path: str) -> DataFile:
        """Ends and syncs the file, which the caller moves to `path` later. Returns the file's entry
        for the manifest. Raises StoreFailed and StoreUnreachable."""
        self._open(self._schema.empty_table()).close()
        self._file.close()
        sink = self._sink
        return DataFile(
            kind, path, self._staged, sink.length, self._rows, self._checksum, sink.crc32c
        )

    def _open(self, table: pa.Table) -> pq.ParquetWriter:
        """Returns the Parquet writer of this file. `table`, the file's first table, decides how the
        columns are encoded."""
        if self._writer is None:
            self._writer = pq.ParquetWriter(
                self._sink,
                self._schema,
                compression=self._compression,
                store_schema=False,  # without an Arrow schema, all readers see the same columns
                **_encodings(table),
            )
            self._writer.add_key_value_metadata(FOOTER)
        return self._writer


def columns_file(schema: pa.Schema) -> bytes:
    """Returns the bytes of a Parquet file that has columns and no rows. The same columns always
    result in the same bytes."""
    data = io.BytesIO()
    pq.write_metadata(schema, data, store_schema=False)
    return data.getvalue()


def _encodings(table: pa.Table) -> dict[str, Any]:
    """Returns the options that tell the Parquet writer how to encode each column. Columns whose
    values repeat get a dictionary. Whole numbers that rise from row to row, or that seldom repeat,
    are written as differences (delta encoding). Differences take less time and far fewer bytes than
    a dictionary. Other values that seldom repeat are written plainly."""
    rising = [each.name for each in table.schema if _rises(each)]
    rare = [each for each in table.schema if each.name not in rising and _is_rare(table, each)]
    numbers = [each.name for each in rare if types.is_signed_integer(each.type)]
    plain = {*rising, *(each.name for each in rare)}
    return {
        "use_dictionary": [name for name in table.schema.names if name not in plain],
        "column_encoding": dict.fromkeys([*rising, *numbers], "DELTA_BINARY_PACKED"),
    }


def _rises(field: pa.Field) -> bool:
    return field.name in RISING or types.is_timestamp(field.type)


def _is_rare(table: pa.Table, field: pa.Field) -> bool:
    """Returns whether more than half of the values in the first SAMPLE_ROWS rows of the column
    `field` are distinct. Returns False if the column has at most SAMPLE_LEAST rows, and for columns
    whose Arrow type is nested or a dictionary."""
    if types.is_nested(field.type) or types.is_dictionary(field.type):
        return False
    sample = table.column(field.name).slice(0, SAMPLE_ROWS)
    return bool(2 * pc.count_distinct(sample, mode="all").as_py() > len(sample) > SAMPLE_LEAST)


class _Measured(io.RawIOBase):
    """Passes bytes on to a store's file. Counts these bytes and computes their CRC-32C."""

    def __init__(self, writer: StoreWriter) -> None:
        super().__init__()
        self._writer = writer
        self.length = 0
        self.crc32c = 0

    def writable(self) -> bool:
        return True

    def write(self, data: bytes | memoryview, /) -> int:  # type: ignore[override]
        self.crc32c = google_crc32c.extend(self.crc32c, bytes(data))
        self.length += len(data)
        return self._writer.write(data)


def _checksum(table: pa.Table) -> int:
    """Returns the sum of the hashes of the table's records. Returns 0 if the table lacks the
    columns of the records' origins (agent, file, offset, length)."""
    names = [each.name for each in ORIGIN]
    if not set(names) <= set(table.column_names):
        return 0
    fields = [table.column(name).to_numpy() for name in names]
    return checksum.total(checksum.record_hash(*fields))
