"""`make bench`: run the named benchmarks (all by default), print the tables, keep the CSV files."""

from __future__ import annotations

import sys

from bench import agent, consume, loader, produce
from bench.machine import describe
from bench.measure import Table
from bench.sites import both

NAMES = ("produce", "consume", "agent", "loader")


def main(names: list[str]) -> int:
    """Run what is named; unknown names are refused."""
    unknown = [name for name in names if name not in NAMES]
    if unknown:
        print(f"No benchmark called {unknown[0]}; there are {', '.join(NAMES)}.", file=sys.stderr)
        return 2
    machine = describe()
    print(machine, flush=True)
    tables = [table for name in (names or NAMES) for table in run(name)]
    for table in tables:
        table.save(machine)
    print("\n" + "\n".join(table.markdown() for table in tables))
    return 0


def run(name: str) -> list[Table]:
    if name in ("produce", "consume"):
        with both() as brokers:
            return [{"produce": produce.run, "consume": consume.run}[name](brokers)]
    return [{"agent": agent.run, "loader": loader.run}[name]()]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
