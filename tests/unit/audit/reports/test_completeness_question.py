"""Tests how the audit finds out from the collector's store whether a topic is complete in a span of
time."""

from __future__ import annotations

from dataclasses import replace

import pytest

from skidway.audit.evidence.ledger import Ledger
from skidway.audit.evidence.pruning import OldBucket, digest_of
from skidway.audit.evidence.tallies import BucketId
from skidway.audit.judgement.acceptances import Signature, acceptances
from skidway.audit.judgement.policy import Policy
from skidway.audit.judgement.topic_judgement import verdicts
from skidway.audit.reports.completeness_question import answered, question
from skidway.audit.topic.count_columns import LONGEST_MS, YEAR_10000_MS, Count
from skidway.audit.topic.messages import (
    Certainty,
    Delta,
    Heartbeat,
    Loss,
    Range,
    Seal,
    Sender,
    Tier,
    encode,
)
from skidway.audit.topic.seal_columns import SealedTopic
from support.audit_senders import AGENT, BROKER, LOGS
from support.promises import promise

SIZE, HOUR = 60_000, 3_600_000
NOW = 3 * HOUR
POLICY = Policy(tiers=(Tier.AGENT, Tier.BROKER), lateness_ms=0, silence_ms=NOW)


def _ledger(start: int, size: int, agent: int, broker: int) -> Ledger:
    """Returns a ledger with the messages of an agent that used buckets of the length `size` before,
    and now uses buckets of a minute. For the bucket that begins at `start`, the agent counted
    `agent` records and the broker `broker` records."""
    ledger = Ledger()
    small = Count(LOGS, 7, 2 * HOUR, SIZE, 1, 1, 1)
    for sender, records in ((AGENT, agent), (BROKER, broker)):
        counts = Count(LOGS, 7, start, size, records, records, records), small
        ranges = (Range(LOGS, 0, 0, 5),) if sender is BROKER else ()
        ledger.take([encode(Delta(sender, 1, NOW, ranges, counts))])
    ledger.take([
        encode(Seal(AGENT, 2, NOW, (SealedTopic(LOGS, NOW, 1),))), encode(Heartbeat(BROKER, 1, NOW))
    ])  # fmt: skip
    return ledger


def _is_complete(ledger: Ledger, since: int, until: int) -> bool:
    return answered(ledger, POLICY, question("logs", since, until), NOW).is_complete


@promise("6 complete before a time")
@pytest.mark.parametrize("broker", [5, 4])
def test_a_large_bucket_counts_in_each_span_that_it_touches(broker: int) -> None:
    """A bucket may lie only partly in the requested span. The span is then complete only if the
    whole bucket is complete. In this test the bucket is an hour long, and the span is the second
    half of this hour."""
    ledger = _ledger(0, HOUR, 5, broker)
    assert _is_complete(ledger, HOUR // 2, HOUR) is (broker == 5)
    assert _is_complete(ledger, HOUR, NOW)


@promise("6 bucket size")
@pytest.mark.parametrize("topic", ["others", "logs"])
@pytest.mark.parametrize("size", [1, SIZE + 1, LONGEST_MS])
@pytest.mark.parametrize("start", [0, YEAR_10000_MS - LONGEST_MS])
def test_no_host_decides_how_the_topics_of_others_are_judged(
    start: int, size: int, topic: str
) -> None:
    """The audit asks for the same minutes, whatever buckets a host counts in: short or long ones,
    now or in the year 9999, of this topic or of another one. A loss stays in its minute, too."""
    ledger = _ledger(0, SIZE, 5, 5)
    lost = Loss(LOGS, 7, 3, 0, 9, Certainty.LOST, "gone", 0, HOUR)
    ledger.take([encode(Delta(AGENT, 3, NOW, losses=(lost,)))])

    def judged() -> tuple[list[BucketId], set[BucketId]]:
        [found] = answered(ledger, POLICY, question("logs", SIZE, 2 * HOUR), NOW).found
        lossy = ledger.evidence().topic(LOGS).lossy
        asked = [(x.bucket, x.bucket_ms) for x in found.verdicts]
        return [x for x in asked if x[1] == SIZE], lossy

    before = judged()
    assert len(before[0]) == 119
    evil = Sender(Tier.AGENT, "dc1", "8", "evil", 1)
    count = Count(replace(LOGS, topic=topic), 8, start - start % size, size, 1, 1, 1)
    ledger.take([encode(Delta(evil, 1, NOW, counts=(count,)))])
    within = size == LONGEST_MS and start == 0 and topic == "logs"
    assert judged() == (before[0], set() if within else before[1])


@promise("6 pruning")
@pytest.mark.parametrize("size", [1_000, SIZE, HOUR])
def test_a_deleted_bucket_is_not_complete_whatever_its_size(size: int) -> None:
    """A span in which a bucket was deleted is not complete, even if the deleted bucket had another
    length than the agent's buckets have now."""
    ledger = _ledger(0, size, 5, 5)
    assert _is_complete(ledger, 0, HOUR)
    tallies = ledger.tallies(LOGS, (0, size))
    assert tallies is not None
    assert ledger.prune([OldBucket(LOGS, 0, size, digest_of(tallies.columns))], 0) == 1
    assert not _is_complete(ledger, size // 2, HOUR)
    assert _is_complete(ledger, HOUR, NOW)


@promise("6 acceptance")
def test_a_loss_that_was_accepted_after_the_span_is_accepted_in_empty_buckets() -> None:
    """A declared loss may concern empty buckets of a span, and end only after the span. Reports
    list the bucket in which the loss ends, so a person accepts the loss there. The loss then also
    counts as accepted in the empty buckets of the span, both in the topic and in its topic of
    rejects. Another loss that ends in the same bucket, but was declared later, does not count as
    accepted."""
    source = replace(LOGS, topic="logs.rejected")
    lost, other = (
        Loss(LOGS, 7, 3, first, first + 9, Certainty.LOST, "gone", 0, 2 * HOUR) for first in (0, 9)
    )
    ledger = _ledger(HOUR, HOUR, 5, 5)
    sealed = Seal(AGENT, 4, NOW, tuple(SealedTopic(x, NOW, 1) for x in (LOGS, source)))
    ledger.take([encode(Delta(AGENT, 3, NOW, losses=(lost,))), encode(sealed)])
    assert not _is_complete(ledger, 0, HOUR)
    found = [x for x in verdicts(ledger.evidence(), POLICY, NOW) if x.bucket == 2 * HOUR]
    decided = acceptances(found, Signature(NOW, "ada", "ticket 1"))
    ledger.take(map(encode, decided))
    said = answered(ledger, POLICY, question("logs", 0, HOUR), NOW)
    assert [(x.name, len(x.short), len(x.accepted)) for x in said.found] == [
        ("dc1.logs", 0, 60),
        ("dc1.logs.rejected", 0, 60),
    ]
    ledger.take([encode(Delta(AGENT, 5, NOW, losses=(other,)))])
    assert not _is_complete(ledger, 0, HOUR)
