"""Prints what a demo does and finds out: events, the present state below them, and the summary.

On a terminal the state is shown below the newest event, and each new state overwrites the old one.
In a file or a pipe, the state is one plain line, without carriage returns and escape codes. It is
printed if it has changed, and nothing else was printed for some seconds.
"""

from __future__ import annotations

import shlex
import shutil
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, TextIO

from skidway.agent.files.host import shown
from skidway.cli.output import render_table
from skidway.cli.streams import raw
from skidway.demo.counts import TIERS, WRITTEN, Outcome, Tiers
from skidway.demo.site import LOADS_EVERY, PERSON, Site

PLAIN_EVERY_S = 10.0
COLUMNS = ("topic", "agent", "broker", "mirror", "hdfs", "rejects", "verdict")
REJECTED_SUFFIX = ".rejected"
FILES_SHOWN, BUCKETS_SHOWN = 5, 3


class Display:
    """Writes all output while the demo runs."""

    def __init__(self, out: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._out, self._clock = out, clock
        self._begin = self._said_at = clock()
        self._drawn: list[str] = []
        self._said = ""

    @property
    def elapsed_s(self) -> float:
        return self._clock() - self._begin

    def say(self, event: str) -> None:
        """Prints one event with its time, above the state."""
        drawn, self._said_at = self._drawn, self._clock()
        self._erase()
        seconds = int(self.elapsed_s)
        self._write([f"{seconds // 60}:{seconds % 60:02}  {event}"])
        self._draw(drawn)

    def state(self, lines: Sequence[str], plain: str = "") -> None:
        """Shows `lines` as the demo's present state, in place of the previous state. If the output
        is no terminal, says `plain` from time to time instead."""
        if self._out.isatty():
            self._erase()
            self._draw(lines)
        elif plain not in ("", self._said) and self._clock() - self._said_at >= PLAIN_EVERY_S:
            self._said = plain
            self.say(plain)

    def _draw(self, lines: Sequence[str]) -> None:
        columns = shutil.get_terminal_size().columns
        self._drawn = [each[: columns - 1] for each in lines]
        self._write(self._drawn)

    def _erase(self) -> None:
        if self._drawn:
            raw(self._out).write(f"\x1b[{len(self._drawn)}F\x1b[J")
            self._drawn = []

    def _write(self, lines: Sequence[str]) -> None:
        self._out.write("".join(f"{each}\n" for each in lines))
        self._out.flush()


def show_tiers(display: Display, tiers: Tiers) -> None:
    """Shows how many lines each tier has now: a table on a terminal, else one line."""
    now = tiers.measure()
    table = [f"  {'tier':<10}{'lines':>12}{'lines behind':>15}"]
    for tier, lines in now.items():
        behind = "" if tier == WRITTEN else f"{max(now[WRITTEN] - lines, 0):,}"
        away = "  killed" if tier in tiers.away else ""
        table.append(f"  {tier:<10}{lines:>12,}{behind:>15}{away}")
    table.append(f"  dashboard: {tiers.site.url('dashboard')}")
    display.state(table, ", ".join(f"{tier} {now[tier]:,}" for tier in TIERS))


def show_outcome(site: Site, outcome: Outcome, seconds: float) -> None:
    """Prints the summary: counts by topic and tier, the kills, and what agrees."""
    print(render_table(topic_rows(outcome), COLUMNS), end="")
    for program, sentence in outcome.kills.items():
        print(f"kill -9 {program}: {sentence}")
    if outcome.written:
        print(f"Lines:    {lines_sentence(outcome)}")
    print(f"Audit:    {audit_sentence(outcome)}")
    agrees = "agree" if outcome.recount_agrees else "DO NOT agree"
    print(f"Recount:  the rows in the Parquet files {agrees} with what the tiers counted.")
    print(f"Bytes:    {bytes_sentence(outcome)}")
    verdict = "complete" if outcome.is_complete else "NOT complete"
    print(f"Verdict:  {verdict} ({seconds:.0f} s)")
    print(f"The rows are {shown(site.output)}/<topic>/dt=.../hour=.../*.parquet.")
    folder = shown(str(site.folder))
    print(f"Logs, settings and states are in {folder}; a second run goes on from here.")
    sys.stdout.flush()


def show_addresses(site: Site) -> None:
    """For --keep: prints the programs' addresses, and with TLS what clients need."""
    every = f"a load runs every {LOADS_EVERY}"
    print(f"\nEverything keeps running: the agent goes on reading, and {every}. Ctrl-C stops it.")
    for name in ("zookeeper", "broker-dc1", "broker-offline", "registry", "dashboard"):
        print(f"  {name:16} {site.address(name)}", flush=True)
    if site.is_tls:
        settings = site.security(PERSON).items()
        options = " ".join(f"-X {shlex.quote(f'{name}={value}')}" for name, value in settings)
        print("Brokers and registry ask for certificates. For commands of skidway, and for kcat:")
        print(f"  export SKIDWAY_PROFILE={shlex.quote(str(site.profile))}")
        print(f"  kcat -L -b {site.address('broker-dc1')} {options}", flush=True)


def topic_rows(outcome: Outcome) -> list[dict[str, Any]]:
    """Returns one row per topic, with the sums of the counts in the judged time buckets of the
    topic. The row's verdict is "complete" if all buckets are complete, else that of a bucket that
    is not. The rejects are those of the agent, which the topic of rejects has as well, and those of
    the loader."""
    rows: dict[str, dict[str, Any]] = {}
    rejects: Counter[str] = Counter()
    for bucket in outcome.judged:
        topic = bucket["topic"]
        row = rows.setdefault(topic, {"topic": topic, "verdict": "complete"})
        if bucket["verdict"] != "complete":
            row["verdict"] = bucket["verdict"]
        for place in bucket["places"]:
            row[place["tier"]] = row.get(place["tier"], 0) + place.get("count", 0)
            rejects[topic] += place.get("rejects", 0)
            if topic.endswith(REJECTED_SUFFIX) and place["tier"] == "agent":
                rejects[topic.removesuffix(REJECTED_SUFFIX)] += place.get("count", 0)
    return [rows[name] | {"rejects": f"{rejects[name]:,}"} for name in sorted(rows)]


def audit_sentence(outcome: Outcome) -> str:
    """Returns a sentence with the audit's verdict on the buckets up to the cut-off."""
    judged, short = outcome.judged, outcome.short
    of_topics = f"buckets of {len({bucket['topic'] for bucket in judged})} topics up to the cut-off"
    if judged and not short:
        return f"All {len(judged)} {of_topics} are complete."
    named = "".join(
        f"; {bucket['topic']} {bucket['time']} is {bucket['verdict']}: "
        f"{'; '.join(bucket['reasons'][:1]) or 'no reason'}"
        for bucket in short[:BUCKETS_SHOWN]
    )
    return f"{len(judged) - len(short)} of {len(judged)} {of_topics} are complete{named}."


def bytes_sentence(outcome: Outcome) -> str:
    """Returns a sentence that says what happened to the bytes of the tailed files, up to the size
    of each file at the cut-off, and how many newer bytes the numbers include."""
    tally = outcome.tally
    said = ", ".join(f"{count:,} {fate}" for fate, count in tally.items() if count)
    size = sum(row["bytes"] for row in outcome.cut)
    newer = sum(tally.values()) - size
    begin = f"{size:,} bytes in {len(outcome.cut)} files at the cut-off"
    begin += f" and {newer:,} newer ones; {said}" if newer > 0 else f"; {said}"
    if outcome.unsettled:
        return f"{begin}; NOT accounted for{waited_for(outcome)}."
    return f"{begin}; every byte is accounted for."


def waited_for(outcome: Outcome) -> str:
    """Returns words about the first files that the agent has not found yet, or for whose bytes it
    has not accounted yet."""
    if outcome.unseen:
        return f": {', '.join(map(shown, outcome.unseen[:FILES_SHOWN]))}"
    found = list(outcome.unsettled.items())[:FILES_SHOWN]
    return "".join(f": {missing:,} bytes of {path}" for path, missing in found)


def lines_sentence(outcome: Outcome) -> str:
    """Returns a sentence that compares the number of lines that the writer wrote with the number of
    rows."""
    lines = sum(tally["lines"] for tally in outcome.written.values())
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
