"""The arguments for opening a partition's log, and what the broker did and found when it opened the
log."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from skidway.broker.log.config import LogConfig
from skidway.broker.log.leader_epochs import EpochStart
from skidway.broker.log.producer_state import ProducerState
from skidway.broker.log.segment import Segment
from skidway.broker.log.torn_tail import TornTail
from skidway.kafka.batch import BatchHeader
from skidway.kafka.types import TopicPartition


@dataclass(frozen=True, slots=True)
class Opening:
    """The arguments for opening a partition's log. The recovery point and the log start offset come
    from the checkpoint files of the log directory."""

    partition: TopicPartition
    directory: Path
    config: LogConfig
    now_ms: int
    clean: bool = False
    recovery_point: int = 0
    log_start_offset: int = 0
    first_offset: int = 0
    """The first offset of a log that has no segment yet."""

    def may_miss(self, first: int, end: int) -> bool:
        """Returns whether the log may lack the offsets [first, end) without being damaged. Only a
        mirror's log may lack offsets. If `config.gaps` is not None, it may lack only the offsets in
        `config.gaps`.
        """
        return self.config.may_miss(self.partition.partition, first, end)


@dataclass(slots=True)
class Account:
    """What the broker did and found when it opened a log."""

    torn_tail: TornTail | None = None
    is_full: bool = False
    """Whether the disk had no space for an index."""
    scanned_bytes: int = 0
    indexes_rebuilt: int = 0
    scanned: list[Segment] = field(default_factory=list)
    epochs: list[EpochStart] = field(default_factory=list)
    """The leader epochs in the scanned segments, each with the offset of its first record in these
    segments.
    """
    producers: dict[int, ProducerState] = field(default_factory=dict)
    """Each key is the base offset of a scanned segment. The value is the producer state made from
    the batches of this segment alone.
    """

    def note_epoch(self, header: BatchHeader) -> None:
        """Notes the leader epoch of a batch if it is higher than all epochs that were noted
        before."""
        note_epoch(self.epochs, header)


def note_epoch(found: list[EpochStart], header: BatchHeader) -> None:
    """Adds the leader epoch of a batch to `found`, if it is higher than all epochs in `found`."""
    if not found or header.leader_epoch > found[-1].epoch:
        found.append(EpochStart(header.leader_epoch, header.base_offset))
