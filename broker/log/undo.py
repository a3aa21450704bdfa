"""Remembers the state that a log had after its last write. If the write of later appends fails, the
log restores this state.
"""

from __future__ import annotations

from skidway.broker.log.leader_epochs import LeaderEpochs
from skidway.broker.log.producer_state import Producer, ProducerState
from skidway.broker.log.segment import LogPosition, Segment


class Undo:
    """The state that a log had after its last write to the file. The log collects appended batches
    in memory before it writes them. When the log collects the first batch after a write, it makes
    an `Undo`. Before the log changes the state of a producer, it calls `keep`.
    """

    __slots__ = (
        "_epochs",
        "_first_append_ms",
        "_highest_id",
        "_kept",
        "_last_append_ms",
        "_producers",
        "_segment",
        "_timestamps",
        "end",
    )

    def __init__(
        self, end: LogPosition, segment: Segment, producers: ProducerState, epochs: LeaderEpochs
    ) -> None:
        """end: the end of the batches that are already written. segment: the active segment."""
        self.end = end
        self._segment = segment
        self._producers = producers
        self._epochs = epochs
        self._timestamps = segment.max_timestamp, segment.max_timestamp_offset
        self._first_append_ms = segment.first_append_ms
        self._last_append_ms = segment.last_append_ms
        self._highest_id = producers.highest_id
        self._kept: dict[int, Producer | None] = {}

    def keep(self, producer_id: int) -> None:
        """Remembers the present state of a producer. Does nothing if this object has remembered a
        state of the producer already."""
        if producer_id not in self._kept:
            self._kept[producer_id] = self._producers.producers.get(producer_id)

    def take_back(self) -> None:
        """Restores the state that the segment, the producers and the leader epochs had after the
        last write.
        """
        end, segment = self.end, self._segment
        self._epochs.cut_tail(end.offset)
        segment.cut_unwritten(end.offset, end.position, self._timestamps)
        segment.first_append_ms = self._first_append_ms
        segment.last_append_ms = self._last_append_ms
        for producer_id, before in self._kept.items():
            if before is None:
                self._producers.producers.pop(producer_id, None)
            else:
                self._producers.producers[producer_id] = before
        self._producers.highest_id = self._highest_id
