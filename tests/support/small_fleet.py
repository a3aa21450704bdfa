"""One host with an agent, a counter and a collector, as processes."""

from __future__ import annotations

import json
import os
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import yaml

from skidway.audit.topic.messages import TOPIC
from skidway.kafka import columns
from skidway.kafka.client import Client, Producer
from skidway.kafka.columns import OneHeader
from skidway.kafka.types import TopicPartition
from support import telemetry
from support.agent_process import AgentProcess
from support.brokers import SkidwayBroker
from support.processes import (
    Program,
    answers,
    call_skidway,
    eventually,
    free_port,
    running,
    skidway,
)
from support.registry import Registry

BUCKET_MS = 1_000
APP1 = {"host": "app1", "cluster": "main", "topics": ["logs"]}
APP2 = {"host": "app2", "cluster": "main", "topics": ["logs"]}


class Fleet:
    """One host's agent, a counter and a collector, none of which runs until a test starts it. They
    use the given broker and registry, which run already."""

    def __init__(self, folder: Path, broker: SkidwayBroker, registry: Registry) -> None:
        self.folder, self.address = folder, broker.address
        (folder / "log").mkdir()
        (folder / "agent").mkdir()
        source = {"topic": "logs", "paths": [str(folder / "log" / "*.log")]}
        self.agent = AgentProcess(folder / "agent", broker.address, registry.url, [source])
        self.agent.settings |= {"host.name": "app1", "audit.bucket.ms": BUCKET_MS}
        self.agent.settings |= {"audit.interval.ms": 100, "heartbeat.interval.ms": 500}
        self.port, self.metrics, self.counting = free_port(), free_port(), free_port()
        self.config = folder / "audit.yml"
        self.settings: dict[str, Any] = {
            "bootstrap.servers": broker.address,
            "store.dir": str(folder / "store"),
            "listener": f"127.0.0.1:{self.port}",
            "metrics.listener": f"127.0.0.1:{self.metrics}",
            "tiers": ["agent", "broker"],
            "lateness.ms": 500,
            "bucket.ms": BUCKET_MS,
            "silence.ms": 5_000,
            "roster": {"file": str(folder / "roster.yml")},
        }
        self.config.write_text(yaml.safe_dump(self.settings))
        self.write_roster(APP1)
        self.counter_settings: dict[str, Any] = {
            "bootstrap.servers": broker.address,
            "state.dir": str(folder / "count"),
            "bucket.ms": BUCKET_MS,
            "commit.interval.ms": 50,
            "metrics.listener": f"127.0.0.1:{self.counting}",
        }
        self.counter = Program(
            skidway("audit", "count", "--config", str(folder / "count.yml")), folder / "count.out"
        )
        self.collector = Program(
            skidway("audit", "run", "--config", str(self.config)), folder / "audit.out"
        )

    def write_roster(self, *hosts: dict[str, Any], text: str = "") -> None:
        """Writes the roster, which is the list of expected hosts. Like Ansible, writes a new file
        in the roster's directory, and then renames this file to the roster's name."""
        fresh = self.folder / "roster.new"
        fresh.write_text(text or yaml.safe_dump({"hosts": list(hosts)}))
        os.replace(fresh, self.folder / "roster.yml")

    def write(self, count: int) -> None:
        with (self.folder / "log" / "a.log").open("a") as out:
            out.writelines(f"line {index}\n" for index in range(count))

    def publish(
        self, value: bytes, header: OneHeader | None = None, *, garbled: bool = False
    ) -> None:
        """Appends a record with this value to the audit topic. header: its only header. garbled:
        nobody can decode the record."""
        with Client(self.address) as client:
            producer = Producer(client)
            batch = columns.encode(
                pa.array([value], pa.binary()), np.array([0], np.int64), header=header
            )
            if garbled:
                batch = replace(batch, body=b"\xff" * len(batch.body))
            producer.send(TopicPartition(TOPIC, 0), batch, None)
            eventually(lambda: [x.error for x in producer.poll(100)] == [None], what="published")

    def start_counter(self) -> None:
        (self.folder / "count.yml").write_text(yaml.safe_dump(self.counter_settings))
        self.counter.start()
        self.counter.wait_until(lambda: telemetry.is_healthy(self.counting))

    def start_collector(self) -> None:
        self.collector.start()
        self.collector.wait_until(lambda: answers(f"http://127.0.0.1:{self.port}/"))

    def ask(self, *arguments: str) -> tuple[int, str]:
        """Runs a command of `skidway audit`. Returns its exit status and its output, including the
        errors."""
        done = call_skidway("audit", *arguments)
        return done.returncode, done.stdout + done.stderr

    def wait(self, *more: str, host: str = "app1", timeout_s: int = 300) -> tuple[int, str]:
        return self.ask(
            "wait", "--config", str(self.config), "--host", host, "--since", "0s",
            "--timeout-s", str(timeout_s), *more,
        )  # fmt: skip

    def health(self) -> tuple[int, dict[str, Any]]:
        return telemetry.health(self.metrics)

    def metric(self, name: str) -> float:
        return telemetry.metrics(self.metrics)[name]

    def reasons(self) -> str:
        """Returns all reasons that the dashboard gives for its verdicts on buckets. A bucket is a
        time window of a topic."""
        return " ".join(reason for bucket in self._buckets() for reason in bucket["reasons"])

    def _buckets(self) -> list[dict[str, Any]]:
        with urllib.request.urlopen(
            f"http://127.0.0.1:{self.port}/buckets.json", timeout=60
        ) as answer:
            return list(json.load(answer)["buckets"])

    def verdicts(self) -> set[str]:
        return {bucket["verdict"] for bucket in self._buckets()}

    def counted(self) -> int:
        places = [x for bucket in self._buckets() for x in bucket["places"]]
        return sum(x.get("count") or 0 for x in places if x["tier"] == "broker")

    def stop(self) -> None:
        for program in (self.agent.program, self.counter, self.collector):
            if program.running:
                program.kill()


@contextmanager
def small_fleet(zookeeper: str, folder: Path) -> Iterator[Fleet]:
    """Runs a broker and a registry for a fleet while the `with` block runs."""
    broker, registry = SkidwayBroker(folder, zookeeper), Registry(zookeeper, folder)
    broker.start()
    with running(registry.program, registry.ready):
        made = Fleet(folder, broker, registry)
        yield made
        made.stop()
    broker.program.kill()
