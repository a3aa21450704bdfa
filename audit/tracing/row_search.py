"""Finds the rows of a line in one Parquet file of the loader, by a point (a byte of the log file)
or by the line's record.

The search skips row groups whose statistics show that they have no such row. In the other row
groups, it reads only the columns with the origin, the offset and the event time.

Callers pass a file as a Python object. If one of Arrow's threads released its reference to such an
object while the interpreter ends, the process would abort. So row groups are read without these
threads.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from skidway.audit.tracing.lines import LineRecord, LineRow, Point
from skidway.kafka.columns import Bools, Int64s
from skidway.kafka.origin import Origin

PLACE: Final = ("_agent", "_file_id", "_offset", "_length", "_partition", "_kafka_offset")
BUFFER_BYTES: Final = 1 << 20
LENGTH_MAX: Final = 1 << 32
"""Every line has fewer bytes than this. So a line that contains a given byte of a file begins less
than this many bytes before the given byte."""


Sought = Point | LineRecord
"""The line whose rows are sought: a point (a byte of a file) in the line, or the line's record. If
no agent sent the record, the row is found only by the record's partition and offset."""


def rows_in(file: IO[bytes], path: str, load: int, sought: Sought) -> Iterator[LineRow]:
    """Yields the rows of a line that a Parquet file has."""
    parquet = pq.ParquetFile(file, buffer_size=BUFFER_BYTES, pre_buffer=False)
    names = parquet.schema_arrow.names
    time_column = "timestamp_ms" if "timestamp_ms" in names else "_timestamp"
    for number in range(parquet.num_row_groups):
        if not _may_have(parquet.metadata.row_group(number), sought):
            continue
        places = parquet.read_row_group(number, columns=[*PLACE, time_column], use_threads=False)
        columns = {name: _int64_of(places.column(name)) for name in (*PLACE, time_column)}
        for row in np.flatnonzero(_is_sought(columns, sought)).tolist():
            yield _row(columns, time_column, row, path, load)


def _bounds_of(group: Any) -> dict[str, tuple[int, int]]:
    bounds = {}
    for at in range(group.num_columns):
        column = group.column(at)
        known = column.statistics
        if column.path_in_schema in PLACE and known is not None and known.has_min_max:
            bounds[column.path_in_schema] = (known.min, known.max)
    return bounds


def _is_within(value: int, bounds: tuple[int, int] | None) -> bool:
    return bounds is None or bounds[0] <= value <= bounds[1]


def _int64_of(column: pa.ChunkedArray) -> Int64s:
    found = column.cast(pa.int64()).to_numpy()
    return np.asarray(found, np.int64)


def _may_have(group: Any, sought: Sought) -> bool:
    bounds = _bounds_of(group)
    if isinstance(sought, LineRecord):
        return _is_within(sought.partition, bounds.get("_partition")) and _is_within(
            sought.offset, bounds.get("_kafka_offset")
        )
    return (
        _is_within(sought.agent, bounds.get("_agent"))
        and _is_within(sought.file, bounds.get("_file_id"))
        and _may_reach(sought.byte, bounds.get("_offset"))
    )


def _may_reach(byte: int, bounds: tuple[int, int] | None) -> bool:
    return bounds is None or bounds[0] <= byte < bounds[1] + LENGTH_MAX


def _is_sought(columns: dict[str, Int64s], sought: Sought) -> Bools:
    if isinstance(sought, LineRecord):
        is_there = columns["_partition"] == sought.partition
        return np.asarray(is_there & (columns["_kafka_offset"] == sought.offset))
    agent, file, byte = sought
    end = columns["_offset"] + np.maximum(columns["_length"], 1)
    is_of_file = (columns["_agent"] == agent) & (columns["_file_id"] == file)
    return np.asarray(is_of_file & (columns["_offset"] <= byte) & (byte < end))


def _row(columns: dict[str, Int64s], time_column: str, row: int, path: str, load: int) -> LineRow:
    origin = Origin(*(int(columns[name][row]) for name in PLACE[:4]))
    partition, offset = int(columns["_partition"][row]), int(columns["_kafka_offset"][row])
    is_reject = time_column == "timestamp_ms"
    time_ms = int(columns[time_column][row])
    return LineRow(path, load, partition, offset, time_ms, origin, is_reject)
