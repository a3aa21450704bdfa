"""The agent beside Apache Kafka 4.4, while fewer replicas than `min.insync.replicas` are in sync.

Kafka does not move the high watermark then: a record that the leader has stored stays above it, and
no consumer sees the record, until enough replicas are in sync again.
"""

from __future__ import annotations

import collections
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from skidway.audit.topic.messages import TOPIC as AUDIT
from skidway.kafka.client import Client
from support.agent_process import AgentProcess, records
from support.kafka_cluster import FOLLOWER, LEADER, KafkaCluster, Node, kafka_cluster
from support.processes import eventually, running
from support.promises import promise
from support.registry import Registry

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
