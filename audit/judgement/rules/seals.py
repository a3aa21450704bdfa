"""Decides, without I/O, whether an agent has sealed a bucket, and how long the audit waits for
the seal. With a seal, an agent vouches that all lines up to a time are counted."""

from __future__ import annotations

from collections.abc import Iterator

from skidway.audit.evidence.evidence import SealNote
from skidway.audit.evidence.tallies import BucketId
from skidway.audit.judgement import reasons
from skidway.audit.judgement.cause import Cause
from skidway.audit.judgement.clocks import behind_ms
from skidway.audit.judgement.rules.topic_facts import Tallies, TopicFacts
from skidway.audit.judgement.verdict import Finding, Status
from skidway.audit.topic.messages import Tier

TOO_YOUNG = Finding(
    Status.OPEN,
    "it is too young: more lines may come until its end and the lateness are over",
    Cause.TOO_YOUNG,
)

NEVER_SEALED = "the agent has not sealed this topic yet"
LATE = "lines came after the agent's newest seal"


def until(time_ms: int) -> str:
    """Returns the reason why a bucket is not complete, for an agent that has sealed its lines only
    up to `time_ms`.
    """
    return f"the agent has sealed up to {reasons.of_time(time_ms)} only"


def fileless(time_ms: int) -> str:
    """Returns the reason why nobody knows the lines of an agent: no file has matched one of its
    sources since `time_ms`."""
    return f"unknown: a source has matched no file since {reasons.of_time(time_ms)}"


def findings(
    facts: TopicFacts, agent: int, bucket: BucketId, tallies: Tallies
) -> Iterator[Finding]:
    """If the newest seal of this agent does not vouch for the bucket, yields findings that say
    why."""
    seals = facts.seals.get(agent)
    if not seals:
        yield _waiting(facts, agent, bucket, NEVER_SEALED, 0)
        return
    newest = seals[-1]
    until_ms = newest.vouched_until
    if until_ms < facts.due(bucket) and not _is_last_word(facts, agent, newest):
        if not newest.is_fileless or _is_silent(facts, agent, bucket):
            yield _waiting(facts, agent, bucket, until(until_ms), until_ms)
        elif facts.now_ms >= facts.due(bucket):
            yield Finding(Status.UNKNOWN, fileless(until_ms), Cause.SOURCE_WITHOUT_FILES)
    touched = [(key.epoch, tally.last) for key, tally in tallies.items() if key.tier is Tier.AGENT]
    if any(touch > (newest.epoch, newest.at) for touch in touched):
        yield _waiting(facts, agent, bucket, LATE, newest.sealed_until)
    if facts.now_ms < facts.due(bucket):
        yield TOO_YOUNG


def _is_last_word(facts: TopicFacts, agent: int, newest: SealNote) -> bool:
    """Whether the agent's newest seal says that no more lines come, and the agent is retired or was
    replaced. The topic may have been deleted and created again. If a message of the agent mentions
    the new topic, the agent must have sealed the new topic, too."""
    if not newest.final or not facts.expectation.is_gone(agent):
        return False
    spoke = any(agent in topic.agents for topic in facts.related)
    return not spoke or any(topic.seals.get(agent) for topic in facts.related)


def _waiting(
    facts: TopicFacts, agent: int, bucket: BucketId, reason: str, since_ms: int
) -> Finding:
    """Returns the finding that the agent has not sealed the bucket yet. The finding has the status
    OPEN and the given reason until two things are true: the agent is silent, and the bucket has
    been due for silence_ms. From then on, the status is UNKNOWN, and the reason says that the agent
    is silent or behind.
    """
    if not _is_silent(facts, agent, bucket):
        return Finding(Status.OPEN, reason, Cause.IN_FLIGHT)
    since = f"since {reasons.of_time(since_ms)}" if since_ms else "from its beginning on"
    name = f"the agent is silent: unknown {since}"
    if late_ms := _behind_ms(facts, agent):
        words = f"the agent is {reasons.of_delay(late_ms)}: unknown {since}"
        return Finding(Status.UNKNOWN, words, Cause.CLOCK, name)
    return Finding(Status.UNKNOWN, name, Cause.HOST_SILENT)


def _is_silent(facts: TopicFacts, agent: int, bucket: BucketId) -> bool:
    """Whether the agent is silent, and the bucket has been due for silence_ms."""
    seen = facts.evidence.heard_ms((Tier.AGENT, str(agent)))
    return facts.now_ms >= max(facts.due(bucket), seen) + facts.policy.silence_ms


def _behind_ms(facts: TopicFacts, agent: int) -> int:
    sender = Tier.AGENT, str(agent)
    return behind_ms(facts.evidence, facts.policy, sender, facts.now_ms, facts.ours_ahead_ms)
