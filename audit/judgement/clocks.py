"""Which clock is wrong: ours, or a sender's. Pure; see evidence.hearing for what is measured.

Most clocks agree. So if more than half of the senders that were read lately differ from ours to one
side, ours is wrong by the median of their differences, and the others are compared with what ours
should say. With a single sender nobody can say which of the two is wrong, and ours is doubted.

A slow clock shows as a lag that stays: in three windows in a row it is above the bound, and in the
two that are over it is about the same. The lag of a backlog shrinks; the lag of a mirror that falls
behind grows. Caution needs less: `present_ms` believes one window.

A program that reads the collector's store also compares its own clock with the collector's: what
was taken lies in the past.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median_low

from skidway.audit.counts.counts import NO_AGENT
from skidway.audit.evidence.evidence import Evidence, agent_named
from skidway.audit.evidence.hearing import WINDOW_MS, Reading, SenderName
from skidway.audit.judgement.policy import Policy
from skidway.audit.topic.messages import Tier


@dataclass(frozen=True, slots=True)
class Difference:
    """A sender whose clock differs. ahead_ms: by how much it is ahead; negative: behind."""

    tier: Tier
    producer: str
    host: str
    ahead_ms: int


@dataclass(frozen=True, slots=True)
class Clocks:
    """What is known of all clocks. ours_ms: how far ours is ahead, negative: behind; 0: it is good
    as far as is known. senders: how many were read lately. others: those whose clocks differ, the
    farthest first. unheard_ms: how long ago, by our clock, any sender was last heard, if that is
    longer than a silence; else 0. is_behind_store: the collector's clock shows that ours is behind.
    """

    ours_ms: int = 0
    senders: int = 0
    others: tuple[Difference, ...] = ()
    unheard_ms: int = 0
    is_behind_store: bool = False

    @property
    def is_ours_wrong(self) -> bool:
        """Whether what depends on our clock cannot be believed."""
        return self.ours_ms != 0

    @property
    def wrong(self) -> frozenset[SenderName | None]:
        """The senders whose clocks differ; None: ours."""
        others = {(x.tier, x.producer) for x in self.others}
        return frozenset(others | {None}) if self.is_ours_wrong else frozenset(others)


def clocks(evidence: Evidence, policy: Policy, now_ms: int) -> Clocks:
    """What the evidence says about the clocks; now_ms: what ours says."""
    bound = policy.clock_difference_ms
    lately = _lately(evidence)
    known = {name: ahead for name, x in lately.items() if (ahead := _ahead(x, bound)) is not None}
    ours_ms = _ours([*known.values(), *_unremarkable(evidence, policy, lately)], bound)
    others = [_difference(evidence, name, x + ours_ms) for name, x in known.items()]
    others = [x for x in others if abs(x.ahead_ms) > bound]
    behind_store_ms = evidence.taken_ms - now_ms
    is_behind_store = behind_store_ms > bound
    if is_behind_store:
        ours_ms = -behind_store_ms
    heard_ms = max(evidence.heard.values(), default=now_ms)
    unheard_ms = now_ms - heard_ms
    return Clocks(
        ours_ms,
        len(known),
        tuple(sorted(others, key=lambda x: (-abs(x.ahead_ms), x.host, x.tier, x.producer))),
        unheard_ms if unheard_ms > policy.silence_ms else 0,
        is_behind_store=is_behind_store,
    )


def present_ms(evidence: Evidence, policy: Policy, now_ms: int) -> int:
    """The present, with caution: what our clock says, or what it should say if most senders say
    that it is ahead. So no bucket is taken for over before it is."""
    return now_ms - ours_ahead_ms(evidence, policy)


def ours_ahead_ms(evidence: Evidence, policy: Policy) -> int:
    """How far most senders say that our clock is ahead."""
    lately = _lately(evidence).values()
    found = [-min(y for y in (x.least_ms, x.earlier_ms) if y is not None) for x in lately]
    return max(0, _ours(found, policy.clock_difference_ms))


def behind_ms(
    evidence: Evidence, policy: Policy, sender: SenderName, present_ms: int, ours_ahead_ms: int
) -> int:
    """How far behind a sender is, if it looks silent by its own clock but we took something from it
    within a silence; 0: it is not behind, or it is silent. Its clock may be slow, or its messages
    come late."""
    reading = evidence.readings.get(sender)
    silent_ms = present_ms - evidence.heard_ms(sender)
    if reading is None or silent_ms <= policy.silence_ms:
        return 0
    found_ms = reading.least_ms - ours_ahead_ms
    return found_ms if found_ms > 0 and silent_ms - found_ms <= policy.silence_ms else 0


def _lately(evidence: Evidence) -> dict[SenderName, Reading]:
    """The senders read in this window of our time or in the one before."""
    window = evidence.taken_ms // WINDOW_MS
    return {name: x for name, x in evidence.readings.items() if 0 <= window - x.window <= 1}


def _unremarkable(
    evidence: Evidence, policy: Policy, lately: Mapping[SenderName, Reading]
) -> Iterator[int]:
    """A zero for each sender that was heard a moment ago by either clock, but not read: if a topic
    is read all at once, as by a command, none of its records comes live."""
    for name, heard_ms in evidence.heard.items():
        if name not in lately and 0 <= evidence.taken_ms - heard_ms <= policy.silence_ms:
            yield 0


def _ahead(reading: Reading, bound_ms: int) -> int | None:
    """How far the sender's clock is ahead of ours, negative: behind; None: nobody knows yet."""
    _, least_ms, earlier_ms, earliest_ms = reading
    if least_ms <= bound_ms:
        return -least_ms
    if earlier_ms is None or earliest_ms is None or abs(earlier_ms - earliest_ms) > bound_ms:
        return None
    return -min(least_ms, earlier_ms, earliest_ms)


def _ours(ahead_of_us: Iterable[int], bound_ms: int) -> int:
    """How far our clock is ahead of most others'; 0 where most agree with it."""
    found = sorted(ahead_of_us)
    for side in (-1, 1):
        differing = [x for x in found if side * x > bound_ms]
        if 2 * len(differing) > len(found):
            return -median_low(differing)
    return 0


def _difference(evidence: Evidence, name: SenderName, ahead_ms: int) -> Difference:
    return Difference(*name, _host(evidence, name), ahead_ms)


def _host(evidence: Evidence, name: SenderName) -> str:
    tier, producer = name
    agent = agent_named(producer) if tier is Tier.AGENT else NO_AGENT
    if agent in evidence.hosts:
        return evidence.hosts[agent]
    hosts: Sequence[str] = [x.host for key, x in evidence.senders.items() if key[:2] == name]
    return hosts[-1] if hosts else ""
