"""Measures how fast a topic is copied into another cluster. Compares Skidway's broker, which
mirrors the topic itself, with MirrorMaker 2 and its target broker.

Both sides copy the same topic from one Apache Kafka, one side after the other. Skidway's broker
fetches and writes in one process; MirrorMaker 2 copies into a second Apache Kafka. The measurement
begins with the first mirrored message and ends with the last. It does not include the programs'
start, because a JVM needs seconds before it copies anything.
"""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from bench.consume import fill
from bench.machine import family_cpu_seconds, resident_mb
from bench.measure import KAFKA, Row, Table
from bench.produce import MESSAGE
from bench.scale import scaled
from bench.sites import ApacheKafka, Program, ZooKeeper, answers, free_port, running, skidway
from skidway.java import find
from skidway.kafka.client import LATEST, Client
from skidway.kafka.errors import KafkaError
from skidway.kafka.types import TopicPartition
from support import peers

PEER = "mirror-maker"
COUNT = scaled(6_000_000, 1_000_000)
ROUNDS = scaled(3, 1)
WITHIN_S = 600.0
SOURCE, TARGET = "dc1", "offline"


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures of one round of one side (Skidway's mirror or MirrorMaker 2).

    messages_a_second: The number of messages that were copied per second.
    mirror_mb_a_cpu_second: The megabytes copied per CPU second of the process that mirrors.
    whole_mb_a_cpu_second: The megabytes copied per CPU second of all processes that copy or write.
    resident_mb: The resident memory of all these processes.
    """

    messages_a_second: float
    mirror_mb_a_cpu_second: float
    whole_mb_a_cpu_second: float
    resident_mb: float


def run() -> Table:
    """Runs Skidway's mirror and MirrorMaker 2 in turn. Measures the messages per second, the
    megabytes per CPU second and the memory of each side."""
    if not peers.is_complete(PEER):
        peers.fetch(PEER, peers.provide_maven())
    table = Table(f"mirror: {COUNT:,} messages of 200 bytes, one partition, from {KAFKA}")
    ours, theirs = [], []
    with tempfile.TemporaryDirectory(prefix="skidway-bench-") as name:
        folder = Path(name)
        with apache(folder / "source") as (source, _):
            topic = f"mirror-{time.time_ns()}"
            fill(source, topic, COUNT)
            for at in range(ROUNDS):
                ours.append(skidway_mirror(folder / f"ours-{at}", source, topic))
                theirs.append(mirror_maker(folder / f"peer-{at}", source, topic))
    for row in rows(ours, theirs):
        table.add(row)
    return table


def rows(ours: Sequence[Figures], theirs: Sequence[Figures]) -> Iterator[Row]:
    """The rows of the table of results: one for each figure."""

    def row(what: str, unit: str, figure: str, peer: str, note: str = "") -> Row:
        mine = tuple(getattr(each, figure) for each in ours)
        other = tuple(getattr(each, figure) for each in theirs)
        return Row(what, unit, mine, other, peer, note)

    alone, both = "MirrorMaker 2", "MirrorMaker 2 and its target"
    yield row("messages", "msg/s", "messages_a_second", alone)
    yield row(
        "MB a CPU second, ours with its writing", "MB", "mirror_mb_a_cpu_second", f"{alone} alone"
    )
    yield row("MB a CPU second, all that copies and writes", "MB", "whole_mb_a_cpu_second", both)
    yield row("memory", "MB", "resident_mb", both, "less is better")


@contextlib.contextmanager
def apache(folder: Path) -> Iterator[tuple[str, Program]]:
    """Runs a cluster of Apache Kafka with one node and 1 GB of heap. Yields its address and its
    process."""
    folder.mkdir(parents=True)
    kafka = ApacheKafka(folder, heap_mb=1024)
    kafka.format()
    with running(kafka.program, kafka.ready, within_s=120):
        yield kafka.address, kafka.program


def skidway_mirror(folder: Path, source: str, topic: str) -> Figures:
    """Measures a new Skidway broker that mirrors the topic."""
    folder.mkdir(parents=True)
    zookeeper, port, metrics = ZooKeeper(folder), free_port(), free_port()
    config = folder / "broker.yml"
    settings = {
        "cluster.name": TARGET,
        "listeners": [f"PLAINTEXT://127.0.0.1:{port}"],
        "log.dirs": [str(folder / "logs")],
        "zookeeper.connect": f"{zookeeper.address}/{TARGET}",
        "metrics.listener": f"127.0.0.1:{metrics}",
        "mirror.sources": [{"cluster": SOURCE, "bootstrap.servers": source, "topics": [topic]}],
    }
    config.write_text(yaml.safe_dump(settings))
    broker = Program(skidway("broker", "run", "--config", str(config)), folder / "broker.out")
    with (
        running(zookeeper.program, zookeeper.ready),
        running(broker, lambda: answers(f"http://127.0.0.1:{metrics}/health")),
    ):
        return copied(f"127.0.0.1:{port}", f"{SOURCE}.{topic}", broker, [])


def mirror_maker(folder: Path, source: str, topic: str) -> Figures:
    """Measures a new MirrorMaker 2 with a new target cluster."""
    with apache(folder) as (target, broker):
        config = folder / "mm2.properties"
        settings = {
            "clusters": f"{SOURCE},{TARGET}",
            f"{SOURCE}.bootstrap.servers": source,
            f"{TARGET}.bootstrap.servers": target,
            f"{SOURCE}->{TARGET}.enabled": "true",
            f"{SOURCE}->{TARGET}.topics": topic,
            f"{SOURCE}->{TARGET}.consumer.auto.offset.reset": "earliest",
            "tasks.max": "2",
            **{
                f"{name}.replication.factor": "1"
                for name in (
                    "checkpoints.topic",
                    "config.storage",
                    "heartbeats.topic",
                    "offset-syncs.topic",
                    "offset.storage",
                    "status.storage",
                )
            },
            "replication.factor": "1",
        }
        config.write_text("".join(f"{key} = {value}\n" for key, value in settings.items()))
        java = [str(find().command), "-Xmx2g", "-cp", f"{peers.jars(PEER)}/*"]
        program = Program(
            [*java, "org.apache.kafka.connect.mirror.MirrorMaker", str(config)], folder / "mm2.out"
        )
        program.start()
        try:
            return copied(target, f"{SOURCE}.{topic}", program, [broker])
        finally:
            program.kill()


def copied(address: str, topic: str, mirror: Program, writers: Sequence[Program]) -> Figures:
    """Measures one copy: watches the end offset of the mirrored topic from the first message to the
    last, and returns the figures. `writers` are the server processes into which the mirror writes.

    Raises:
        RuntimeError: The mirror does not copy all messages in time.
    """
    processes = (mirror, *writers)
    deadline = time.monotonic() + WITHIN_S
    partition = TopicPartition(topic, 0)
    began: tuple[float, int, list[float]] | None = None
    with Client(address) as client:
        while (end := _end(client, partition)) < COUNT:
            if began is None and end > 0:
                began = time.monotonic(), end, [family_cpu_seconds(each.pid) for each in processes]
            if time.monotonic() > deadline or not mirror.running:
                raise RuntimeError(f"{topic}: {end} of {COUNT}\n{mirror.output()[-2000:]}")
            time.sleep(0.02)
    if began is None:
        raise RuntimeError("the mirror ended before it could be measured: take more messages")
    took = time.monotonic() - began[0]
    spent = [
        family_cpu_seconds(each.pid) - before
        for each, before in zip(processes, began[2], strict=True)
    ]
    megabytes = (COUNT - began[1]) * len(MESSAGE) / 1e6
    return Figures(
        (COUNT - began[1]) / took,
        megabytes / spent[0],
        megabytes / sum(spent),
        sum(resident_mb(each.pid) for each in processes),
    )


def _end(client: Client, partition: TopicPartition) -> int:
    """The high watermark of the partition; 0 if the broker answers with an error, for example
    because the topic does not exist yet."""
    with contextlib.suppress(KafkaError):
        return client.list_offsets({partition: LATEST})[partition].offset
    return 0
