"""Tests which old data the ledger (the collector's store) deletes, and which it keeps."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from skidway.audit.collector.pruning import AGAIN_S, CLOCK_S, OldBuckets
from skidway.audit.evidence.evidence import SealNote
from skidway.audit.evidence.ledger import DATABASE, Ledger
from skidway.audit.evidence.pruning import OldBucket, digest_of
from skidway.audit.evidence.seal_blocks import unpack
from skidway.audit.evidence.tallies import BucketTallies
from skidway.audit.judgement.acceptances import Signature, acceptances
from skidway.audit.judgement.policy import Policy
from skidway.audit.judgement.topic_judgement import verdicts
from skidway.audit.judgement.verdict import Status
from skidway.audit.topic.count_columns import Count
from skidway.audit.topic.messages import (
    Certainty,
    Delta,
    Loss,
    Message,
    Range,
    Seal,
    Sender,
    Tier,
    encode,
)
from skidway.audit.topic.seal_columns import SealedTopic
from skidway.kafka.source import Source
from support.audit_senders import AGENT, BROKER, LOGS, REJECTED
from support.clock import ManualClock
from support.promises import promise

LATE = 1 << 50
_POLICY = Policy(tiers=(Tier.AGENT, Tier.BROKER), lateness_ms=0)


def _seal(number: int) -> Message:
    return Seal(AGENT, number, number, (SealedTopic(LOGS, number, number - 1),))


def _loss(number: int) -> Message:
    loss = Loss(LOGS, 7, 1, 0, None, Certainty.LOST, "gone", None, None)
    return Delta(AGENT, number, number, losses=(loss,))


def _ledger(*said: Message) -> Ledger:
    ledger = Ledger()
    ledger.take([encode(x) for x in said])
    return ledger


def _seals(ledger: Ledger) -> list[int]:
    notes: list[SealNote] = ledger.evidence().topic(LOGS).seals[7]
    return [x.number for x in notes]


@promise("6 pruning")
def test_the_last_seal_before_a_later_loss_is_kept(tmp_path: Path) -> None:
    """If an agent declares a loss, the ledger still has the agent's last seal before the loss (a
    seal says that all lines before a time are counted). The ledger has deleted old seals, but never
    deletes the newest ones. So the loss concerns the same buckets as in a ledger that has deleted
    nothing."""
    said = [_seal(number) for number in range(1, 200)]
    ledger, other = Ledger(tmp_path / DATABASE), _ledger(*said)
    ledger.take([encode(x) for x in said])
    ledger.prune([], LATE)
    ledger.close()
    ledger = Ledger(tmp_path / DATABASE)  # without seals in memory
    for each in (ledger, other):
        each.take([encode(_loss(200)), encode(_seal(201))])
    assert _seals(ledger) == _seals(other) == [1, 199, 201]


@promise("6 pruning")
def test_of_settled_messages_the_last_seal_of_each_block_is_kept(tmp_path: Path) -> None:
    """After some time the ledger settles messages: it deletes their digests, and of each 64
    messages it keeps only the last seal. If the agent declares a loss later, the loss concerns the
    same buckets as without the deletion. If an agent had already declared a loss, the ledger keeps
    all seals of this agent."""
    said = [_seal(number) for number in range(1, 201)]
    losing = [*(_seal(x) for x in range(1, 100)), _loss(100), *(_seal(x) for x in range(101, 201))]
    for messages, kept in ((said, [63, 127, 191, *range(192, 201)]), (losing, None)):
        path = tmp_path / f"{len(kept or ())}.db"
        ledger, other = Ledger(path), _ledger(*messages)
        ledger.take([encode(x) for x in messages])
        ledger.prune([], 0, LATE)
        assert ledger.settled == 1
        assert _all_seals(ledger) == (kept or _all_seals(other))
        for each in (ledger, other):
            each.take([encode(_loss(201)), encode(_seal(202))])
        assert _seals(ledger) == _seals(other)
        assert _all_seals(ledger)[-1] == 202
        ledger.close()


def _all_seals(ledger: Ledger) -> list[int]:
    rows = ledger._connection.execute("SELECT block, packed FROM seals ORDER BY block")
    return [row.number for each in rows for row in unpack(*each)]


@promise("6 pruning")
def test_a_sender_whose_first_messages_are_missing_is_settled_late() -> None:
    """The ledger settles a sender's messages (deletes their digests) only when it has the sender's
    first message. The first messages may come last, because they are in a partition or a cluster
    that the collector reads later. They count as new, so the evidence is the same as if all
    messages had come in order."""
    said = [_seal(number) for number in range(1, 200)]
    ledger, other = _ledger(*said[80:]), _ledger(*said)
    for each in (ledger, other):
        each.prune([], 0, LATE)
    assert (ledger.settled, other.settled) == (0, 1)
    ledger.take([encode(x) for x in said[:80]])
    ledger.prune([], 0, LATE)
    assert _all_seals(ledger) == _all_seals(other)
    assert ledger.evidence().senders == other.evidence().senders


@promise("6 pruning")
def test_the_seals_around_an_earlier_loss_are_kept() -> None:
    """A seal says that all lines before a time are counted. If an agent has declared a loss, the
    verdicts on many buckets depend on the agent's last seal before the loss. So the ledger deletes
    no seal of this agent. The evidence has the agent's first seal, the last seal before the loss,
    and the newest seal."""
    said = [*(_seal(x) for x in range(1, 100)), _loss(100), *(_seal(x) for x in range(101, 300))]
    ledger = _ledger(*said)
    ledger.prune([], LATE)
    assert _seals(ledger) == [1, 99, 299]


@promise("6 pruning")
def test_a_message_that_is_read_again_after_its_number_was_settled_changes_nothing() -> None:
    """If the ledger gets an old message whose digest it has deleted, it treats the message as a
    repetition, and the evidence does not change."""
    said = [_seal(number) for number in range(1, 300)]
    ledger = _ledger(*said)
    ledger.prune([], LATE)
    assert ledger.settled == 1
    before = ledger.evidence()
    ledger.take([encode(x) for x in said])
    assert ledger.evidence() == before


@promise("6 pruning")
def test_a_bucket_that_changed_after_it_was_judged_is_kept() -> None:
    """The ledger does not delete an old bucket if a late line was counted in it after the bucket
    was judged. It keeps all counts of the bucket."""
    ledger = _ledger(Delta(AGENT, 1, 1, counts=(Count(LOGS, 7, 0, 60_000, 5, 5, 5),)))
    tallies = ledger.evidence().topic(LOGS).tallies[0, 60_000]
    assert isinstance(tallies, BucketTallies)
    old = OldBucket(LOGS, 0, 60_000, digest_of(tallies.columns))
    late = Delta(AGENT, 2, 2, counts=(Count(LOGS, 7, 0, 60_000, 1, 1, 1, previous=1),))
    ledger.take([encode(late)])
    assert ledger.prune([old], LATE) == 0
    topic = ledger.evidence().topic(LOGS)
    assert (len(topic.tallies), topic.pruned) == (1, set())
    changed = topic.tallies[0, 60_000]
    assert isinstance(changed, BucketTallies)
    assert ledger.prune([old._replace(digest=digest_of(changed.columns))], LATE) == 1
    topic = ledger.evidence().topic(LOGS)
    assert (topic.tallies, topic.pruned) == ({}, {(0, 60_000)})


def _late(agent: int, records: int, previous: int = 0) -> Count:
    return Count(LOGS, agent, 0, 60_000, records, 10 * records, 7, previous=previous)


@promise("6 pruning")
@pytest.mark.parametrize(
    "later",
    [
        Delta(replace(AGENT, producer="8", host="h8"), 1, 7, counts=(_late(8, 90),)),
        Delta(BROKER, 3, 7, (Range(LOGS, 0, 105, 106),), (_late(7, 1, previous=2),)),
    ],
)
def test_an_acceptance_of_late_counts_covers_no_later_ones(later: Delta) -> None:
    """A person can accept counts that arrived for a deleted bucket. If further counts arrive after
    that, from another host or from the program whose counts were accepted, the acceptance does not
    cover them, even if the further counts are smaller than the accepted ones."""
    counted = (Count(LOGS, 7, 0, 60_000, 5, 50, 9),)
    ledger = _ledger(
        Delta(AGENT, 1, 5, counts=counted),
        Delta(BROKER, 1, 5, (Range(LOGS, 0, 0, 5),), counted),
        Seal(AGENT, 2, LATE, (SealedTopic(LOGS, LATE, 1),)),
    )
    _prune(ledger)
    late = Delta(BROKER, 2, 6, (Range(LOGS, 0, 5, 105),), (_late(7, 100),))
    ledger.take([encode(late)])
    (found,) = verdicts(ledger.evidence(), _POLICY, LATE)
    ledger.take([encode(x) for x in acceptances([found], Signature(7, "anna", "known"))])
    (found,) = verdicts(ledger.evidence(), _POLICY, LATE)
    assert found.is_accepted
    ledger.take([encode(later)])
    (found,) = verdicts(ledger.evidence(), _POLICY, LATE)
    assert not found.is_accepted


@promise("6 pruning")
def test_an_acceptance_of_late_counts_covers_no_counts_of_another_host() -> None:
    """An acceptance of counts that arrived for a deleted bucket covers no counts of another host.
    In this test, the ledger has deleted the accepted counts again, and the counts of the other host
    have the same sums and message numbers. An acceptance refers to the accepted counts by a name.
    Every ledger gives the same counts the same name, in whatever order the messages came, so the
    acceptance is valid in every ledger."""
    other = replace(AGENT, producer="8", host="h8")
    accepted, later = (
        Delta(sender, 3, 7, counts=(Count(LOGS, agent, 0, 60_000, 3, 30, 9),))
        for sender, agent in ((AGENT, 7), (other, 8))
    )
    first, second = _with_a_deleted_bucket(AGENT, other), _with_a_deleted_bucket(other, AGENT)
    for ledger in (first, second):
        ledger.take([encode(accepted)])
    (found,) = verdicts(first.evidence(), _POLICY, LATE)
    signed = [encode(x) for x in acceptances([found], Signature(7, "anna", "known"))]
    for ledger in (first, second):
        ledger.take(signed)
        (found,) = verdicts(ledger.evidence(), _POLICY, LATE)
        assert found.is_accepted
        _prune(ledger)
        ledger.take([encode(later)])
        (found,) = verdicts(ledger.evidence(), _POLICY, LATE)
        assert not found.is_accepted


def _with_a_deleted_bucket(*agents: Sender) -> Ledger:
    """Returns a ledger that has deleted the counts of the first bucket of LOGS. Each of the given
    agents had counted one record in this bucket with its message 1, and had sealed the bucket with
    its message 2. The ledger got the messages in the order of the agents."""
    ledger = Ledger()
    for sender in agents:
        count = Count(LOGS, int(sender.producer), 0, 60_000, 1, 10, 9)
        seal = Seal(sender, 2, LATE, (SealedTopic(LOGS, LATE, 1),))
        ledger.take([encode(Delta(sender, 1, 5, counts=(count,))), encode(seal)])
    _prune(ledger)
    return ledger


@promise("6 pruning")
def test_a_bucket_stays_while_its_rejects_are_not_accepted() -> None:
    """The ledger keeps the counts of a bucket as long as the warning about its rejects is not
    accepted, and keeps them for both topics: the topic itself, and its topic of rejects. In this
    test, half of the lines were rejected. If only the topic's own counts were deleted, nobody would
    know the share of the rejects, and the warning would vanish. After a person has accepted the
    warning, the counts of both topics can be deleted."""
    ledger, clock = Ledger(), ManualClock()
    now_ms, size = clock.time_ms(), 60_000
    old = OldBuckets(ledger, lambda: _POLICY, clock, 1)
    counts = [Count(x, 7, size, size, 5, 5, 5) for x in (LOGS, REJECTED)]
    ranges = tuple(Range(x, 0, 0, 5) for x in (LOGS, REJECTED))
    ledger.take([
        encode(Delta(AGENT, 1, now_ms, counts=tuple(counts))),
        encode(Delta(BROKER, 1, now_ms, ranges, tuple(counts))),
        encode(Seal(AGENT, 2, now_ms, (SealedTopic(LOGS, now_ms, 1),))),
    ])  # fmt: skip
    assert _deletable(old, clock) == []
    found = verdicts(ledger.evidence(), _POLICY, now_ms)
    assert [x.is_warned for x in found] == [False, True]
    signed = Signature(now_ms, "ada", "ticket 1")
    ledger.take([encode(x) for x in acceptances(found, signed)])
    assert _deletable(old, clock) == [LOGS, REJECTED]


@promise("6 pruning")
def test_the_bucket_of_times_without_a_date_stays() -> None:
    """The counts of the first bucket, of 1970, are never deleted, because records whose times have
    no date (-1, for example) come into it at any time. The next bucket is deleted."""
    ledger, clock = Ledger(), ManualClock()
    now_ms, size = clock.time_ms(), 60_000
    old = OldBuckets(ledger, lambda: _POLICY, clock, 1)
    counts = tuple(Count(LOGS, 7, start, size, 5, 5, 5) for start in (0, size))
    ledger.take([
        encode(Delta(AGENT, 1, now_ms, counts=counts)),
        encode(Delta(BROKER, 1, now_ms, (Range(LOGS, 0, 0, 10),), counts)),
        encode(Seal(AGENT, 2, now_ms, (SealedTopic(LOGS, now_ms, 1),))),
    ])  # fmt: skip
    clock.advance(max(AGAIN_S, CLOCK_S))
    while old.look():
        pass
    assert [x.bucket for x in old.take()] == [size]


@promise("6 pruning")
def test_of_late_rejects_of_a_deleted_bucket_nobody_knows_the_share() -> None:
    """If an agent rejects a line after the counts of the topic's bucket were deleted, nobody knows
    the number of all lines of the bucket any more. So there is no warning about the share of
    rejects. In this test, one line of 1,001 was rejected. The warning would say that it was one of
    one."""
    ledger, size = Ledger(), 60_000
    lines, rejected = Count(LOGS, 7, 0, size, 1_000, 5, 5), Count(REJECTED, 7, 0, size, 1, 5, 5)
    for number, count in ((1, lines), (2, rejected)):
        ranges = (Range(count.source, 0, 0, count.count),)
        ledger.take([
            encode(Delta(AGENT, 2 * number - 1, LATE, counts=(count,))),
            encode(Delta(BROKER, number, LATE, ranges, (count,))),
            encode(Seal(AGENT, 2 * number, LATE, (SealedTopic(LOGS, LATE, 2 * number - 1),))),
        ])  # fmt: skip
        if count is lines:
            _prune(ledger)
    (found,) = verdicts(ledger.evidence(), _POLICY, LATE)
    assert (found.source, found.status, found.is_warned) == (REJECTED, Status.COMPLETE, False)


def test_messages_of_the_least_time_do_not_end_the_deletion() -> None:
    """If the only message has the least time that a message can have, the collector finds no bucket
    that it may delete, and does not fail."""
    ledger, clock = Ledger(), ManualClock()
    old = OldBuckets(ledger, lambda: _POLICY, clock, 35)
    counted = Count(LOGS, 7, 0, 60_000, 5, 5, 5)
    ledger.take([encode(Delta(AGENT, 1, -(2**63), counts=(counted,)))])
    assert _deletable(old, clock) == []
    assert old.before_ms is not None
    assert ledger.prune([], old.before_ms, old.settled_ms) == 0


def _deletable(old: OldBuckets, clock: ManualClock) -> list[Source]:
    clock.advance(max(AGAIN_S, CLOCK_S))
    while old.look():
        pass
    return [x.source for x in old.take()]


def _prune(ledger: Ledger) -> None:
    """Deletes the counts of the first bucket of LOGS, as if it were old."""
    tallies = ledger.tallies(LOGS, (0, 60_000))
    assert tallies is not None
    assert ledger.prune([OldBucket(LOGS, 0, 60_000, digest_of(tallies.columns))], 0) == 1
