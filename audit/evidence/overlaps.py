"""Which agents spoke by turns in one log: two machines that are called alike. Pure.

An agent whose state was lost is followed by another one, and one whose state was brought back
follows that: of two agents one began, ended, or both, while the other said nothing. Who speaks
again behind the other, and is followed by it once more, is alive beside it. No clock is asked.

Taken in the order of the log nothing is passed over; in any other order nothing is found that is
not so.
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
    """The pairs that these messages show. known: where messages of before lie; namesakes: of each
    agent the others of its host."""
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
