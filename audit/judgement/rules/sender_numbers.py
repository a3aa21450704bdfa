"""Finds, without I/O, missing messages of the senders whose counts the verdict uses. A missing
message leaves a hole in the sender's message numbers. The deltas (messages with counts) in which a
sender counts records of one bucket form a chain: each delta names the delta before it. So a missing
delta also leaves a hole in a chain.
"""

from __future__ import annotations

from collections.abc import Iterator

from skidway.audit.evidence.evidence import agent_named
from skidway.audit.evidence.tallies import BucketId, SenderKey
from skidway.audit.judgement import reasons
from skidway.audit.judgement.cause import Cause
from skidway.audit.judgement.counting_places import place_of
from skidway.audit.judgement.rules.topic_facts import Tallies, TopicFacts
from skidway.audit.judgement.verdict import Finding, Status
from skidway.audit.topic.messages import Tier


def findings(
    facts: TopicFacts, agent: int, bucket: BucketId, tallies: Tallies
) -> Iterator[Finding]:
    """Yields findings about missing, expired and cloned messages. (Cloned messages are two messages
    with the same number and different contents.) Looks at the messages of two kinds of senders: the
    agent, in all of its epochs, and all other senders whose counts the verdict uses. Leaves out
    messages that cannot have counted records of the bucket. Also yields the findings of
    `counting_places`.
    """
    for key in facts.epochs.get(agent, ()):
        yield from _of_sender(facts, key, bucket, tallies)
    for counting in facts.doubtful_places:
        found = [
            each for key in counting.senders for each in _of_sender(facts, key, bucket, tallies)
        ]
        for each in (*found, *counting.findings):
            yield _remark(each) if counting.place.is_retired else each


def chain_findings(facts: TopicFacts, tallies: Tallies) -> Iterator[Finding]:
    """Findings on missing deltas of one bucket (see the module's docstring)."""
    for key, tally in tallies.items():
        if not tally.chained:
            words = f"deltas of {reasons.of_sender(key)} for this bucket are missing"
            name = reasons.name_of_lack(words, tally.sums)
            found = Finding(Status.UNKNOWN, words, Cause.MESSAGES_MISSING, name, about=key)
            yield _remark(found) if _is_retired(facts, key) else found


def _of_sender(
    facts: TopicFacts, key: SenderKey, bucket: BucketId, tallies: Tallies
) -> Iterator[Finding]:
    numbers = facts.evidence.senders[key]
    if not numbers.is_doubtful:
        return
    who, start = reasons.of_sender(key), bucket[0]
    if numbers.missing is not None and not _overcome(facts, key, start):
        words = f"message {numbers.missing} of {who} is missing"
        yield Finding(Status.UNKNOWN, words, Cause.MESSAGES_MISSING, about=key)
    if numbers.first > 1 and start < numbers.first_time_ms + facts.common.ahead_ms(key):
        yield Finding(
            Status.UNKNOWN,
            f"the messages of {who} before number {numbers.first} are no longer there",
            Cause.MESSAGES_EXPIRED,
            about=key,
        )
    if numbers.cloned_at is not None:
        touched = key in tallies and tallies[key].last >= numbers.cloned_at
        if touched or not _sealed_usably(facts, key, bucket):
            words = (
                f"message {numbers.cloned_at} of {who} came with two contents"
                " (a restored or copied state)"
            )
            yield Finding(Status.UNKNOWN, words, Cause.STATE_COPIED, about=key)


def _is_retired(facts: TopicFacts, key: SenderKey) -> bool:
    if key.tier is Tier.AGENT or key not in facts.evidence.senders:
        return False
    return place_of(key, facts.evidence, facts.retired).is_retired


def _sealed_usably(facts: TopicFacts, key: SenderKey, bucket: BucketId) -> bool:
    if key.tier is not Tier.AGENT:
        return True
    seals = facts.seals.get(agent_named(key.producer), ())
    return any(seal.vouched_until >= facts.due(bucket) for seal in seals)


def _overcome(facts: TopicFacts, key: SenderKey, start: int) -> bool:
    """Takes an agent and one of its epochs (`key`). Returns whether a seal of a later epoch proves
    that no message of this epoch counts records of the bucket that begins at `start`.
    """
    if key.tier is not Tier.AGENT:
        return False
    later = [x for x in facts.seals.get(agent_named(key.producer), ()) if x.epoch > key.epoch]
    return bool(later) and start >= min(later).sealed_until + facts.common.ahead_ms(key)


def _remark(finding: Finding) -> Finding:
    """Turns a finding about a retired place into a remark that makes no verdict worse, because the
    audit does not wait for that place."""
    return Finding(Status.COMPLETE, f"{finding.reason} (retired)", finding.cause)
