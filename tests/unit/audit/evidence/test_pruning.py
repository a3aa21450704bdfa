"""Tests which old data the ledger (the collector's store) deletes, and which it keeps."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from skidway.audit.collector.pruning import AGAIN_S, CLOCK_S, OldBuckets
from skidway.audit.evidence.evidence import SealNote
from skidway.audit.evidence.ledger import DATABASE, Ledger
from skidway.audit.evidence.pruning import OldBucket, digest_of
from skidway.audit.evidence.seal_blocks import unpack
from skidway.audit.evidence.tallies import BucketTallies
from skidway.audit.judgement.acceptances import Signature, acceptances
from skidway.audit.judgement.policy import Policy
from skidway.audit.judgement.topic_judgement import verdicts
from skidway.audit.topic.count_columns import Count
from skidway.audit.topic.messages import (
    Certainty,
    Delta,
    Loss,
    Message,
    Range,
    Seal,
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
    seal says that all earlier lines are counted). It has deleted old seals, but never deletes the
    newest ones. So the loss concerns the same buckets as in a ledger that has deleted nothing."""
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
    """A seal says that all earlier lines are counted. If an agent has declared a loss, the verdicts
    on many buckets depend on the agent's last seal before the loss. So the ledger deletes no seal
    of this agent. The evidence has the agent's first seal, the last seal before the loss, and the
    newest seal."""
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


@promise("6 pruning")
def test_an_acceptance_of_late_counts_covers_no_later_ones() -> None:
    """A person can accept counts that arrived for a deleted bucket. If counts of another host
    arrive after that, the acceptance does not cover them, even if they are smaller than the
    accepted counts."""
    counted = (Count(LOGS, 7, 0, 60_000, 5, 50, 9),)
    ledger = _ledger(
        Delta(AGENT, 1, 5, counts=counted),
        Delta(BROKER, 1, 5, (Range(LOGS, 0, 0, 5),), counted),
        Seal(AGENT, 2, LATE, (SealedTopic(LOGS, LATE, 1),)),
    )
    tallies = ledger.evidence().topic(LOGS).tallies[0, 60_000]
    assert isinstance(tallies, BucketTallies)
    ledger.prune([OldBucket(LOGS, 0, 60_000, digest_of(tallies.columns))], 0)
    late = (Count(LOGS, 7, 0, 60_000, 100, 1_000, 7),)
    ledger.take([encode(Delta(BROKER, 2, 6, (Range(LOGS, 0, 5, 105),), late))])
    (found,) = verdicts(ledger.evidence(), _POLICY, LATE)
    ledger.take([encode(x) for x in acceptances([found], Signature(7, "anna", "known"))])
    (found,) = verdicts(ledger.evidence(), _POLICY, LATE)
    assert found.is_accepted
    other = replace(AGENT, producer="8", host="h8")
    less = (Count(LOGS, 8, 0, 60_000, 90, 900, 3),)
    ledger.take([encode(Delta(other, 1, 7, counts=less))])
    (found,) = verdicts(ledger.evidence(), _POLICY, LATE)
    assert not found.is_accepted


@promise("6 pruning")
def test_a_bucket_stays_while_its_rejects_are_not_accepted() -> None:
    """The ledger keeps the counts of a bucket as long as the warning about its rejects is not
    accepted, and keeps them for both topics: the topic itself, and its topic of rejects. In this
    test, half of the lines were rejected. If only the topic's own counts were deleted, the warning
    would say that all lines were rejected. After a person has accepted the warning, the counts of
    both topics can be deleted."""
    ledger, clock = Ledger(), ManualClock()
    now_ms, size = clock.time_ms(), 60_000
    old = OldBuckets(ledger, lambda: _POLICY, clock, 1)
    counts = [Count(x, 7, 0, size, 5, 5, 5) for x in (LOGS, REJECTED)]
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


def test_messages_of_the_least_time_do_not_end_the_deletion() -> None:
    """If the only message has the least time that a message can have, the collector finds no old
    bucket, and does not fail."""
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
