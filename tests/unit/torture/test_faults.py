"""A torture run starts all programs and puts several faults into them at the same time. Its
schedule of faults depends only on its seed."""

from __future__ import annotations

from torture.faults import TARGETS, Kind, schedule

HOUR_S = 3_600.0


def test_the_same_seed_gives_the_same_faults() -> None:
    """The same seed always gives the same schedule of faults, so that a failed run can be repeated.
    Another seed gives another schedule."""
    assert schedule(7, HOUR_S) == schedule(7, HOUR_S)
    assert schedule(7, HOUR_S) != schedule(8, HOUR_S)
    assert schedule(7, 600.0) == [x for x in schedule(7, HOUR_S) if x.at_s < 600.0]


def test_every_kind_hits_every_target_and_none_twice_at_once() -> None:
    """In the schedules of twenty seeds together, every kind of fault hits all its possible targets.
    Faults of several targets can be active at the same time, but a target has at most one active
    fault."""
    faults = [x for seed in range(20) for x in schedule(seed, HOUR_S)]
    hit = {(x.kind, x.target) for x in faults}
    assert hit == {(kind, target) for kind in Kind for target in TARGETS[kind]}
    busy: dict[str, float] = {}
    together = 0
    for fault in schedule(7, HOUR_S):
        together += sum(until > fault.at_s for until in busy.values())
        assert busy.get(fault.target, 0.0) <= fault.at_s + 0.1
        busy[fault.target] = fault.at_s + fault.for_s
    assert together > 50
