"""The audit's roster and its gate work with a real agent, broker, counter and collector. The roster
is the list of hosts that the audit expects, and the gate is the command `skidway audit wait`."""

from __future__ import annotations

import json
import os
import urllib.error
import urllib.request
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import yaml

from skidway.audit.topic.messages import TOPIC
from skidway.kafka import columns
from skidway.kafka.client import Client, Producer
from skidway.kafka.types import TopicPartition
from support.agent_process import AgentProcess
from support.brokers import SkidwayBroker
from support.processes import (
    WITHIN_S,
    Program,
    answers,
    eventually,
    free_port,
    run_skidway,
    running,
    skidway,
)
from support.promises import promise
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
        self.counter = Program(
            skidway(
                "audit", "count", "--set", f"bootstrap.servers={broker.address}",
                "--set", f"state.dir={folder / 'count'}", "--set", f"bucket.ms={BUCKET_MS}",
                "--set", "commit.interval.ms=50",
                "--set", f"metrics.listener=127.0.0.1:{self.counting}",
            ),
            folder / "count.out",
        )  # fmt: skip
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

    def publish(self, value: bytes) -> None:
        """Appends a record with this value to the audit topic."""
        with Client(self.address) as client:
            producer = Producer(client)
            batch = columns.encode(pa.array([value], pa.binary()), np.array([0], np.int64))
            producer.send(TopicPartition(TOPIC, 0), batch, None)
            eventually(lambda: [x.error for x in producer.poll(100)] == [None], what="published")

    def start_counter(self) -> None:
        self.counter.start()
        self.counter.wait_until(lambda: answers(f"http://127.0.0.1:{self.counting}/health"))

    def start_collector(self) -> None:
        self.collector.start()
        self.collector.wait_until(lambda: answers(f"http://127.0.0.1:{self.port}/"))

    def ask(self, *arguments: str) -> tuple[int, str]:
        """Runs a command of `skidway audit`. Returns its exit status and its output, including the
        errors."""
        done = run_skidway("audit", *arguments, within_s=2 * WITHIN_S)
        return done.returncode, done.stdout + done.stderr

    def wait(self, *more: str, host: str = "app1", timeout_s: int = 300) -> tuple[int, str]:
        return self.ask(
            "wait", "--config", str(self.config), "--host", host, "--since", "0s",
            "--timeout-s", str(timeout_s), *more,
        )  # fmt: skip

    def health(self) -> tuple[int, dict[str, Any]]:
        try:
            url = f"http://127.0.0.1:{self.metrics}/health"
            with urllib.request.urlopen(url, timeout=60) as answer:
                return answer.status, dict(json.load(answer))
        except urllib.error.HTTPError as error:
            return error.code, dict(json.load(error))

    def metric(self, name: str) -> float:
        with urllib.request.urlopen(
            f"http://127.0.0.1:{self.metrics}/metrics", timeout=60
        ) as answer:
            lines = answer.read().decode().splitlines()
        return next(float(line.split()[1]) for line in lines if line.startswith(f"{name} "))

    def reasons(self) -> str:
        """Returns all reasons that the dashboard gives for its verdicts on buckets. A bucket is a
        time window of a topic."""
        url = f"http://127.0.0.1:{self.port}/buckets.json"
        with urllib.request.urlopen(url, timeout=60) as answer:
            return " ".join(x for bucket in json.load(answer)["buckets"] for x in bucket["reasons"])

    def _buckets(self) -> list[dict[str, Any]]:
        with urllib.request.urlopen(
            f"http://127.0.0.1:{self.port}/buckets.json", timeout=60
        ) as answer:
            return list(json.load(answer)["buckets"])

    def verdicts(self) -> set[str]:
        return {bucket["verdict"] for bucket in self._buckets()}

    def counted(self) -> int:
        places = [x for bucket in self._buckets() for x in bucket["places"]]
        return sum(x["count"] for x in places if x["tier"] == "broker")

    def stop(self) -> None:
        for program in (self.agent.program, self.counter, self.collector):
            if program.running:
                program.kill()


@pytest.fixture
def fleet(zookeeper: str, tmp_path: Path) -> Iterator[Fleet]:
    broker, registry = SkidwayBroker(tmp_path, zookeeper), Registry(zookeeper, tmp_path)
    broker.start()
    with running(registry.program, registry.ready):
        made = Fleet(tmp_path, broker, registry)
        yield made
        made.stop()
    broker.program.kill()


@promise("6 gate")
def test_waiting_ends_when_the_agent_has_sealed_and_not_without_it(fleet: Fleet) -> None:
    """A seal is a message which says that an agent's counts are final up to a given time. `skidway
    audit wait` exits with status 0 as soon as the host's agent has sent a seal, even if the host
    has no new lines. `wait` can read the seal from the audit topic or from the collector's store.
    If the agent is stopped, or if the counter does not count, `wait` exits with status 1."""
    fleet.start_counter()
    fleet.write(0)  # the log exists: a source that never had a file would hold the gate
    fleet.agent.start()
    assert fleet.wait("--bootstrap-server", fleet.address)[0] == 0, "it has written nothing"
    fleet.write(1_000)
    status, said = fleet.wait("--bootstrap-server", fleet.address)
    assert status == 0, said
    assert "1 host sealed past the bucket of" in said
    fleet.start_collector()
    status, said = fleet.wait("--json")
    assert status == 0, said
    assert fleet.counter.stop() == 0
    since = this_second()
    fleet.write(10)
    eventually(lambda: "broker main is short by 10 of 10" in fleet.reasons(), what="it is missed")
    status, said = fleet.ask(
        "wait", "--config", str(fleet.config), "--host", "app1", "--since", since,
        "--timeout-s", "5",
    )  # fmt: skip
    assert status == 1
    assert "app1 (main): " in said
    assert "is incomplete: broker main is short by 10 of 10" in said
    fleet.start_counter()
    status, said = fleet.ask(
        "wait", "--config", str(fleet.config), "--host", "app1", "--since", since
    )
    assert status == 0, said
    assert fleet.agent.program.stop() == 0
    status, said = fleet.wait(timeout_s=3)
    assert status == 1
    assert "app1 (main): " in said
    assert "topic logs is sealed only to" in said


def this_second() -> str:
    """Returns the current time in whole seconds, in UTC, in the format that operators use, such as
    2026-01-02T03:04:05Z."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def test_hosts_that_nobody_heard_and_clusters_that_nobody_reaches(fleet: Fleet) -> None:
    """`skidway audit wait` exits with status 1 if the audit expects the host, but no message of the
    host's agent was ever received. The roster is the list of expected hosts. If the host is not in
    the roster, `wait` exits with status 2, because this is a mistake of the caller. If the cluster
    does not answer, the exit status is 3."""
    fleet.write_roster(APP1, APP2)
    status, said = fleet.wait(host="app2", timeout_s=1)
    assert (status, "app2 (main): no agent of it was ever heard." in said) == (1, True), said
    status, said = fleet.wait(host="app3")
    assert (status, "no roster names this host" in said) == (2, True), said
    nobody = f"127.0.0.1:{free_port()}"
    assert fleet.wait("--bootstrap-server", nobody)[0] == 3


@promise("6 newer version")
def test_a_message_of_a_newer_version_is_told_by_name_and_nothing_is_complete(
    fleet: Fleet,
) -> None:
    """If the audit topic contains a message with an unknown schema, no bucket (time window of a
    topic) is complete, a metric counts the message, and the collector logs the schema once. The
    verdicts, /health, `skidway audit wait` and `skidway audit hosts` name the unknown schema."""
    fleet.start_counter()
    fleet.agent.start()
    fleet.write(100)
    fleet.start_collector()
    assert fleet.wait()[0] == 0
    fleet.publish(b"\xc3\x01fromnext" + b"whatever it says")
    name = b"fromnext".hex()
    eventually(lambda: fleet.health()[0] == 503, what="it is seen")
    assert name in fleet.health()[1]["schemas"]
    eventually(lambda: fleet.metric("skidway_audit_unread_messages") == 1, what="it is counted")
    eventually(lambda: name in fleet.reasons(), what="the buckets are judged with it")
    eventually(lambda: "complete" not in fleet.verdicts(), what="no bucket is complete")
    status, said = fleet.wait(timeout_s=5)
    assert (status, name in said) == (1, True), said
    assert name in fleet.ask("hosts", "--config", str(fleet.config))[1]
    status, said = fleet.wait("--bootstrap-server", fleet.address, timeout_s=5)
    assert (status, name in said) == (1, True), said
    assert fleet.collector.output().count("audit_schema_unknown") == 1
    assert fleet.collector.stop() == 0


@promise("6 expected hosts")
def test_the_collector_takes_a_roster_that_changes(fleet: Fleet) -> None:
    """The collector loads a changed roster without a restart. If the new roster is invalid, the
    collector keeps the old roster and logs the error once. /health shows the error until the roster
    is valid. The audit no longer expects a host if the roster says that the host is retired. If the
    roster no longer says so, the audit expects the host again."""
    fleet.start_counter()
    fleet.agent.start()
    fleet.write(100)
    fleet.start_collector()
    eventually(lambda: fleet.health()[0] == 200, what="healthy")
    assert fleet.wait()[0] == 0
    assert "app2" not in fleet.reasons()
    fleet.write_roster(APP1, APP2)
    words = "host app2 is expected, but no agent of it reported yet"
    eventually(lambda: words in fleet.reasons(), what="app2 is expected")
    fleet.write_roster(text="hosts:\n  - {host: app1}\n")
    eventually(lambda: fleet.health()[0] == 503, what="the roster is refused")
    assert "the key 'hosts[0].cluster' is missing" in fleet.health()[1]["roster"]
    assert words in fleet.reasons(), "the last good one holds"
    assert fleet.collector.output().count("roster_refused") == 1
    fleet.write_roster(APP1, {"host": "app2", "cluster": "main", "retired": True})
    eventually(lambda: fleet.health()[0] == 200, what="healthy again")
    eventually(lambda: words not in fleet.reasons(), what="app2 is retired")
    fleet.write_roster(APP1, APP2)
    eventually(lambda: words in fleet.reasons(), what="app2 is expected again")
    eventually(lambda: fleet.metric("skidway_audit_never_heard_hosts") == 1, what="it is counted")
    assert fleet.metric("skidway_audit_expected_hosts") == 2
    assert fleet.metric("skidway_audit_silent_hosts") == 0
    assert fleet.collector.stop() == 0
    fleet.write_roster(text="hosts: no")
    assert fleet.collector.start().wait() == 78
    assert "hosts must be a list" in fleet.collector.output()


def test_hosts_are_listed_with_their_state(fleet: Fleet) -> None:
    """`skidway audit hosts` exits with status 1 while an expected host is silent or has never sent
    a message. Otherwise it exits with status 0.
    """
    fleet.agent.start()
    hosts = ["hosts", "--json", "--config", str(fleet.config)]

    def reporting() -> bool:
        return fleet.ask(*hosts)[0] == 0

    eventually(reporting, every_s=0.5, what="app1 reports")
    fleet.write_roster(APP1, APP2, {"host": "app7", "cluster": "main", "retired": True})
    done = run_skidway("audit", *hosts)
    states = {x["host"]: x["state"] for x in json.loads(done.stdout)["hosts"]}
    assert done.returncode == 1
    assert states == {"app1": "reporting", "app2": "never heard", "app7": "retired"}
    fleet.write_roster(APP1)
    fleet.agent.program.kill()
    eventually(lambda: not reporting(), every_s=0.5, what="app1 is silent")
    status, said = fleet.ask("hosts", "--config", str(fleet.config))
    assert status == 1
    assert "silent since" in said
    assert "1 of 1 expected hosts does not report (silent: app1)." in said


@promise("6 last word")
@pytest.mark.quick
def test_a_host_that_left_for_good_is_complete(fleet: Fleet) -> None:
    """If a host is retired but not drained, the verdict on its last buckets stays "unknown". A
    bucket is a time window of a topic. After the host has been drained with `skidway agent drain`,
    these buckets are complete. If the host's agent is started again, the audit waits for the agent
    as before, and counts the agent's new lines."""
    fleet.agent.settings["seal.interval.ms"] = 600_000
    # A bucket is due `lateness.ms` after its end. This setting is so large that even a slow drain
    # ends before the bucket of the drained lines is due. An ordinary seal proves a bucket complete
    # only if it is made after the bucket is due. So only a last word (the final message of a
    # drained agent) can prove this bucket complete.
    fleet.settings["lateness.ms"] = 10_000
    fleet.config.write_text(yaml.safe_dump(fleet.settings))
    fleet.start_counter()
    fleet.start_collector()
    fleet.agent.start()
    fleet.write(100)
    log = fleet.folder / "log" / "a.log"
    eventually(lambda: fleet.agent.settled({log: log.stat().st_size}), what="all delivered")
    assert fleet.agent.program.stop() == 0
    fleet.write(10)  # only the drain reads these ten lines, because the agent is stopped
    fleet.write_roster({**APP1, "retired": True})
    eventually(lambda: "app1 (retired): the agent is silent: unknown since" in fleet.reasons())
    done = run_skidway("agent", "drain", "--config", str(fleet.agent.config))
    assert done.returncode == 0, done.stderr
    eventually(lambda: fleet.verdicts() == {"complete"}, what="complete to its end")
    fleet.write_roster(APP1)
    eventually(lambda: "the agent is silent: unknown since" in fleet.reasons(), what="expected")
    fleet.agent.settings["seal.interval.ms"] = 500
    fleet.agent.start()
    fleet.write(10)
    eventually(lambda: fleet.counted() == 120, what="what came then")
    eventually(lambda: fleet.verdicts() == {"complete"}, what="complete with what came then")
