"""Decides which broker gets which partition. The function is pure."""

from __future__ import annotations

from collections.abc import Sequence

PARTITIONS_MAX = 10_000
"""A topic may have at most this many partitions. One request may create at most this many
partitions in all its topics together. The limit exists because each partition needs a directory and
open files.
"""


def assign(
    count: int, brokers: Sequence[int], start: int, first: int = 0
) -> dict[int, tuple[int, ...]]:
    """Assigns partitions `first` to `first + count - 1`, one replica each, to the brokers in turn.
    Partition N gets the broker at index (start + N) modulo the number of brokers.

    `brokers` must be in ascending order, and must not be empty.
    """
    return {
        number: (brokers[(start + number) % len(brokers)],)
        for number in range(first, first + count)
    }
