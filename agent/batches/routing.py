"""Chooses the partition of a record, as a pure function of file id, key, or position.

The setting `partitioning` chooses the function. With `file`, all records of a file go to one
partition, so that they keep their order. With `key`, the record's key decides, as in Kafka's own
clients (skidway.kafka.partitioning); for a record without a key, the file decides. With `spread`,
the file id and the MiB of the file in which the record begins (the position >> 20) decide; this is
useful for sources with few large files.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Int64s = npt.NDArray[np.int64]

SPREAD_BITS = 20
"""Records with the same file and the same `position >> SPREAD_BITS` go to the same partition."""

_MASK_64 = (1 << 64) - 1


def of_file(file: int, partitions: int) -> int:
    """Returns the partition to which all records of a file go."""
    return _mix(file) % partitions


def of_position(file: int, first: Int64s, partitions: int) -> Int64s:
    """Returns the partition of each record of a file. The position of the record's first byte
    decides."""
    steps = first >> SPREAD_BITS
    found, where = np.unique(steps, return_inverse=True)
    table = [_mix(_mix(file) ^ int(step)) % partitions for step in found]
    return np.asarray(table, np.int64)[where]


def _mix(number: int) -> int:
    """Applies the finalizer of splitmix64, which makes neighbouring numbers into numbers that are
    far apart."""
    number = (number + 0x9E3779B97F4A7C15) & _MASK_64
    number = ((number ^ (number >> 30)) * 0xBF58476D1CE4E5B9) & _MASK_64
    number = ((number ^ (number >> 27)) * 0x94D049BB133111EB) & _MASK_64
    return number ^ (number >> 31)
