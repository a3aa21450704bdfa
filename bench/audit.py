"""Measures what the audit's collector costs for fleets of several sizes. No other system is
measured.

The senders of audit messages are simulated (audit_fleet). The ledger, the judge and the dashboard
are the collector's own code (see audit_load). All senders send at the default rates. In each
second, every host writes lines of every topic. Times are CPU times, with two exceptions: for a
rebuild, the table also has the wall time; the delay of a verdict is the sum of simulated time and
the CPU time of the judgement.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any, NamedTuple

from bench.audit_fleet import FAULTY
from bench.audit_load import PAGES
from bench.measure import SidesRow, SidesTable
from bench.scale import scaled


class Size(NamedTuple):
    """The size of a fleet. faulty: how many of 10,000 hosts have each kind of fault (see
    audit_fleet)."""

    hosts: int
    topics: int
    minutes: int
    faulty: int = FAULTY

    @property
    def name(self) -> str:
        faults = "" if self.faulty == FAULTY else f", {3 * self.faulty / 100:g} % faults"
        return f"{self.hosts:,} x {self.topics}, {self.minutes} min{faults}"


SIZES = scaled(
    [
        Size(100, 20, 12),
        Size(1_000, 5, 12),
        Size(1_000, 5, 20),
        Size(1_000, 20, 12),
        Size(1_000, 20, 12, 1_000),
        Size(10_000, 20, 12),
    ],
    [Size(4, 2, 4)],
)
REBUILT_MINUTES = scaled(2, 1)
"""The benchmark measures how long a collector needs to rebuild its store from the messages of this
many minutes. The first of these minutes is left out of the measurement, unless it is the only one.
"""

FIGURES = (
    ("taking", "taking the messages of a minute", "s"),
    ("count", "of this, for each count", "us"),
    ("judging", "judging, in a minute", "s"),
    ("share", "taking and judging (aim: 25)", "% of a core"),
    ("delay", "a bucket's verdict after its lateness, at most (aim: 10)", "s"),
    ("memory", "memory at most, before the pages (aim: 500)", "MiB"),
    ("memory_pages", "memory at most, with the pages", "MiB"),
    ("store", "growth of the store in a minute", "MB"),
    ("recent", "of this, what is kept for two days", "MB"),
    ("day", "growth in a day, without what is kept for two days (aim: 2)", "GB"),
    ("rebuild", "reading and taking a day's messages again (aim: 6)", "hours"),
    ("rebuild_wall", "the same, in wall time (aim: 3)", "hours"),
    *((name, f"page {name} (aim: 200)", "ms") for name in PAGES),
)

_PROGRAM = """
import sys
from skidway import lean_arrow
lean_arrow.leave_out()
from bench.audit_load import main
main(sys.argv[1:])
"""
"""Runs audit_load. Keeps pyarrow from importing pandas, as the collector also does."""


def run() -> SidesTable:
    """Measures a fleet of each size, in separate processes. Returns the table of results."""
    names = [each.name for each in SIZES]
    table = SidesTable("audit: a collector; hosts x topics", tuple(names))
    found = [_figures(each) | _rebuilt(each) for each in SIZES]
    for key, what, unit in FIGURES:
        sides = {name: (each[key],) for name, each in zip(names, found, strict=True)}
        table.add(SidesRow(what, unit, sides))
    return table


def _figures(size: Size) -> dict[str, Any]:
    return _measured(*size)


def _rebuilt(size: Size) -> dict[str, Any]:
    return _measured(size.hosts, size.topics, REBUILT_MINUTES, size.faulty, "rebuild")


def _measured(*arguments: object) -> dict[str, Any]:
    command = [sys.executable, "-c", _PROGRAM, *map(str, arguments)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    print(arguments, done.stdout.strip(), flush=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found
