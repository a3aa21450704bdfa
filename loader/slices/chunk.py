"""Records of several batches as columns, which a task processes together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from skidway.audit.counts.counts import identify
from skidway.kafka.columns import DecodedBatch, Origins
from skidway.loader.planning.plan import Slice
from skidway.loader.reading.columns import Records, select


@dataclass(frozen=True, slots=True)
class Chunk:
    """Records of one slice (a task's offset range) from several batches, before they are checked
    for repeats."""

    records: Records
    keys: pa.BinaryArray
    values: pa.BinaryArray

    def first(self, count: int) -> Chunk:
        """The first `count` records of the chunk."""
        return Chunk(self.records.slice(count), self.keys[:count], self.values[:count])


def gather(batches: Sequence[DecodedBatch], piece: Slice) -> Chunk:
    """The slice's records from all these batches, in one chunk."""
    offsets = np.concatenate([each.offsets for each in batches])
    timestamps = np.concatenate([each.timestamps for each in batches])
    has_origin = np.concatenate([each.has_origin for each in batches])
    origins = _join_origins(batches)
    keys = pa.concat_arrays([each.keys for each in batches])
    values = pa.concat_arrays([each.values for each in batches])
    begin = int(np.searchsorted(offsets, piece.first))
    end = int(np.searchsorted(offsets, piece.end))
    cut = slice(begin, end)
    offsets, timestamps, has_origin = offsets[cut], timestamps[cut], has_origin[cut]
    identified = identify(select(origins, cut), has_origin, piece.partition, offsets)
    records = Records(piece.partition, offsets, timestamps, identified)
    return Chunk(records, keys[cut], values[cut])


def unpacked_bytes(batch: DecodedBatch) -> int:
    """The bytes of a batch's keys and values in memory. The compressed batch may have a hundredth
    of this size."""
    return int(batch.keys.nbytes + batch.values.nbytes)


def _join_origins(batches: Sequence[DecodedBatch]) -> Origins:
    parts = [each.origins or _no_origins(len(each.offsets)) for each in batches]
    return Origins(
        np.concatenate([each.agent for each in parts]),
        np.concatenate([each.file for each in parts]),
        np.concatenate([each.first for each in parts]),
        np.concatenate([each.length for each in parts]),
    )


def _no_origins(count: int) -> Origins:
    zeros = np.zeros(count, np.int64)
    return Origins(zeros, zeros, zeros, zeros)
