"""With real programs: a counter whose brokers do not know the same topics."""

from __future__ import annotations

import json
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
import yaml

from skidway.audit.topic import topic
from skidway.kafka import columns
from skidway.kafka.client import Client, NewTopic, Producer
from skidway.kafka.types import TopicPartition
from support import telemetry
from support.brokers import SkidwayBroker
from support.processes import Program, answers, eventually, free_port, skidway
from support.promises import promise
from support.relay import Relay

BUCKET_MS, COUNT = 1_000, 10
TOPICS = ("counted", "grown", "new")


class Site:
    """Two brokers, of which one reaches ZooKeeper through a relay, a counter that is to ask this
    one first, and a collector. The audit topic and the topic `grown` are on the other broker."""

    def __init__(self, folder: Path, zookeeper: str) -> None:
        server, _, chroot = zookeeper.partition("/")
        self.relay = Relay(int(server.rpartition(":")[2]))
        self.cut_off, self.other = (
            SkidwayBroker(
                folder / str(number), address, broker_id=number, zookeeper_session_timeout_ms=4_000
            )
            for number, address in ((1, f"{self.relay.address}/{chroot}"), (2, zookeeper))
        )
        self.client = Client(self.other.address)
        self.producer = Producer(self.client)
        self.counting, self.port = free_port(), free_port()
        shared = {"bucket.ms": BUCKET_MS}
        settings = {
            "count": {
                "bootstrap.servers": f"{self.cut_off.address},{self.other.address}",
                "state.dir": str(folder / "state"),
                "metadata.max.age.ms": 500,
                "commit.interval.ms": 100,
                "heartbeat.interval.ms": 1_000,
                "metrics.listener": f"127.0.0.1:{self.counting}",
            },
            "run": {
                "bootstrap.servers": self.other.address,
                "store.dir": str(folder / "store"),
                "listener": f"127.0.0.1:{self.port}",
                "metrics.listener": f"127.0.0.1:{free_port()}",
                "tiers": ["agent", "broker"],
                "lateness.ms": 500,
            },
        }
        self.programs = {}
        for name, each in settings.items():
            (folder / f"{name}.yml").write_text(yaml.safe_dump(each | shared))
            command = skidway("audit", name, "--config", str(folder / f"{name}.yml"))
            self.programs[name] = Program(command, folder / f"{name}.out")

    def start(self) -> None:
        self.other.folder.mkdir()
        self.cut_off.folder.mkdir()
        self.other.start()
        topic.ensure(self.client, time.sleep)
        self.create("grown")
        self.cut_off.start()
        self.programs["run"].start().wait_until(lambda: answers(f"http://127.0.0.1:{self.port}/"))

    def create(self, name: str) -> None:
        assert self.client.create_topics([NewTopic(name, 1, 1)]) == {name: None}

    def send(self, name: str, count: int, time_ms: int, partition: int = 0) -> None:
        """Sends records without origin, and waits until the broker has them."""
        times = pa.array([time_ms] * count, pa.int64()).to_numpy()
        batch = columns.encode(pa.array([b"x"] * count, pa.binary()), times)
        self.producer.send(TopicPartition(name, partition), batch, None)
        eventually(lambda: [x.error for x in self.producer.poll(100)] == [None], what="sent")

    def found(self, time_ms: int) -> dict[str, tuple[str, int]]:
        """For each topic with records in the bucket of this time: its verdict and its count."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/buckets.json") as answer:
            buckets = json.load(answer)["buckets"]
        return {
            x["topic"]: (x["verdict"], sum(place.get("count") or 0 for place in x["places"]))
            for x in buckets
            if x["bucket"] == time_ms // BUCKET_MS * BUCKET_MS
        }

    def stop(self) -> None:
        for program in self.programs.values():
            if program.running:
                program.kill()
        for broker in (self.cut_off, self.other):
            broker.end()
        self.client.close()


@pytest.fixture
def site(tmp_path: Path, zookeeper: str) -> Iterator[Site]:
    made = Site(tmp_path, zookeeper)
    with made.relay:
        yield made
        made.stop()


@promise("6 without origin")
def test_what_a_broker_without_zookeeper_does_not_know_is_not_complete(site: Site) -> None:
    """A broker is cut off from ZooKeeper, and answers from its old catalogue. Meanwhile, at the
    other broker, a topic that the counter has counted gets records, another topic gets a partition,
    and a third one is made. No bucket is complete with fewer records than there are. The counter's
    /health says why, and when ZooKeeper is back, everything is complete."""
    site.start()
    site.relay.fall_silent()
    eventually(lambda: len(site.client.metadata(()).brokers) == 1, what="one broker is left")
    site.create("counted")
    counter = site.programs["count"].start()
    counter.wait_until(lambda: '"counted-0"' in counter.output())
    time_ms = int(time.time() * 1_000) + 20_000
    for name in ("counted", "grown"):
        site.send(name, 6, time_ms)
    eventually(lambda: len(site.found(time_ms)) == 2, what="six records of each are counted")
    site.other.crash()  # now the counter knows the address of the other one only
    assert site.client.create_partitions({"grown": 2}) == {"grown": None}
    site.create("new")
    for name, partition, count in (("counted", 0, 4), ("grown", 1, 4), ("new", 0, COUNT)):
        site.send(name, count, time_ms, partition)
    assert time.time() * 1_000 < time_ms, "the records came before their bucket was due"
    while time.time() * 1_000 < time_ms + 6_000:
        assert "complete" not in {verdict for verdict, _ in site.found(time_ms).values()}
        time.sleep(0.2)
    status, detail = telemetry.health(site.counting)
    assert status == 503
    assert "does not show the topic" in detail["not_refreshed"]
    site.relay.go_on()
    whole = dict.fromkeys(TOPICS, ("complete", COUNT))
    eventually(lambda: site.found(time_ms) == whole, what="everything is complete")
    assert telemetry.is_healthy(site.counting)
