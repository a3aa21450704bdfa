"""Defines which faults can hit which targets, and draws a schedule of faults from a seed. Does no
I/O."""

from __future__ import annotations

import random
from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

HOSTS = {"host1": "dc1", "host2": "dc1", "host3": "dc2"}
"""The datacenter of each host. The broker of dc1 is Skidway's, and the broker of dc2 is Apache
Kafka."""
AGENTS = tuple(f"agent-{host}" for host in HOSTS)
COUNTERS = ("count-dc1", "count-dc2", "count-offline")
OURS = ("broker-dc1", "broker-offline", "registry", *COUNTERS, "audit", *AGENTS)
"""The programs of Skidway that run all the time. `ALL` also contains ZooKeeper, Apache Kafka and
the loader."""
ALL = (*OURS, "zookeeper", "kafka-dc2", "loader")
CLUSTERS = ("broker-dc1", "broker-offline", "kafka-dc2")
LAKE = "lake"
"""The name of the target that stands for the file system with the loader's outputs."""
CLOCK_STEPS_S = (-1_500, -40, 40, 1_500)
"""The steps, in seconds, by which a fault sets a program's clock forward or back. All are smaller
than an hour, because an agent ignores a line's own time if that time is an hour or more ahead of
the agent's clock."""
EVERY_S = 6.0
"""The average time in seconds from the beginning of a drawn fault to the beginning of the next. A
drawn fault is left out if its target still has another fault."""


class Kind(StrEnum):
    """What a fault does. When the duration of a fault is over, the torture undoes the fault (for
    example, starts a killed program). It undoes neither faults of the kinds in AT_ONCE nor DELETE
    faults with the amount FOREVER."""

    KILL = "kill"
    FREEZE = "freeze"
    CUT = "cut"
    HOLD = "hold"
    DEAF = "deaf"
    SLOW = "slow"
    CLOCK = "clock"
    FULL = "full"
    READ_ONLY = "read-only"
    GROW = "grow"
    REMAKE = "remake"
    MOVE = "move"
    RELOAD = "reload"
    RESTORE = "restore"
    DELETE = "delete"
    EVOLVE = "evolve"
    UPGRADE = "upgrade"
    LINK = "link"
    COPY = "copy"


class Fault(NamedTuple):
    """One fault in the schedule. `at_s` says when the fault begins, in seconds after the start of
    the run. `for_s` is its duration in seconds. For CLOCK, `amount` is the number of seconds by
    which the clock jumps. For DELETE, `amount` is FOREVER if the file does not come back. For all
    other kinds, `amount` is 0."""

    at_s: float
    kind: Kind
    target: str
    for_s: float
    amount: int = 0

    def __str__(self) -> str:
        more = f" {self.amount:+}" if self.amount else ""
        return f"{self.at_s:7.1f} s  {self.kind} {self.target}{more} for {self.for_s:.1f} s"


TARGETS: dict[Kind, Sequence[str]] = {
    Kind.KILL: ALL,
    Kind.FREEZE: ALL,
    Kind.CUT: CLUSTERS,
    Kind.HOLD: CLUSTERS,
    Kind.DEAF: CLUSTERS,
    Kind.SLOW: CLUSTERS,
    Kind.CLOCK: (*OURS, "loader"),
    Kind.FULL: ("agent-host1", "broker-dc1", "audit", LAKE),
    Kind.READ_ONLY: ("agent-host1", "agent-host2", "broker-offline", "count-dc1", "audit", LAKE),
    Kind.GROW: ("dc1.app", "dc1.web", "dc2.app"),
    Kind.REMAKE: ("dc1.gone",),
    Kind.MOVE: (LAKE,),
    Kind.RELOAD: ("dc1.app", "dc2.web"),
    Kind.RESTORE: (*AGENTS, *COUNTERS, "audit"),
    Kind.DELETE: ("dc1.app", "dc2.web"),
    Kind.EVOLVE: AGENTS,
    Kind.UPGRADE: (*OURS, "loader"),
    Kind.LINK: tuple(HOSTS),
    Kind.COPY: tuple(HOSTS),
}
WEIGHTS = {
    Kind.KILL: 16, Kind.FREEZE: 8, Kind.CUT: 4, Kind.HOLD: 2, Kind.DEAF: 4, Kind.SLOW: 3,
    Kind.CLOCK: 4, Kind.FULL: 3, Kind.READ_ONLY: 3, Kind.GROW: 1, Kind.REMAKE: 1, Kind.MOVE: 1,
    Kind.RELOAD: 1, Kind.RESTORE: 2, Kind.DELETE: 1, Kind.EVOLVE: 2, Kind.UPGRADE: 5, Kind.LINK: 2,
    Kind.COPY: 2,
}  # fmt: skip
LONGEST_S = {Kind.CLOCK: 40.0, Kind.RESTORE: 60.0, Kind.DELETE: 60.0}
AT_ONCE = frozenset({Kind.GROW, Kind.REMAKE, Kind.MOVE, Kind.RELOAD, Kind.EVOLVE, Kind.UPGRADE})
"""The kinds of faults that the torture never undoes."""
USUAL_LONGEST_S, USUAL_S = 25.0, 6.0
FOREVER = 1
"""A DELETE fault with this amount deletes a file for good. After other DELETE faults the file comes
back."""


def schedule(seed: int, seconds: float, kinds: Sequence[Kind] = tuple(Kind)) -> list[Fault]:
    """Draws faults that begin within `seconds`, and returns them in the order in which they begin.
    No two faults are active on the same target at the same time."""
    chance = random.Random(seed)
    found: list[Fault] = []
    busy: dict[str, float] = {}
    at_s = chance.expovariate(1 / EVERY_S)
    while at_s < seconds:
        kind = chance.choices(kinds, [WEIGHTS[each] for each in kinds])[0]
        target, for_s = chance.choice(TARGETS[kind]), _how_long(kind, chance)
        amount = _amount(kind, chance)
        if busy.get(target, 0.0) <= at_s:
            found.append(Fault(round(at_s, 1), kind, target, round(for_s, 1), amount))
            busy[target] = at_s + for_s
        at_s += chance.expovariate(1 / EVERY_S)
    return found


def _how_long(kind: Kind, chance: random.Random) -> float:
    """Draws the duration of a fault in seconds. Most durations are short, but some are longer than
    the time-outs of ZooKeeper sessions and of clients."""
    longest = LONGEST_S.get(kind, USUAL_LONGEST_S)
    drawn = chance.expovariate(1 / (longest / 3 if kind in LONGEST_S else USUAL_S))
    return 0.0 if kind in AT_ONCE else min(longest, drawn)


def _amount(kind: Kind, chance: random.Random) -> int:
    match kind:
        case Kind.CLOCK:
            return chance.choice(CLOCK_STEPS_S)
        case Kind.DELETE:
            return chance.choice((0, FOREVER))
    return 0
