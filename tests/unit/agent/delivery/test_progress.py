"""Tests which acknowledged offsets and floors the agent stores. An intent is a stored promise to
send certain bytes. To find out which records of an intent arrived, the agent reads a partition
again. It begins at an offset that is called the partition's floor. No record of an unfinished
intent is below the floor."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from skidway.agent.delivery.outbound import Departure
from skidway.agent.delivery.progress import Progress
from skidway.agent.state.changes import Changes
from skidway.agent.values.tracked import ReadingOutcome
from skidway.audit.counts.counts import Counts
from skidway.kafka.types import TopicPartition
from support.promises import promise

P, Q = TopicPartition("logs", 0), TopicPartition("logs", 1)


class Files:
    """A stand-in for the object that tracks the agent's files. It has one file, whose intents have
    records that no broker has acknowledged yet."""

    def __init__(self, *sequences: int) -> None:
        self.file: Any = SimpleNamespace(
            file=1, position=0, checkpoint=None, flights=[self._flight(each) for each in sequences]
        )
        self.file.tally = SimpleNamespace(
            acknowledged=0, rejected=0, filtered=0, uncertain=0, lost=0
        )
        self.flying = {1: self.file}

    @staticmethod
    def _flight(sequence: int) -> Any:
        return SimpleNamespace(
            intent=SimpleNamespace(sequence=sequence), is_done=False, after=None,
            outcome=ReadingOutcome(0, 0, Counts()), uncertain_bytes=0, lost_bytes=0,
        )  # fmt: skip

    def done(self, sequence: int) -> None:
        for flight in self.file.flights:
            flight.is_done |= flight.intent.sequence == sequence


def progress(**others: Any) -> Progress:
    return Progress({}, others.get("floors", {}), others.get("before", ()), lambda topic: topic)


@promise("2 floor")
def test_a_batch_that_was_sent_holds_the_floor_until_its_intent_is_passed() -> None:
    """The floor of a partition is the offset from which the agent searches the partition for
    records. In this test, intent 1 has batches in the partitions P and Q. While the batch in Q is
    not acknowledged, intent 1 is unfinished. So the floor of P stays at or below the offset of
    intent 1's batch in P, even if later offsets of P are acknowledged."""
    files, made = Files(1, 2), progress(floors={P: 10})
    made.sent([Departure(P, (1,)), Departure(P, (2,)), Departure(Q, (1,))])
    made.acknowledged({P: 14})
    files.done(2)
    made.pass_flights(files, Changes())  # type: ignore[arg-type]
    assert (made.offsets[P], made.floors[P]) == (14, 10)
    made.acknowledged({Q: 3})
    files.done(1)
    changes = Changes()
    made.pass_flights(files, changes)  # type: ignore[arg-type]
    assert made.floors == {P: 15, Q: 4}
    rows = [row for sql, rows in changes.statements if "floors" in sql for row in rows]
    assert sorted(rows) == [("logs", 0, "logs", 15), ("logs", 1, "logs", 4)]


def test_what_was_acknowledged_before_an_intent_was_sent_lies_below_its_floor() -> None:
    """The floor of an intent is the offset from which the agent searches for the intent's records.
    Offsets that were acknowledged before the intent was sent are below its floor, even if no
    checkpoint has stored them yet."""
    files, made = Files(1, 2), progress()
    made.sent([Departure(P, (1,))])
    made.acknowledged({P: 9})
    made.sent([Departure(P, (2,))])
    made.acknowledged({P: 11})
    files.done(1)
    made.pass_flights(files, Changes())  # type: ignore[arg-type]
    assert made.floors == {P: 10}


@promise("2 floor")
def test_what_is_sent_again_may_lie_where_it_was_sent_first() -> None:
    """The floor is the offset from which the agent searches for its own records. If the producer
    gets a new producer id and sends records again, the first copies of these records may also be in
    the log. While an intent is unfinished, the floor stays at or below the first copies of its
    records. In this test, the first copies of the records of intents 1 and 2 arrive at offsets 4
    and 5. The record of intent 1 is then acknowledged at offset 6, but intent 2 is unfinished, so
    the floor does not pass offset 5."""
    files, made = Files(1, 2), progress(floors={P: 4})
    made.sent([Departure(P, (1,)), Departure(P, (2,))])
    made.acknowledged({P: 6})
    files.done(1)
    made.sent([Departure(P, (2,))])
    made.pass_flights(files, Changes())  # type: ignore[arg-type]
    assert made.floors == {P: 4}


@promise("2 floor")
def test_floors_stand_still_while_old_intents_wait() -> None:
    """Floors are the offsets from which the agent searches for its own records. Floors do not move
    while intents of an earlier agent process are unfinished, because the running process does not
    know at which offsets the records of these intents are."""
    files, made = Files(2), progress(before=[1], floors={P: 5})
    made.sent([Departure(P, (2,))])
    made.acknowledged({P: 20})
    files.done(2)
    made.pass_flights(files, Changes())  # type: ignore[arg-type]
    assert made.floors == {P: 5}
    made.divided([3])
    made.forget([1])
    made.pass_flights(files, Changes())  # type: ignore[arg-type]
    assert made.floors == {P: 5}
    made.forget([3])
    made.pass_flights(files, Changes())  # type: ignore[arg-type]
    assert made.floors == {P: 21}


@promise("2 floor")
def test_of_several_intents_that_wait_the_lowest_place_is_the_floor() -> None:
    """The floor of a partition is the offset from which the agent searches the partition for
    records. The floor must be low enough for every unfinished intent (a stored promise to send
    certain bytes). In this test, intents 1 and 3 are unfinished. Intent 1 was sent first, so it
    needs the lower offset. This offset stays the floor until intent 1 is done."""
    files, made = Files(1, 3), progress()
    made.sent([Departure(P, (1,)), Departure(P, (2,))])
    made.acknowledged({P: 5})
    made.forget([2])
    made.sent([Departure(P, (3,))])
    made.pass_flights(files, Changes())  # type: ignore[arg-type]
    assert made.floors_of([P]) == {P: 0}
    files.done(1)
    made.pass_flights(files, Changes())  # type: ignore[arg-type]
    assert made.floors_of([P]) == {P: 6}


@promise("2 floor")
def test_a_floor_rises_behind_the_first_record_and_never_sinks() -> None:
    """The floor passes the record at offset 0 as soon as its intent is done. A floor that is higher
    than the acknowledged offsets (because the log was longer when the agent first saw it) stays."""
    files, made = Files(1), progress(floors={Q: 30})
    made.sent([Departure(P, (1,)), Departure(Q, (1,))])
    made.acknowledged({P: 0, Q: 20})
    files.done(1)
    made.pass_flights(files, Changes())  # type: ignore[arg-type]
    assert made.floors == {P: 1, Q: 30}


@promise("2 floor")
def test_an_intent_without_acknowledged_records_moves_no_floor() -> None:
    """If an intent is replaced, and no broker has acknowledged a record of its partition, the floor
    stays at the beginning, because its records may have arrived there."""
    files, made = Files(), progress()
    made.sent([Departure(P, (1,))])
    made.forget([1])
    made.pass_flights(files, Changes())  # type: ignore[arg-type]
    assert made.floors_of([P]) == {P: 0}
