"""Finds, without I/O, the buckets that may contain doublings. A doubling is a line that one agent
delivered first, and another agent delivered a second time.

Announcements show which agents may have read the same bytes, and during which time (see the module
rereading). An agent that read the bytes again may have counted their lines a second time. The
numbers of its own deltas (messages with counts) show in which buckets such lines may be, whatever
event times the lines have:

    numbers     ----[ L ]----------------------------[ S ]-------------->
                     at   deltas that may count lines    deltas after S count none:
                          for a second time              all those bytes are in earlier deltas

    L   the last seal that the agent made before the other agent began; if there is no such seal,
        all deltas from the first on may count such lines
    S   the first seal that the agent made after the other agent was heard last. S says that all
        bytes that were in the files at that time are delivered and counted in deltas. These bytes
        include all bytes that the other agent had read

L's `at` is the number of the agent's last delta when it made L. If no delta between L's `at` and S
has counts for a bucket, the bucket contains no such line. While messages of both agents arrive,
there is no S yet: a later delta may still count such lines in any bucket, so every bucket is in
doubt. Suppose that the agent declared bytes lost or uncertain after L. A seal after this
declaration does not prove that the agent has read these bytes, because it may still read them. So
such a seal does not count as S.

The rule orders the messages of the two agents by the messages' times, which come from the clock of
the agents' host. But that clock may have been set back between two messages. So there is a second
rule, which needs no clock: a bucket in which both agents counted lines is in doubt, because a line
that both delivered has the same event time both times. The second rule may miss lines without an
event time of their own. The event time of such a line is the time at which an agent read the line,
so it is different for each of the two agents.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from skidway.audit.evidence.evidence import Evidence, SealNote, TopicEvidence
from skidway.audit.evidence.rereading import Rereading
from skidway.audit.evidence.tallies import SenderKey, Tally
from skidway.audit.judgement.expectation import usable_seals
from skidway.audit.topic.messages import Tier

_BEGIN = (0, 0)


class _Stretch(NamedTuple):
    """A range of an agent's messages, as (epoch, number): deltas in this range may count lines that
    another agent had delivered already. The range begins after `after` and ends before `before`.
    before: None if the range has no end yet."""

    after: tuple[int, int]
    before: tuple[int, int] | None
    reason: str

    def holds(self, first: tuple[int, int], last: tuple[int, int]) -> bool:
        return last > self.after and (self.before is None or first < self.before)


class Doublings:
    """Finds the doublings of one topic: lines that one agent delivered first, and another agent
    delivered a second time."""

    def __init__(self, evidence: Evidence, topic: TopicEvidence) -> None:
        self._evidence = evidence
        self._topic = topic
        self._stretches: dict[int, tuple[_Stretch, ...]] = {}
        self._groups: dict[int, set[int]] = {}
        for agent, known in topic.rereadings.items():
            self._groups.setdefault(known.group, set()).add(agent)

    def reasons(
        self, agent: int, by_agent: Mapping[int, Mapping[SenderKey, Tally]]
    ) -> Iterator[str]:
        """Yields the reasons to suspect that this agent delivered lines of the bucket that another
        agent had delivered already. by_agent: the counts of all agents in the bucket."""
        if agent not in self._topic.rereadings or not by_agent.get(agent):
            return
        if self._meets_its_group(agent, by_agent):
            yield next(iter(self._topic.rereadings[agent])).reason
        touched = [
            ((key.epoch, tally.first), (key.epoch, tally.last))
            for key, tally in by_agent[agent].items()
            if key.tier is Tier.AGENT
        ]
        for stretch in self._stretches_of(agent):
            if any(stretch.holds(*numbers) for numbers in touched):
                yield stretch.reason

    def of_agent(self, agent: int) -> tuple[object, ...]:
        """Returns the evidence about an agent that this rule uses for every bucket. If this
        evidence changes, all verdicts on the agent may change.
        """
        if agent not in self._topic.rereadings:
            return ()
        known = self._topic.rereadings[agent]
        return known, tuple(sorted(self._groups[known.group])), self._stretches_of(agent)

    def _meets_its_group(self, agent: int, by_agent: Mapping[int, object]) -> bool:
        group = self._groups[self._topic.rereadings[agent].group]
        fewer, more = sorted((group, by_agent), key=len)
        return any(x != agent and x in more for x in fewer)

    def _stretches_of(self, agent: int) -> tuple[_Stretch, ...]:
        if agent not in self._stretches:
            seals = usable_seals(self._evidence, [self._topic], agent)
            self._stretches[agent] = tuple(
                self._stretch(agent, seals, each) for each in self._topic.rereadings[agent]
            )
        return self._stretches[agent]

    def _stretch(self, agent: int, seals: list[SealNote], reread: Rereading) -> _Stretch:
        since = reread.since_ms
        plain = [] if since is None else [x for x in seals if not x.is_fileless]
        before = [x for x in plain if since is not None and x.sealed_until < since]
        at = (before[-1].epoch, before[-1].at) if before else _BEGIN
        end = None
        if self._evidence.last_heard(agent) > reread.until_ms:
            begin = before[-1][:2] if before else _BEGIN
            later = (x for x in seals if x[:2] > begin and x.sealed_until > reread.until_ms)
            end = next((x[:2] for x in later), None)
            if end is not None and self._sets_apart(agent, begin, end):
                end = None
        return _Stretch(at, end, reread.reason)

    def _sets_apart(self, agent: int, begin: tuple[int, int], end: tuple[int, int]) -> bool:
        losses = self._topic.losses.get(agent, ())
        return any(begin < (x.epoch, x.number) < end for x in losses)
