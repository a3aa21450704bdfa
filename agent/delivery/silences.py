"""Notes since when the leader of a partition has not answered any request, so that `/health` can
report this.
"""

from __future__ import annotations

from collections.abc import Collection

from skidway.kafka.types import TopicPartition


class Silences:
    """Owns, for each partition with unacknowledged batches, the monotonic time (s) of the leader's
    last answer. If there was no answer yet, this is the time since which batches are waiting.
    """

    def __init__(self) -> None:
        self._since: dict[TopicPartition, float] = {}

    def look(
        self,
        waiting: Collection[TopicPartition],
        answered: Collection[TopicPartition],
        now: float,
    ) -> None:
        """Notes which partitions wait for an acknowledgement now. waiting: the partitions with
        unacknowledged batches. answered: the partitions whose leader has answered since the last
        call.
        """
        for tp in self._since.keys() - set(waiting):
            del self._since[tp]
        for tp in waiting:
            if tp in answered or tp not in self._since:
                self._since[tp] = now

    def longer_than(self, seconds: float, now: float) -> dict[TopicPartition, float]:
        """Returns the partitions whose leader has not answered for more than `seconds`, each with
        this time (s)."""
        waited = {tp: now - since for tp, since in self._since.items()}
        return {tp: each for tp, each in waited.items() if each > seconds}
