"""The summary at the end of the demo: counts by topic and tier, the audit's verdicts, what happened
to the tailed bytes, and where all files are."""

from __future__ import annotations

import contextlib
import os
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from skidway.cli.output import render_table
from skidway.demo import tiers, writer
from skidway.demo.outcome import DemoOutcome, sent_topic
from skidway.demo.site import LOADS_EVERY, Site
from skidway.demo.sources import GIVEN_TOPIC, ZOOKEEPER_TOPIC

COLUMNS = ("topic", "agent", "broker", "mirror", "hdfs", "rejects", "verdict")
UNACCOUNTED_SHOWN = UNREAD_SHOWN = 5
BUCKETS_SHOWN = 3


def show(site: Site, outcome: DemoOutcome, seconds: float) -> None:
    """Prints the whole summary."""
    print(render_table(topic_rows(outcome), COLUMNS), end="")
    for path, unread in list(outcome.unread.items())[:UNREAD_SHOWN]:
        print(f"Unread:   {shown(path)}: {unread.reason}. Make it readable, or leave it out.")
    for kill in outcome.kills:
        print(f"kill -9 {kill.program}: {kill.sentence}")
    if outcome.written:
        print(f"Lines:    {lines_sentence(outcome)}")
        print(f"Rates:    {rates_sentence(outcome)}")
    print(f"Audit:    {audit_sentence(outcome)}")
    agrees = "agree" if outcome.recount_agrees else "DO NOT agree"
    print(f"Recount:  the rows in the Parquet files {agrees} with what the tiers counted.")
    print(f"Bytes:    {bytes_sentence(outcome)}")
    print(f"Verdict:  {verdict(outcome)} ({seconds:.0f} s)")
    output = shown(site.output)
    print(f"The rows are {output}/<topic>/dt=.../hour=.../*.parquet. Ask them, for example:")
    print(f"  {shown(sys.executable)} -c {query(output, outcome)!r}")
    print(f"Logs, settings and states are in {shown(site.folder)}; a second run goes on from here.")
    sys.stdout.flush()


def show_addresses(site: Site) -> None:
    """For --keep: prints the programs' addresses."""
    every = f"a load runs every {LOADS_EVERY}"
    print(f"\nEverything keeps running: the agent goes on reading, and {every}. Ctrl-C stops it.")
    for name in ("zookeeper", "broker-dc1", "broker-offline"):
        print(f"  {name:16} {site.address(name)}")
    print(f"  {'registry':16} {site.url('registry')}")
    print(f"  {'dashboard':16} {site.url('dashboard')}")
    sys.stdout.flush()


def topic_rows(outcome: DemoOutcome) -> list[dict[str, Any]]:
    """Returns one row per source topic. A row has the sums of the counts in the judged time buckets
    of the topic. The row's verdict is "complete" if all buckets are complete. Otherwise it is the
    verdict of a bucket that is neither complete nor accepted, or, if there is no such bucket, of an
    accepted bucket. The rejects are those of the agent, whose topic of rejects has the same number
    beside it, and those of the loader."""
    rows: dict[str, dict[str, Any]] = {}
    by_loader: Counter[str] = Counter()
    for bucket in outcome.judged:
        row = rows.setdefault(bucket["topic"], {"topic": bucket["topic"], "verdict": "complete"})
        if bucket["verdict"] != "complete" and not bucket["accepted"]:
            row["verdict"] = bucket["verdict"]
        elif bucket["accepted"] and row["verdict"] == "complete":
            row["verdict"] = f"{bucket['verdict']}, accepted"
        for place in bucket["places"]:
            tier = place["tier"]
            row[tier] = row.get(tier, 0) + place.get("count", 0)
            by_loader[bucket["topic"]] += place.get("rejects", 0)
    by_agent = outcome.agents_rejects
    for topic, row in rows.items():
        row["rejects"] = _rejects(by_agent[sent_topic(topic)], by_loader[topic])
    return [rows[name] for name in sorted(rows)]


def _rejects(by_agent: int, by_loader: int) -> str:
    named = {"agent": by_agent, "loader": by_loader}
    return ", ".join(f"{count:,} by the {who}" for who, count in named.items() if count) or "0"


def verdict(outcome: DemoOutcome) -> str:
    """Returns the demo's verdict in words."""
    if not outcome.is_complete:
        return "NOT complete"
    return "complete or accepted" if outcome.accepted else "complete"


def audit_sentence(outcome: DemoOutcome) -> str:
    """Returns a sentence with the audit's verdict on the buckets up to the cut-off. If buckets are
    accepted, a second sentence names them."""
    judged, short, accepted = outcome.judged, outcome.short, outcome.accepted
    of_topics = f"buckets of {len({bucket['topic'] for bucket in judged})} topics"
    more = f" Accepted: {_named(accepted)}." if accepted else ""
    if judged and not short:
        are = "are complete or accepted" if accepted else "are complete"
        return f"All {len(judged)} {of_topics} up to the cut-off {are}.{more}"
    done = len(judged) - len(short) - len(accepted)
    named = f"; {_named(short)}" if short else ""
    return f"{done} of {len(judged)} {of_topics} up to the cut-off are complete{named}.{more}"


def _named(buckets: Sequence[Mapping[str, Any]]) -> str:
    """Returns the verdicts on the first of these buckets, each with a reason."""
    return "; ".join(
        f"{bucket['topic']} {bucket['time']} is {bucket['verdict']}: "
        f"{'; '.join(bucket['reasons'][:1]) or 'no reason'}"
        for bucket in buckets[:BUCKETS_SHOWN]
    )


def bytes_sentence(outcome: DemoOutcome) -> str:
    """Returns a sentence that says what happened to the bytes of the tailed files, up to the size
    of each file at the cut-off. It also says how many newer bytes the numbers include, how many
    bytes they include twice, and how many bytes of other files are lost."""
    total = sum(file.size_bytes for file in outcome.files)
    said = ", ".join(f"{count:,} {fate}" for fate, count in outcome.tally.items() if count)
    newer = f" and {outcome.newer_bytes:,} newer ones" if outcome.newer_bytes else ""
    files = f"{len(outcome.files)} files at the cut-off"
    if outcome.read_again:
        twice = f"{outcome.read_again:,} of these bytes count twice"
        said += f" ({twice}: they were declared lost, and then read again)"
    begin = f"{total:,} bytes in {files}{newer}; {said or 'nothing'}"
    elsewhere = outcome.undone_elsewhere
    more = f" Other files, as of earlier runs, have {elsewhere:,} lost bytes." if elsewhere else ""
    unaccounted = outcome.unaccounted
    if not unaccounted:
        return f"{begin}; every byte is accounted for.{more}"
    found = list(unaccounted.items())[:UNACCOUNTED_SHOWN]
    names = ", ".join(f"{shown(file.path)} ({missing:+,})" for file, missing in found)
    return f"{begin}; NOT accounted for: {names}.{more}"


def lines_sentence(outcome: DemoOutcome) -> str:
    """Returns a sentence that compares the number of lines that the writer wrote with the number of
    rows."""
    lines = sum(tally.lines for tally in outcome.written.values())
    rows = sum(outcome.rows.get(topic, 0) for topic in outcome.written)
    repeats = sum(
        place.get("repeats", 0)
        for bucket in outcome.judged
        for place in bucket["places"]
        if place["tier"] == "hdfs" and bucket["topic"] in outcome.written
    )
    begin = f"{lines:,} written, {rows:,} rows, {repeats:,} repeats dropped"
    if not outcome.miscounted:
        return f"{begin}; each topic has as many rows as lines were written."
    wrong = ", ".join(f"{topic} {count:+,}" for topic, count in outcome.miscounted.items())
    return f"{begin}; the rows are NOT as many as the lines: {wrong}."


def rates_sentence(outcome: DemoOutcome) -> str:
    """Returns a sentence with the highest rate of each tier except HDFS, measured over two seconds,
    and with the rate of the loads."""
    fastest = ", ".join(
        f"{tier} {outcome.tiers.fastest(tier) / tiers.MB:.1f}" for tier in tiers.TIERS[:-1]
    )
    rows = sum(load["rows"] for load in outcome.loads)
    seconds = sum(load["seconds"] for load in outcome.loads)
    loaded = f"loads {rows / seconds:,.0f} rows/s" if seconds else "no loads"
    return f"at most {fastest} MB/s (catching up included); {loaded}, Spark's start apart."


def shown(path: Path | str) -> str:
    """Returns the text of a path as a user would type it. A path below the current directory
    becomes relative. Bytes that are not UTF-8 are escaped.
    """
    with contextlib.suppress(ValueError):
        path = Path(path).relative_to(Path.cwd())
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def query(output: str, outcome: DemoOutcome) -> str:
    """Returns a line of Python that counts rows by the values of a column. If files named with
    --logs have rows, the line counts these rows. It needs only libraries that are installed with
    the demo."""
    topic, column = _topic_and_column(outcome)
    if output.startswith("hdfs://"):
        return (
            "from pyspark.sql import SparkSession as S; s = S.builder.getOrCreate(); "
            f"s.read.parquet('{output}/dc1.{topic}').groupBy('{column}').count().show()"
        )
    folder = Path(output) / f"dc1.{topic}"
    return (
        f"import pyarrow.dataset as d; rows = d.dataset('{folder}').to_table(); "
        f"print(rows.group_by('{column}').aggregate([([], 'count_all')]))"
    )


def _topic_and_column(outcome: DemoOutcome) -> tuple[str, str]:
    if outcome.has_given and outcome.rows.get(GIVEN_TOPIC):
        return GIVEN_TOPIC, "_file"
    return (writer.JSON, "state") if outcome.written else (ZOOKEEPER_TOPIC, "level")
