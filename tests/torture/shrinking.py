"""A failing schedule made shorter by leaving faults out. Pure but for what it asks.

The way is ddmin (Zeller and Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", 2002):
halves first, then smaller parts. What fails is not always the same twice, so a shorter schedule is
taken only when it did fail, and nothing is concluded from one that did not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from torture.faults import Fault


def shrunk(
    faults: Sequence[Fault], fails: Callable[[Sequence[Fault]], bool], tries: int
) -> list[Fault]:
    """The shortest schedule that failed, of at most so many that were run."""
    kept, parts = list(faults), 2
    while len(kept) > 1 and tries > 0:
        size = -(-len(kept) // parts)
        for begin in range(0, len(kept), size):
            if tries == 0:
                break
            tries -= 1
            rest = kept[:begin] + kept[begin + size :]
            if fails(rest):
                kept, parts = rest, max(2, parts - 1)
                break
        else:
            if size == 1:
                break
            parts = min(len(kept), 2 * parts)
    return kept
