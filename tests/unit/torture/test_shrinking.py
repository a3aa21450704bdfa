"""If a torture run (a test of all programs under several faults at the same time) fails, its
schedule of faults is shortened to the faults that make the run fail."""

from __future__ import annotations

from collections.abc import Sequence

from torture.faults import Fault, schedule
from torture.shrinking import shrunk

FAULTS = schedule(7, 600.0)


def test_what_must_come_together_is_left() -> None:
    """In this test, a torture run (a test of all programs under several faults) fails whenever its
    schedule contains three chosen faults. A schedule of many faults is then shortened to these
    three, however far apart they are."""
    needed = {FAULTS[3], FAULTS[30], FAULTS[-1]}
    tried: list[Sequence[Fault]] = []

    def fails(faults: Sequence[Fault]) -> bool:
        tried.append(faults)
        return needed <= set(faults)

    assert shrunk(FAULTS, fails, 1_000) == [x for x in FAULTS if x in needed]
    assert len(tried) < 100


def test_what_did_not_fail_again_is_not_taken() -> None:
    """If no shorter schedule of faults makes a torture run fail again (because the original run
    failed by chance), the result is the original schedule, in the same order."""
    assert shrunk(FAULTS, lambda _: False, 1_000) == FAULTS
    assert shrunk(FAULTS[:1], lambda _: True, 1_000) == FAULTS[:1]


def test_no_more_runs_than_wanted() -> None:
    """To shorten the schedule of a failed torture run, `shrunk` tries shorter schedules. `shrunk`
    ends after the given number of runs, because each run takes a long time: as long as its schedule
    of faults."""
    runs = 0

    def fails(_: Sequence[Fault]) -> bool:
        nonlocal runs
        runs += 1
        return True

    assert len(shrunk(FAULTS, fails, 3)) < len(FAULTS)
    assert runs == 3
