"""Finds, without I/O, two machines that run under the same host name. They are recognized because
the messages of their two agents alternate in one log.

If an agent's state is lost, messages of a new agent follow those of the old agent. If the old state
is brought back, messages of the old agent follow again. In both cases one of the two agents has all
its messages together, with no message of the other agent between them. But if the messages of
agents A and B come in the order A, B, A, B, both are alive at the same time. This test needs no
clock.

If messages are taken in the order of the log, every overlap is found. In any other order an overlap
may be missed, but no false overlap is found.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from skidway.audit.evidence.hearing import Log, Offsets, Spoken

Pair = tuple[int, int]
"""The ids of two agents, the lower id first."""


def overlaps(
    known: Mapping[tuple[int, Log], Offsets],
    spoken: Iterable[Spoken],
    namesakes: Mapping[int, Collection[int]],
) -> set[Pair]:
    """The pairs of agents that were alive at the same time, as these messages show. known: the
    offsets of earlier messages. namesakes: for each agent, the other agents with its host name."""
    offsets, found = dict(known), set[Pair]()
    for agent, log, offset in spoken:
        if agent not in namesakes:
            continue
        here = Offsets(offset, offset)
        mine = offsets[agent, log] = offsets.get((agent, log), here).or_wider(here)
        for other in namesakes[agent]:
            theirs = offsets.get((other, log))
            if theirs is not None and theirs.first < mine.first < theirs.last < offset:
                found.add((min(agent, other), max(agent, other)))
    return found
