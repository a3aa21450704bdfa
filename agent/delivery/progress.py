"""Tracks up to where each file is delivered, up to which offset each partition has acknowledged
records, and which intents the checkpoint may pass.

    offsets   by partition: the last acknowledged offset; seals contain this offset
    floors    by partition: an offset below which no intent of the state has a record

A partition's floor may be lower than its last acknowledged offset, for two reasons. First, an
intent can have records in two partitions. If the batch of only one of the two partitions is
acknowledged, the checkpoint does not pass the intent yet. Second, a batch that was not acknowledged
may have arrived nevertheless. Its offset may be lower than the offsets of batches that were sent
again later, for example after the producer's id was lost. To find the records of intents in a
partition's log, the agent reads from the partition's floor on:

    if all intents are passed, the floor is the offset after the last acknowledged offset
    otherwise, the floor is the offset after the last offset that was acknowledged before the
    producer got any batch of the intents that are not passed yet

If an intent was made before the agent started, this process does not know where the intent's
records are. So no floor moves until the checkpoint has passed all such intents.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

from skidway.agent import events
from skidway.agent.delivery.outbound import Departure
from skidway.agent.files.tracking import Tracker
from skidway.agent.state.changes import Changes
from skidway.agent.values.tracked import TrackedFile
from skidway.audit.counts.counts import Counts
from skidway.kafka.types import TopicPartition


class Progress:
    """Owns the last acknowledged offset of each partition, and the partition's floor (see the
    module's docstring)."""

    def __init__(
        self,
        offsets: Mapping[TopicPartition, int],
        floors: Mapping[TopicPartition, int],
        before: Collection[int],
        topic_id: Callable[[str], str],
    ) -> None:
        """before: the sequence numbers of the intents that were made before the agent started."""
        self.offsets = dict(offsets)
        self.floors = dict(floors)
        self._unwritten: dict[TopicPartition, int] = {}
        self._before = set(before)
        self._topic_id = topic_id
        # by intent: for each partition, the lowest offset that a record of the intent can have
        self._sent: dict[int, dict[TopicPartition, int]] = {}
        self._moved: set[TopicPartition] = set()

    def take_floors(self, ends: Mapping[TopicPartition, int], changes: Changes) -> None:
        """If a partition has no floor yet, because nothing was sent to it, its log end offset (in
        `ends`) becomes its floor."""
        new = {tp: end for tp, end in ends.items() if tp not in self.floors}
        self.floors.update(new)
        changes.put_floors((tp, self._topic_id(tp.topic), end) for tp, end in new.items())

    def sent(self, departures: Iterable[Departure]) -> None:
        """Notes, for the intents of the batches that were just sent, the lowest offset that their
        records can have in each partition. If a batch is sent again, the offset that was noted
        first stays.
        """
        for departure in departures:
            tp = departure.tp
            behind = self._unwritten.get(tp, self.offsets.get(tp, -1)) + 1
            lowest = max(behind, self.floors.get(tp, 0))
            for intent in departure.intents:
                self._sent.setdefault(intent, {}).setdefault(tp, lowest)

    def acknowledged(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Notes the last acknowledged offset of each partition. The offsets become durable when the
        next checkpoint is written."""
        self._unwritten.update(offsets)
        self._moved.update(offsets)

    def divided(self, intents: Iterable[int]) -> None:
        """Notes the new intents that replaced a divided intent, one for each of its parts. Nobody
        knows at which offsets their records are. So no partition's floor moves until the checkpoint
        has passed the new intents.
        """
        self._before.update(intents)

    def is_of_before(self, intent: int) -> bool:
        """Whether an earlier process may have sent records of an intent."""
        return intent in self._before

    def floors_of(self, places: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """Returns, for each partition, the offset at which a search of the partition begins: the
        partition's floor, or 0 if the partition has no floor yet.
        """
        return {tp: self.floors.get(tp, 0) for tp in sorted(places)}

    def pass_flights(self, tracker: Tracker, changes: Changes) -> Passed:
        """Moves every file's checkpoint past the flights (intents under way) whose records are all
        acknowledged or accounted for."""
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
        self._raise_floors(passed.intents, changes)
        return passed

    def forget(self, intents: Iterable[int]) -> None:
        """Forgets intents that the checkpoint has passed, or that were replaced by other
        intents."""
        for intent in intents:
            self._before.discard(intent)
            self._moved.update(self._sent.pop(intent, {}))

    def _raise_floors(self, passed: Iterable[int], changes: Changes) -> None:
        self.forget(passed)
        if self._before or not self._moved:
            return
        lowest: dict[TopicPartition, int] = {}
        for places in self._sent.values():
            for tp, behind in places.items():
                lowest[tp] = min(behind, lowest.get(tp, behind))
        raised = []
        for tp in self._moved:
            floor = lowest.get(tp, self.offsets.get(tp, -1) + 1)
            if floor > self.floors.get(tp, 0):
                self.floors[tp] = floor
                raised.append((tp, self._topic_id(tp.topic), floor))
        self._moved.clear()
        changes.put_floors(raised)


class Passed:
    """What the checkpoint passed in one call of `pass_flights`: the numbers of the intents, the
    counts of their records, and the files whose position moved, each with the position that it had
    before this call.
    """

    def __init__(self) -> None:
        self.intents: list[int] = []
        self.counts: list[Counts] = []
        self.moved: list[tuple[TrackedFile, int]] = []

    def take(self, tracked: TrackedFile) -> None:
        """Removes a file's flights (intents under way) up to the first one that is not done, and
        adds up the outcomes of the removed flights.
        """
        while tracked.flights and tracked.flights[0].is_done:
            flight, tracked.flights = tracked.flights[0], tracked.flights[1:]
            outcome = flight.outcome
            assert outcome is not None
            tracked.checkpoint = flight.after
            tracked.tally.acknowledged += outcome.delivered_bytes
            tracked.tally.rejected += outcome.rejected_bytes
            tracked.tally.filtered += outcome.filtered_bytes
            tracked.tally.uncertain += flight.uncertain_bytes
            tracked.tally.lost += flight.lost_bytes
            self.intents.append(flight.intent.sequence)
            self.counts.append(outcome.counts)
