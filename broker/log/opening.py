"""How a partition's log is to be opened, and what that took."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from skidway.broker.log.config import LogConfig
from skidway.broker.log.leader_epochs import EpochStart
from skidway.broker.log.producer_state import ProducerState
from skidway.broker.log.segment import Segment
from skidway.kafka.batch import BatchHeader
from skidway.kafka.types import TopicPartition


@dataclass(frozen=True, slots=True)
class Opening:
    """How a partition is to be opened; offsets as its log directory's checkpoints have them."""

    partition: TopicPartition
    directory: Path
    config: LogConfig
    now_ms: int
    clean: bool = False
    recovery_point: int = 0
    log_start_offset: int = 0
    first_offset: int = 0
    """Where a log that has no segment yet begins."""

    def may_miss(self, first: int, end: int) -> bool:
        """Whether offsets [first, end) may be missing: in a mirror, if they are named."""
        return self.config.may_miss(self.partition.partition, first, end)


@dataclass(slots=True)
class Account:
    """What opening a log came to."""

    cut_bytes: int = 0
    scanned_bytes: int = 0
    indexes_rebuilt: int = 0
    scanned: list[Segment] = field(default_factory=list)
    epochs: list[EpochStart] = field(default_factory=list)
    """Of the segments that were scanned, each where it was first met."""
    producers: dict[int, ProducerState] = field(default_factory=dict)
    """Of each segment that was scanned, by its base offset: what its batches alone make of them."""

    def note_epoch(self, header: BatchHeader) -> None:
        """Notes where a leader epoch is first met."""
        note_epoch(self.epochs, header)


def note_epoch(found: list[EpochStart], header: BatchHeader) -> None:
    """Notes where a leader epoch is first met."""
    if not found or header.leader_epoch > found[-1].epoch:
        found.append(EpochStart(header.leader_epoch, header.base_offset))
