"""One partition that this broker leads: its log, leader epoch and high watermark.

The high watermark rises when a flush is done. Consumers can read only records below the high
watermark. A request with acks=all is answered when the high watermark has passed the request's
batch.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field

from skidway.broker.log.partition_log import PartitionLog
from skidway.broker.log.segment import LogPosition
from skidway.kafka.types import TopicPartition


class NotEnoughReplicas(Exception):
    """Raised to refuse a produce request with acks=all, because there are fewer in-sync replicas
    than `min.insync.replicas`."""


@dataclass(slots=True, eq=False)
class Replica:
    """A partition that this broker leads. followers: for each other in-sync replica, the position
    up to which it has flushed.
    """

    partition: TopicPartition
    topic_id: uuid.UUID
    log: PartitionLog
    leader_epoch: int
    followers: dict[int, LogPosition] = field(default_factory=dict)
    high_watermark: LogPosition = field(init=False)
    served: bool = True
    """False after the broker has stopped serving the partition. Code that still has a reference to
    the replica checks this field.
    """
    flush_timer: bool = False
    """Whether a timer for the next flush is running. When the timer fires, the broker decides again
    whether to flush the log."""

    def __post_init__(self) -> None:
        self.high_watermark = self.log.flushed

    @property
    def offset(self) -> int:
        """The high watermark's offset."""
        return self.high_watermark.offset

    def check_insync(self) -> None:
        """Raises NotEnoughReplicas if there are fewer in-sync replicas, including this one, than
        the topic's `min.insync.replicas`.
        """
        found, needed = 1 + len(self.followers), self.log.config.min_insync_replicas
        if found < needed:
            raise NotEnoughReplicas(
                f"{self.partition} has {found} in-sync replicas, and acks=all needs {needed}"
            )

    def advance(self) -> bool:
        """Raises the high watermark to the offset up to which all in-sync replicas have flushed.
        Returns whether the high watermark has changed.
        """
        least = min((self.log.flushed, *self.followers.values()))
        if least.offset <= self.high_watermark.offset:
            # A follower that has just become in-sync again may be behind the high watermark. The
            # high watermark is never lowered.
            return False
        self.high_watermark = least
        return True
