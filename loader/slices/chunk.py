"""Defines a chunk: the records of several batches, as columns. A task processes all records of a
chunk together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from skidway.audit.counts.counts import identify
from skidway.kafka import columns
from skidway.kafka.batch import BatchHeader, CorruptBatch
from skidway.kafka.columns import TOGETHER_BYTES, DecodedRecords, Origins, UnpackedBatch
from skidway.loader.planning.plan import Slice
from skidway.loader.reading.columns import Records, select

CHUNK_ROWS: Final = 65_536
CHUNK_BYTES: Final = 32 << 20
CHUNK_BATCHES: Final = 16_384
"""A chunk (the records that a task processes together) has at most this many batches. Limits on
rows and bytes alone would not bound the memory, because a batch uses memory even if it has no
records."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """Records of one slice (a task's offset range) from several batches. The records may still
    include repeats of records that were loaded earlier.
    """

    records: Records
    keys: pa.BinaryArray
    values: pa.BinaryArray

    def first(self, count: int) -> Chunk:
        """Returns the first `count` records of the chunk."""
        return Chunk(self.records.slice(count), self.keys[:count], self.values[:count])


class OpenChunk:
    """A chunk (the records that a task processes together) to which batches are added until it is
    full.

    headers: the headers of the batches that were decoded. damage: the header of the first batch
    whose records are damaged, and what is wrong with these records. The chunk contains no batch
    after a damaged batch.
    """

    def __init__(self) -> None:
        self.headers: list[BatchHeader] = []
        self.damage: tuple[BatchHeader, CorruptBatch] | None = None
        self._decoded: list[DecodedRecords] = []
        self._waiting: list[UnpackedBatch] = []  # batches that will be decoded together
        self._waiting_bytes = self._bytes = self._rows = self._batches = 0

    def add(self, raw: memoryview) -> None:
        """Adds a whole batch. The caller must add batches in offset order, beginning with the batch
        that has the slice's first offset. Raises CorruptBatch if the batch is damaged. Damage
        inside the records raises no error: it is found when several batches are decoded together,
        and is then in `damage`."""
        batch = columns.unpack(raw)
        self._waiting.append(batch)
        self._batches += 1
        self._rows += batch.count
        self._bytes += len(batch.payload)
        self._waiting_bytes += len(batch.payload)
        if self._waiting_bytes >= TOGETHER_BYTES:
            self._decode()

    @property
    def is_full(self) -> bool:
        """Returns whether the caller must close the chunk now."""
        return (
            self._rows >= CHUNK_ROWS
            or self._bytes >= CHUNK_BYTES
            or self._batches >= CHUNK_BATCHES
            or self.damage is not None
        )

    @property
    def is_empty(self) -> bool:
        """Returns whether no batch was added."""
        return self._batches == 0

    def close(self, piece: Slice) -> Chunk:
        """Returns those records of the added batches that belong to the slice `piece`, up to the
        first damaged batch.
        """
        self._decode()
        decoded = self._decoded
        offsets = np.concatenate([each.offsets for each in decoded])
        cut = slice(*np.searchsorted(offsets, [piece.first, piece.end]).tolist())
        timestamps = np.concatenate([each.timestamps for each in decoded])[cut]
        has_origin = np.concatenate([each.has_origin for each in decoded])[cut]
        origins = select(_join_origins(decoded), cut)
        identified = identify(origins, has_origin, piece.partition, offsets[cut])
        return Chunk(
            Records(piece.partition, offsets[cut], timestamps, identified),
            pa.concat_arrays([each.keys for each in decoded])[cut],
            pa.concat_arrays([each.values for each in decoded])[cut],
        )

    def _decode(self) -> None:
        batches, self._waiting, self._waiting_bytes = self._waiting, [], 0
        if self.damage is not None:
            return
        try:
            decoded = columns.decode_batches(batches)
        except CorruptBatch:
            sound, error = columns.sound_batches(batches)
            if error is None:
                raise
            self.damage = batches[sound].header, error
            batches = batches[:sound]
            decoded = columns.decode_batches(batches)
        self._decoded.append(decoded)
        self.headers += [batch.header for batch in batches]


def _join_origins(decoded: Sequence[DecodedRecords]) -> Origins:
    parts = [each.origins or _no_origins(len(each.offsets)) for each in decoded]
    return Origins(
        np.concatenate([each.agent for each in parts]),
        np.concatenate([each.file for each in parts]),
        np.concatenate([each.first for each in parts]),
        np.concatenate([each.length for each in parts]),
    )


def _no_origins(count: int) -> Origins:
    zeros = np.zeros(count, np.int64)
    return Origins(zeros, zeros, zeros, zeros)
