"""Which partition a record goes to: a pure function of file id, of the key, or of the position.

    file     all records of a file to one partition, so that they keep their order
    key      as Kafka's own clients do it (murmur2 of the key's bytes), so that ours and theirs meet
    spread   every MiB of a file to another partition, for few large files

Sources: Kafka's BuiltInPartitioner.partitionForKey and Utils.murmur2.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Int64s = npt.NDArray[np.int64]
UInt32s = npt.NDArray[np.uint32]

SPREAD_BITS = 20
"""Positions with the same file and the same `position >> SPREAD_BITS` stay together."""

_MASK_64 = (1 << 64) - 1
_SEED = 0x9747B28C
_FACTOR = np.uint32(0x5BD1E995)
_ROTATION = np.uint32(24)


def of_file(file: int, partitions: int) -> int:
    """The partition of all records of a file."""
    return _mix(file) % partitions


def of_position(file: int, first: Int64s, partitions: int) -> Int64s:
    """The partition of each record of a file by its first byte."""
    steps = first >> SPREAD_BITS
    found, where = np.unique(steps, return_inverse=True)
    table = [_mix(_mix(file) ^ int(step)) % partitions for step in found]
    return np.asarray(table, np.int64)[where]


def of_key(keys: pa.BinaryArray, partitions: int) -> Int64s:
    """The partition of each record by its key, which is not null."""
    hashes = murmur2(keys) & np.uint32(0x7FFFFFFF)
    return (hashes % np.uint32(partitions)).astype(np.int64)


def murmur2(keys: pa.BinaryArray) -> UInt32s:
    """Kafka's 32-bit hash of each key."""
    offsets = np.frombuffer(keys.buffers()[1], np.int32)
    bounds: Int64s = offsets[keys.offset : keys.offset + len(keys) + 1].astype(np.int64)
    buffer = keys.buffers()[2]
    data = np.frombuffer(buffer if buffer is not None else b"", np.uint8)
    at: Int64s = bounds[:-1].copy()
    left: Int64s = np.diff(bounds)
    hashes = np.uint32(_SEED) ^ left.astype(np.uint32)
    while (whole := left >= 4).any():
        rows = np.flatnonzero(whole)
        word = data[at[rows, None] + np.arange(4)].view("<u4")[:, 0].astype(np.uint32)
        word *= _FACTOR
        word ^= word >> _ROTATION
        word *= _FACTOR
        hashes[rows] = (hashes[rows] * _FACTOR) ^ word
        at[rows] += 4
        left[rows] -= 4
    return _finish(hashes, data, at, left)


def _finish(hashes: UInt32s, data: npt.NDArray[np.uint8], at: Int64s, left: Int64s) -> UInt32s:
    rest = np.zeros(len(hashes), np.uint32)
    for index in range(3):
        rows = np.flatnonzero(left > index)
        rest[rows] |= data[at[rows] + index].astype(np.uint32) << np.uint32(8 * index)
    with_rest = left > 0
    hashes = np.where(with_rest, (hashes ^ rest) * _FACTOR, hashes)
    hashes ^= hashes >> np.uint32(13)
    hashes *= _FACTOR
    hashes ^= hashes >> np.uint32(15)
    return hashes


def _mix(number: int) -> int:
    """The finalizer of splitmix64: neighbouring numbers end far apart."""
    number = (number + 0x9E3779B97F4A7C15) & _MASK_64
    number = ((number ^ (number >> 30)) * 0xBF58476D1CE4E5B9) & _MASK_64
    number = ((number ^ (number >> 27)) * 0x94D049BB133111EB) & _MASK_64
    return number ^ (number >> 31)
