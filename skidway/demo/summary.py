"""The end of the demo: counts per topic and tier, both verdicts, every byte, where it all lies."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from skidway.cli.output import render_table
from skidway.demo.flow import Outcome
from skidway.demo.site import Site

COLUMNS = ("topic", "agent", "broker", "mirror", "hdfs", "rejects", "verdict")
FATES = ("acknowledged", "rejected", "filtered", "lost", "uncertain")
UNACCOUNTED_SHOWN = 5


def show(site: Site, outcome: Outcome, seconds: float) -> None:
    """Print everything that a newcomer wants to see."""
    print()
    print(render_table(topic_rows(outcome.report), COLUMNS))
    print()
    print(f"Audit:    {outcome.report.get('sentence', 'no report')}")
    agrees = "agree" if outcome.recount_agrees else "DO NOT agree"
    print(f"Recount:  the rows in the Parquet files {agrees} with what the tiers counted.")
    print(f"Bytes:    {bytes_sentence(outcome)}")
    print(f"Verdict:  {'complete' if outcome.is_complete else 'NOT complete'} ({seconds:.0f} s)")
    print()
    print(
        f"The rows lie in {site.output}/<topic>/dt=.../hour=.../*.parquet. Ask them, for example:"
    )
    print(f"  {sys.executable} -c {query(site)!r}")
    print(f"Logs, settings and states are in {site.folder}; a second run goes on from here.")


def show_addresses(site: Site) -> None:
    """For --keep: where everything listens."""
    print("\nEverything keeps running; Ctrl-C stops it.")
    for name in ("zookeeper", "broker-dc1", "broker-offline"):
        print(f"  {name:16} {site.address(name)}")
    print(f"  {'registry':16} {site.url('registry')}")
    print(f"  {'dashboard':16} {site.url('dashboard')}")


def topic_rows(report: Mapping[str, Any]) -> list[dict[str, Any]]:
    """One row per source topic: its buckets' counts added up, and its gravest verdict."""
    rows: dict[str, dict[str, Any]] = {}
    for bucket in report.get("buckets", ()):
        row = rows.setdefault(
            bucket["topic"], {"topic": bucket["topic"], "rejects": 0, "verdict": "complete"}
        )
        if bucket["verdict"] != "complete":
            row["verdict"] = bucket["verdict"]
        for place in bucket["places"]:
            tier = place["tier"]
            row[tier] = row.get(tier, 0) + place.get("count", 0)
            row["rejects"] += place.get("rejects", 0)
    return [rows[name] for name in sorted(rows)]


def bytes_sentence(outcome: Outcome) -> str:
    """What became of every byte of the tailed files up to the cut-off."""
    total = sum(outcome.sizes.values())
    tally = {fate: sum(file[fate] for file in outcome.ledger) for fate in FATES}
    said = ", ".join(f"{tally[fate]:,} {fate}" for fate in FATES if tally[fate])
    begin = f"{total:,} bytes in {len(outcome.sizes)} files at the cut-off; {said or 'nothing'}"
    unaccounted = outcome.unaccounted
    if not unaccounted:
        return f"{begin}; every byte is accounted for."
    shown = list(unaccounted.items())[:UNACCOUNTED_SHOWN]
    names = ", ".join(f"{path} ({missing:+,})" for path, missing in shown)
    return f"{begin}; NOT accounted for: {names}."


def query(site: Site) -> str:
    """A line of Python that counts the rows, by the libraries that the demo has installed."""
    if site.output.startswith("hdfs://"):
        return (
            "from pyspark.sql import SparkSession as S; s = S.builder.getOrCreate(); "
            f"s.read.parquet('{site.output}/dc1.zookeeper-logs').groupBy('level').count().show()"
        )
    folder = Path(site.output) / "dc1.zookeeper-logs"
    return (
        "import pyarrow.dataset as d; "
        f"print(d.dataset('{folder}').to_table().group_by('level').aggregate([([], 'count_all')]))"
    )
