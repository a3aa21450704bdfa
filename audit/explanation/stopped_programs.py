"""Finds, without I/O, the counters that have stopped, and the outputs into which nothing is loaded
any more. Both are known before a bucket lacks anything."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from skidway.audit.evidence.evidence import Evidence
from skidway.audit.evidence.hearing import SenderName
from skidway.audit.evidence.tallies import SenderKey
from skidway.audit.explanation.next_command import (
    Access,
    NextCommand,
    command_of,
    mend_refusal,
)
from skidway.audit.explanation.offsets import offsets_behind
from skidway.audit.explanation.present_cause import PresentCause
from skidway.audit.explanation.programs import Programs
from skidway.audit.judgement.cause import Cause
from skidway.audit.judgement.counting_places import place_of
from skidway.audit.judgement.policy import Policy
from skidway.audit.judgement.reasons import of_sender, of_time
from skidway.audit.judgement.refusals import Refusals
from skidway.audit.judgement.retired_places import retired_by
from skidway.audit.judgement.sender_states import last_loads, output_of
from skidway.audit.topic.messages import Tier

MISSED_MS = 30_000
"""A counter sends a message at least every 10 s. If other programs of its cluster were heard for
this long after its last message, it has stopped."""


def stopped_programs(
    evidence: Evidence, policy: Policy, now_ms: int, programs: Programs, access: Access
) -> Iterator[PresentCause]:
    """Yields a cause for each counter that has stopped, and for each output that is late while
    records wait for a load. now_ms: the time up to which the audit topics were read."""
    finder = _Finder(evidence, policy, now_ms, programs, access)
    yield from finder.counters()
    yield from finder.loads()


class _Finder:
    def __init__(
        self,
        evidence: Evidence,
        policy: Policy,
        now_ms: int,
        programs: Programs,
        access: Access,
    ) -> None:
        self._evidence = evidence
        self._policy = policy
        self._now_ms = now_ms
        self._programs = programs
        self._access = access
        self._refusals = Refusals(evidence)
        self._retired = retired_by(policy.retired_places, evidence.retirements)

    def counters(self) -> Iterator[PresentCause]:
        """Only programs whose messages take the same way show that a counter has stopped: if
        nothing of a cluster arrives, the counter need not be the reason."""
        heard: dict[str, int] = {}
        newest: dict[tuple[Tier, str], SenderKey] = {}
        for key, numbers in self._evidence.senders.items():
            heard_ms = self._evidence.heard_ms(key[:2])
            heard[numbers.cluster] = max(heard.get(numbers.cluster, 0), heard_ms)
            if key.tier in (Tier.BROKER, Tier.MIRROR) and self._is_needed(key):
                place = key.tier, numbers.cluster
                known = newest.get(place)
                if known is None or self._evidence.heard_ms(known[:2]) <= heard_ms:
                    newest[place] = key
        everywhere = max(heard.values(), default=0)
        for (tier, cluster), key in newest.items():
            others_ms = everywhere if tier is Tier.MIRROR else heard[cluster]
            if others_ms - self._heard_by_our_clock(key[:2]) > self._missed_ms(key[:2]):
                yield self._stopped(key, cluster)

    def loads(self) -> Iterator[PresentCause]:
        """Only the setting `loads.every.ms` says when an output is late."""
        every_ms = self._policy.loads_every_ms
        for output, loaded_ms in last_loads(self._evidence).items():
            if every_ms is not None and self._now_ms - loaded_ms > every_ms:
                behind = (x for x in self._behind() if output_of(x) == output)
                for key in list(behind)[:1]:
                    yield self._late(output, loaded_ms, key)

    def _stopped(self, key: SenderKey, cluster: str) -> PresentCause:
        heard_ms, host = self._evidence.heard_ms(key[:2]), self._evidence.senders[key].host
        line = self._programs.counter("start", key.tier, host, (cluster,))
        clusters = () if key.tier is Tier.MIRROR else (cluster,)
        words = f"Nothing has come from {of_sender(key)} since {of_time(heard_ms)}"
        found = PresentCause(
            Cause.COUNTER_STOPPED, words, clusters, NextCommand(host, line), heard_ms, None, host,
            key.tier,
        )  # fmt: skip
        return self._or_refused(found, key.tier, cluster)

    def _or_refused(self, found: PresentCause, tier: Tier, place: str) -> PresentCause:
        refusal = self._refusals.of_place(tier, place)
        if refusal is None:
            return found
        command, words = mend_refusal(refusal, self._access), f"{found.words}: {refusal.words}"
        return replace(found, cause=Cause.MESSAGES_REFUSED, words=words, command=command)

    def _missed_ms(self, name: SenderName) -> int:
        """A slow clock makes a counter look silent, if nobody has compared the clock with ours."""
        silence_ms = self._policy.silence_ms
        is_compared = name in self._evidence.readings
        return min(silence_ms, MISSED_MS) if is_compared else silence_ms

    def _heard_by_our_clock(self, name: SenderName) -> int:
        reading = self._evidence.readings.get(name)
        return self._evidence.heard_ms(name) + max(reading.least_ms if reading else 0, 0)

    def _late(self, output: str, loaded_ms: int, key: SenderKey) -> PresentCause:
        numbers, run = self._evidence.senders[key], Cause.LOAD_NOT_RUN.run
        assert run is not None
        command = command_of(self._programs, run, numbers.host, key.producer)
        words = f"Nothing has been loaded into {output} since {of_time(loaded_ms)}"
        found = PresentCause(
            Cause.LOAD_NOT_RUN, f"{words}, and records wait for a load", (), command, loaded_ms,
            None, command.host, Tier.HDFS,
        )  # fmt: skip
        return self._or_refused(found, Tier.HDFS, key.producer)

    def _behind(self) -> Iterator[SenderKey]:
        for source, topic in self._evidence.topics.items():
            loaders = [x for x in topic.coverage if x.tier is Tier.HDFS]
            for key in loaders if Tier.HDFS in self._policy.tiers_of(source) else ():
                if key in self._evidence.senders and self._is_needed(key):
                    place = place_of(key, self._evidence, self._retired)
                    if offsets_behind(self._evidence, topic, place):
                        yield key

    def _is_needed(self, key: SenderKey) -> bool:
        is_retired = place_of(key, self._evidence, self._retired).is_retired
        return key.tier in self._policy.tiers and not is_retired
