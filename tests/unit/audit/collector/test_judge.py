"""Tests the judge of the collector. The judge works in steps of bounded length, and judges only
buckets whose evidence has changed. Its verdicts are the same as if it judged everything at once."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient

from skidway.audit.collector import judge
from skidway.audit.collector.editions import Editions, step_of
from skidway.audit.collector.history_store import HistoryStore
from skidway.audit.collector.judge import BLOCK_MS, Judge
from skidway.audit.collector.judging_times import next_step_s
from skidway.audit.collector.web.dashboard import Dashboard
from skidway.audit.evidence.evidence import Evidence
from skidway.audit.evidence.hearing import Heard
from skidway.audit.evidence.ledger import Ledger
from skidway.audit.evidence.pruning import OldBucket, digest_of
from skidway.audit.judgement.acceptances import Signature, acceptances
from skidway.audit.judgement.policy import Policy
from skidway.audit.judgement.standing import NEWEST_BUCKETS, judged
from skidway.audit.judgement.topic_judgement import verdicts
from skidway.audit.judgement.verdict import Status
from skidway.audit.reports import report
from skidway.audit.topic.count_columns import LONGEST_MS, Count
from skidway.audit.topic.decisions import Revocation
from skidway.audit.topic.field_bounds import FARTHEST_MS
from skidway.audit.topic.messages import (
    Behind,
    Certainty,
    Delta,
    Heartbeat,
    Loss,
    Message,
    Range,
    Seal,
    Sender,
    Tier,
    encode,
)
from skidway.audit.topic.notes import Note
from skidway.audit.topic.seal_columns import SealedTopic
from skidway.audit.topic.transactions import KIND, Held, Transactions, body_of
from skidway.kafka.source import Source
from support.any_messages import announcements, deltas, heartbeats, seals
from support.audit_senders import AGENT, BROKER, LOGS, OTHER, REJECTED
from support.clock import ManualClock
from support.ledgers import take
from support.promises import promise
from support.randomness import share_of

SIZE = 60_000
POLICY = Policy(tiers=(Tier.AGENT, Tier.BROKER), lateness_ms=0)
_OPPOSITE = Count(LOGS, 7, 0, SIZE, 1, 1, 1)
"""A count of one record. If a message also counts -1 rejects in the same bucket, all records and
rejects add up to 0. The share of rejects must not be computed by a division by this sum."""
_COMPLETE = "/complete.json?topic=dc1.logs&since=2h&until=5m"
_PAGES = (
    "/", "/index.json", "/buckets", "/topics", "/hosts", "/rejects", "/history.json",
    "/hours.json?topic=dc1.logs&since=2h&until=5m",
    _COMPLETE,
)  # fmt: skip


class Site:
    """A ledger with the messages of one agent and one counter, and the judge of this ledger."""

    def __init__(self) -> None:
        self.ledger, self.clock = Ledger(), ManualClock()
        self.judge = Judge(self.ledger, lambda: POLICY, self.clock)
        self.numbers = {AGENT: 0, BROKER: 0}
        self.touched: dict[tuple[Sender, Source, int], int] = {}

    def count(self, source: Source, index: int, agent: int = 5, broker: int = 5) -> None:
        """Adds to the ledger two deltas, which count records of the topic's bucket number `index`:
        `agent` records in the tier agent, and `broker` records in the tier broker."""
        for sender, count in ((AGENT, agent), (BROKER, broker)):
            self.numbers[sender] += 1
            number, key = self.numbers[sender], (sender, source, index)
            previous = self.touched.get(key, 0)
            self.touched[key] = number
            counted = Count(source, 7, index * SIZE, SIZE, count, count, count, previous=previous)
            ranges = (Range(source, 0, 0, 5),) if sender is BROKER else ()
            self.ledger.take([encode(Delta(sender, number, 5, ranges, (counted,)))])

    def prune(self, source: Source, index: int) -> None:
        """Deletes the topic's bucket number `index` from the ledger, as if it were old."""
        tallies = self.ledger.tallies(source, (index * SIZE, SIZE))
        assert tallies is not None
        digest = digest_of(tallies.columns)
        assert self.ledger.prune([OldBucket(source, index * SIZE, SIZE, digest)], 0) == 1

    def seal(self) -> None:
        self.numbers[AGENT] += 1
        number, until = self.numbers[AGENT], self.clock.time_ms()
        topics = tuple(SealedTopic(x, until, number - 1) for x in (LOGS, OTHER))
        self.ledger.take([encode(Seal(AGENT, number, until, topics))])


@pytest.mark.parametrize("seed", range(20), indirect=True)
def test_step_by_step_is_everything_at_once(seed: int) -> None:
    """Judging only the buckets that changed gives the same verdicts as judging everything at once.
    This holds for random buckets, some of which lack records, and for random changes of counts
    between two steps."""
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
    """The judge gives no time up to which a topic is complete, as long as it has not judged all
    hours of the store. After its start, it needs several steps for a large store. Until the last of
    these steps, its result says how many hours are not judged yet."""
    site = Site()
    for hour in range(10):
        site.count(LOGS, hour * BLOCK_MS // SIZE, broker=4 if hour == 0 else 5)
    site.seal()
    monkeypatch.setattr(judge, "STEP_S", -1.0)
    found = site.judge.step()
    assert found.by_status == {Status.COMPLETE: 1}
    assert found.unjudged == 9
    assert report.exit_status(found, everything=False) == 1
    assert report.sentence(found) == (
        "The bucket of 1 topic is complete; 9 hours of older buckets not judged yet."
    )
    assert [topic.complete_until for topic in found.counted] == [None]
    for _ in range(9):
        found = site.judge.step()
    assert (found.unjudged, found.overdue) == (0, {Status.INCOMPLETE: 1})


@given(st.lists(st.one_of(deltas, seals, heartbeats, announcements), min_size=1, max_size=4))
@example([Delta(AGENT, 1, 5, (), (Count(LOGS, 7, FARTHEST_MS, LONGEST_MS, 1, 1, 1),))])
def test_no_message_ends_the_collector(said: list[Message]) -> None:
    """Any program that may write to the audit topic can send messages with any numbers. The
    collector stores and judges all messages that it does not refuse, however odd their numbers are.
    It also writes the verdicts into its history, and deletes old data of these messages."""
    site = Site()
    history = HistoryStore(now_ms=0)
    site.judge = Judge(site.ledger, lambda: POLICY, site.clock, history.note)
    now_ms = site.clock.time_ms()
    places = [
        Heard("audit", "", 0, offset, now_ms, now_ms, is_live=True) for offset in range(len(said))
    ]
    site.ledger.take_records(zip(map(encode, said), places, strict=True), {}, now_ms)
    standing = site.judge.step()
    assert step_of(site.judge, standing, now_ms).standing is standing
    judged(site.ledger.evidence(), POLICY, now_ms)
    assert next_step_s(1.0, site.judge.due) > 0
    site.judge.step()  # the history gets its rows in the second step
    for before_ms in (now_ms, 2**62):
        site.ledger.prune([], before_ms)
        site.judge.step()
        assert site.judge.evidence.senders.keys() == site.ledger.evidence().senders.keys()


@settings(max_examples=share_of(40))
@given(st.lists(st.one_of(deltas, seals, announcements), min_size=2, max_size=3))
@example([Delta(AGENT, 1, 5, (), (Count(REJECTED, 7, 0, SIZE, -1, 1, 1), _OPPOSITE))])
@example([Delta(BROKER, 1, 5, (), (Count(LOGS, 7, FARTHEST_MS, LONGEST_MS, 2**63 - 1, 1, 1),))])
def test_no_messages_keep_a_page_from_being_made(said: list[Message]) -> None:
    """Whatever numbers the messages have, the collector makes all pages and documents. There is one
    exception: if the messages have very short buckets, a requested span of time may have too many
    buckets, and the collector then refuses the request."""
    site, history = Site(), HistoryStore(now_ms=0)
    site.judge = Judge(site.ledger, lambda: POLICY, site.clock, history.note)
    take(site.ledger, map(encode, said), {}, site.clock.time_ms())
    site.judge.step()
    editions = Editions([site.ledger], lambda: None)
    editions.publish(step_of(site.judge, site.judge.step(), site.clock.time_ms()))
    client = TestClient(Dashboard(editions, site.clock, history).application())
    starts = site.ledger.newest_buckets(2)
    for path in (*_PAGES, *(f"/buckets.json?bucket={x}" for x in starts)):
        status = client.get(path).status_code
        assert status == 200 or (status, path) == (400, _COMPLETE), path


def test_the_judge_says_when_buckets_become_due(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a step of judging, the judge says when the next bucket becomes due (old enough to be
    complete). It gives the time from the beginning of the step until that moment, and the length of
    this bucket. The time does not depend on how long the step takes to read the evidence. If no
    bucket will become due, the judge says so."""
    site = Site()
    assert (site.judge.step(), site.judge.due)[1] is None
    now_ms = site.clock.time_ms()
    young = now_ms // SIZE + 3
    for index in (young - 100, young, young + 1):
        site.count(LOGS, index)
    due_s = ((young + 1) * SIZE - now_ms) / 1000
    site.judge.step()
    assert site.judge.due == pytest.approx((due_s, SIZE / 1000))
    read = site.ledger.evidence_without_counts

    def slowly() -> Evidence:
        site.clock.advance(2.0)
        return read()

    monkeypatch.setattr(site.ledger, "evidence_without_counts", slowly)
    site.judge.step()
    assert site.judge.due == pytest.approx((due_s, SIZE / 1000))
    site.clock.advance(3 * 3_600.0)
    site.judge.step()
    assert site.judge.due is None


def test_what_is_due_is_judged_before_what_is_young(monkeypatch: pytest.MonkeyPatch) -> None:
    """If a step of judging has no time for all buckets, it judges the buckets that are due (old
    enough to be complete), and leaves younger buckets for the next step. The verdicts on younger
    buckets will change anyway when more messages arrive."""
    site = Site()
    young = site.clock.time_ms() // SIZE + 5
    for index in (0, 1, young):
        site.count(LOGS, index)
    site.seal()
    site.judge.step()
    monkeypatch.setattr(judge, "STEP_S", -1.0)
    for index in (young, 0):
        site.count(LOGS, index, broker=4)
    site.seal()
    [topic] = site.judge.step().counted
    assert (topic.records, topic.overdue) == (20, {Status.INCOMPLETE: 1})
    [topic] = site.judge.step().counted
    assert topic.records == 25


@pytest.mark.parametrize("steps", [0, 1])
def test_a_bucket_that_becomes_due_is_judged_first(
    monkeypatch: pytest.MonkeyPatch, steps: int
) -> None:
    """If a step of judging has no time for all buckets, it first judges those that have become due
    (old enough to be complete), because people and jobs wait for their verdicts. Other buckets wait
    for the next steps: newer buckets, and old buckets that have changed."""
    site, young = Site(), ManualClock().time_ms() // SIZE
    for index in (0, 1, young):
        site.count(LOGS, index, broker=4)
    site.seal()
    for _ in range(1 + steps):
        assert site.judge.step().overdue == {Status.INCOMPLETE: 2}
    monkeypatch.setattr(judge, "STEP_S", -1.0)
    monkeypatch.setattr(judge, "DUE_STEP_S", -1.0)
    for minute in range(2):
        site.clock.advance(minute * SIZE / 1000)
        for index in (0, 1, *[young + 3] * minute):
            site.count(LOGS, index)
        assert site.judge.step().overdue == {Status.INCOMPLETE: 2 + minute}


@pytest.mark.parametrize(("due_s", "judged"), [(6.0, 3), (-1.0, 1)])
def test_all_buckets_that_become_due_are_judged_in_one_step(
    monkeypatch: pytest.MonkeyPatch, due_s: float, judged: int
) -> None:
    """When the usual time of a step is over, the step still judges the buckets that have become due
    (old enough to be complete), so that their verdicts do not wait for the next step. For these
    buckets the step has a longer limit of time."""
    site, young = Site(), ManualClock().time_ms() // SIZE
    topics = [replace(LOGS, topic=name, topic_id=name) for name in ("a", "b", "c")]
    for topic in topics:
        site.count(topic, young, broker=4)
    site.seal()
    site.judge.step()
    site.clock.advance(SIZE / 1000)
    monkeypatch.setattr(judge, "STEP_S", -1.0)
    monkeypatch.setattr(judge, "DUE_STEP_S", due_s)
    assert site.judge.step().overdue == {Status.INCOMPLETE: judged}


def test_due_buckets_come_before_many_younger_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step judges at most STALE_MAX buckets of a topic. If more buckets must be judged, and most
    are not due yet, a bucket that has become due is still among those that the step judges."""
    site, young = Site(), ManualClock().time_ms() // SIZE
    monkeypatch.setattr(judge, "STALE_MAX", 2)
    for index in range(young, young + 8):
        site.count(LOGS, index, broker=4)
    for _ in range(4):
        site.judge.step()
    site.clock.advance(SIZE / 1000)
    for index in range(young, young + 8):
        site.count(LOGS, index, broker=4)
    assert site.judge.step().overdue == {Status.INCOMPLETE: 1}


def test_a_loss_in_a_bucket_far_ahead_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the clock of a host is far ahead, its buckets become due (old enough to be complete) only
    after a long time. The judge notices a loss in such a bucket even if another bucket changes
    before each step, and a step has time for only one bucket."""
    site, ahead = Site(), ManualClock().time_ms() // SIZE + 1_000_000
    for index in (0, ahead):
        site.count(LOGS, index)
    site.seal()
    assert not site.judge.step().overdue
    monkeypatch.setattr(judge, "STEP_S", -1.0)
    site.numbers[AGENT] += 1
    start = ahead * SIZE
    loss = Loss(LOGS, 7, 5, 0, 9, Certainty.LOST, "it vanished", start, start)
    site.ledger.take([encode(Delta(AGENT, site.numbers[AGENT], 5, losses=(loss,)))])
    for _ in range(judge.YOUNG_PATIENT_STEPS + 4):
        site.count(LOGS, 0)
        found = site.judge.step()
    assert found.topics[0].newest[start].status is Status.LOST


def test_the_history_gets_each_verdict_although_a_newer_bucket_changes_again_and_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Some verdicts changed while nothing could be written into the history. The history gets them
    later, even if a newer bucket changes before each step, and a step has time for only one
    bucket."""
    site, told, may_note = Site(), set[int](), [True]
    site.judge = Judge(
        site.ledger, lambda: POLICY, site.clock,
        lambda found, _: told.update(x.bucket // SIZE for x in found), lambda: may_note[0],
    )  # fmt: skip
    for index in range(4):
        site.count(LOGS, index)
    site.seal()
    for _ in range(2):
        site.judge.step()
    may_note[0] = False
    for index in range(3):
        site.count(LOGS, index, broker=4)
    site.judge.step()
    may_note[0] = True
    told.clear()
    monkeypatch.setattr(judge, "STEP_S", -1.0)
    for _ in range(4 * judge.PATIENT_STEPS):
        site.count(LOGS, 3)
        site.judge.step()
    assert told == {0, 1, 2, 3}


def test_only_what_changed_is_judged() -> None:
    """The judge judges a bucket again if its counts have changed. It does not judge the bucket
    again if only other buckets have changed, or if an agent of the bucket has sent a newer seal
    (which says that all lines before a time are counted)."""
    site, told = Site(), list[int]()
    site.judge = Judge(
        site.ledger, lambda: POLICY, site.clock, lambda found, _: told.append(len(found))
    )
    for index in range(100):
        site.count(LOGS, index)
    site.seal()
    for _ in range(3):
        site.judge.step()
    assert told == [100, 0]  # step 2 reports all buckets, step 3 reports none
    site.count(LOGS, 50, agent=4)
    site.count(LOGS, 100)
    site.seal()
    assert site.judge.step().overdue == {Status.INCOMPLETE: 1}
    site.clock.advance(10)
    site.seal()
    site.judge.step()
    assert told == [100, 0, 2, 0]


@promise("6 without origin")
def test_a_bucket_is_judged_again_when_its_counter_has_counted_further() -> None:
    """The judge judges a bucket of records without origin again when a heartbeat says that the
    counter has counted up to the time at which the bucket was due."""
    site, now = Site(), ManualClock().time_ms()
    start = now // SIZE * SIZE
    counted = (Count(LOGS, 0, start, SIZE, 5, 5, 5),)
    waits = body_of({LOGS: Transactions(0, Held(0, 5, start))})
    note = Note(KIND, BROKER.producer, BROKER.host, BROKER.cluster, 1, 1, now, waits)
    site.ledger.take([encode(Delta(BROKER, 1, now, (Range(LOGS, 0, 0, 5),), counted))])
    found = []
    for lag_ms, notes in ((2 * SIZE, []), (3 * SIZE, [encode(note)]), (0, [])):
        site.clock.advance(SIZE / 1000)
        now_ms = site.clock.time_ms()
        heard = Heartbeat(BROKER, 1, now_ms, behind=(Behind(LOGS, lag_ms),))
        site.ledger.take([*notes, encode(heard)])
        step = site.judge.step()
        again = judged(site.ledger.evidence(), POLICY, now_ms)
        assert step.by_status == again.by_status
        found += step.by_status
    assert found == [Status.OPEN, Status.OPEN, Status.COMPLETE]


def test_each_loss_changes_verdicts() -> None:
    """Whenever an agent declares a loss, the buckets of the lost lines get the verdict "lost" in
    the next step, even if no other message concerns these buckets."""
    site = Site()
    for index in range(4):
        site.count(LOGS, index)
    for index in (0, 3):
        site.numbers[AGENT] += 1
        start = index * SIZE
        loss = Loss(
            LOGS, 7, 5, start, start + 9, Certainty.LOST, "it vanished", start + 1, start + 1
        )
        site.ledger.take([encode(Delta(AGENT, site.numbers[AGENT], 5, losses=(loss,)))])
        site.seal()
        found = site.judge.step()
        assert found == judged(site.ledger.evidence(), POLICY, site.clock.time_ms())
    assert found.overdue[Status.LOST] >= 2


def test_a_changed_policy_changes_verdicts() -> None:
    """If the audit's settings change, the judge judges all buckets again, even without a new
    message."""
    site, policies = Site(), [POLICY]
    site.judge = Judge(site.ledger, lambda: policies[-1], site.clock)
    counted = Count(LOGS, 7, 0, SIZE, 5, 5, 5)
    site.ledger.take([encode(Delta(AGENT, 1, 5, counts=(counted,)))])
    some = replace(counted, rejects=2)
    site.ledger.take([encode(Delta(BROKER, 1, 5, (Range(LOGS, 0, 0, 5),), (some,)))])
    site.numbers = {AGENT: 1, BROKER: 1}
    site.seal()
    assert [site.judge.step().warned for _ in range(2)] == [1, 1]
    policies.append(replace(POLICY, rejects_share=0.5))
    assert site.judge.step().warned == 0


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


@promise("6 complete")
def test_an_acceptance_that_was_taken_back_holds_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    """If a person takes back the acceptance of a bucket, the bucket is overdue again (old enough to
    be complete, but neither complete nor accepted). In this test, a step of judging has time for
    only one of two such buckets. The next step judges the other bucket."""
    site = Site()
    for index in (0, 1):
        site.count(LOGS, index, broker=4)
    site.seal()
    found = verdicts(site.ledger.evidence(), POLICY, site.clock.time_ms())
    accepted = acceptances(found, Signature(7, "anna", "known"))
    site.ledger.take([encode(each) for each in accepted])
    assert not site.judge.step().overdue
    monkeypatch.setattr(judge, "STEP_S", -1.0)
    revoked = (Revocation(9 + each.id, 8, "bert", "no", each.id) for each in accepted)
    site.ledger.take([encode(each) for each in revoked])
    for _ in range(2):
        found_later = site.judge.step()
    assert found_later.overdue == {Status.INCOMPLETE: 2}


@promise("6 pruning")
def test_a_deleted_bucket_does_not_come_back_by_a_loss() -> None:
    """If an agent declares a loss in a deleted bucket, the bucket gets no verdict. This is true for
    the judge that was running when the bucket was deleted, and for a judge that starts later."""
    site = Site()
    for index in (0, 1):
        site.count(LOGS, index)
    site.seal()
    site.judge.step()
    site.prune(LOGS, 0)
    site.numbers[AGENT] += 1
    loss = Loss(LOGS, 7, 5, 0, 9, Certainty.LOST, "it vanished", 0, 0)
    site.ledger.take([encode(Delta(AGENT, site.numbers[AGENT], 5, losses=(loss,)))])
    for each in (site.judge, Judge(site.ledger, lambda: POLICY, site.clock)):
        found = each.step()
        assert found == judged(site.ledger.evidence(), POLICY, site.clock.time_ms())
        assert sum(topic.buckets for topic in found.topics) == 1


@promise("6 complete")
def test_rejects_are_judged_again_when_the_bucket_of_their_topic_is_deleted() -> None:
    """The share of rejects depends on the counts of two topics: the topic itself, and its topic of
    rejects. If the counts of one of these topics are deleted in a bucket, a running judge judges
    the same bucket of the other topic again. The new verdict is the same as that of a judge that
    starts after the deletion: the share of rejects is unknown, so there is no warning."""
    site, policy = Site(), replace(POLICY, rejects_share=0.4)
    site.judge = Judge(site.ledger, lambda: policy, site.clock)
    for source in (LOGS, REJECTED):
        site.count(source, 0)
    for index in range(1, 1 + NEWEST_BUCKETS):
        site.count(OTHER, index)
    site.seal()
    assert site.judge.step().warned == 1
    site.prune(LOGS, 0)
    found = site.judge.step()
    assert not found.warned
    assert found == judged(site.ledger.evidence(), policy, site.clock.time_ms())


@promise("6 complete")
def test_buckets_of_two_sizes_are_complete_up_to_the_first_that_is_not() -> None:
    """If the settings of an agent change the size of its buckets, old and new buckets may overlap.
    The topic is complete only up to the start of the first bucket that is not complete, even if an
    earlier bucket, which is complete, ends after this start."""
    site = Site()
    site.count(LOGS, 1, broker=4)
    count = Count(LOGS, 7, 0, 10 * SIZE, 5, 5, 5)
    for sender in (AGENT, BROKER):
        site.numbers[sender] += 1
        site.ledger.take([encode(Delta(sender, site.numbers[sender], 5, counts=(count,)))])
    site.seal()
    for found in (
        site.judge.step(), judged(site.ledger.evidence(), POLICY, site.clock.time_ms())
    ):  # fmt: skip
        assert [topic.complete_until for topic in found.counted] == [SIZE]


@promise("6 complete")
def test_an_old_bucket_is_judged_although_all_change_again_and_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The judge reaches every bucket, even if an event before each step makes it judge all buckets
    again. In this test, an agent declares a loss before each step, and a step has time for only one
    bucket. The oldest bucket has lost lines. The judge notices this after at most two steps for
    each bucket, plus PATIENT_STEPS."""
    site, count = Site(), 10
    for index in range(count):
        site.count(LOGS, index)
    site.seal()
    assert not site.judge.step().overdue
    monkeypatch.setattr(judge, "STEP_S", -1.0)
    for number in range(2 * count + judge.PATIENT_STEPS):
        site.numbers[AGENT] += 1
        start = (count - 1) * SIZE if number else 0
        loss = Loss(LOGS, 7, number, 0, 9, Certainty.LOST, "it vanished", start, start)
        site.ledger.take([encode(Delta(AGENT, site.numbers[AGENT], 5, losses=(loss,)))])
        site.seal()
        found = site.judge.step()
    assert found.overdue == {Status.LOST: 2}
    assert [topic.complete_until for topic in found.counted] == [None]


@promise("6 complete")
def test_only_balanced_buckets_get_narrow_checksums() -> None:
    """When a bucket is due (old enough to be complete) and complete, its checksums are made narrow
    (cut to 24 bits). This happens once for each bucket. If further records of this bucket are
    counted later, the bucket stays complete only if all tiers count the same records."""
    site = Site()
    site.count(LOGS, 0)
    site.count(LOGS, 1, broker=4)
    site.judge.step()
    assert site.judge.take_balanced() == []
    site.seal()
    site.judge.step()
    complete = site.judge.take_balanced()
    assert complete == [(LOGS, (0, SIZE))]
    site.ledger.narrow(complete)
    assert site.judge.step().by_status == {Status.COMPLETE: 1, Status.INCOMPLETE: 1}
    assert site.judge.take_balanced() == []
    for broker, status in ((2, Status.COMPLETE), (3, Status.INCOMPLETE)):
        site.count(LOGS, 0, agent=2, broker=broker)
        site.seal()
        found = site.judge.step().topics[0].newest
        assert found[0].status is status
        assert site.judge.take_balanced() == []


def test_the_counts_of_a_due_bucket_are_in_one_row() -> None:
    """When a bucket has been judged and is due (old enough to be complete), the judge says whether
    the bucket is stored in several rows, so that the ledger can merge these rows. Without this
    merging, a bucket that never becomes complete would take several times as much space."""
    site, young = Site(), ManualClock().time_ms() // SIZE
    for index in (0, 1, young):
        site.count(LOGS, index, broker=4 + (index == 1))
    site.judge.step()
    wide = [(LOGS, (0, SIZE)), (LOGS, (SIZE, SIZE))]
    assert sorted(site.judge.take_scattered()) == wide
    site.ledger.merge(wide)
    site.seal()
    site.judge.step()
    site.ledger.narrow(site.judge.take_balanced())
    assert site.judge.take_scattered() == []
    for index in (0, 1):
        site.count(LOGS, index)
    site.judge.step()
    assert sorted(site.judge.take_scattered()) == wide
    site.ledger.merge(wide)
    counts = [site.ledger.additions(LOGS, (index * SIZE, SIZE)) for index in (0, 1, young)]
    assert (counts[:2], counts[2] > 0) == ([0, 0], True)
    site.judge.step()
    assert (site.judge.take_balanced(), site.judge.take_scattered()) == ([], [])


@promise("6 complete")
def test_few_hosts_with_faults_do_not_keep_checksums_wide() -> None:
    """The checksums of a large bucket become narrow (cut to 24 bits) even if up to one agent in ten
    has not sealed the bucket, and up to one agent in ten has different numbers of records in two
    tiers. If there are more such agents, the checksums stay whole. They also stay whole if two
    tiers have the same number of an agent's records but different checksums, because only the
    checksum shows this difference."""
    cases: list[tuple[dict[int, tuple[int, int]], int, bool]] = [
        ({}, 10, True), ({}, 9, True), ({}, 8, False), ({3: (4, 50)}, 10, True),
        ({3: (4, 50), 5: (4, 50)}, 10, False), ({3: (5, 49)}, 10, False),
    ]  # fmt: skip
    for index, (faults, sealed, is_balanced) in enumerate(cases):
        ledger, clock = Ledger(), ManualClock()
        judge_ = Judge(ledger, lambda: POLICY, clock)
        counts, now_ms = [], clock.time_ms()
        for agent in range(1, 11):
            sender = replace(AGENT, producer=str(agent), host=f"h{agent}")
            own = Count(LOGS, agent, 0, SIZE, 5, 50, 50)
            ledger.take([encode(Delta(sender, 1, 5, counts=(own,)))])
            if agent <= sealed:
                seal = Seal(sender, 2, now_ms, (SealedTopic(LOGS, now_ms, 1),))
                ledger.take([encode(seal)])
            count, checksum = faults.get(agent, (5, 50))
            counts.append(Count(LOGS, agent, 0, SIZE, count, 10 * count, checksum))
        ledger.take([encode(Delta(BROKER, 1, 5, (Range(LOGS, 0, 0, 5),), tuple(counts)))])
        judge_.step()
        found = [(LOGS, (0, SIZE))] if is_balanced else []
        assert judge_.take_balanced() == found, f"case {index}"
        ledger.close()
