"""Runs the collector's parts on the messages of a simulated fleet. `audit` starts this program in a
process of its own.

    python -m bench.audit_load HOSTS TOPICS MINUTES

The program prints a line of JSON with the figures. The ledger, the judge and the dashboard are the
real ones; messages come from `audit_fleet`, encoded. The clock is simulated: messages arrive in the
second in which they are sent, and the ledger takes them, and the judge works, as often as in the
collector. Times are CPU times, and do not include the simulation.
"""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from statistics import median
from typing import Any

from bench.audit_fleet import MINUTE_MS, START_MS, Fleet
from bench.machine import resident_mb
from skidway.audit.collector.collector import JUDGE_EVERY_S, JUDGE_SHARE
from skidway.audit.collector.hours import Hours
from skidway.audit.collector.judge import Judge
from skidway.audit.collector.web import Dashboard
from skidway.audit.evidence.collection import REFRESH_S, TAKE_SHARE, WAITING_BYTES_MAX
from skidway.audit.evidence.hearing import Heard
from skidway.audit.evidence.ledger import DATABASE, Ledger, Position
from skidway.audit.evidence.ledger_evidence import NO_BUCKETS
from skidway.audit.judgement.clocks import clocks
from skidway.audit.judgement.hosts import survey
from skidway.audit.judgement.policy import Policy
from skidway.audit.judgement.standing import NOTHING_JUDGED
from skidway.audit.topic.messages import TOPIC, encode
from skidway.kafka.types import TopicPartition

PARTITION = TopicPartition(TOPIC, 0)
PAGES = {
    "/": "/",
    "/index.json": "/index.json",
    "/buckets": "/buckets?topic=service-0",
    "one bucket": f"/buckets?topic=service-0&bucket={START_MS}",
    "/buckets.json": "/buckets.json?topic=service-0",
    "/agents": "/agents",
    "/agents.json": "/agents.json",
    "/hours.json": "/hours.json?topic=dc1.service-0&since=2026-01-01T00:00:00Z"
    "&until=2026-01-01T01:00:00Z",
    "/complete.json": "/complete.json?topic=dc1.service-0&since=2026-01-01T00:00:00Z"
    "&until=2026-01-01T00:02:00Z",
}
ASKED = 3
"""Each page is asked for so many times; the figure is the median."""


class Time:
    """The simulated wall time; the monotonic time is the CPU time of this process."""

    def __init__(self) -> None:
        self.now_ms = START_MS

    def time_ms(self) -> int:
        return self.now_ms

    def monotonic(self) -> float:
        return time.process_time()


class Collector:
    """The parts of a collector, and the CPU time that they take."""

    def __init__(self, folder: Path, fleet: Fleet) -> None:
        path = folder / DATABASE
        self._folder, self._fleet, self._clock = folder, fleet, Time()
        self._ledger, self._reader = Ledger(path), Ledger(path)
        self._policy = Policy()
        self._judge = Judge(self._ledger, lambda: self._policy, self._clock)
        self._standing = NOTHING_JUDGED
        self._judge_at = 0.0
        self._take_at = 0.0
        self._waiting: list[tuple[bytes, Heard]] = []
        self._offset = 0
        hours = Hours(self._reader, lambda: self._policy, lambda: self._judge.blocks, self._clock)
        self._dashboard = Dashboard(
            self._reader, lambda: self._policy, lambda: self._standing, hours, self._clock
        ).application()
        self.counts = 0
        self.taking: list[float] = []
        self.judging: list[float] = []
        self.delays: dict[int, float] = {}
        """For each bucket, the seconds from the moment at which it was due to its verdict."""

    def pass_second(self) -> None:
        """Lets the messages of the next second arrive. Takes and judges if it is time to do so."""
        said = list(self._fleet.pass_second())
        values = [encode(each) for each in said]
        self.counts += sum(len(getattr(each, "counts", ())) for each in said)
        self._clock.now_ms = now_ms = self._fleet.time_ms
        begin, self._offset = self._offset, self._offset + len(values)
        self._waiting += [
            (value, Heard(TOPIC, "t", 0, begin + number, now_ms, now_ms, is_live=True))
            for number, value in enumerate(values)
        ]
        del said
        waiting_bytes = sum(len(value) for value, _ in self._waiting)
        if self._fleet.second >= self._take_at or waiting_bytes >= WAITING_BYTES_MAX:
            self._take()
        if self._fleet.second >= self._judge_at:
            self._judge_buckets()

    def _take(self) -> None:
        began = time.process_time()
        values, places = [x for x, _ in self._waiting], [x for _, x in self._waiting]
        reached = {PARTITION: Position(self._offset, "t")}
        self._ledger.take(values, reached, self._clock.now_ms, places)
        taken = time.process_time() - began
        self.taking.append(taken)
        self._waiting = []
        self._take_at = self._fleet.second + min(TAKE_SHARE * taken, REFRESH_S)

    def _judge_buckets(self) -> None:
        began = time.process_time()
        self._standing = self._judge.step()
        evidence = self._ledger.evidence(NO_BUCKETS)
        clocks(evidence, self._policy, self._clock.now_ms)
        survey(evidence, self._policy, self._clock.now_ms)
        taken = time.process_time() - began
        self.judging.append(taken)
        self._judge_at = self._fleet.second + max(JUDGE_EVERY_S, JUDGE_SHARE * taken)
        for bucket, verdict in self._standing.topics[0].newest.items():
            due_ms = bucket + MINUTE_MS + self._policy.lateness_ms
            if verdict.due and bucket >= START_MS:
                delay = (self._clock.now_ms - due_ms) / 1000 + taken
                self.delays.setdefault(bucket, delay)

    def store_mb(self) -> float:
        """The size of the store, without the log of changes, which does not grow."""
        with closing(sqlite3.connect(self._folder / DATABASE)) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return sum(each.stat().st_size for each in self._folder.iterdir()) / 1e6

    def pages(self) -> Iterator[tuple[str, float]]:
        """The CPU time of each page, in ms."""
        for name, url in PAGES.items():
            found = []
            for _ in range(ASKED):
                began = time.process_time()
                asyncio.run(self._ask(url))
                found.append(time.process_time() - began)
            yield name, 1000 * median(found)

    async def _ask(self, url: str) -> None:
        path, _, query = url.partition("?")
        sent: list[Any] = []
        scope: Any = {
            "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "GET",
            "scheme": "http", "path": path, "raw_path": path.encode(),
            "query_string": query.encode(), "headers": [], "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 2), "root_path": "",
        }  # fmt: skip

        async def receive() -> Any:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: Any) -> None:
            sent.append(message)

        await self._dashboard(scope, receive, send)
        assert sent[0]["status"] == 200, (url, sent)


def figures(hosts: int, topics: int, minutes: int) -> dict[str, float]:
    """Runs the simulation and returns its figures. CPU times and the growth of the store are those
    of a minute, without the first minute, unless there is no other."""
    shared = "/dev/shm" if os.path.isdir("/dev/shm") else None
    with tempfile.TemporaryDirectory(prefix="skidway-bench-", dir=shared) as name:
        each = Collector(Path(name), Fleet(hosts, topics))
        for _ in range(60 if minutes > 1 else 0):
            each.pass_second()
        mark = len(each.taking), len(each.judging), each.counts, each.store_mb()
        past = max(minutes - 1, 1)
        for _ in range(60 * past):
            each.pass_second()
        memory = resident_mb(os.getpid())
        taking = sum(each.taking[mark[0] :]) / past
        counts = (each.counts - mark[2]) / past
        return {
            "taking": taking,
            "count": 1e6 * taking / counts,
            "judging": sum(each.judging[mark[1] :]) / past,
            "delay": max(each.delays.values(), default=0.0),
            "memory": memory,
            "store": (each.store_mb() - mark[3]) / past,
            **dict(each.pages()),
        }


def main(arguments: Sequence[str]) -> None:
    """Prints the figures."""
    hosts, topics, minutes = map(int, arguments)
    print(json.dumps(figures(hosts, topics, minutes)), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
