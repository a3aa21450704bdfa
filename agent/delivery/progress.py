"""How far each file and each partition has come: what the checkpoint may pass."""

from __future__ import annotations

from collections.abc import Mapping

from agent import events
from agent.files.tracked import TrackedFile
from agent.files.tracking import Tracker
from agent.state.changes import Changes
from audit.counts import Counts
from skidway.kafka.types import TopicPartition


class Progress:
    """Owns the last acknowledged offset of each partition."""

    def __init__(self, offsets: Mapping[TopicPartition, int]) -> None:
        self.offsets = dict(offsets)
        self._unwritten: dict[TopicPartition, int] = {}

    def acknowledged(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Brokers have records up to these offsets; they become durable with the checkpoint."""
        self._unwritten.update(offsets)

    def pass_flights(self, tracker: Tracker, changes: Changes) -> Passed:
        """Moves every file's position over what is done."""
        passed = Passed()
        for tracked in list(tracker.flying.values()):
            before = tracked.position
            passed.take(tracked)
            if tracked.position != before:
                tracker.note(tracked)
                passed.moved.append((tracked, before))
                events.settled(tracked.position - before)
            if not tracked.flights:
                del tracker.flying[tracked.file]
        if passed.intents:
            changes.forget_intents(passed.intents)
        if self._unwritten:
            changes.put_offsets(self._unwritten.items())
            self.offsets.update(self._unwritten)
            self._unwritten = {}
        return passed


class Passed:
    """What one checkpoint passed: intents, what to count, and files with their older positions."""

    def __init__(self) -> None:
        self.intents: list[int] = []
        self.counts: list[Counts] = []
        self.moved: list[tuple[TrackedFile, int]] = []

    def take(self, tracked: TrackedFile) -> None:
        """Everything at the front of a file's flights that is done."""
        while tracked.flights and tracked.flights[0].is_done:
            flight = tracked.flights.pop(0)
            outcome = flight.outcome
            assert outcome is not None
            tracked.checkpoint = flight.after
            tracked.tally.acknowledged += outcome.delivered_bytes
            tracked.tally.rejected += outcome.rejected_bytes
            tracked.tally.uncertain += flight.uncertain_bytes
            self.intents.append(flight.intent.sequence)
            self.counts.append(outcome.counts)
