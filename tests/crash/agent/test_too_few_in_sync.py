"""The agent beside Apache Kafka 4.4, while fewer replicas than `min.insync.replicas` are in sync.

Kafka does not move the high watermark then: a record that the leader has stored stays above it, and
no consumer sees the record, until enough replicas are in sync again.
"""

from __future__ import annotations

import collections
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from skidway.audit.topic.messages import TOPIC as AUDIT
from skidway.kafka.client import Client
from skidway.kafka.protocol.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from support import jvm
from support.agent_process import AgentProcess, records
from support.kafka import cluster_id, format_storage, java
from support.processes import Program, accepts, eventually, free_port, running
from support.promises import promise
from support.raw_client import RawClient
from support.registry import Registry

HOST = "127.0.0.1"
CONTROLLER, LEADER, FOLLOWER = 1, 2, 3
SILENT_MS = 20_000
"""After this time, a broker that stands still is no longer among the in-sync replicas. Until then,
the leader takes records that no other replica has."""


class Node:
    """A controller or broker of the cluster, with its own folder."""

    def __init__(self, folder: Path, number: int, port: int, settings: dict[str, str]) -> None:
        folder.mkdir()
        self.address = f"{HOST}:{port}"
        self.port = port
        self.logs = folder / "logs"
        self.config = folder / "kafka.properties"
        settings = {"node.id": str(number), "log.dirs": str(self.logs), **settings}
        self.config.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        command = [*java(heap_mb=256, options=jvm.BRIEF), "kafka.Kafka", str(self.config)]
        self.program = Program(command, folder / "kafka.out")

    def ready(self) -> bool:
        return accepts(self.port)

    def size(self, topic: str) -> int:
        """Returns how many bytes this node has of the batches of partition 0, also of those that
        are above the high watermark."""
        return sum(each.stat().st_size for each in self.logs.glob(f"{topic}-0/*.log"))

    def freeze(self) -> None:
        """Stops the process without its knowledge: its connections stay open."""
        self.program.signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self.program.signal(signal.SIGCONT)


class KafkaCluster:
    """The nodes: a controller, and two brokers. Every topic has one partition."""

    def __init__(self, folder: Path) -> None:
        port = free_port()
        controller = f"{HOST}:{port}"
        self._common = {
            "controller.quorum.voters": f"{CONTROLLER}@{controller}",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "broker.heartbeat.interval.ms": "500",
            "broker.session.timeout.ms": str(SILENT_MS),
        }
        leading = {"process.roles": "controller", "listeners": f"CONTROLLER://{controller}"}
        controlling = Node(folder / "controller", CONTROLLER, port, self._common | leading)
        self.leader = self._broker(folder / "leader", LEADER)
        self.follower = self._broker(folder / "follower", FOLLOWER)
        self.nodes = (controlling, self.leader, self.follower)

    def _broker(self, folder: Path, number: int) -> Node:
        port = free_port()
        serving = {"process.roles": "broker", "listeners": f"PLAINTEXT://{HOST}:{port}"}
        return Node(folder, number, port, self._common | serving)

    def create(self, topic: str, replicas: tuple[int, ...], configs: Mapping[str, str]) -> None:
        """Creates a topic. The first of its replicas becomes the leader."""
        row = CreatableTopic(
            name=topic,
            assignments=(CreatableReplicaAssignment(partition_index=0, broker_ids=replicas),),
            configs=tuple(CreatableTopicConfig(name=k, value=v) for k, v in configs.items()),
        )
        with RawClient(self.leader.port) as client:
            answer = client.ask(CreateTopicsRequest(topics=(row,)), 7, CreateTopicsResponse)
        assert isinstance(answer, CreateTopicsResponse)
        assert answer.topics[0].error_code == 0, answer


@contextmanager
def kafka_cluster(folder: Path) -> Iterator[KafkaCluster]:
    """Yields a running cluster, and kills its nodes at the end."""
    cluster, identity = KafkaCluster(folder), cluster_id()
    for node in cluster.nodes:
        format_storage(node.config, identity)
    try:
        for node in cluster.nodes:
            node.program.start()
        for node in cluster.nodes:
            node.program.wait_until(node.ready)
        yield cluster
    finally:
        for node in cluster.nodes:
            if node.program.running:
                node.program.kill()


pytestmark = pytest.mark.java
TOPIC = "web"
CONFIGS = {"min.insync.replicas": "2", "retention.ms": "-1"}


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[KafkaCluster]:
    """The cluster with the agent's topics. The audit's topic has no second replica: its messages
    use the same connection as the lines, and a broker answers a connection's requests in order."""
    with kafka_cluster(tmp_path) as made:
        for topic in (TOPIC, f"{TOPIC}.rejected"):
            made.create(topic, (LEADER, FOLLOWER), CONFIGS)
        made.create(AUDIT, (LEADER,), {})
        yield made


@contextmanager
def agent_of(
    folder: Path, leader: Node, registry: Registry, pattern: str
) -> Iterator[AgentProcess]:
    """An agent that knows only the leader, because a broker that stands still answers nothing."""
    folder.mkdir()
    source = {"topic": TOPIC, "paths": [pattern]}
    with running(registry.program, registry.ready):
        made = AgentProcess(folder, leader.address, registry.url, [source])
        made.settings |= {"cluster.name": "dc1", "read.back.wait.ms": 2_000}
        try:
            yield made
        finally:
            made.program.kill()


def in_sync(leader: Node) -> int:
    with Client(leader.address) as client:
        return len(client.metadata([TOPIC]).topics[TOPIC].partitions[0].isr)


def waits_for_the_watermark(agent: AgentProcess) -> bool:
    """Whether no late batch can arrive any more, and the agent has read the topic of rejects up to
    its end, but still waits for the data topic. Both have one leader, so it has the watermarks of
    both."""
    said = agent.health().get("reading_back", {})
    return said.get("late_batches_for_s") == 0 and said.get("partitions") == [f"{TOPIC}-0"]


def apart(agent: AgentProcess) -> int:
    """The bytes that the agent has declared lost or uncertain."""
    return sum(file["lost"] + file["uncertain"] for file in agent.ledger())


@promise("2 read back")
def test_records_above_a_watermark_that_stands_are_not_lost(
    tmp_path: Path, cluster: KafkaCluster, registry: Registry
) -> None:
    """The agent is killed while its records are on the leader and unanswered, their file is
    deleted, and the only other replica stands still. The started agent waits: it calls nothing
    lost as long as the records are above the high watermark. When the replica runs again, the agent
    finds every record, and nothing is lost, uncertain or doubled."""
    leader, follower = cluster.leader, cluster.follower
    (folder := tmp_path / "log").mkdir()
    path = folder / "a.log"
    written = [f"line {n:04}" for n in range(200)]
    with agent_of(tmp_path / "agent", leader, registry, str(path)) as agent:
        path.write_text("".join(f"{line}\n" for line in written[:100]))
        agent.start()
        eventually(lambda: agent.settled({path: path.stat().st_size}), what="the first lines")
        follower.freeze()
        before = leader.size(TOPIC)
        with path.open("a") as out:
            out.write("".join(f"{line}\n" for line in written[100:]))
        eventually(lambda: leader.size(TOPIC) > before, what="the leader has the records")
        agent.program.kill()
        size = path.stat().st_size
        path.unlink()
        eventually(lambda: in_sync(leader) == 1, what="too few replicas are in sync")
        agent.start(ready=False)
        eventually(
            lambda: waits_for_the_watermark(agent) or not agent.has_pending(),
            what="the agent waits or has decided",
        )
        assert (apart(agent), agent.has_pending()) == (0, True)
        follower.thaw()
        eventually(lambda: agent.settled({path: size}), what="all settled")
        assert apart(agent) == 0
        found = collections.Counter(line for _, _, line, _, _ in records(leader.address, TOPIC))
        assert found == collections.Counter(written)
        assert agent.program.stop() == 0
