"""`make bench`: run the named benchmarks (all by default), print the tables, keep the CSV files."""

from __future__ import annotations

import datetime
import sys
from collections.abc import Sequence
from pathlib import Path

from bench import (
    agent,
    consume,
    fleet,
    idle,
    latency,
    loader,
    partitions,
    produce,
    shapes,
    tools,
)
from bench.machine import describe
from bench.measure import Table
from bench.sites import both

PAGE = Path(__file__).resolve().parents[1] / "docs" / "performance.md"
ON_BROKERS = {
    "produce": produce.run,
    "consume": consume.run,
    "tools": tools.run,
    "shapes": shapes.run,
    "latency": latency.run,
    "fleet": fleet.run,
}
ALONE = {
    "agent": agent.run,
    "idle": idle.run,
    "loader": loader.run,
    "partitions": partitions.run,
}
NAMES = (*ON_BROKERS, *ALONE)


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
    write_page(tables, machine)
    print("\n" + "\n".join(table.markdown() for table in tables))
    return 0


def write_page(tables: Sequence[Table], machine: str) -> None:
    """Put each table into its place in docs/performance.md, with the machine and the date."""
    text = PAGE.read_text()
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    for table in tables:
        begin = f"<!-- bench:{table.name} -->\n"
        head, _, rest = text.partition(begin)
        tail = rest.partition("<!-- /bench -->")[2]
        body = f"{table.markdown()}\n{today}: {machine}\n"
        text = f"{head}{begin}{body}<!-- /bench -->{tail}"
    PAGE.write_text(text)


def run(name: str) -> list[Table]:
    if name in ON_BROKERS:
        with both() as brokers:
            return [ON_BROKERS[name](brokers)]
    return [ALONE[name]()]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
