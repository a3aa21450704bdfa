"""Tests the queue of jobs for ZooKeeper. The queue collects the reads and writes of all groups into
jobs, and runs one job at a time."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from skidway.broker.coordination.consumers import Committed, TopicOffset
from skidway.broker.coordination.ledger import Job, Record, Report
from skidway.broker.groups import job_queue
from skidway.broker.groups.job_queue import JobQueue
from skidway.errors import SkidwayError, Unreachable
from skidway.kafka.types import TopicPartition
from support.clock import ManualClock

LOGS = TopicPartition("logs", 0)
FIRST, SECOND = uuid.UUID(int=1), uuid.UUID(int=2)


class World:
    """A job queue with a fake ZooKeeper. The test decides when ZooKeeper answers."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.timers: list[tuple[float, Callable[[], None]]] = []
        self.jobs: list[tuple[Job, Callable[[Any], None]]] = []
        self.topics = {"logs": FIRST}
        self.queue = JobQueue(
            self.submit,
            lambda delay_ms, action: self.timers.append((delay_ms, action)),
            self.clock.monotonic,
            self.topics.get,
        )
        self.told: list[SkidwayError | None] = []

    def submit(self, work: Callable[[Any], Report], done: Callable[[Any], None]) -> None:
        """Keeps the job, which a test runs later."""
        seen: list[Job] = []

        class Spy:
            def carry_out(self, _coordinator: object, job: Job) -> Report:
                seen.append(job)
                return Report()

        ledger, self.queue._ledger = self.queue._ledger, Spy()  # type: ignore[assignment]
        work(None)
        self.queue._ledger = ledger
        self.jobs.append((seen[0], done))

    def run_timers(self) -> list[float]:
        due, self.timers = self.timers, []
        for _, action in due:
            action()
        return [delay_ms for delay_ms, _ in due]

    def commit(self, group: str, offset: int) -> None:
        self.queue.commit(group, {LOGS: TopicOffset(FIRST, Committed(offset))}, self.told.append)

    def answer(self, outcome: Report | SkidwayError) -> Job:
        job, done = self.jobs.pop(0)
        done(outcome)
        return job


def test_commits_of_many_groups_are_one_job() -> None:
    """Commits of a thousand groups in one turn of the broker's loop become one job. Each commit is
    answered when the job is done."""
    world = World()
    for number in range(1000):
        world.commit(f"g{number}", number)
    world.run_timers()
    [(job, _)] = world.jobs
    assert len(job.commits) == 1000
    assert world.told == []
    world.answer(Report(transactions=2))
    assert world.told == [None] * 1000
    assert world.queue.counts.transactions == 2


def test_the_newest_offset_of_a_partition_wins() -> None:
    """If commits arrive while a job (collected writes to ZooKeeper) is running, they wait for the
    next job. This job writes only the newest commit of each partition."""
    world = World()
    world.commit("g", 1)
    world.run_timers()
    for offset in (2, 3, 4):
        world.commit("g", offset)
    assert world.timers == []
    assert len(world.jobs) == 1
    world.answer(Report())
    assert world.told == [None]
    world.run_timers()
    assert world.answer(Report()).commits == {("g", LOGS): Committed(4)}
    assert world.told == [None] * 4


def test_jobs_keep_a_pace() -> None:
    """The first job (collected reads and writes of groups in ZooKeeper) starts at once. Each later
    job starts at least PACE_S seconds after the start of the previous job."""
    world = World()
    world.commit("g", 1)
    assert world.run_timers() == [0.0]
    world.clock.advance(0.004)
    world.answer(Report())
    world.commit("g", 2)
    [delay_ms] = world.run_timers()
    assert round(delay_ms, 3) == job_queue.PACE_S * 1000 - 4


@pytest.mark.parametrize("answer_s", [0.001, 0.02, 0.25])
def test_a_thousand_groups_a_second_are_few_writes(answer_s: float) -> None:
    """If a thousand groups commit once a second, their commits are collected into at most 1 /
    PACE_S jobs for ZooKeeper a second, and fewer if ZooKeeper answers slowly. No commit is answered
    before ZooKeeper has answered, and no commit waits for more than two jobs. The number of waiting
    offsets is never larger than the number of offsets that the groups commit during two jobs."""
    world, seconds, groups, partitions = World(), 3, 1000, 4
    random = Random(1)
    beginnings = [random.random() for _ in range(groups)]
    coming = sorted((start + turn, g) for g, start in enumerate(beginnings) for turn in range(3))
    committed_at: dict[tuple[int, int], float] = {}
    delays_s: list[float] = []
    sizes: list[int] = []
    due: list[tuple[float, Callable[[], None]]] = []
    waited_most = 0

    def happen(until: float) -> None:
        """Runs the timers and the answers of ZooKeeper that are due up to the time `until`, in the
        order of their times."""
        while True:
            while world.timers:
                delay_ms, action = world.timers.pop()
                due.append((world.clock.monotonic() + delay_ms / 1000, action))
            while world.jobs:
                job, done = world.jobs.pop()
                sizes.append(len(job.commits))
                due.append((world.clock.monotonic() + answer_s, lambda done=done: done(Report())))
            if not due or min(due, key=lambda each: each[0])[0] > until:
                break
            at, action = due.pop(due.index(min(due, key=lambda each: each[0])))
            world.clock.advance(max(at - world.clock.monotonic(), 0))
            action()
        world.clock.advance(max(until - world.clock.monotonic(), 0))

    begin = world.clock.monotonic()
    for number, (at, group) in enumerate(coming):
        happen(begin + at)
        committed_at[group, number] = world.clock.monotonic()

        def told(error: SkidwayError | None, key: tuple[int, int] = (group, number)) -> None:
            assert error is None
            delays_s.append(world.clock.monotonic() - committed_at[key])

        offset = TopicOffset(FIRST, Committed(number))
        world.queue.commit(
            f"g{group}", {TopicPartition("logs", p): offset for p in range(partitions)}, told
        )
        waited_most = max(waited_most, world.queue.waiting)
    happen(begin + seconds + 2)
    assert len(delays_s) == groups * seconds
    assert min(delays_s) >= answer_s - 1e-6
    turn_s = max(job_queue.PACE_S, answer_s)
    assert max(delays_s) <= 2 * turn_s + 0.001
    assert len(sizes) <= seconds / turn_s + 1
    assert waited_most <= 2 * groups * partitions * turn_s
    if answer_s == 0.25:
        assert max(sizes) > 100 * partitions


def test_silence_is_told_to_everybody() -> None:
    """If ZooKeeper does not answer, every request in the job (collected requests to ZooKeeper) gets
    the error. The requests can be of five kinds: a commit of offsets, a write or a read of a
    group's record, a read of a group's offsets, and a count of a group's members in ZooKeeper. The
    next job asks ZooKeeper again."""
    world = World()
    outcomes: list[object] = []
    world.commit("g", 1)
    world.queue.write("g", Record(b"{}", has_members=True), outcomes.append)
    world.queue.load("h", outcomes.append)
    world.queue.read("h", outcomes.append)
    world.queue.count_native("h", outcomes.append)
    world.run_timers()
    error = Unreachable("away")
    world.answer(error)
    assert world.told == [error]
    assert outcomes == [error] * 4
    world.commit("g", 2)
    assert len(world.timers) == 1


@pytest.mark.parametrize("outcome", [Report(), Unreachable("away")], ids=["good", "away"])
def test_an_answer_that_goes_wrong_is_nobody_elses(outcome: Report | SkidwayError) -> None:
    """If the callback of one caller raises an exception, the other callers of the same job still
    get their answers, and waiting commits are still written. The queue raises the exception when
    all of this is done."""
    world = World()
    mistake = RuntimeError("a mistake of ours")

    def wrong(_: object) -> None:
        raise mistake

    world.queue.commit("g", {LOGS: TopicOffset(FIRST, Committed(1))}, wrong)
    world.commit("h", 2)
    world.run_timers()
    world.commit("i", 3)
    with pytest.raises(ExceptionGroup) as caught:
        world.answer(outcome)
    assert caught.value.exceptions == (mistake,)
    assert len(world.told) == 1, "h is answered"
    world.run_timers()
    assert len(world.jobs) == 1, "i is under way"


def test_offsets_of_a_topic_that_is_gone_are_dropped() -> None:
    """If a topic is deleted before the offsets that were committed for it are written, these
    offsets are dropped. Otherwise a new topic of the same name would begin with these offsets."""
    world = World()
    world.commit("g", 1)
    world.topics.clear()
    world.run_timers()
    assert world.answer(Report()).commits == {}
    assert world.told == [None]


def test_offsets_of_a_topic_made_again_meanwhile_are_dropped() -> None:
    """If a topic was deleted and created again, offsets that were committed for the old topic are
    dropped. So no consumer reads the new topic from an offset of the old topic."""
    world = World()
    world.commit("g", 1)
    world.topics["logs"] = SECOND
    world.queue.commit("h", {LOGS: TopicOffset(SECOND, Committed(2))}, world.told.append)
    world.run_timers()
    assert world.answer(Report()).commits == {("h", LOGS): Committed(2)}
    assert world.told == [None, None]


def test_a_closed_queue_answers_and_does_nothing_more() -> None:
    """When the queue of jobs for ZooKeeper is closed, it answers all commits with an error,
    including those in the running job. It starts no further job."""
    world = World()
    world.commit("g", 1)
    world.run_timers()
    world.commit("g", 2)
    world.queue.close(SkidwayError("stop"))
    assert len(world.told) == 2
    world.answer(Report())
    assert len(world.told) == 2
    world.run_timers()
    assert world.jobs == []


def test_a_group_is_busy_until_its_job_is_done() -> None:
    """A group counts as busy while a read or write of the group in ZooKeeper waits or runs, so that
    the broker does not delete or forget the group in this time."""
    world = World()
    world.commit("g", 1)
    assert world.queue.is_busy_with("g")
    world.run_timers()
    assert world.queue.is_busy_with("g")
    assert not world.queue.is_busy_with("h")
    world.answer(Report())
    assert not world.queue.is_busy_with("g")


def test_offsets_that_wait_are_bounded_by_their_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is a limit for the bytes of all waiting offsets and their metadata. A newer offset of a
    partition replaces an older one. A commit beyond the limit is refused at once. The offsets that
    a job writes count towards the limit only until the job starts."""
    words = "w" * 4096
    monkeypatch.setattr(job_queue, "WAITING_BYTES_MAX", 10 * 5000)
    world = World()

    def commit(partition: int, offset: int) -> None:
        committed = TopicOffset(FIRST, Committed(offset, words))
        world.queue.commit("g", {TopicPartition("logs", partition): committed}, world.told.append)

    for offset in range(100):
        commit(0, offset)
    assert world.told == []
    for partition in range(1, 20):
        commit(partition, 1)
    assert world.queue.waiting == 11
    assert len(world.told) == 9
    assert all(isinstance(each, Unreachable) for each in world.told)
    world.run_timers()
    commit(30, 1)
    assert world.queue.waiting == 1
    assert len(world.told) == 9
