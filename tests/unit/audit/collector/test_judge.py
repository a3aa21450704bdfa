"""A block consists of the buckets of one hour. The collector judges one block after another, in
steps of bounded length. The verdicts are the same as if the collector judged everything at once."""

from __future__ import annotations

import random

import pytest

from skidway.audit.collector import judge
from skidway.audit.collector.judge import BLOCK_MS, Judge
from skidway.audit.evidence.ledger import Ledger
from skidway.audit.judgement.policy import Policy
from skidway.audit.judgement.standing import judged
from skidway.audit.judgement.verdict import Status
from skidway.audit.reports import report
from skidway.audit.topic.count_columns import Count
from skidway.audit.topic.messages import Delta, Range, Seal, Sender, Tier, encode
from skidway.audit.topic.seal_columns import SealedTopic
from skidway.kafka.source import Source
from support.audit_senders import AGENT, BROKER, LOGS, OTHER
from support.clock import ManualClock

SIZE = 60_000
POLICY = Policy(tiers=(Tier.AGENT, Tier.BROKER), lateness_ms=0)


class Site:
    """A ledger with the messages of one agent and one counter, and the judge of this ledger."""

    def __init__(self) -> None:
        self.ledger, self.clock = Ledger(), ManualClock()
        self.judge = Judge(self.ledger, lambda: POLICY, self.clock)
        self.numbers = {AGENT: 0, BROKER: 0}
        self.touched: dict[tuple[Sender, Source, int], int] = {}

    def count(self, source: Source, index: int, agent: int = 5, broker: int = 5) -> None:
        """Sends the counts of both tiers (agent and broker) for one bucket."""
        for sender, count in ((AGENT, agent), (BROKER, broker)):
            self.numbers[sender] += 1
            number, key = self.numbers[sender], (sender, source, index)
            previous = self.touched.get(key, 0)
            self.touched[key] = number
            counted = Count(source, 7, index * SIZE, SIZE, count, count, count, previous=previous)
            ranges = (Range(source, 0, 0, 5),) if sender is BROKER else ()
            self.ledger.take([encode(Delta(sender, number, 5, ranges, (counted,)))])

    def seal(self) -> None:
        self.numbers[AGENT] += 1
        number, until = self.numbers[AGENT], self.clock.time_ms()
        topics = tuple(SealedTopic(x, until, number - 1) for x in (LOGS, OTHER))
        self.ledger.take([encode(Seal(AGENT, number, until, topics))])


@pytest.mark.parametrize("seed", range(20), indirect=True)
def test_block_by_block_is_everything_at_once(seed: int) -> None:
    """A block consists of the buckets of one hour. Judging block by block gives the same verdicts
    as judging everything at once. It does not matter which buckets exist, which buckets lack
    records, and whether counts change between two steps."""
    chance, site = random.Random(seed), Site()
    for _ in range(4):
        for _ in range(chance.randrange(1, 12)):
            index = chance.choice([-70, 0, 1, 59, 60, 61, 300, 10_000, 10_001])
            site.count(chance.choice([LOGS, OTHER]), index, broker=chance.choice([5, 5, 5, 4]))
        site.seal()
        found = site.judge.step()
        assert found == judged(site.ledger.evidence(), POLICY, site.clock.time_ms())
        assert found.unjudged == 0


def test_what_was_not_judged_yet_is_never_called_complete(monkeypatch: pytest.MonkeyPatch) -> None:
    """When the judge starts, it needs several steps for a large store. Until all steps are done,
    the report says how much is not judged yet, and gives no time up to which a topic is
    complete."""
    site = Site()
    for hour in range(10):
        site.count(LOGS, hour * BLOCK_MS // SIZE, broker=4 if hour == 0 else 5)
    site.seal()
    monkeypatch.setattr(judge, "NEVER_S", -1.0)
    found = site.judge.step()
    assert found.by_status == {Status.COMPLETE: 3}
    assert found.unjudged == 7
    assert report.exit_status(found, everything=False) == 1
    assert report.sentence(found) == (
        "All 3 buckets of 1 topic are complete; 7 hours of older buckets not judged yet."
    )
    assert [topic.complete_until for topic in found.counted] == [None]
    for _ in range(7):
        found = site.judge.step()
    assert (found.unjudged, found.overdue) == (0, {Status.INCOMPLETE: 1})


def test_older_blocks_are_judged_again_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """A block consists of the buckets of one hour. The judge judges old blocks again in turn. So it
    notices a change in an old block after some steps, even if each step has time for only one
    block."""
    site = Site()
    for hour in range(6):
        site.count(LOGS, hour * BLOCK_MS // SIZE)
    site.seal()
    assert site.judge.step().by_status == {Status.COMPLETE: 6}
    monkeypatch.setattr(judge, "AGAIN_S", -1.0)
    site.count(LOGS, 0, broker=4)
    site.seal()
    assert any(site.judge.step().overdue for _ in range(4))


def test_blocks_that_are_gone_are_forgotten() -> None:
    """If a new store replaces the old store, the judge forgets the buckets that are not in the new
    store."""
    site = Site()
    site.count(LOGS, 0)
    assert site.judge.step().counted
    site.ledger._connection.execute("DELETE FROM tallies")
    found = site.judge.step()
    assert (found.counted, found.starts) == ((), ())
    assert [topic.source for topic in found.topics] == [LOGS]
