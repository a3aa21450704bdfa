"""Runs the collector's parts on the messages of a simulated fleet. The benchmark `audit` starts
this program in a process of its own.

    python -m bench.audit_load HOSTS TOPICS MINUTES [FAULTY] [rebuild]

The program prints its figures as a line of JSON. The ledger, the judge and the dashboard are the
collector's own code; encoded messages come from another process (`audit_fleet`), through a pipe.
The clock is simulated. Messages arrive in the second in which they are sent. The ledger stores
messages, and the judge judges buckets, as often as in a collector with default settings. Times are
CPU times of this process, except the wall time of a rebuild. FAULTY says how many of 10,000 hosts
have each kind of fault. With `rebuild`, the ledger only stores the messages, as fast as it can,
like a collector that reads the audit topics into an empty store.
"""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from bench.audit_fleet import (
    FAULTY,
    FIRST_MS,
    MASTER,
    MINUTE_MS,
    OLD_MINUTES,
    SECOND_MS,
    START_MS,
    Second,
    default_s,
    seconds_of,
)
from skidway.agent.settings import AgentSettings
from skidway.audit.collector.collector import collect_garbage_rarely
from skidway.audit.collector.editions import Editions, step_of
from skidway.audit.collector.judge import Judge
from skidway.audit.collector.judging_times import next_step_s
from skidway.audit.collector.web.dashboard import Dashboard
from skidway.audit.evidence.admission import Mode, Signatures
from skidway.audit.evidence.collection import REFRESH_S, TAKE_SHARE, Waiting
from skidway.audit.evidence.ledger import DATABASE, Ledger, Position
from skidway.audit.judgement.policy import Policy
from skidway.audit.judgement.standing import NOTHING_JUDGED
from skidway.audit.signing.verifier import Verifier
from skidway.audit.topic.messages import TOPIC
from skidway.audit.topic.topic import TopicBatch
from skidway.kafka.types import TopicPartition

PARTITION = TopicPartition(TOPIC, 0)
_OFFSET = struct.Struct(">q")
"""The first field of a record batch: its base offset, which the broker writes."""

PAGES = {
    "/": "/",
    "/index.json": "/index.json",
    "/?by=hour": "/?by=hour",
    "/?by=day": "/?by=day",
    "/topics": "/topics",
    "/loads": "/loads",
    "/mirrors": "/mirrors",
    "/rejects": "/rejects",
    "/search": "/search?q=host-12",
    "/buckets": "/buckets?topic=service-0",
    "one bucket": f"/buckets?topic=service-0&bucket={START_MS}",
    "/buckets.json": "/buckets.json?topic=service-0",
    "/hosts": "/hosts",
    "/hosts.json": "/hosts.json",
    "/hours.json": "/hours.json?topic=dc1.service-0&since=2026-01-01T00:00:00Z"
    "&until=2026-01-01T01:00:00Z",
    "/complete.json": "/complete.json?topic=dc1.service-0&since=2026-01-01T00:00:00Z"
    "&until=2026-01-01T00:02:00Z",
}
SETTLED_AFTER_MINUTES = OLD_MINUTES + 5
"""A bucket hardly changes any more if it began at least this many minutes ago."""

SENDS = ("audit.interval.ms", "seal.interval.ms")
"""The settings that say how often an agent sends counts and seals."""

RECENT = ("numbers", "seals")
"""Two tables of the store: `numbers` has a digest of each message, and `seals` has the seals. The
collector deletes all digests that are two days old, and most seals of that age: of each 64 messages
of an agent, it keeps the last seal."""

KEPT_SEAL_BYTES = 43
"""How many bytes one of the kept seals (see RECENT) and its key take in the store."""

ASKED = 3
SLOW_S = 2.0
"""The benchmark requests a page ASKED times, and reports the median time. If the first request
takes longer than SLOW_S seconds, the benchmark does not request the page again."""


class Time:
    """A clock whose wall time is simulated, and whose monotonic time is the CPU time of this
    process."""

    def __init__(self) -> None:
        self.now_ms = START_MS

    def time_ms(self) -> int:
        return self.now_ms

    def monotonic(self) -> float:
        return time.process_time()


class Store:
    """The ledger, and the batches that the ledger has not stored yet."""

    def __init__(self, folder: Path, clock: Time, *, is_live: bool) -> None:
        self.path = folder / DATABASE
        signatures = Signatures(Mode.REQUIRE, Verifier([MASTER]))
        self.ledger = Ledger(self.path, signatures=signatures)
        self._clock, self._is_live = clock, is_live
        self._waiting = Waiting()
        self._offset = 0
        self.taking: list[float] = []
        self.wall: list[float] = []

    def wait(self, said: Second) -> float:
        """Adds the batches of one second to the waiting batches. If too many wait, lets the ledger
        store them. Returns the CPU time that the ledger took."""
        taken = 0.0
        for raw in said.batches:
            batch = TopicBatch(PARTITION, 0, _OFFSET.pack(self._offset) + raw[_OFFSET.size :])
            self._waiting.add(batch, "t", self._clock.now_ms, is_live=self._is_live)
            self._offset += 1
            if self._waiting.is_full:
                taken += self.take()
        return taken

    def take(self) -> float:
        """Lets the ledger store the waiting batches. Returns the CPU time that this took."""
        began, began_wall = time.process_time(), time.monotonic()
        reached = {PARTITION: Position(self._offset, "t")}
        self.ledger.take_records(self._waiting.records(), reached, self._clock.now_ms)
        assert not any(self.ledger.refused_by_reason().values())
        self._waiting.clear()
        self.taking.append(time.process_time() - began)
        self.wall.append(time.monotonic() - began_wall)
        return self.taking[-1]

    def sizes_mb(self) -> dict[str, float]:
        """The size of each table with its indexes. Leaves out the counts of the buckets of the last
        SETTLED_AFTER_MINUTES: at every measurement there are equally many of these buckets, but the
        size of their counts changes. Does not include the database's write-ahead log, because the
        size of this log is bounded."""
        with closing(sqlite3.connect(self.path)) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            rows = connection.execute(
                "SELECT tbl_name, sum(size) FROM (SELECT name, sum(pgsize) AS size FROM dbstat"
                " GROUP BY name) JOIN sqlite_schema USING (name) GROUP BY tbl_name"
            )
            found = {name: size / 1e6 for name, size in rows}
            since_ms = self._clock.now_ms - SETTLED_AFTER_MINUTES * MINUTE_MS
            for name in ("tallies", "tally_additions"):
                (size,) = connection.execute(
                    f"SELECT total(length(columns)) FROM {name} WHERE bucket >= ?", (since_ms,)
                ).fetchone()
                found[name] -= size / 1e6
            return found


class Collector:
    """The parts of a collector. The object measures the CPU time that they need."""

    def __init__(self, folder: Path) -> None:
        self._clock = Time()
        self.store = Store(folder, self._clock, is_live=True)
        readers = [Ledger(self.store.path) for _ in range(2)]
        self._editions = Editions(readers, self.store.ledger.checkpoint)
        self._policy = Policy()
        self._judge = Judge(self.store.ledger, lambda: self._policy, self._clock)
        self._standing = NOTHING_JUDGED
        self._second = 0
        self._judge_at = 0.0
        self._take_at = 0.0
        self._dashboard = Dashboard(self._editions, self._clock).application()
        self.counts = 0
        self.judging: list[float] = []
        self.delays: dict[int, float] = {}
        """For each bucket of the first topic, the seconds from the time at which it was due until
        the judge judged it."""

    def begin(self, said: Second) -> None:
        """Stores the messages that agents sent long before the simulation begins."""
        self._clock.now_ms = FIRST_MS
        self.store.wait(said)
        self.store.take()
        self._clock.now_ms = START_MS

    def pass_second(self, said: Second) -> None:
        """Lets the messages of the next second arrive. If it is time to do so, the ledger stores
        the waiting messages, and the judge judges the buckets."""
        self._second += 1
        self._clock.now_ms += SECOND_MS
        self.counts += said.counts
        taken = self.store.wait(said)
        if self._second >= self._take_at:
            taken += self.store.take()
        if taken:
            self._take_at = self._second + min(TAKE_SHARE * taken, REFRESH_S)
        if self._second >= self._judge_at:
            self.judge_buckets()

    def judge_buckets(self) -> None:
        """Judges buckets, and publishes the edition. Then stores the buckets that were found
        balanced (the tiers have equal counts for all or nearly all agents) in a smaller form."""
        began = time.process_time()
        self._standing = self._judge.step()
        self._step = step_of(self._judge, self._standing, self._clock.now_ms)
        self._editions.publish(self._step)
        self.store.ledger.narrow(self._judge.take_balanced())
        self.store.ledger.merge(self._judge.take_scattered())
        taken = time.process_time() - began
        self.judging.append(taken)
        self._judge_at = self._second + next_step_s(taken, self._judge.due)
        for bucket, verdict in self._standing.topics[0].newest.items():
            due_ms = bucket + MINUTE_MS + self._policy.lateness_ms
            if verdict.due and bucket >= START_MS:
                delay = (self._clock.now_ms - due_ms) / 1000 + taken
                self.delays.setdefault(bucket, delay)

    def longest_delay(self) -> float:
        """The longest delay (s) between the time at which a bucket of the first topic was due and
        its judgement. For a bucket that was not judged yet, counts the time until now."""
        now_ms, due_after_ms = self._clock.now_ms, MINUTE_MS + self._policy.lateness_ms
        due = range(START_MS, now_ms - due_after_ms + 1, MINUTE_MS)
        waiting = ((now_ms - x - due_after_ms) / 1000 for x in due if x not in self.delays)
        return max([*self.delays.values(), *waiting], default=0.0)

    def pages(self) -> Iterator[tuple[str, float]]:
        """Yields the name of each page, and the CPU time (ms) of a request for it. Before each
        request, a new edition of the dashboard's data is published, so no page comes from a cache.
        """
        for name, url in PAGES.items():
            found = []
            for _ in range(ASKED):
                self._editions.publish(self._step)
                began = time.process_time()
                asyncio.run(self._ask(url))
                found.append(time.process_time() - began)
                if found[0] > SLOW_S:
                    break
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


def figures(hosts: int, topics: int, minutes: int, faulty: int) -> dict[str, Any]:
    """Runs the simulation and returns its figures. CPU times and the growth of the store are
    averages per minute. The first minute is left out, unless it is the only one.

    The growth of the store is the difference between two measurements of the store's size. If the
    simulation is longer than SETTLED_AFTER_MINUTES, the growth is measured only after this time.
    Before each measurement, all buckets that are due are judged."""
    with _folder() as folder, _fleet(hosts, topics, faulty) as said:
        each = Collector(folder)
        each.begin(next(said))
        for _ in range(60 if minutes > 1 else 0):
            each.pass_second(next(said))
        store = each.store
        mark = len(store.taking), len(each.judging), each.counts
        sizes_mb, past = store.sizes_mb(), max(minutes - 1, 1)
        grows = past
        for minute in range(past):
            if minute == SETTLED_AFTER_MINUTES - 1:
                each.judge_buckets()
                sizes_mb, grows = store.sizes_mb(), past - minute
            for _ in range(60):
                each.pass_second(next(said))
        memory = _memory_mb()
        taking, judging = sum(store.taking[mark[0] :]) / past, sum(each.judging[mark[1] :]) / past
        each.judge_buckets()
        sizes = store.sizes_mb()
        grown = {name: (size - sizes_mb.get(name, 0.0)) / grows for name, size in sizes.items()}
        recent = sum(grown[name] for name in RECENT)
        return {
            "taking": taking,
            "count": 1e6 * taking * past / (each.counts - mark[2]),
            "judging": judging,
            "share": 100 * (taking + judging) / 60,
            "delay": each.longest_delay(),
            "memory": memory,
            "store": sum(grown.values()),
            "recent": recent,
            "day": (sum(grown.values()) - recent) * 1_440 / 1_000 + _kept_gb(hosts),
            **dict(each.pages()),
            "memory_pages": _memory_mb(),
            "grown": {name: round(size, 3) for name, size in grown.items() if size > 0.001},
            "first": {name: round(size, 3) for name, size in sizes_mb.items() if size > 0.1},
        }


def rebuilt(hosts: int, topics: int, minutes: int, faulty: int) -> dict[str, Any]:
    """Returns the CPU time and the wall time that an empty ledger needs to read and store the
    messages of a day. Measures them with the messages of `minutes` minutes, and scales the results
    to a day. Leaves out the first minute, in which all agents announce their files, unless it is
    the only one.
    """
    with _folder() as folder, _fleet(hosts, topics, faulty) as said:
        clock = Time()
        store = Store(folder, clock, is_live=False)
        store.ledger.rebuild({PARTITION: 1 << 62})
        store.wait(next(said))
        mark = 0
        for second in range(60 * minutes):
            clock.now_ms += SECOND_MS
            store.wait(next(said))
            if second == 59 and minutes > 1:
                store.take()
                mark = len(store.taking)
        store.take()
        hours = 1_440 / 3_600 / max(minutes - 1, 1)
        return {
            "rebuild": sum(store.taking[mark:]) * hours,
            "rebuild_wall": sum(store.wall[mark:]) * hours,
            "rebuild_memory": _memory_mb(),
        }


@contextmanager
def _folder() -> Iterator[Path]:
    shared = "/dev/shm" if os.path.isdir("/dev/shm") else None
    with tempfile.TemporaryDirectory(prefix="skidway-bench-", dir=shared) as name:
        yield Path(name)


@contextmanager
def _fleet(hosts: int, topics: int, faulty: int) -> Iterator[Iterator[Second]]:
    command = [sys.executable, "-m", "bench.audit_fleet", *map(str, (hosts, topics, faulty))]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        try:
            yield seconds_of(process.stdout)
        finally:
            process.stdout.close()
            process.wait()


def _kept_gb(hosts: int) -> float:
    """Returns how many GB one day's seals take in the store after two days, when the collector has
    deleted most of them.
    """
    messages = sum(86_400 / default_s(AgentSettings, key) for key in SENDS)
    return hosts * messages / 64 * KEPT_SEAL_BYTES / 1e9


def _memory_mb() -> float:
    """The greatest resident memory that this process has used so far, in MiB. (getrusage also
    counts the parent's memory, if it was greater when the parent started this process.)"""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def main(arguments: Sequence[str]) -> None:
    """Prints the figures as a line of JSON."""
    hosts, topics, minutes = map(int, arguments[:3])
    collect_garbage_rarely()
    faulty = int(arguments[3]) if len(arguments) > 3 else FAULTY
    measure = rebuilt if arguments[4:] == ["rebuild"] else figures
    print(json.dumps(measure(hosts, topics, minutes, faulty)), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
