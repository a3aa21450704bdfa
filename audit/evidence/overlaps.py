"""Finds, without I/O, two machines that have the same host name and run at the same time. The
module recognizes them because the messages of their two agents alternate in one log.

If the state of agent A is lost, a new agent B starts on its host, so the messages come in the order
A, B. If A's old state is then restored, the order is A, B, A. But if the order is A, B, A, B, both
agents are alive at the same time. This test needs no clock.

A machine may have had another name before. So only messages with the same host name count: they
show since when a machine has had this name.

If messages are read in the order of the log, this test finds every overlap. In any other order it
may miss an overlap, but never finds a false overlap.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from skidway.audit.evidence.hearing import Log, Offsets, Spoken

Pair = tuple[int, int]
"""The ids of two agents, the lower id first."""


def overlaps(
    known: Mapping[tuple[int, str, Log], Offsets],
    spoken: Iterable[Spoken],
    named: Mapping[str, Collection[int]],
) -> set[Pair]:
    """Returns the pairs of agents that were alive at the same time, according to these messages.
    known: the offsets of earlier messages, by agent, host name and log. named: for each host name
    that several agents ever had, these agents."""
    offsets, found = dict(known), set[Pair]()
    for agent, host, log, offset in spoken:
        if host not in named:
            continue
        here, key = Offsets(offset, offset), (agent, host, log)
        mine = offsets[key] = offsets.get(key, here).or_wider(here)
        for other in named[host]:
            theirs = offsets.get((other, host, log)) if other != agent else None
            if theirs is not None and theirs.first < mine.first < theirs.last < offset:
                found.add((min(agent, other), max(agent, other)))
    return found
