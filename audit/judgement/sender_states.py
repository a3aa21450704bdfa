"""Finds, without I/O, the present state of each sender of counts: good, silent, behind, late or
retired, or that a message of the sender is missing or came with two contents.

By default, agents and counters send at least one message every minute. A loader runs on a schedule,
and sends messages only when it has loaded something. So the audit can call a loader late only if
the setting `loads.every.ms` says how often the loader runs. An output is a root directory, with a
directory for each topic. The audit calls only a whole output late, never a single topic, because a
topic to which nobody writes is not loaded.
"""

from __future__ import annotations

from dataclasses import dataclass

from skidway.audit.evidence.evidence import Evidence, Numbers
from skidway.audit.evidence.tallies import SenderKey
from skidway.audit.judgement import reasons
from skidway.audit.judgement.clocks import behind_ms
from skidway.audit.judgement.counting_places import place_of
from skidway.audit.judgement.policy import Policy
from skidway.audit.judgement.retired_places import retired_by
from skidway.audit.judgement.verdict import Status
from skidway.audit.topic.messages import Tier

NOBODY_WAITS = "none"
"""The status of a retired sender; the web pages show it without a colour. The status of every other
sender is the name of a bucket status (verdict.Status)."""


@dataclass(frozen=True, slots=True)
class SenderState:
    """The state of one sender. words: the state as text. status: the name of the bucket status that
    is as grave as this state, or NOBODY_WAITS."""

    key: SenderKey
    numbers: Numbers
    last_seen_ms: int
    words: str
    status: str


def sender_states(evidence: Evidence, policy: Policy, now_ms: int) -> list[SenderState]:
    """The states of all senders from which a message ever came, sorted by tier and name."""
    retired = retired_by(policy.retired_places, evidence.retirements)
    loaded = last_loads(evidence)
    found = []
    for key, numbers in sorted(evidence.senders.items()):
        seen = evidence.heard_ms(key[:2])
        if key.tier is not Tier.AGENT and place_of(key, evidence, retired).is_retired:
            said = ("retired", NOBODY_WAITS)
        elif (trouble := _trouble(numbers)) is not None:
            said = (trouble, Status.UNKNOWN.word)
        elif key.tier is Tier.HDFS:
            said = _of_output(seen, loaded[output_of(key)], policy, now_ms)
        else:
            late_ms = behind_ms(evidence, policy, key[:2], now_ms, 0)
            said = _of_program(now_ms - seen, late_ms, policy)
        found.append(SenderState(key, numbers, seen, *said))
    return found


def last_loads(evidence: Evidence) -> dict[str, int]:
    """For each output, the time of the newest message about a load into any topic of the output."""
    found: dict[str, int] = {}
    for key in evidence.senders:
        if key.tier is Tier.HDFS:
            output = output_of(key)
            found[output] = max(found.get(output, 0), evidence.heard_ms(key[:2]))
    return found


def output_of(key: SenderKey) -> str:
    """The root of the output, taken from the sender's name: a sender of tier hdfs has the name
    `<root>/<topic>`."""
    return key.producer.rpartition("/")[0]


def _trouble(numbers: Numbers) -> str | None:
    if numbers.cloned_at is not None:
        return f"message {numbers.cloned_at} came with two contents"
    if numbers.missing is not None:
        return f"message {numbers.missing} is missing"
    return None


def _of_program(silent_ms: int, late_ms: int, policy: Policy) -> tuple[str, str]:
    if late_ms:
        return reasons.of_delay(late_ms), Status.INCOMPLETE.word
    if silent_ms > policy.silence_ms:
        return f"silent for {silent_ms // 60_000} minutes", Status.INCOMPLETE.word
    return "good", Status.COMPLETE.word


def _of_output(seen_ms: int, loaded_ms: int, policy: Policy, now_ms: int) -> tuple[str, str]:
    words = f"loaded last at {reasons.of_time(seen_ms)}"
    if policy.loads_every_ms is None or now_ms - loaded_ms <= policy.loads_every_ms:
        return words, Status.COMPLETE.word
    return f"late: {words}", Status.INCOMPLETE.word
