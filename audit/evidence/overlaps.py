"""Which agents spoke by turns in one log: two machines with the same name. Pure.

If an agent's state is lost, a new agent follows it; if the old state is brought back, the old agent
follows the new one. In both cases one of the two began, ended, or both, while the other was silent.
But an agent that speaks again after the other one, and is followed by it once more, is alive beside
it. No clock is asked.

Messages taken in the order of the log show every overlap; in any other order some may be missed,
but none is found that is not there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from skidway.audit.evidence.hearing import Log, Offsets, Spoken

Pair = tuple[int, int]
"""Two agents, the lesser id first."""


def overlaps(
    known: Mapping[tuple[int, Log], Offsets],
    spoken: Iterable[Spoken],
    namesakes: Mapping[int, Collection[int]],
) -> set[Pair]:
    """The pairs that these messages show. known: where earlier messages lie; namesakes: for each
    agent, the others of its host."""
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
