"""How far one partition has been read, from the claim to the release.

    handed      behind the last record that the application was given
    finished    behind the last record that it was done with: it asked for the next one
    committed   what stands in ZooKeeper, as far as we know

committed <= finished <= handed, until somebody seeks. A member that is killed reads on from
`committed` elsewhere: what was not finished comes again.
"""

from __future__ import annotations

from skidway.kafka.types import TopicPartition


class Reading:
    """A partition that we own. Once `is_live` is False, nothing of it may ever be handed out."""

    __slots__ = ("committed", "finished", "handed", "is_live", "tp")

    def __init__(self, tp: TopicPartition, position: int, committed: int | None) -> None:
        self.tp = tp
        self.is_live = True
        self.handed = position
        self.finished = position
        self.committed = committed

    def hand_out(self, end: int) -> None:
        """The application has records up to an offset (not included)."""
        self.handed = end

    def finish(self) -> None:
        """The application is done with all that it was given."""
        self.finished = self.handed

    @property
    def is_dirty(self) -> bool:
        """Whether more is finished than is committed, or less after a seek back."""
        return self.finished != self.committed
