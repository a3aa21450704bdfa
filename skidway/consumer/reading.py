"""Notes how far a reader has read one partition, from its claim to its release.

    handed      the offset after the last record that was handed to the application
    finished    the offset after the last record that the application has finished. A record is
                finished when the application asks for the next record.
    committed   the offset in ZooKeeper, as far as this member knows

If the application never seeks, committed <= finished <= handed. If a member is killed, the next
owner of the partition begins at `committed`: the records from this offset on are delivered again.
"""

from __future__ import annotations

from skidway.kafka.types import TopicPartition


class Reading:
    """How far a reader has read a partition that it owns. As soon as `is_live` is False, the reader
    may hand out no record of this `Reading` any more.
    """

    __slots__ = ("committed", "finished", "handed", "is_live", "tp")

    def __init__(self, tp: TopicPartition, position: int, committed: int | None) -> None:
        self.tp = tp
        self.is_live = True
        self.handed = position
        self.finished = position
        self.committed = committed

    def hand_out(self, end: int) -> None:
        """Notes that all records before offset `end` were handed to the application."""
        self.handed = end

    def finish(self) -> None:
        """Notes that the application has finished every record that was handed to it."""
        self.finished = self.handed

    @property
    def is_dirty(self) -> bool:
        """Whether `finished` differs from `committed`. After a seek to an earlier offset,
        `finished` may be less than `committed`."""
        return self.finished != self.committed
