"""Finds, without I/O, reasons to doubt the counts of records without origin. No agent sends or
seals such records. Instead of a seal, the audit needs the heartbeats of the counters that are the
first to count such records, normally those of the tier broker. A heartbeat says up to when the
counter has counted all records of the topic. Nothing else shows this."""

from __future__ import annotations

from collections.abc import Iterator

from skidway.audit.counts.counts import NO_AGENT
from skidway.audit.evidence.tallies import BucketId, SenderKey
from skidway.audit.judgement import reasons
from skidway.audit.judgement.cause import Cause
from skidway.audit.judgement.rules.seals import TOO_YOUNG
from skidway.audit.judgement.rules.topic_facts import TopicFacts
from skidway.audit.judgement.verdict import Finding, Place, Status
from skidway.audit.topic.messages import Tier
from skidway.audit.topic.transactions import Held

_FROM_BROKER_ON = Finding(Status.COMPLETE, "audited from the broker on", Cause.NO_ORIGIN)


def findings(facts: TopicFacts, agent: int, bucket: BucketId) -> Iterator[Finding]:
    """Yields findings on records without origin. agent: normally NO_AGENT. If the tier agent is not
    expected, `agent` can be any agent, because the records of agents then have no seals either.
    """
    if agent == NO_AGENT:
        yield from _beginning(facts, bucket)
    yield from _unsealed(facts, bucket)


def uncounted_findings(facts: TopicFacts, bucket: BucketId) -> Iterator[Finding]:
    """Yields the findings on a bucket in which no record without origin was counted. A counter that
    has not counted up to the time at which the bucket was due may still count such records. So
    there is a finding for each such counter among the `_first_counters`. If no counter of the
    `_first_tier` ever reported the topic, there is one finding for this tier, until one of the
    tier's counters has counted up to that time.
    """
    due = facts.due(bucket)
    if facts.now_ms < due:
        return
    yield from _uncounted(facts, bucket)
    tier = None if _first_counters(facts) else _first_tier(facts)
    if tier is not None and _counted_by(facts, tier) < due:
        words = f"no counter of tier {tier.value.lower()} was heard since this bucket was due"
        yield Finding(_gravity(facts, due), words, Cause.COUNTER_STOPPED, about=Place(tier, ""))


def depends_on(facts: TopicFacts, bucket: BucketId) -> Iterator[object]:
    """Of the facts that `findings` uses, yields those that change with each message. For each of
    the `_first_counters` that has not counted up to the time at which the bucket was due, yields
    the counter, the time up to which it has counted, and why not further.
    """
    due = facts.due(bucket)
    for key in _first_counters(facts):
        until = facts.evidence.counted_until_ms(key, facts.source)
        if until < due:
            yield key, until, _held_in(facts, key), min(facts.evidence.heard_ms(key[:2]), due)


def _unsealed(facts: TopicFacts, bucket: BucketId) -> Iterator[Finding]:
    due = facts.due(bucket)
    if facts.now_ms < due:
        yield TOO_YOUNG
    elif not _has_counters(facts):
        words = "nobody counts what has no origin before it is loaded"
        yield Finding(Status.UNKNOWN, words, Cause.TIER_ABSENT, about=Place(Tier.BROKER, ""))
    else:
        yield from _uncounted(facts, bucket)
    yield _FROM_BROKER_ON


def _uncounted(facts: TopicFacts, bucket: BucketId) -> Iterator[Finding]:
    """Yields a finding for each of the `_first_counters` that has not counted all records up to the
    time at which the bucket was due."""
    due = facts.due(bucket)
    for key in _first_counters(facts):
        until = facts.evidence.counted_until_ms(key, facts.source)
        if until >= due:
            continue
        seen, held = facts.evidence.heard_ms(key[:2]), _held_in(facts, key)
        if seen < due:
            words = f"{reasons.of_sender(key)} was heard last at {reasons.of_time(seen)}"
            words, cause = f"{words}, before this bucket was due", Cause.COUNTER_STOPPED
        elif held is not None:
            words, cause = reasons.of_held_counter(key, held), reasons.cause_of(held)
        else:
            words = reasons.of_counted_until(key, until)
            words, cause = f"{words}, before this bucket was due", Cause.COUNTER_BEHIND
        yield Finding(_gravity(facts, due), words, cause, about=key)


def _held_in(facts: TopicFacts, key: SenderKey) -> Held | None:
    told = facts.topic.transactions.get(key.producer)
    return None if told is None else told.held


def _gravity(facts: TopicFacts, due: int) -> Status:
    """Returns the status of a finding on a counter that has not counted up to `due`. Until
    silence_ms have passed since `due`, the status is OPEN, because the counter may only be late.
    After that, the status is UNKNOWN.
    """
    return Status.OPEN if facts.now_ms < due + facts.policy.silence_ms else Status.UNKNOWN


def _beginning(facts: TopicFacts, bucket: BucketId) -> Iterator[Finding]:
    """Yields findings on offsets that a counter has not counted: offsets before its first counted
    offset, and gaps (offsets that it could not read). Nothing else shows that records without
    origin are missing.
    """
    for key, partitions in facts.topic.coverage.items():
        late = [p for p, covered in partitions.items() if covered.first > 0]
        if not late or not _is_current(facts, key):
            continue
        if bucket[0] < facts.evidence.senders[key].first_time_ms + facts.common.ahead_ms(key):
            yield Finding(
                Status.UNKNOWN,
                f"{reasons.of_sender(key)} did not count partition {min(late)} from its start",
                Cause.RETENTION,
                about=key,
            )
    for note in facts.topic.gaps:
        if _is_current(facts, note.sender) and bucket[0] < note.time_ms + facts.common.ahead_ms(
            note.sender
        ):
            yield Finding(Status.UNKNOWN, reasons.of_gap(note), Cause.GAP, about=note)


def _is_current(facts: TopicFacts, key: SenderKey) -> bool:
    """Whether the sender's counts are used in a place that is not retired."""
    return any(key in x.senders for x in facts.places if not x.place.is_retired)


def _has_counters(facts: TopicFacts) -> bool:
    """Whether a tier with a counter is expected. Without a counter there are only the loader's own
    counts, and these alone prove nothing."""
    return Tier.BROKER in facts.tiers or Tier.MIRROR in facts.tiers


def _first_tier(facts: TopicFacts) -> Tier | None:
    """Returns the first tier with counters (broker before mirror) that is expected and not retired;
    None if there is no such tier.
    """
    tiers = (x for x in (Tier.BROKER, Tier.MIRROR) if x in facts.tiers)
    return next((x for x in tiers if not facts.retired.holds_tier(x)), None)


def _counted_by(facts: TopicFacts, tier: Tier) -> int:
    """The time up to which a counter of this tier has counted the topic; 0 for never. In the tier
    broker, only counters of the topic's own cluster count the topic."""
    return max(
        (
            facts.evidence.counted_until_ms(key, facts.source)
            for key, numbers in facts.evidence.senders.items()
            if key.tier is tier
            and (tier is not Tier.BROKER or numbers.cluster == facts.source.cluster)
        ),
        default=0,
    )


def _first_counters(facts: TopicFacts) -> tuple[SenderKey, ...]:
    """Returns the counters that are the first to count records that no agent seals. While these
    counters do not run, equal sums prove nothing, because all tiers may lack the same records. If
    all counters are retired, only the counter that was heard last is returned.
    """
    waited = [x for x in facts.places if not x.place.is_retired]
    for tier in (Tier.BROKER, Tier.MIRROR):
        if tier in facts.tiers and not facts.retired.holds_tier(tier):
            found = tuple(x for p in waited if p.place.tier is tier for x in p.senders)
            if found or not any(p.place.tier is tier for p in facts.places):
                return found
    counters = [x for p in facts.places if p.place.tier is not Tier.HDFS for x in p.senders]
    return tuple(sorted(counters, key=lambda x: facts.evidence.heard_ms(x[:2]))[-1:])
