"""What can happen to whom, and a schedule of it drawn from a seed. Pure."""

from __future__ import annotations

import random
from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

HOSTS = ("host1", "host2", "host3")
AGENTS = tuple(f"agent-{host}" for host in HOSTS)
OURS = (
    "broker-dc1", "broker-offline", "registry", "count-dc1", "count-offline", "audit", *AGENTS,
)  # fmt: skip
"""Programs in Python that run all the time; ZooKeeper and the loader come besides."""
CLOCK_STEPS_S = (-1_500, -40, 40, 1_500)
"""Below an hour: from there on agents do not believe the times of lines."""
EVERY_S = 9.0
"""A fault begins so often, on average."""


class Kind(StrEnum):
    """What happens. All but GROW end by themselves."""

    KILL = "kill"
    FREEZE = "freeze"
    CUT = "cut"
    DEAF = "deaf"
    CLOCK = "clock"
    FULL = "full"
    GROW = "grow"


class Fault(NamedTuple):
    """One fault: seconds from the start, what, to whom, how long (seconds), and by how much."""

    at_s: float
    kind: Kind
    target: str
    for_s: float
    amount: int = 0

    def __str__(self) -> str:
        more = f" {self.amount:+}" if self.amount else ""
        return f"{self.at_s:7.1f} s  {self.kind} {self.target}{more} for {self.for_s:.1f} s"


TARGETS: dict[Kind, Sequence[str]] = {
    Kind.KILL: (*OURS, "zookeeper", "loader"),
    Kind.FREEZE: (*OURS, "zookeeper", "loader"),
    Kind.CUT: ("broker-dc1",),
    Kind.DEAF: ("broker-dc1",),
    Kind.CLOCK: (*OURS, "loader"),
    Kind.FULL: ("disk-host1",),
    Kind.GROW: ("app", "web"),
}
WEIGHTS = {
    Kind.KILL: 8, Kind.FREEZE: 4, Kind.CUT: 2, Kind.DEAF: 2, Kind.CLOCK: 2, Kind.FULL: 1,
    Kind.GROW: 1,
}  # fmt: skip


def schedule(seed: int, seconds: float, kinds: Sequence[Kind] = tuple(Kind)) -> list[Fault]:
    """Faults that begin within so many seconds, in their order. No two hit one target at once."""
    chance = random.Random(seed)
    found: list[Fault] = []
    busy: dict[str, float] = {}
    at_s = chance.expovariate(1 / EVERY_S)
    while at_s < seconds:
        kind = chance.choices(kinds, [WEIGHTS[each] for each in kinds])[0]
        target, for_s = chance.choice(TARGETS[kind]), _how_long(kind, chance)
        amount = chance.choice(CLOCK_STEPS_S) if kind is Kind.CLOCK else 0
        if busy.get(target, 0.0) <= at_s:
            found.append(Fault(round(at_s, 1), kind, target, round(for_s, 1), amount))
            busy[target] = at_s + for_s
        at_s += chance.expovariate(1 / EVERY_S)
    return found


def _how_long(kind: Kind, chance: random.Random) -> float:
    """Most are short, some longer than a session or a timeout."""
    longest = {Kind.CLOCK: 40.0, Kind.GROW: 0.0}.get(kind, 25.0)
    return min(longest, chance.expovariate(1 / 6.0))
