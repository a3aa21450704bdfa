"""Decides, without I/O, which clock is wrong: our clock, which is the clock of this program, or a
sender's clock. The module evidence.hearing describes the measurements.

The module assumes that most clocks agree. A reading is a measured difference between a sender's
clock and our clock. Only senders that were heard recently count. All agents of one host count as
one sender, because a host may have any number of agents. If the clocks of more than half of
these senders differ from ours in the same direction, our clock is wrong by the median of these
differences, and the right time is the time of our clock, corrected by this median. In all other
cases, the right time is the time of our clock. The senders' clocks are compared with the right
time. A sender without a reading counts as a sender whose clock agrees with ours. If there is only
one sender and its clock differs from ours, nobody can tell which of the two clocks is wrong. In
this case our clock counts as wrong.

The lag of a sender is the time by our clock at which a message is read, minus the time by the
sender's clock at which it was sent. A sender's clock counts as slow if its lag is large and
constant. The lag must be above the bound (policy.clock_difference_ms) in three successive windows
of time (hearing.WINDOW_MS), and about the same in the first two of these windows. A lag with
another cause does not stay constant: if a backlog is read, the lag shrinks, and if a mirror falls
behind, the lag grows. The function `present_ms` does not wait for three windows, because a mistake
of this function only makes the judgement more cautious.

A program that reads the collector's store also compares its own clock with the collector's clock.
The store has the times, by the collector's clock, at which the collector read records. If the
program's own clock is behind one of these times by more than policy.clock_difference_ms, the clock
counts as behind the collector's clock.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median_low

from skidway.audit.counts.counts import NO_AGENT
from skidway.audit.evidence.evidence import Evidence, agent_named
from skidway.audit.evidence.hearing import WINDOW_MS, Reading, SenderName
from skidway.audit.judgement.policy import Policy
from skidway.audit.topic.messages import Tier


@dataclass(frozen=True, slots=True)
class Difference:
    """A sender whose clock is wrong. ahead_ms: how far its clock is ahead of the right time (see
    the module's docstring); negative if its clock is behind."""

    tier: Tier
    producer: str
    host: str
    ahead_ms: int


@dataclass(frozen=True, slots=True)
class Clocks:
    """The state of all clocks, as far as the evidence shows it.

    ours_ms: how far our clock is ahead of the right time; negative if our clock is behind; 0 if
        nothing shows that it is wrong.
    senders: the number of senders whose clocks were recently compared with ours.
    others: the senders whose clocks are wrong, the greatest difference first.
    unheard_ms: the time, by our clock, since the newest message of all senders; 0 if this time is
        at most policy.silence_ms.
    is_behind_store: whether our clock is behind the collector's clock.
    """

    ours_ms: int = 0
    senders: int = 0
    others: tuple[Difference, ...] = ()
    unheard_ms: int = 0
    is_behind_store: bool = False

    @property
    def is_ours_wrong(self) -> bool:
        """Whether our clock is wrong. If so, every judgement that depends on the present time may
        be wrong."""
        return self.ours_ms != 0

    @property
    def wrong(self) -> frozenset[SenderName | None]:
        """The senders whose clocks are wrong; None stands for our clock."""
        others = {(x.tier, x.producer) for x in self.others}
        return frozenset(others | {None}) if self.is_ours_wrong else frozenset(others)


def clocks(evidence: Evidence, policy: Policy, now_ms: int) -> Clocks:
    """Compares the clocks on the basis of the evidence. now_ms: the time that our clock shows."""
    bound = policy.clock_difference_ms
    lately = _lately(evidence)
    known = {name: ahead for name, x in lately.items() if (ahead := _ahead(x, bound)) is not None}
    alike = dict.fromkeys(_unremarkable(evidence, policy, lately), 0)
    ours_ms = _ours(evidence, known | alike, bound)
    others = [
        _difference(evidence, name, x + ours_ms)
        for name, x in known.items()
        if abs(x + ours_ms) > bound
    ]
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
    """The present time for a cautious judgement. Normally, returns the time that our clock shows.
    If most senders show that our clock is ahead, returns the right time, which is earlier. So the
    judgement never treats a bucket as over before it is over."""
    return now_ms - ours_ahead_ms(evidence, policy)


def ours_ahead_ms(evidence: Evidence, policy: Policy) -> int:
    """How far our clock is ahead of most senders' clocks; 0 if it is not ahead."""
    found = {
        name: -min(y for y in (x.least_ms, x.earlier_ms) if y is not None)
        for name, x in _lately(evidence).items()
    }
    return max(0, _ours(evidence, found, policy.clock_difference_ms))


def behind_ms(
    evidence: Evidence, policy: Policy, sender: SenderName, present_ms: int, ours_ahead_ms: int
) -> int:
    """Returns by how many ms a sender is behind; 0 if the sender is not behind, or is silent. A
    sender is behind if the times in its messages are older than policy.silence_ms, but we have read
    one of its messages less than policy.silence_ms ago. Such a sender has a slow clock, or its
    messages come late."""
    reading = evidence.readings.get(sender)
    silent_ms = present_ms - evidence.heard_ms(sender)
    if reading is None or silent_ms <= policy.silence_ms:
        return 0
    found_ms = reading.least_ms - ours_ahead_ms
    return found_ms if found_ms > 0 and silent_ms - found_ms <= policy.silence_ms else 0


def _lately(evidence: Evidence) -> dict[SenderName, Reading]:
    """Returns the newest reading of each sender (the difference of its clock from ours). Leaves out
    readings that are older than the previous window of our clock.
    """
    window = evidence.taken_ms // WINDOW_MS
    return {name: x for name, x in evidence.readings.items() if 0 <= window - x.window <= 1}


def _unremarkable(
    evidence: Evidence, policy: Policy, lately: Mapping[SenderName, Reading]
) -> Iterator[SenderName]:
    """Yields each sender that sent a message within policy.silence_ms and whose clock was not
    compared with ours recently. Its clock counts as one that agrees with ours. When a command reads
    a whole topic at once, all records are old when they are read. In this case, only senders whose
    clocks are ahead have readings (see evidence.hearing). Without the others, these few senders
    would count as the majority.
    """
    for name, heard_ms in evidence.heard.items():
        if name not in lately and 0 <= evidence.taken_ms - heard_ms <= policy.silence_ms:
            yield name


def _of_hosts(evidence: Evidence, ahead_ms: Mapping[SenderName, int]) -> Iterator[int]:
    """How far the clocks are ahead of ours: one value for all agents of a host, the median, and one
    for each other sender. ahead_ms: how far the clock of each sender is ahead."""
    of_hosts: dict[object, list[int]] = {}
    for name, found in ahead_ms.items():
        agent = agent_named(name[1]) if name[0] is Tier.AGENT else NO_AGENT
        of_hosts.setdefault(evidence.hosts.get(agent, name), []).append(found)
    yield from map(median_low, of_hosts.values())


def _ahead(reading: Reading, bound_ms: int) -> int | None:
    """How far the sender's clock is ahead of ours; negative if it is behind, None if the difference
    is not known yet."""
    _, least_ms, earlier_ms, earliest_ms = reading
    if least_ms <= bound_ms:
        return -least_ms
    if earlier_ms is None or earliest_ms is None or abs(earlier_ms - earliest_ms) > bound_ms:
        return None
    return -min(least_ms, earlier_ms, earliest_ms)


def _ours(evidence: Evidence, ahead_ms: Mapping[SenderName, int], bound_ms: int) -> int:
    """How far our clock is ahead of most other clocks; negative if it is behind, 0 if most clocks
    agree with ours. ahead_ms: see `_of_hosts`."""
    if all(-bound_ms <= x <= bound_ms for x in ahead_ms.values()):
        return 0  # nearly always
    found = sorted(_of_hosts(evidence, ahead_ms))
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
