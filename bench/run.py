"""`make bench`: runs the named benchmarks, prints their tables, and writes CSV files, plots, and
the tables in docs/performance.md.

By default all benchmarks run, except `kerberos`, which needs a KDC (`make peers` installs it), and
the experiment of the Kafka paper, which installs further servers (`make bench-paper`).
"""

from __future__ import annotations

import datetime
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from bench import (
    agent,
    audit,
    consume,
    fleet,
    idle,
    kerberos,
    latency,
    line,
    loader,
    mirror,
    neighbours,
    plots,
    produce,
    small,
    tls,
)
from bench.machine import describe
from bench.measure import Result, save
from bench.paper import experiment
from bench.scale import QUICK
from bench.sites import Brokers, both

PAGE = Path(__file__).resolve().parents[1] / "docs" / "performance.md"
ON_BROKERS: Mapping[str, Callable[[Brokers], Result]] = {
    "produce": produce.run,
    "consume": consume.run,
    "latency": latency.run,
    "fleet": fleet.run,
    "neighbours": neighbours.run,
}
ALONE: Mapping[str, Callable[[], Result]] = {
    "agent": agent.run,
    "audit": audit.run,
    "idle": idle.run,
    "line": line.run,
    "loader": loader.run,
    "mirror": mirror.run,
    "small": small.run,
    "tls": tls.run,
}
WHEN_NAMED: Mapping[str, Callable[[], Result]] = {"kerberos": kerberos.run, "paper": experiment.run}
BY_DEFAULT = (*ON_BROKERS, *ALONE)
NAMES = (*BY_DEFAULT, *WHEN_NAMED)
DRAWN: Mapping[str, Sequence[str]] = {
    "paper": [figure.name for figure in experiment.FIGURES],
}
"""Maps each benchmark that draws its own plots to the names of these plots. The results of all
other benchmarks are drawn as bars."""


def main(names: Sequence[str]) -> int:
    """Runs the named benchmarks. Refuses unknown names."""
    unknown = [name for name in names if name not in NAMES]
    if unknown:
        print(f"No benchmark called {unknown[0]}; there are {', '.join(NAMES)}.", file=sys.stderr)
        return 2
    machine = describe()
    print(machine, flush=True)
    results = []
    for name in names or BY_DEFAULT:
        result = run(name)
        results.append(result)
        if not QUICK:
            keep(result, machine)
    print("\n" + "\n".join(result.markdown() for result in results))
    if QUICK:
        print("A trial (BENCH_QUICK): these figures mean nothing and were written nowhere.")
    return 0


def keep(result: Result, machine: str) -> None:
    """Writes the result of one benchmark into its CSV file, its plot, and its section of
    docs/performance.md."""
    save(result, machine)
    if result.name not in DRAWN:
        plots.bars(result)
    PAGE.write_text(placed(PAGE.read_text(), result, machine))


def placed(text: str, result: Result, machine: str) -> str:
    """Returns the page `text` with new content in the benchmark's section: the result's table, and
    below it plots, machine and date.
    """
    begin, end = f"<!-- bench:{result.name} -->\n", "<!-- /bench -->"
    head, found, rest = text.partition(begin)
    if not found:
        raise ValueError(f"{PAGE} has no place for {result.name}: {begin.strip()}")
    tail = rest.partition(end)[2]
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    drawn = DRAWN.get(result.name, [result.name])
    images = "".join(f"![{name}](../bench/results/{name}.svg)\n" for name in drawn)
    body = f"{result.markdown()}\n{images}\n{today}: {machine}\n"
    return f"{head}{begin}{body}{end}{tail}"


def run(name: str) -> Result:
    if name in ON_BROKERS:
        with both() as sites:
            return ON_BROKERS[name](sites)
    return {**ALONE, **WHEN_NAMED}[name]()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
