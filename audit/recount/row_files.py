"""Reads one Parquet file of rows or rejects: its bytes, to compute their CRC, and its rows. Reads
both part by part, so that the whole file is never in memory."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import IO, Final

import google_crc32c
import numpy as np

from skidway.audit.counts import checksum
from skidway.audit.counts.counts import Counts
from skidway.audit.output.row_file import REJECT_TIME, RowFile, int64s
from skidway.audit.recount.faults import AGENTS_MAX, Whereabouts
from skidway.audit.recount.named_files import REJECTS, NamedFile
from skidway.kafka.columns import Origins
from skidway.kafka.source import Source
from skidway.row_columns import AGENT, KAFKA_OFFSET, ORIGIN, PARTITION, TIMESTAMP

PIECE_BYTES: Final = 4 << 20
_PLACE = (AGENT.name, PARTITION.name, KAFKA_OFFSET.name)


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
    time_column = REJECT_TIME if named.kind == REJECTS else TIMESTAMP.name
    rows = total = 0
    for batch in RowFile(file).batches():
        origins = Origins(*(int64s(batch, each.name) for each in ORIGIN))
        times = int64s(batch, time_column)
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
    for batch in RowFile(file).batches(_PLACE):
        agent, partition, offset = (int64s(batch, name) for name in _PLACE)
        first, last = int(offset.min(initial=first)), int(offset.max(initial=last))
        partitions.update(np.unique(partition).tolist())
        if len(agents) <= AGENTS_MAX:  # further agents are shown as "others"
            agents.update(np.unique(agent).tolist())
    place = Whereabouts(hour, tuple(sorted(agents)))
    if len(partitions) == 1:
        place = replace(place, partition=partitions.pop(), first=first, end=last + 1)
    return place
