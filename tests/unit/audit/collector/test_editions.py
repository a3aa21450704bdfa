"""Tests the editions from which the dashboard makes its answers. An edition contains what the
collector knew after one step of judging."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from skidway.audit.collector.editions import Editions, step_of
from skidway.audit.collector.judge import Judge
from skidway.audit.evidence.evidence import FOREVER
from skidway.audit.evidence.ledger import DATABASE, Ledger
from skidway.audit.judgement.topic_judgement import verdicts
from skidway.audit.judgement.verdict import Status
from skidway.audit.topic.messages import Announcement, encode
from support.audit_senders import AGENT, LOGS
from support.clock import ManualClock
from support.one_bucket import (
    COUNTERS,
    DUE,
    NOW,
    POLICY,
    SECOND,
    SIZE,
    START,
    count,
    delta,
    good,
    seal,
)
from support.promises import promise

WINDOW = (START, START + SIZE)


class Store:
    """A collector's store in a file, with a judge and two connections for editions."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / DATABASE
        self.ledger, self.clock = Ledger(self.path), ManualClock(NOW)
        self.readers = [Ledger(self.path), Ledger(self.path)]
        self.judge = Judge(self.ledger, lambda: POLICY, self.clock)
        self.editions = Editions(self.readers, self.ledger.checkpoint)
        self._number = 3

    def late(self, records: int = 1) -> None:
        """Adds a delta (a message with counts) in which the agent counts late lines of the store's
        only bucket."""
        self._number += 1
        self.ledger.take([encode(delta(AGENT, self._number, count(records)))])

    def publish(self) -> bool:
        return self.editions.publish(step_of(self.judge, self.judge.step(), self.clock.time_ms()))

    def status(self) -> Status:
        with self.editions.newest() as edition:
            [verdict] = edition.verdicts(WINDOW, None)[0]
            return verdict.status


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    made = Store(tmp_path)
    made.ledger.take(map(encode, good()))
    yield made
    for each in (made.ledger, *made.readers):
        each.close()


@promise("6 complete")
def test_an_answer_does_not_mix_two_moments(store: Store) -> None:
    """Counts that arrive after a step of judging do not change the answers from the edition of this
    step. The next edition includes them."""
    assert store.publish()
    assert store.status() is Status.COMPLETE
    store.late()
    assert store.status() is Status.COMPLETE
    with store.editions.newest() as edition:
        [standing] = edition.step.standing.topics
        assert standing.by_status == {Status.COMPLETE: 1}
    assert store.publish()
    assert store.status() is not Status.COMPLETE


def test_an_edition_has_the_evidence_of_the_store(store: Store) -> None:
    """For any window of time and any topics, an edition gives the same evidence as the store. The
    verdicts of an edition are those that follow from the store's whole evidence. Its short verdicts
    (with only the gravest agents) are these verdicts, shortened.
    """
    store.late()
    store.publish()
    with store.editions.newest() as edition:
        for window in (FOREVER, WINDOW, (0, START), (0, 0)):
            for topics in (None, [LOGS.topic], ["another"]):
                expected = store.ledger.evidence(window, topics)
                assert edition.evidence(window, topics) == expected, (window, topics)
        long, _ = edition.verdicts(FOREVER, None)
        assert long == verdicts(store.ledger.evidence(), POLICY, NOW)
        assert [x.short() for x in long] == edition.short_verdicts(FOREVER, None)


def test_publishing_does_not_wait_for_answers(store: Store) -> None:
    """The next edition can be published while an answer is made from the present edition. This
    answer still sees the store as it was when the present edition was published. The store has two
    connections for editions. While answers use both of them, no new edition is published."""
    store.publish()
    with store.editions.newest() as first:
        store.late()
        assert store.publish()
        assert first.verdicts(WINDOW, None)[0][0].status is Status.COMPLETE
        with store.editions.newest() as second:
            assert second is not first
            assert second.verdicts(WINDOW, None)[0][0].status is not Status.COMPLETE
            assert not store.publish()
    assert store.publish()


def test_editions_do_not_let_the_log_of_the_store_grow(store: Store) -> None:
    """SQLite cannot reuse its write-ahead log while an edition still needs an old state of the
    store. But each edition is soon replaced by the next one. So the log stays small, however many
    editions are published."""
    log, sizes = store.path.with_name(f"{store.path.name}-wal"), []
    for _ in range(40):
        for _ in range(10):
            store.late()
        assert store.publish()
        sizes.append(log.stat().st_size)
    assert max(sizes[20:]) <= max(sizes[:10])


@promise("6 doublings")
def test_a_file_that_a_second_agent_announces_is_known_at_once(store: Store) -> None:
    """The ledger keeps a cache of what it knows about files. If a second agent announces a file,
    the next step of judging already takes into account that the second agent may have read the file
    again, so that lines may be doubled: a bucket in which both agents counted lines is no longer
    complete."""
    second, counted = replace(SECOND, host=AGENT.host), count(agent=8)
    counts = [delta(second, 1, counted), *(delta(x, 2, counted) for x in COUNTERS)]
    store.ledger.take([*map(encode, counts), encode(seal(second, 2, DUE, 1))])
    found = []
    for agent in (7, 8):
        said = Announcement(
            5, agent, agent * 10, "web1", "/var/log/a", 1, 2, b"f" * 32, 1024, LOGS, born_ns=3
        )
        store.ledger.take([encode(said)])
        found.append(store.ledger.evidence_without_counts().topic(LOGS).rereadings)
        assert found[-1] == store.ledger.evidence((0, 0)).topic(LOGS).rereadings
        [standing] = store.judge.step().topics
        assert standing.by_status == {Status.COMPLETE if agent == 7 else Status.UNKNOWN: 1}
    assert not found[0]
    assert found[1]
