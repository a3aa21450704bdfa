"""Makes a failing schedule shorter by leaving faults out. This module does no I/O itself: it calls
a given function to run a schedule.

The algorithm is ddmin (Zeller and Hildebrandt, "Simplifying and Isolating Failure-Inducing Input",
2002): it first leaves out one half of the schedule, and then smaller parts. A schedule that failed
once need not fail in every run. Therefore a run without a failure proves nothing, and a shorter
schedule is accepted only if its own run failed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from torture.faults import Fault


def shrunk(
    faults: Sequence[Fault], fails: Callable[[Sequence[Fault]], bool], tries: int
) -> list[Fault]:
    """Returns the shortest failing schedule that ddmin (see the module's docstring) finds in at
    most `tries` runs."""
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
