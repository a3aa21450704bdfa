"""The audit's counter (`skidway audit count`) and its collector (`skidway audit run`) give correct
counts even if their processes are killed at any moment. The tests use Skidway's broker and a real
ZooKeeper."""

from __future__ import annotations

import json
import signal
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from skidway.audit.counts.counts import Counts
from skidway.audit.counts.deltas import number_deltas
from skidway.audit.topic import messages, topic
from skidway.audit.topic.messages import TOPIC, Seal, Sender, Tier
from skidway.audit.topic.seal_columns import SealedTopic
from skidway.clock import SystemClock
from skidway.kafka import columns
from skidway.kafka.batch import headers
from skidway.kafka.client import Client, NewTopic, Producer
from skidway.kafka.columns import Origins
from skidway.kafka.source import Source, sources_of
from skidway.kafka.types import TopicPartition
from support import telemetry
from support.brokers import SkidwayBroker
from support.processes import (
    Program,
    answers,
    call_skidway,
    eventually,
    free_port,
    skidway,
)
from support.promises import promise
from support.small_disks import KINDS, small_disk

AGENT = 1234567890123456789
BUCKET_MS = 10_000
BATCH = 500
ROOM_KILOBYTES = 300

Limit = Callable[[list[str], int], list[str]]


class Site:
    """A broker, a topic with records of a simulated agent, and the commands that start the audit's
    programs."""

    def __init__(self, folder: Path, broker: SkidwayBroker) -> None:
        self.folder, self.address = folder, broker.address
        self.client = Client(broker.address)
        self.producer = Producer(self.client)
        self.counts = Counts(BUCKET_MS)
        self.sent, self.event_ms = 0, 1_000_000
        self.health_port, self.port, self.metrics_port = free_port(), free_port(), free_port()
        topic.ensure(self.client, time.sleep)
        self.client.create_topics([NewTopic("logs", 2)])
        eventually(lambda: self._source() is not None, what="topic logs has partitions")

    def _source(self) -> Source | None:
        return sources_of(self.client, ["logs"], "main").get("logs")

    def send(self, batches: int = 1) -> None:
        source = self._source()
        assert source is not None
        for _ in range(batches):
            positions = (np.arange(BATCH, dtype=np.int64) + self.sent) * 10
            origins = Origins(
                np.full(BATCH, AGENT), np.full(BATCH, 5), positions, np.full(BATCH, 10)
            )
            times = np.full(BATCH, self.event_ms + self.sent, np.int64)
            values = pa.array([b"x" * 10] * BATCH, pa.binary())
            self.producer.send(
                TopicPartition("logs", 0), columns.encode(values, times, origins=origins), None
            )
            self.counts.add(source, times, origins)
            self.sent += BATCH
        assert self.producer.flush(300_000)

    def seal(self) -> None:
        """Publishes the agent's deltas, which are messages with counts, and its seal, which says
        that the counts are final up to now."""
        source = self._source()
        assert source is not None
        sender = Sender(Tier.AGENT, "main", str(AGENT), "testhost", 1)
        now_ms = SystemClock().time_ms()
        numbered = number_deltas(sender, now_ms, 0, self.counts, {})
        sealed = SealedTopic(source, now_ms, numbered.last)
        said = [*numbered.deltas, Seal(sender, numbered.last + 1, now_ms, (sealed,))]
        values = pa.array([messages.encode(message) for message in said], pa.binary())
        times = np.full(len(said), now_ms, np.int64)
        self.producer.send(TopicPartition(TOPIC, 0), columns.encode(values, times), None)
        assert self.producer.flush(300_000)

    def counter(self, *more: str, limit: Limit = lambda program, _: program) -> Program:
        program = skidway(
            "audit", "count",
            "--set", f"bootstrap.servers={self.address}",
            "--set", f"state.dir={self.folder / 'count'}",
            "--set", f"bucket.ms={BUCKET_MS}", "--set", "commit.interval.ms=50",
            "--set", f"metrics.listener=127.0.0.1:{self.health_port}", *more,
        )  # fmt: skip
        return Program(limit(program, ROOM_KILOBYTES), self.folder / "count.out")

    def collector(self, limit: Limit = lambda program, _: program) -> Program:
        program = self._collector("store", self.port, self.metrics_port)
        return Program(limit(program, ROOM_KILOBYTES), self.folder / "audit.out")

    def second_collector(self, port: int) -> Program:
        program = self._collector("second store", port, free_port())
        return Program(program, self.folder / "second.out")

    def _collector(self, store: str, port: int, metrics_port: int) -> list[str]:
        return skidway(
            "audit", "run",
            "--set", f"bootstrap.servers={self.address}",
            "--set", f"store.dir={self.folder / store}",
            "--set", "tiers=agent,broker", "--set", "lateness.ms=0",
            "--set", f"listener=127.0.0.1:{port}",
            "--set", f"metrics.listener=127.0.0.1:{metrics_port}",
        )  # fmt: skip

    def ready(self) -> bool:
        return telemetry.is_healthy(self.health_port)

    def report(self) -> tuple[int, dict[str, Any]]:
        done = call_skidway(
            "audit", "report", "--json", "--tiers", "agent,broker", "--lateness-ms", "0",
            "--bootstrap-server", self.address,
        )  # fmt: skip
        return done.returncode, json.loads(done.stdout)

    def complete(self) -> bool:
        return self.report()[0] == 0

    def get(self, path: str, port: int | None = None) -> dict[str, Any]:
        address = f"http://127.0.0.1:{port or self.port}{path}"
        with urllib.request.urlopen(address, timeout=60) as answer:
            return dict(json.load(answer))

    def health(self) -> tuple[int, dict[str, Any]]:
        """Returns the status and the content of the collector's /health, or the status 0 if the
        collector does not answer yet."""
        return telemetry.health(self.metrics_port)

    def report_fails(self) -> bool:
        """Returns whether `audit report` ends with an error instead of a verdict, as it must if it
        cannot read all messages."""
        done = call_skidway(
            "audit", "report", "--tiers", "agent,broker", "--lateness-ms", "0",
            "--bootstrap-server", self.address,
        )  # fmt: skip
        return done.returncode == 1 and not done.stdout and "cannot be read at" in done.stderr

    def counted(self, tier: str) -> int:
        """Returns how many records the given tier has counted. The collector shows its buckets on
        pages of at most 60 buckets. This method adds the counts of all pages."""
        page = self.get("/buckets.json")
        found = _counted(page, tier)
        while page["older_until"] is not None:
            page = self.get(f"/buckets.json?until={page['older_until']}")
            found += _counted(page, tier)
        return found


@pytest.fixture
def site(zookeeper: str, tmp_path: Path) -> Iterator[Site]:
    broker = SkidwayBroker(tmp_path, zookeeper)
    made = Site(tmp_path, broker.start())
    yield made
    made.producer.close()
    made.client.close()
    broker.program.kill()


def _counted(report: dict[str, Any], tier: str) -> int:
    places = [place for bucket in report["buckets"] for place in bucket["places"]]
    return sum(place["count"] for place in places if place["tier"] == tier)


def _sizes(report: dict[str, Any], tier: str) -> set[int]:
    """Returns the sizes, in ms, of all buckets (time windows) in which the given tier has counted
    records."""
    return {
        bucket["bucket_ms"]
        for bucket in report["buckets"]
        if any(place["tier"] == tier and place["count"] for place in bucket["places"])
    }


@promise("6 numbers")
@pytest.mark.quick
def test_a_counter_killed_at_any_moment_counts_every_record_once(site: Site) -> None:
    """In one transaction, the counter commits its offsets, its counts and its marks (with which it
    recognizes repeats). So it counts every record exactly once, even if it is killed."""
    for _ in range(4):
        counter = site.counter().start().wait_until(site.ready)
        site.send(5)
        counter.kill()
    site.seal()
    counter = site.counter().start().wait_until(site.ready)
    eventually(site.complete, every_s=0.5, what="complete")
    status, report = site.report()
    assert (status, _counted(report, "broker")) == (0, site.sent)
    assert counter.stop() == 0


@promise("1 restored state")
@pytest.mark.quick
def test_a_lost_state_stops_the_counter_until_it_is_told(site: Site) -> None:
    """If the counter's state is lost, the counter stops, because the audit topic already contains
    messages with the numbers that the counter would use. If an operator tells the counter to begin
    a new epoch, in which its message numbers begin again, the counter counts all records again. Its
    new counts replace its old counts."""
    counter = site.counter().start().wait_until(site.ready)
    site.send(3)
    site.seal()
    eventually(site.complete, every_s=0.5, what="complete")
    assert counter.stop() == 0
    (site.folder / "count" / "counter.db").unlink()
    stopped = site.counter().start()
    assert stopped.wait() == 65
    assert "older copy of itself" in stopped.output()
    counter = site.counter("--new-epoch").start().wait_until(site.ready)
    eventually(site.complete, every_s=0.5, what="complete again")
    status, report = site.report()
    assert (status, _counted(report, "broker")) == (0, site.sent)
    assert counter.stop() == 0


@pytest.mark.quick
def test_a_collector_killed_and_rebuilt_says_the_same(site: Site) -> None:
    """After the collector was killed with kill -9 and started again, its dashboard shows the same
    buckets and verdicts as before. This also holds after the collector's store was lost and rebuilt
    from the audit topic."""
    counter = site.counter().start().wait_until(site.ready)
    collector = site.collector().start()
    site.send(4)
    site.seal()

    def says_complete() -> bool:
        if not answers(f"http://127.0.0.1:{site.port}/index.json"):
            return False
        shown = site.get("/index.json")
        return bool(shown["buckets_shown"]) and shown["buckets_overdue"] == 0

    eventually(says_complete, every_s=0.2, what="the dashboard says complete")
    before = site.get("/buckets.json")
    collector.kill()
    collector.start()
    eventually(says_complete, every_s=0.2, what="complete after kill -9")
    assert site.get("/buckets.json") == before
    collector.kill()
    for path in (site.folder / "store").glob("audit.db*"):
        path.unlink()
    collector.start()
    eventually(says_complete, every_s=0.2, what="complete after a rebuild")
    assert site.get("/buckets.json") == before
    done = call_skidway(
        "audit", "report", "--store", str(site.folder / "store"), "--tiers", "agent,broker",
        "--lateness-ms", "0",
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert collector.stop() == 0
    assert counter.stop() == 0


def test_two_collectors_agree(site: Site) -> None:
    """Two collectors of a cluster show the same verdicts and counts for every bucket, although one
    of them is killed with kill -9 while messages arrive."""
    counter = site.counter().start().wait_until(site.ready)
    ports = site.port, free_port()
    first, second = site.collector().start(), site.second_collector(ports[1]).start()

    def shown(path: str) -> list[dict[str, Any]]:
        if not all(answers(f"http://127.0.0.1:{port}/index.json") for port in ports):
            return []
        return [site.get(path, port) for port in ports]

    def are_complete() -> bool:
        found = shown("/index.json")
        return bool(found) and all(x["buckets_shown"] and not x["buckets_overdue"] for x in found)

    for _ in range(4):
        site.send()
        second.kill()
        second.start()
    eventually(lambda: len(shown("/index.json")) == 2, every_s=0.2, what="both answer")
    second.kill()
    site.seal()
    second.start()
    eventually(are_complete, every_s=0.2, what="both say complete")
    one, other = shown("/buckets.json")
    assert one == other
    assert _counted(one, "broker") == _counted(one, "agent") == site.sent
    assert (first.stop(), second.stop(), counter.stop()) == (0, 0, 0)


def test_the_history_is_asked_over_http_and_outlives_a_kill(site: Site) -> None:
    """`skidway audit report --history` asks the running collector for the history of a bucket. The
    history says that a bucket became complete, and that it was no longer complete after later
    lines. The history survives kill -9 and the loss of the collector's other database (`audit.db`).
    A topic that the audit does not know is refused with one sentence."""
    counter = site.counter().start().wait_until(site.ready)
    collector = site.collector().start()
    collected = f"http://127.0.0.1:{site.port}"
    asked = ["audit", "report", "--history", "--json", "--collector", collected]
    site.event_ms = (SystemClock().time_ms() - 60_000) // BUCKET_MS * BUCKET_MS

    def words() -> list[str]:
        done = call_skidway(*asked, "--topic", "main.logs", "--bucket", str(site.event_ms))
        buckets = json.loads(done.stdout)["buckets"] if done.returncode == 0 else []
        return [change["word"] for change in buckets[0]["changes"]] if buckets else []

    site.send()
    site.seal()
    eventually(lambda: words()[-1:] == ["complete"], every_s=0.5, what="it was noted as complete")
    noted = words()
    collector.kill()
    for path in (site.folder / "store").glob("audit.db*"):
        path.unlink()
    collector.start()
    eventually(lambda: words() == noted, every_s=0.5, what="the new store has the history")
    assert counter.stop() == 0
    site.send()
    site.seal()
    eventually(lambda: words()[-1:] != ["complete"], every_s=0.5, what="later lines reopened it")
    assert words()[: len(noted)] == noted
    refused = call_skidway(*asked, "--topic", "main.other")
    assert (refused.returncode, "main.other" in refused.stderr) == (2, True), refused.stderr
    assert collector.stop() == 0
    silent = call_skidway(*asked, "--topic", "main.logs")
    assert (silent.returncode, collected in silent.stderr) == (3, True), silent.stderr


def test_what_a_person_accepted_is_known_to_whoever_reads_the_topic(site: Site) -> None:
    """A bucket is a time window of a topic. When an operator accepts an incomplete bucket, the
    acceptance is stored in the audit topic of a real broker. A collector with a new store reads the
    acceptance from this topic."""
    site.send()
    site.seal()
    at = [
        "--set", f"bootstrap.servers={site.address}", "--set", "tiers=agent,broker",
        "--set", "lateness.ms=0", "--set", f"store.dir={site.folder / 'store'}",
    ]  # fmt: skip
    assert call_skidway("audit", "report", *at).returncode == 1
    accept = ["audit", "accept", "main.logs", "1970-01-01T00:16:40Z", "--name", "ada"]
    done = call_skidway(*accept, "--reason", "no counter ran", *at)
    assert done.returncode == 0, done.stderr
    assert "tier broker never reported this topic" in done.stdout
    collector = site.collector().start()
    eventually(lambda: answers(f"http://127.0.0.1:{site.port}/"), what="dashboard")
    eventually(lambda: site.get("/index.json")["buckets_accepted"] == 1, what="it knows")
    done = call_skidway(*accept, "--reason", "it will", "--revoke", *at)
    assert done.returncode == 0, done.stderr
    eventually(lambda: site.get("/index.json")["buckets_overdue"] == 1, what="taken back")
    assert collector.stop() == 0
    shown = call_skidway("audit", "report", *at)
    assert (shown.returncode, "1 should be and is not" in shown.stdout) == (1, True)


def test_an_occupied_port_is_one_sentence(site: Site) -> None:
    """If the collector's port is in use, the collector ends with one line that names the address,
    the process that uses it, and the setting to change. All other lines of the collector's output
    belong to its log. The exit status is 1."""
    collector = site.collector().start()
    eventually(lambda: answers(f"http://127.0.0.1:{site.port}/"))
    second = Program(
        [*site.collector().command, "--set", f"store.dir={site.folder / 'other'}",
         "--set", f"metrics.listener=127.0.0.1:{free_port()}"],
        site.folder / "second.out",
    )  # fmt: skip
    assert second.start().wait() == 1
    (said,) = [each for each in second.output().splitlines() if not each.startswith('{"time"')]
    address = f"127.0.0.1:{site.port}"
    by = f"address already in use by process {collector.pid} ("
    assert said.startswith(f"skidway audit: cannot listen on {address}: {by}")
    assert said.endswith("; set listener to a free one")
    assert collector.stop() == 0


def _limited(program: list[str], kilobytes: int) -> list[str]:
    """Returns a command line that runs the program with a limit on the size of each file that it
    writes. For a database, this limit has the same effect as a full disk."""
    return ["bash", "-c", f'ulimit -f {kilobytes} && exec "$@"', "-", *program]


@promise("6 full disk")
@pytest.mark.quick
def test_a_counter_without_room_ends_with_a_sentence_and_goes_on_with_room(site: Site) -> None:
    """If the disk is full, the counter prints a sentence and exits without losing data. After its
    next start it counts the records whose counts were not committed. In the end all buckets are
    complete."""
    site.send(20)
    counter = site.counter(limit=_limited).start()
    deadline = time.monotonic() + 300
    while counter.running and time.monotonic() < deadline:
        site.send(1)
    assert counter.wait() == 1
    said = counter.output()
    assert "counter.db cannot be used now" in said
    assert "Nothing is lost" in said
    assert "Traceback" not in said
    counter = site.counter().start()
    site.seal()
    eventually(site.complete, what="complete")
    assert _counted(site.report()[1], "broker") == site.sent
    counter.signal(signal.SIGTERM)
    assert counter.wait() == 0


@promise("6 full disk")
@pytest.mark.root
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("end", ["kill", "stop"])
def test_a_counter_that_starts_without_room_ends_with_a_sentence(
    site: Site, tmp_path: Path, kind: str, end: str
) -> None:
    """If the disk of its state has not one free byte when the counter starts, the counter ends with
    one sentence, and with a status after which systemd starts it again. When there is space, it
    counts every record once."""
    with small_disk(kind, tmp_path, 4 << 20) as disk:
        at = ("--set", f"state.dir={disk.path / 'count'}")
        counter = site.counter(*at).start()
        site.send(2)
        eventually(lambda: _counted(site.report()[1], "broker") == site.sent, what="counted")
        getattr(counter, end)()
        disk.fill()
        before = len(counter.output())
        site.send(2)
        assert site.counter(*at).start().wait() == 1
        said = [each for each in counter.output()[before:].splitlines() if each[0] != "{"]
        assert len(said) == 1, said
        assert "counter.db is full: " in said[0]
        disk.make_room()
        counter = site.counter(*at).start()
        site.seal()
        eventually(site.complete, what="complete")
        assert _counted(site.report()[1], "broker") == site.sent
        assert counter.stop() == 0


@promise("6 full disk")
def test_a_collector_without_room_ends_with_a_sentence_and_goes_on_with_room(site: Site) -> None:
    """If the disk is full, the collector prints a sentence and exits. After its next start it reads
    from the audit topic what its store lacks, and in the end all buckets are complete."""
    site.send(2)
    counter, collector = site.counter().start(), site.collector(limit=_limited).start()
    deadline = time.monotonic() + 300
    while collector.running and time.monotonic() < deadline:
        site.event_ms += BUCKET_MS  # one bucket more for the store
        site.send(1)
    assert collector.wait() == 1
    said = collector.output()
    assert "audit.db cannot be used now" in said
    assert "Traceback" not in said
    collector = site.collector().start()
    site.seal()
    eventually(lambda: answers(f"http://127.0.0.1:{site.port}/"), what="dashboard")
    eventually(site.complete, what="complete")
    eventually(lambda: site.counted("broker") == site.sent, what="counted")
    for program in (counter, collector):
        program.signal(signal.SIGTERM)
        assert program.wait() == 0


@promise("6 damaged audit topic")
def test_a_damaged_batch_of_a_real_audit_topic_is_named(site: Site) -> None:
    """If a byte of the audit topic's log changes on the broker's disk, the collector runs on with
    the messages before the damaged batch, and says in /health which partition it cannot read, and
    from which offset on. `skidway audit report` ends with an error. When the byte is right again,
    the collector reads all further messages without a restart."""
    counter = site.counter().start().wait_until(site.ready)
    site.send(2)
    eventually(lambda: _counted(site.report()[1], "broker") == site.sent, what="counted")
    assert counter.stop() == 0
    site.seal()  # the agent's messages, which become the last batch
    eventually(site.complete, every_s=0.5, what="complete")
    (log,) = site.folder.rglob("_skidway_audit-0/00000000000000000000.log")
    batches = list(headers(memoryview(log.read_bytes())))
    damaged_at = batches[-1][0] + batches[-1][1].size_bytes - 1
    _flip(log, damaged_at)
    collector = site.collector().start()
    eventually(lambda: site.health()[0] == 503 and "blocked" in site.health()[1], what="blocked")
    (said,) = site.health()[1]["blocked"]
    assert f"_skidway_audit-0 cannot be read at offset {batches[-1][1].base_offset}" in said
    assert site.report_fails()
    eventually(lambda: site.counted("broker") == site.sent, what="the messages before are stored")
    assert site.counted("agent") == 0
    _flip(log, damaged_at)
    eventually(lambda: site.health()[0] == 200, every_s=0.5, what="it reads on")
    assert site.complete()
    eventually(lambda: site.counted("agent") == site.sent, what="the rest is stored")
    assert collector.stop() == 0


def _flip(path: Path, at: int) -> None:
    """Changes a bit of the byte at the position `at` of a file. A second call for the same byte
    changes the bit back."""
    with path.open("r+b") as file:
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ 1]))


@promise("6 bucket size")
def test_another_bucket_size_is_refused_until_it_is_told(site: Site) -> None:
    """If `bucket.ms`, the size of the time windows, was changed, the counter prints a sentence and
    exits with status 78. If the counter is started with a new epoch, it counts all records from the
    beginning in buckets of the new size."""
    site.send()
    counter = site.counter().start()
    eventually(site.ready, what="the counter runs")
    site.seal()
    eventually(site.complete, what="complete")
    counter.signal(signal.SIGTERM)
    assert counter.wait() == 0
    counter = site.counter("--set", f"bucket.ms={2 * BUCKET_MS}").start()
    assert counter.wait() == 78
    assert f"counts buckets of {BUCKET_MS}" in counter.output()
    counter = site.counter().start()
    site.send()
    eventually(lambda: _counted(site.report()[1], "broker") == site.sent, what="counted")
    counter.signal(signal.SIGTERM)
    assert counter.wait() == 0
    assert _sizes(site.report()[1], "broker") == {BUCKET_MS}
    counter = site.counter("--new-epoch", "--set", f"bucket.ms={2 * BUCKET_MS}").start()
    eventually(
        lambda: _sizes(site.report()[1], "broker") == {2 * BUCKET_MS}, what="the new buckets"
    )
    site.send()
    eventually(lambda: _counted(site.report()[1], "broker") == site.sent, what="all counted")
    assert counter.stop() == 0
