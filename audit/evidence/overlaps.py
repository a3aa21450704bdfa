"""Finds, without I/O, two machines that have the same host name and run at the same time. The
module recognizes them because the messages of their two agents alternate in one log.

If the state of agent A is lost, a new agent B starts on its host, so the messages come in the order
A, B. If A's old state is then restored, the order is A, B, A. But if the order is A, B, A, B, both
agents are alive at the same time. This test needs no clock.

A machine may have had another name before. So only messages with the same host name count: they
show since when a machine has had this name.

If messages are read in the order of the log, this test finds every overlap of agents that are heard
one soon after the other. In any other order it may miss an overlap, but never finds a false one.

Many agents may share a host name, for example `localhost`, or because one host makes up agents'
ids. So each message is compared with those of the OTHERS_MAX agents of its host that were heard
last: of agents that are alive at the same time, each is found beside some others.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from itertools import islice
from typing import Final

from skidway.audit.evidence.hearing import Log, Offsets, Spoken

Pair = tuple[int, int]
"""The ids of two agents, the lower id first."""


OTHERS_MAX: Final = 16
"""No agent is compared with more others at once, and none needs more partners."""


def overlaps(
    known: Mapping[tuple[int, str, Log], Offsets],
    spoken: Iterable[Spoken],
    named: Mapping[str, Collection[int]],
) -> set[Pair]:
    """Returns the pairs of agents that were alive at the same time, according to these messages.
    known: the offsets of earlier messages, by agent, host name and log. named: for each host name
    that several agents ever had, these agents."""
    found = set[Pair]()
    heard: dict[tuple[str, Log], dict[int, Offsets]] = {}
    """By host name and log: the agents, those that were heard last at the end."""
    for (agent, host, log), offsets in sorted(known.items(), key=lambda x: x[1].last):
        heard.setdefault((host, log), {})[agent] = offsets
    for agent, host, log, offset in spoken:
        if host not in named:
            continue
        others, here = heard.setdefault((host, log), {}), Offsets(offset, offset)
        mine = others.pop(agent, here).or_wider(here)
        for other in islice(reversed(others), OTHERS_MAX):
            theirs = others[other]
            if theirs.first < mine.first < theirs.last < offset:
                found.add((min(agent, other), max(agent, other)))
        others[agent] = mine
    return found


def partners(pairs: Iterable[Pair]) -> dict[int, set[int]]:
    """Returns, for each agent in a pair, the other agents of its pairs."""
    found: dict[int, set[int]] = {}
    for one, other in pairs:
        found.setdefault(one, set()).add(other)
        found.setdefault(other, set()).add(one)
    return found
