"""Offsets and floors of partitions: where reading back may begin."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from agent.delivery.outbound import Landing
from agent.delivery.press import Outcome
from agent.delivery.progress import Progress
from agent.state.changes import Changes
from audit.counts import Counts
from skidway.kafka.types import TopicPartition

P, Q = TopicPartition("logs", 0), TopicPartition("logs", 1)


class Files:
    """A tracker whose one file has these intents on their way."""

    def __init__(self, *sequences: int) -> None:
        self.file: Any = SimpleNamespace(
            file=1, position=0, checkpoint=None, flights=[self._flight(each) for each in sequences]
        )
        self.file.tally = SimpleNamespace(acknowledged=0, rejected=0, uncertain=0, lost=0)
        self.flying = {1: self.file}

    @staticmethod
    def _flight(sequence: int) -> Any:
        return SimpleNamespace(
            intent=SimpleNamespace(sequence=sequence), is_done=False, after=None,
            outcome=Outcome(0, 0, Counts()), uncertain_bytes=0, lost_bytes=0,
        )  # fmt: skip

    def done(self, sequence: int) -> None:
        for flight in self.file.flights:
            flight.is_done |= flight.intent.sequence == sequence


def progress(**others: Any) -> Progress:
    return Progress({}, others.get("floors", {}), others.get("before", ()), lambda topic: topic)


def test_a_batch_that_landed_holds_the_floor_until_its_intent_is_passed() -> None:
    """Intent 1 waits for partition Q: the floor of P is its record there, not the last offset."""
    files, made = Files(1, 2), progress()
    made.acknowledged({P: 14}, [Landing(P, 10, (1,)), Landing(P, 12, (2,))])
    files.done(2)
    made.pass_flights(files, Changes())  # type: ignore[arg-type]
    assert (made.offsets[P], made.floors[P]) == (14, 10)
    made.acknowledged({Q: 3}, [Landing(Q, 3, (1,))])
    files.done(1)
    changes = Changes()
    made.pass_flights(files, changes)  # type: ignore[arg-type]
    assert made.floors == {P: 15, Q: 4}
    rows = [row for sql, rows in changes.statements if "floors" in sql for row in rows]
    assert sorted(rows) == [("logs", 0, "logs", 15), ("logs", 1, "logs", 4)]


def test_floors_stand_still_while_old_intents_wait() -> None:
    """Where records of before the start lie, this process was not told."""
    files, made = Files(2), progress(before=[1], floors={P: 5})
    made.acknowledged({P: 20}, [Landing(P, 20, (2,))])
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


def test_a_duplicate_without_a_place_holds_the_floor_where_it_is() -> None:
    """The broker has it from an earlier attempt, and does not say where."""
    files, made = Files(1, 2), progress(floors={P: 7})
    made.acknowledged({P: 9}, [Landing(P, -1, (1,)), Landing(P, 9, (2,))])
    made.pass_flights(files, Changes())  # type: ignore[arg-type]
    assert made.floors == {P: 7}
