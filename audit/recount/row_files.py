"""Reads one Parquet file of rows or rejects: its bytes, to compute their CRC, and its rows. Reads
both part by part, so that the whole file is never in memory.

Callers pass a file as a Python object. If one of Arrow's threads released its reference to such an
object while the interpreter ends, the process would abort. So rows are read without these threads.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import IO, Any, Final

import google_crc32c
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from skidway.audit.counts import checksum
from skidway.audit.counts.counts import Counts
from skidway.audit.recount.faults import AGENTS_MAX, Whereabouts
from skidway.audit.recount.named_files import REJECTS, NamedFile
from skidway.kafka.columns import Origins
from skidway.kafka.source import Source

PIECE_BYTES: Final = 4 << 20
BATCH_ROWS: Final = 65_536
BUFFER_BYTES: Final = 1 << 20

UNREADABLE: Final = (pa.ArrowException, OSError, ValueError, KeyError)
"""The errors that `count` and `whereabouts` raise if the file is damaged or is not one of
Skidway's Parquet files."""

_ORIGIN = ("_agent", "_file_id", "_offset", "_length")
_PLACE = ("_agent", "_partition", "_kafka_offset")


@dataclass(frozen=True, slots=True)
class Bytes:
    """The length and the CRC-32C of a file's bytes."""

    length: int
    crc32c: int


def measure(file: IO[bytes]) -> Bytes:
    """The length and the CRC-32C of the bytes from the current position to the end of the file."""
    length = crc = 0
    while piece := file.read(PIECE_BYTES):
        length, crc = length + len(piece), google_crc32c.extend(crc, piece)
    return Bytes(length, crc)


def count(file: IO[bytes], named: NamedFile, source: Source, counts: Counts) -> tuple[int, int]:
    """Reads every column of every row in the file, and adds the rows to `counts` as rows of the
    topic `source`. Returns the number of rows and the checksum of their origins.
    """
    time_column = "timestamp_ms" if named.kind == REJECTS else "_timestamp"
    rows = total = 0
    for batch in _batches(file):
        origins = Origins(*(_int64(batch.column(name)) for name in _ORIGIN))
        times = _int64(batch.column(time_column))
        counts.add(source, times, origins, rejected=np.full(len(times), named.kind == REJECTS))
        hashes = checksum.record_hash(origins.agent, origins.file, origins.first, origins.length)
        total = checksum.add(total, checksum.total(hashes))
        rows += len(times)
    return rows, total


def whereabouts(file: IO[bytes], hour: str) -> Whereabouts:
    """Returns which agents, partition and offsets the file's rows have, from the columns of the
    file. Leaves out partition and offsets if the rows are not of exactly one partition. hour: the
    hour of the file's rows, which the result repeats."""
    agents, partitions = set[int](), set[int]()
    first, last = np.iinfo(np.int64).max, -1
    for batch in _batches(file, _PLACE):
        agent, partition, offset = (_int64(batch.column(name)) for name in _PLACE)
        first, last = int(offset.min(initial=first)), int(offset.max(initial=last))
        partitions.update(np.unique(partition).tolist())
        if len(agents) <= AGENTS_MAX:  # further agents are shown as "others"
            agents.update(np.unique(agent).tolist())
    place = Whereabouts(hour, tuple(sorted(agents)))
    if len(partitions) == 1:
        place = replace(place, partition=partitions.pop(), first=first, end=last + 1)
    return place


def _batches(file: IO[bytes], columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
    """Yields the rows of a Parquet file in batches, with all columns if `columns` is None. Each
    column is read through a buffer, so that a row group is never in memory as a whole."""
    parquet = pq.ParquetFile(file, buffer_size=BUFFER_BYTES, pre_buffer=False)
    wanted = None if columns is None else list(columns)
    yield from parquet.iter_batches(batch_size=BATCH_ROWS, columns=wanted, use_threads=False)


def _int64(column: pa.Array) -> np.ndarray[Any, np.dtype[np.int64]]:
    found = column.cast(pa.int64()).to_numpy(zero_copy_only=False)
    return np.asarray(found, np.int64)
