"""Tests how the recount reads one file of rows."""

from __future__ import annotations

import io
import threading

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from skidway.audit.counts.counts import Counts
from skidway.audit.recount import row_files
from skidway.audit.recount.named_files import ROWS, NamedFile
from support.audit_senders import LOGS

ROW_COUNT = 1_000
NAMED = NamedFile("a.parquet", "a.parquet", 1, ROWS, 1, 1, ROW_COUNT, 1, 60_000)


class WatchedFile(io.BytesIO):
    """A file in memory that notes which threads read it."""

    readers: frozenset[int] = frozenset()

    def read(self, size: int | None = -1, /) -> bytes:
        self.readers |= {threading.get_ident()}
        return super().read(size)


def file_of_rows() -> WatchedFile:
    numbers = np.arange(ROW_COUNT)
    table = pa.table(
        {
            **{f"column{at}": numbers for at in range(20)},
            **dict.fromkeys(("_agent", "_file_id", "_offset", "_length", "_kafka_offset"), numbers),
            "_partition": np.zeros(ROW_COUNT, np.int32),
            "_timestamp": pa.array(numbers).cast(pa.timestamp("ms", "UTC")),
        }
    )
    file = WatchedFile()
    pq.write_table(table, file, row_group_size=100)
    file.seek(0)
    return file


def test_a_file_is_read_by_one_thread() -> None:
    """Only the thread that counts rows reads the file. If Arrow's threads read the file too, one of
    them might still hold the file when the interpreter shuts down, and the process would abort."""
    for _ in range(5):
        file = file_of_rows()
        rows, _ = row_files.count(file, NAMED, LOGS, Counts())
        assert (rows, file.readers) == (ROW_COUNT, {threading.get_ident()})
        file = file_of_rows()
        assert row_files.whereabouts(file, "10").first == 0
        assert file.readers == {threading.get_ident()}
