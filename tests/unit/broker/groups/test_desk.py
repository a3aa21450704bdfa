from __future__ import annotations

from collections.abc import Callable
from typing import Any

from broker.coordination.consumers import Committed
from broker.coordination.ledger import Errand, Report
from broker.groups import desk as desk_module
from broker.groups.desk import Desk
from skidway.errors import SkidwayError, Unreachable
from skidway.kafka.types import TopicPartition
from support.clock import ManualClock

LOGS = TopicPartition("logs", 0)


class World:
    """A desk with a ZooKeeper that answers when the test says so."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.timers: list[tuple[float, Callable[[], None]]] = []
        self.errands: list[tuple[Errand, Callable[[Any], None]]] = []
        self.topics = {"logs"}
        self.desk = Desk(
            self.submit,
            lambda delay_ms, action: self.timers.append((delay_ms, action)),
            self.clock.monotonic,
            self.topics.__contains__,
        )
        self.told: list[SkidwayError | None] = []

    def submit(self, work: Callable[[Any], Report], done: Callable[[Any], None]) -> None:
        """Looks into the errand that the work would carry out."""
        seen: list[Errand] = []

        class Spy:
            def carry_out(self, _coordinator: object, errand: Errand) -> Report:
                seen.append(errand)
                return Report()

        ledger, self.desk._ledger = self.desk._ledger, Spy()  # type: ignore[assignment]
        work(None)
        self.desk._ledger = ledger
        self.errands.append((seen[0], done))

    def run_timers(self) -> list[float]:
        due, self.timers = self.timers, []
        for _, action in due:
            action()
        return [delay_ms for delay_ms, _ in due]

    def commit(self, group: str, offset: int, partition: TopicPartition = LOGS) -> None:
        self.desk.commit(group, {partition: Committed(offset)}, self.told.append)

    def answer(self, outcome: Report | SkidwayError) -> Errand:
        errand, done = self.errands.pop(0)
        done(outcome)
        return errand


def test_commits_of_many_groups_are_one_errand() -> None:
    """A thousand groups in one turn go together, and each is told when it is done."""
    world = World()
    for number in range(1000):
        world.commit(f"g{number}", number)
    world.run_timers()
    [(errand, _)] = world.errands
    assert len(errand.commits) == 1000
    assert world.told == []
    world.answer(Report(transactions=2))
    assert world.told == [None] * 1000
    assert world.desk.counts.transactions == 2


def test_the_newest_offset_of_a_partition_wins() -> None:
    """While one errand is under way the next ones gather, one at a time."""
    world = World()
    world.commit("g", 1)
    world.run_timers()
    for offset in (2, 3, 4):
        world.commit("g", offset)
    assert world.timers == []
    assert len(world.errands) == 1
    world.answer(Report())
    assert world.told == [None]
    world.run_timers()
    assert world.answer(Report()).commits == {("g", LOGS): Committed(4)}
    assert world.told == [None] * 4


def test_errands_keep_a_pace() -> None:
    """The first goes at once, the next not sooner than PACE_S after it began."""
    world = World()
    world.commit("g", 1)
    assert world.run_timers() == [0.0]
    world.clock.advance(0.004)
    world.answer(Report())
    world.commit("g", 2)
    [delay_ms] = world.run_timers()
    assert round(delay_ms, 3) == desk_module.PACE_S * 1000 - 4


def test_silence_is_told_to_everybody() -> None:
    """Commits, stores, loads and reads alike; and what comes afterwards is tried again."""
    world = World()
    outcomes: list[object] = []
    world.commit("g", 1)
    world.desk.write("g", b"{}", outcomes.append)
    world.desk.load("h", outcomes.append)
    world.desk.read("h", outcomes.append)
    world.run_timers()
    error = Unreachable("away")
    world.answer(error)
    assert world.told == [error]
    assert outcomes == [error] * 3
    world.commit("g", 2)
    assert len(world.timers) == 1


def test_offsets_of_a_topic_that_is_gone_are_dropped() -> None:
    """Else a topic made again under the name would begin with them."""
    world = World()
    world.commit("g", 1)
    world.topics.clear()
    world.run_timers()
    assert world.answer(Report()).commits == {}
    assert world.told == [None]


def test_what_waits_is_bounded() -> None:
    """More than OFFSETS_WAITING_MAX are refused, so that clients try again."""
    world = World()
    many = {
        TopicPartition("logs", number): Committed(0)
        for number in range(desk_module.OFFSETS_WAITING_MAX)
    }
    world.desk.commit("g", many, world.told.append)
    world.commit("h", 1)
    assert [type(each) for each in world.told] == [Unreachable]


def test_a_closed_desk_answers_and_does_nothing_more() -> None:
    """Also for what is under way: its answer comes too late."""
    world = World()
    world.commit("g", 1)
    world.run_timers()
    world.commit("g", 2)
    world.desk.close(SkidwayError("stop"))
    assert len(world.told) == 2
    world.answer(Report())
    assert len(world.told) == 2
    world.run_timers()
    assert world.errands == []


def test_a_group_is_busy_until_its_errand_is_done() -> None:
    """Waiting or under way: so nobody deletes or forgets it meanwhile."""
    world = World()
    world.commit("g", 1)
    assert world.desk.is_busy_with("g")
    world.run_timers()
    assert world.desk.is_busy_with("g")
    assert not world.desk.is_busy_with("h")
    world.answer(Report())
    assert not world.desk.is_busy_with("g")
