"""A real Apache Kafka 4.4 with a controller of its own and two brokers, for tests in which one of
two replicas stands still."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from skidway.kafka.protocol.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from support import jvm
from support.kafka import cluster_id, format_storage, java
from support.processes import Program, accepts, free_port
from support.raw_client import RawClient

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
