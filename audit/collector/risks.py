"""Finds what is at risk: bytes that only a host has, and records that only the first tiers have.
Also says when these bytes and records will be lost if nothing changes.

    on a host     each agent reports in notes (messages that change no verdict) how many unsafe
                  bytes it has (bytes that no broker has acknowledged yet), and when the files with
                  these bytes will be deleted
    in a tier     the verdicts on the newest buckets (in the standing) show which records a tier
                  lacks; counters report in notes how long the brokers of their cluster keep records

The bytes of the last seconds are always unsafe, even if the agent works well. So bytes on a host
are at risk only if they are older than SETTLED_MS, or if they will be lost within URGENT_MS. If the
time of loss is not known, it is None.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from skidway.audit.judgement.hosts import HostState
from skidway.audit.judgement.policy import Policy
from skidway.audit.judgement.standing import TopicStanding
from skidway.audit.judgement.verdict import BucketVerdict, Place, Status
from skidway.audit.topic import backlog, retention
from skidway.audit.topic.backlog import Backlog, TopicBacklog
from skidway.audit.topic.messages import Tier
from skidway.audit.topic.notes import Note
from skidway.kafka.source import Source

SETTLED_MS = 60_000
URGENT_MS = 600_000

Kept = Mapping[tuple[Tier, str, Source], int]
"""How long (ms) the cluster of a tier keeps the records of a topic."""


@dataclass(frozen=True, slots=True)
class HostRisk:
    """Bytes that only one host has, because no broker has acknowledged them; they are lines of one
    topic. told_ms: when the agent reported these bytes, by the agent's clock.
    """

    host: HostState
    cluster: str
    told_ms: int
    topic: TopicBacklog


@dataclass(frozen=True, slots=True)
class TierRisk:
    """The records that some tiers lack in the newest buckets of a topic. since: the start of the
    oldest bucket of which a tier lacks records. tiers: the tiers that lack records of this bucket,
    in the order of tiers. records, bytes: how many records and bytes are lacking in all newest
    buckets together, in that tier of `tiers` that lacks most. holder: the last place before these
    tiers that has records of the oldest bucket. loss_ms: when these records expire at `holder`;
    None if this is not known.
    """

    source: Source
    tiers: tuple[Tier, ...]
    since: int
    records: int
    bytes: int
    holder: Place | None
    loss_ms: int | None


def backlogs(notes: Iterable[Note]) -> dict[int, tuple[Note, Backlog]]:
    """Returns, by agent id, the note with the agent's newest backlog (its report about unsafe
    bytes), and the backlog itself.
    """
    told = (x for x in notes if x.kind == backlog.KIND and _is_agent(x.producer))
    return {int(x.producer): (x, backlog.backlog_of(x)) for x in told}


def _is_agent(producer: str) -> bool:
    """Returns whether the name of a producer is an agent's id, that is, a decimal number of at most
    20 digits.
    """
    is_number = producer.isascii() and producer.isdecimal() and len(producer) <= 20
    return is_number and str(int(producer)) == producer


def kept(notes: Iterable[Note]) -> Kept:
    """Returns for how long clusters keep the records of topics, according to the notes of counters.
    The tier is part of the key, because two counters may report the same source: one for the
    cluster's own topics (tier broker), and one for its mirrored topics (tier mirror).
    """
    found: dict[tuple[Tier, str, Source], int] = {}
    for note in (x for x in notes if x.kind == retention.KIND):
        for source, ms in retention.retention_of(note).items():
            tier = Tier.BROKER if source.cluster == note.cluster else Tier.MIRROR
            key = tier, note.cluster, source
            found[key] = min(ms, found.get(key, ms))
    return found


def host_risks(
    hosts: Iterable[HostState], told: Mapping[int, tuple[Note, Backlog]], now_ms: int
) -> Iterator[HostRisk]:
    """Yields an entry for each expected host and topic, if the host has bytes of the topic at risk.
    told: the newest backlog of each agent (see `backlogs`)."""
    for state in hosts:
        for agent in state.agents if state.expected else ():
            note, found = told.get(agent.agent, (None, Backlog()))
            for topic in found.topics if note is not None else ():
                if note is not None and is_at_risk(topic, note.time_ms, now_ms):
                    yield HostRisk(state, note.cluster, note.time_ms, topic)


def is_at_risk(topic: TopicBacklog, told_ms: int, now_ms: int) -> bool:
    """Returns whether the unsafe bytes that an agent reported are at risk. They are at risk if they
    were older than SETTLED_MS (or of unknown age) when the agent reported them at `told_ms`, or if
    they will be lost within URGENT_MS. The present age of the bytes does not count, because they
    may have been delivered since the report.
    """
    if not topic.bytes:
        return False
    is_old = topic.oldest_ms is None or told_ms - topic.oldest_ms > SETTLED_MS
    return is_old or (topic.loss_ms is not None and topic.loss_ms - now_ms < URGENT_MS)


def tier_risks(topics: Iterable[TopicStanding], policy: Policy, known: Kept) -> Iterator[TierRisk]:
    """Yields an entry for each topic if some tier lacks records of the topic's newest buckets."""
    for topic in topics:
        found = _lacking(topic, policy)
        if found:
            yield _tier_risk(topic, found, known)


def lack(verdict: BucketVerdict, tier: Tier) -> tuple[int, int]:
    """Returns by how many records and bytes the counts of this tier are less than the greatest
    counts of a tier that comes before it.
    """
    before, here = [(0, 0)], []
    for place, sums in verdict.places().items():
        counted = (0, 0) if sums is None else (sums.count, sums.bytes)
        if _rank(place.tier) < _rank(tier):
            before.append(counted)
        elif place.tier is tier and not place.is_retired:
            here.append(counted)
    most, least = max(before), min(here, default=(0, 0))
    return most[0] - least[0], most[1] - least[1]


Lacking = dict[Tier, list[tuple[BucketVerdict, int, int]]]
"""For each tier, the buckets in which the tier lacks records, each with the number and the bytes of
the missing records.
"""


def _lacking(topic: TopicStanding, policy: Policy) -> Lacking:
    lacking: Lacking = {}
    for verdict in topic.newest.values():
        if verdict.residue is Status.COMPLETE:
            continue
        for tier in policy.tiers_of(topic.source)[1:]:
            records, size = lack(verdict, tier)
            if records > 0:
                lacking.setdefault(tier, []).append((verdict, records, size))
    return lacking


def _tier_risk(topic: TopicStanding, lacking: Lacking, known: Kept) -> TierRisk:
    since = min(verdict.bucket for each in lacking.values() for verdict, _, _ in each)
    longest = sorted((x for x in lacking if _since(lacking[x]) == since), key=_rank)
    records, size = max(
        (sum(x[1] for x in lacking[y]), sum(x[2] for x in lacking[y])) for y in longest
    )
    oldest = min(lacking[longest[0]], key=lambda x: x[0].bucket)[0]
    holder = _holder(oldest, longest[0])
    kept_ms = None if holder is None else known.get((holder.tier, holder.name, topic.source))
    loss_ms = None if kept_ms is None else since + kept_ms
    tiers, size = tuple(longest), max(size, 0)
    return TierRisk(topic.source, tiers, since, records, size, holder, loss_ms)


def _since(found: list[tuple[BucketVerdict, int, int]]) -> int:
    return min(verdict.bucket for verdict, _, _ in found)


def _holder(verdict: BucketVerdict, tier: Tier) -> Place | None:
    found = [
        place
        for place, sums in verdict.places().items()
        if sums is not None and sums.count and _rank(place.tier) < _rank(tier)
    ]
    return found[-1] if found else None


def _rank(tier: Tier) -> int:
    return list(Tier).index(tier)
