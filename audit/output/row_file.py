"""Reads the rows of one Parquet file of the loader (rows or rejects), batch by batch.

Callers pass a file as a Python object. If one of Arrow's threads released its reference to such an
object while the interpreter ends, the process would abort. So rows are read without these threads.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import IO, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from skidway.kafka.record_layout import Int64s

BATCH_ROWS: Final = 65_536
BUFFER_BYTES: Final = 1 << 20
REJECT_TIME: Final = "timestamp_ms"

UNREADABLE: Final = (pa.ArrowException, OSError, ValueError, KeyError, TypeError)
"""The errors of `RowFile` if the file is damaged or is not one of Skidway's Parquet files."""

Where = Mapping[str, tuple[int, int]]
"""For some columns, the least and the greatest value of the rows that are wanted."""


class RowFile:
    """One file whose rows can be read. Raises one of UNREADABLE."""

    def __init__(self, file: IO[bytes]) -> None:
        """The file is read through a buffer, so that a row group is never in memory as a whole."""
        self._parquet = pq.ParquetFile(file, buffer_size=BUFFER_BYTES, pre_buffer=False)

    def batches(
        self, columns: Sequence[str] | None = None, where: Where | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Yields the rows with these columns, or all columns if `columns` is None. Leaves out the
        row groups whose statistics show that they have no row of `where`."""
        groups = range(self._parquet.num_row_groups)
        yield from self._parquet.iter_batches(
            batch_size=BATCH_ROWS,
            row_groups=[each for each in groups if self._may_have(each, where or {})],
            columns=None if columns is None else list(columns),
            use_threads=False,
        )

    def _may_have(self, number: int, where: Where) -> bool:
        group = self._parquet.metadata.row_group(number)
        for at in range(group.num_columns if where else 0):
            column = group.column(at)
            wanted, known = where.get(column.path_in_schema), column.statistics
            if wanted is None or known is None or not known.has_min_max:
                continue
            if wanted[0] > known.max or wanted[1] < known.min:
                return False
        return True


def int64s(batch: pa.RecordBatch, name: str) -> Int64s:
    """Returns a column of integers or times."""
    found: Any = batch.column(name).cast(pa.int64()).to_numpy(zero_copy_only=False)
    return np.asarray(found, np.int64)
