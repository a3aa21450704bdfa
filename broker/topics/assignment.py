"""Which broker gets which partition. Pure."""

from __future__ import annotations

from collections.abc import Sequence


def assign(
    count: int, brokers: Sequence[int], start: int, first: int = 0
) -> dict[int, tuple[int, ...]]:
    """Assigns partitions `first` to `first + count - 1`, one replica each, to the brokers in turn.
    Partition 0 belongs to the broker at index `start`.

    `brokers`: ascending, not empty.
    """
    return {
        number: (brokers[(start + number) % len(brokers)],)
        for number in range(first, first + count)
    }
