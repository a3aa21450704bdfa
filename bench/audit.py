"""Measures what the audit's collector costs for fleets of several sizes. There is no peer.

The senders are simulated (audit_fleet); ledger, judge and dashboard are the real ones (audit_load).
All senders send at the default rates, and every host writes lines of every topic in each second.
Times are CPU times.
"""

from __future__ import annotations

import json
import subprocess
import sys

from bench.audit_load import PAGES
from bench.measure import SidesRow, SidesTable
from bench.scale import scaled

SIZES = scaled(
    [(100, 5, 5), (300, 5, 5), (1_000, 5, 5), (100, 20, 5), (300, 20, 5), (100, 5, 20)],
    [(4, 2, 4)],
)
"""The sizes of the fleets: hosts, topics, minutes."""

FIGURES = (
    ("taking", "taking the messages of a minute", "s"),
    ("count", "of this, for each count", "us"),
    ("judging", "judging, in a minute", "s"),
    ("delay", "a bucket's verdict after its lateness, at most", "s"),
    ("memory", "memory", "MB"),
    ("store", "growth of the store in a minute", "MB"),
    *((name, f"page {name}", "ms") for name in PAGES),
)


def run() -> SidesTable:
    """Measures each size in a process of its own."""
    names = [f"{hosts:,} x {topics}, {minutes} min" for hosts, topics, minutes in SIZES]
    table = SidesTable("audit: a collector; hosts x topics", tuple(names))
    found = [_figures(*size) for size in SIZES]
    for key, what, unit in FIGURES:
        sides = {name: (each[key],) for name, each in zip(names, found, strict=True)}
        table.add(SidesRow(what, unit, sides))
    return table


def _figures(*size: int) -> dict[str, float]:
    command = [sys.executable, "-m", "bench.audit_load", *map(str, size)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    print(size, done.stdout.strip(), flush=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found
