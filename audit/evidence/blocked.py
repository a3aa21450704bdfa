"""Keeps, without I/O, the partitions of audit topics that cannot be read at present, because a
batch is damaged, or because the brokers refuse to send the partition.

Meanwhile, the collector reads the other partitions. Of a blocked partition, it stores the records
before the offset that cannot be read. Now and then it tries this offset again, because the batch
may be intact on another broker, or may have expired. Until the reader has passed this offset, the
further messages of the partition are missing, so buckets that need them are not complete.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass
from typing import Final

from skidway.errors import SkidwayError
from skidway.kafka.types import TopicPartition

RETRY_S: Final = 30.0
"""A blocked partition is tried again after this many seconds."""


@dataclass(slots=True)
class _Block:
    """offset: the first offset that cannot be read. until: the time (monotonic seconds) at which
    the offset is tried again; None while it is tried."""

    offset: int
    error: SkidwayError
    until: float | None


class Blocked:
    """The partitions that cannot be read, and for each of them the reason."""

    def __init__(self) -> None:
        self._blocks: dict[TopicPartition, _Block] = {}

    @property
    def errors(self) -> dict[TopicPartition, SkidwayError]:
        """Why each blocked partition cannot be read."""
        return {tp: block.error for tp, block in self._blocks.items()}

    def add(self, tp: TopicPartition, offset: int, error: SkidwayError, now: float) -> None:
        """Notes that a partition cannot be read from an offset on."""
        self._blocks[tp] = _Block(offset, error, now + RETRY_S)

    def due(self, now: float) -> list[TopicPartition]:
        """The partitions that must be tried again now."""
        return [tp for tp, x in self._blocks.items() if x.until is not None and now >= x.until]

    def try_again(self, tp: TopicPartition) -> None:
        """Notes that a partition is tried again."""
        self._blocks[tp].until = None

    def remove(self, tp: TopicPartition) -> None:
        """Forgets that a partition was blocked. Does nothing if it was not."""
        self._blocks.pop(tp, None)

    def remove_read(
        self, positions: Mapping[TopicPartition, int], at_end: Container[TopicPartition]
    ) -> None:
        """Forgets the partitions that were tried again and read: their positions are beyond the
        offset that could not be read, or the partitions have no record at this offset. positions:
        the offsets up to which the ledger has all records. at_end: the partitions that were fetched
        up to their ends."""
        for tp in [tp for tp, x in self._blocks.items() if x.until is None]:
            if positions.get(tp, 0) > self._blocks[tp].offset or tp in at_end:
                del self._blocks[tp]
