"""Finds the rows of a line in one Parquet file of the loader, by a point (a byte of the log file)
or by the line's record. Reads only the columns with the origin, the offset and the event time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, Final

import numpy as np

from skidway import row_columns
from skidway.audit.output.row_file import REJECT_TIME, RowFile, Where, int64s
from skidway.audit.recount.named_files import REJECTS, NamedFile
from skidway.audit.tracing.lines import LineRecord, LineRow, Point
from skidway.kafka.columns import Bools, Int64s
from skidway.kafka.origin import Origin

ORIGIN = AGENT, FILE, FIRST, LENGTH = tuple(each.name for each in row_columns.ORIGIN)
RECORD = PARTITION, OFFSET = (row_columns.PARTITION.name, row_columns.KAFKA_OFFSET.name)
LENGTH_MAX: Final = 1 << 32
"""Every line has fewer bytes than this. So a line that contains a given byte of a file begins less
than this many bytes before the given byte."""


Sought = Point | LineRecord
"""The line whose rows are sought: a point (a byte of a file) in the line, or the line's record. If
no agent sent the record, the row is found only by the record's partition and offset."""


def rows_in(file: IO[bytes], named: NamedFile, sought: Sought) -> Iterator[LineRow]:
    """Yields the rows of a line that a Parquet file has. Raises one of UNREADABLE."""
    is_reject = named.kind == REJECTS
    names = (*ORIGIN, *RECORD, REJECT_TIME if is_reject else row_columns.TIMESTAMP.name)
    for batch in RowFile(file).batches(names, _where(sought)):
        columns = {name: int64s(batch, name) for name in names}
        for row in np.flatnonzero(_is_sought(columns, sought)).tolist():
            origin = Origin(*(int(columns[name][row]) for name in ORIGIN))
            partition, offset, time_ms = (int(columns[name][row]) for name in names[len(ORIGIN) :])
            yield LineRow(named.path, named.load, partition, offset, time_ms, origin, is_reject)


def _where(sought: Sought) -> Where:
    if isinstance(sought, LineRecord):
        wanted = zip(RECORD, (sought.partition, sought.offset), strict=True)
        return {name: (value, value) for name, value in wanted}
    agent, file, byte = sought
    return {AGENT: (agent, agent), FILE: (file, file), FIRST: (byte - LENGTH_MAX + 1, byte)}


def _is_sought(columns: dict[str, Int64s], sought: Sought) -> Bools:
    if isinstance(sought, LineRecord):
        is_there = columns[PARTITION] == sought.partition
        return np.asarray(is_there & (columns[OFFSET] == sought.offset))
    agent, file, byte = sought
    end = columns[FIRST] + np.maximum(columns[LENGTH], 1)
    is_of_file = (columns[AGENT] == agent) & (columns[FILE] == file)
    return np.asarray(is_of_file & (columns[FIRST] <= byte) & (byte < end))
