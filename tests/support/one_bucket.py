"""A sealed bucket in which all tiers have counted the same lines. Tests of the audit's verdicts
start with this bucket.

A bucket is one minute of event time in one topic. Deltas are messages with counts. A bucket is
sealed when the agent has sent a seal, which says that the agent's deltas contain all lines of this
minute. The tiers are the agent, the broker, the mirror and HDFS.
"""

from __future__ import annotations

from dataclasses import replace

from skidway.audit.evidence.hearing import Heard
from skidway.audit.judgement.policy import Policy
from skidway.audit.judgement.roster import Roster, RosterEntry
from skidway.audit.judgement.topic_judgement import verdicts
from skidway.audit.judgement.verdict import BucketVerdict
from skidway.audit.topic.count_columns import Count
from skidway.audit.topic.messages import (
    Certainty,
    Delta,
    Heartbeat,
    Loss,
    Message,
    Range,
    Seal,
    Sender,
    Tier,
)
from skidway.audit.topic.seal_columns import SealedTopic
from skidway.kafka.source import Source
from support.audit_senders import AGENT, BROKER, LOGS
from support.fold import Fold, judge

AGAIN = replace(LOGS, topic_id="other")
SIZE = 60_000
START = 600_000
END = START + SIZE
LATENESS = 10_000
DUE = END + LATENESS
NOW = DUE + 5_000
POLICY = Policy(lateness_ms=LATENESS, silence_ms=100_000, ahead_ms=30_000)
SECOND = Sender(Tier.AGENT, "dc1", "8", "web2", 1)
MIRROR = Sender(Tier.MIRROR, "offline", "mirror-offline", "c2", 1)
HDFS = Sender(Tier.HDFS, "offline", "/logs/dc1.logs", "l1", 1)
COUNTERS = (BROKER, MIRROR, HDFS)
LOSS = Loss(LOGS, 7, 3, 100, 200, Certainty.LOST, "truncated", START, START)


def count(
    records: int = 5, *, agent: int = 7, bucket: int = START, previous: int = 0, checksum: int = 99,
    source: Source = LOGS,
) -> Count:  # fmt: skip
    return Count(source, agent, bucket, SIZE, records, records * 10, checksum, previous=previous)


def delta(sender: Sender, number: int, *counts: Count, **parts: object) -> Delta:
    ranges = () if sender.tier is Tier.AGENT else (Range(LOGS, 0, 0, 10),)
    extra = {"ranges": ranges, **parts}
    return Delta(sender, number, START, counts=tuple(counts), **extra)  # type: ignore[arg-type]


def seal(sender: Sender, number: int, until: int, at: int, source: Source = LOGS) -> Seal:
    return Seal(sender, number, until, (SealedTopic(source, until, at),))


def roster(*hosts: str) -> Roster:
    return Roster(RosterEntry(host, "dc1", frozenset({"logs"})) for host in hosts)


def good() -> list[Message]:
    """Returns the messages of a bucket that the agent has sealed and in which every tier has
    counted the same lines."""
    return [
        delta(AGENT, 1, count()),
        *(delta(sender, 1, count()) for sender in COUNTERS),
        seal(AGENT, 2, DUE, 1),
    ]


def verdict(messages: list[Message], policy: Policy = POLICY, now: int = NOW) -> BucketVerdict:
    [found] = [x for x in judge(messages, policy, now) if x.source == LOGS and x.bucket == START]
    return found


def verdict_taken(
    messages: list[Message], ahead: Seal, taken_ms: int, policy: Policy = POLICY
) -> BucketVerdict:
    """Returns the verdict of a collector that receives `messages` and then the seal `ahead`. The
    collector's clock shows `taken_ms` when the seal arrives. The seal contains the time of the
    agent's clock, which may be wrong and thus differ from `taken_ms`."""
    fold = Fold(messages)
    fold.apply(ahead, Heard("audit", "id", 0, 9, ahead.time_ms, taken_ms, is_live=False))
    [found] = [x for x in verdicts(fold.evidence(), policy, NOW) if x.bucket == START]
    return found


def last_word(sender: Sender, number: int, at: int) -> Seal:
    return Seal(sender, number, START + 1, (SealedTopic(LOGS, START + 1, at, final=True),))


def verdict_of(source: Source, messages: list[Message], policy: Policy = POLICY) -> BucketVerdict:
    [found] = [x for x in judge(messages, policy, NOW) if x.source == source and x.bucket == START]
    return found


def made_again(*more: Message) -> list[Message]:
    """Returns messages about a topic that was deleted and created again. Apart from `more`, the
    second host has sent messages only about the old topic, and the first host only about the new
    topic. The new topic has five records, which all tiers have counted."""
    ranges = (Range(AGAIN, 0, 0, 10),)
    return [
        seal(SECOND, 1, END - 1, 0),
        Delta(AGENT, 1, START, counts=(count(source=AGAIN),)),
        seal(AGENT, 2, DUE, 1, AGAIN),
        *(Delta(x, 1, START, ranges=ranges, counts=(count(source=AGAIN),)) for x in COUNTERS),
        *more,
    ]


def from_the_broker_on() -> list[Message]:
    counted = [delta(sender, 1, count(agent=0)) for sender in COUNTERS]
    return [*counted, Heartbeat(BROKER, 1, DUE)]
