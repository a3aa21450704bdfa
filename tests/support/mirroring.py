"""Runs two clusters of one broker each as real programs. The second cluster mirrors the first
cluster."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from skidway.kafka import gaps
from skidway.kafka.batch import EncodedBatch, headers, read_header, seal, stamp
from skidway.kafka.client import LATEST, Client, NewTopic, Producer
from skidway.kafka.codecs import NONE
from skidway.kafka.gaps import Gap
from skidway.kafka.types import TopicPartition
from support.brokers import SkidwayBroker
from support.processes import eventually

SOURCE, HERE = "dc1", "offline"


def encoded(number: int, count: int = 3, size: int = 100) -> EncodedBatch:
    """Returns a batch whose header says that it has `count` records. In place of the records, the
    batch has a text of `size` bytes that contains `number`. That is enough, because a mirror copies
    the bytes of batches and does not read the records."""
    body = f"batch {number:08d} ".encode().ljust(size, b".")
    now_ms = int(time.time() * 1000)
    return EncodedBatch(body, NONE.number, count, now_ms, now_ms, len(body))


class Cluster(SkidwayBroker):
    """A cluster of one broker with its own chroot in ZooKeeper, and with methods for tests."""

    def __init__(self, folder: Path, zookeeper: str, name: str, **settings: object) -> None:
        folder = folder / name
        folder.mkdir(parents=True, exist_ok=True)
        quick = {"mirror_metadata_interval_ms": 100, "cluster_name": name}
        super().__init__(folder, f"{zookeeper}/{name}", **{**quick, **settings})
        self.name = name
        self._produced = 0

    def ready(self) -> bool:
        """Returns whether the broker serves clients. It may serve them even while /health reports
        it as unhealthy, for example because its mirror has stopped."""
        return bool(self.health().get("serving"))

    def create(self, topic: str, partitions: int = 1, **configs: str) -> None:
        settings = {key.replace("_", "."): value for key, value in configs.items()}
        with Client(self.address) as client:
            [error] = client.create_topics([NewTopic(topic, partitions, configs=settings)]).values()
            assert error is None, error

    def delete(self, topic: str) -> None:
        with Client(self.address) as client:
            [error] = client.delete_topics([topic]).values()
            assert error is None, error

    def produce(
        self, topic: str, batches: int, partition: int = 0, *, count: int = 3, size: int = 100
    ) -> None:
        """Produces `batches` batches one after the other. Raises AssertionError if a batch is not
        acknowledged."""
        with Client(self.address) as client:
            producer = Producer(client)
            for _ in range(batches):
                self._produced += 1
                tp = TopicPartition(topic, partition)
                producer.send(tp, encoded(self._produced, count, size), self._produced)
            done: list[Any] = []
            eventually(
                lambda: done.extend(producer.poll(100)) or len(done) == batches,
                what="all acknowledged",
            )
            assert all(each.error is None for each in done), done
            producer.close()

    def ends(self, topic: str) -> dict[int, int]:
        """Returns the high watermark of each partition. The result is empty if the topic does not
        exist."""
        with Client(self.address) as client:
            found = client.metadata([topic]).topics.get(topic)
            if found is None or found.error or any(each.leader < 0 for each in found.partitions):
                return {}
            tps = {TopicPartition(topic, each.index): LATEST for each in found.partitions}
            return {tp.partition: listed.offset for tp, listed in client.list_offsets(tps).items()}

    def configs(self, topic: str) -> dict[str, str]:
        with Client(self.address) as client:
            return client.topic_configs([topic])[topic]

    def log_bytes(self, topic: str, partition: int = 0) -> bytes:
        """Returns the bytes of all segments of a partition, in order."""
        return b"".join(path.read_bytes() for path in self.segments(topic, partition))

    def segments(self, topic: str, partition: int = 0) -> list[Path]:
        """Returns the `.log` files of a partition, oldest first."""
        return sorted((self.logs / f"{topic}-{partition}").glob("*.log"))

    def batches(self, topic: str, partition: int = 0) -> list[bytes]:
        """Returns every batch in the partition's `.log` files, in order."""
        data = self.log_bytes(topic, partition)
        return [data[at : at + header.size_bytes] for at, header in headers(data)]

    def ranges(self, topic: str, partition: int = 0) -> list[tuple[int, int]]:
        """Returns the first and the last offset of every batch in the partition's `.log` files."""
        found = map(read_header, self.batches(topic, partition))
        return [(header.base_offset, header.last_offset) for header in found]

    def mirror(self) -> dict[str, Any]:
        """Returns the state of the mirror's only source, as /health shows it."""
        [status] = self.health()["mirrors"]
        return dict(status)

    def caught_up(self) -> bool:
        """Returns whether the mirror reports that it has copied all records of the source."""
        status = self.mirror()
        known = status["reachable"] and status["partitions"] and not status["lag_unknown"]
        return bool(known) and not status["checking"] and not status["lag"]


def refill(cluster: Cluster, batches: int, *, topic: str = "logs") -> None:
    """Deletes the files of partition 0 of a stopped broker's topic, and writes a log with `batches`
    other batches from offset 0 on."""
    directory = cluster.logs / f"{topic}-0"
    for path in directory.iterdir():
        if path.suffix in (".log", ".index", ".timeindex", ".snapshot"):
            path.unlink()
    data = bytearray()
    for number in range(batches):
        encoded = EncodedBatch(b"other %d" % number, NONE.number, 3, 0, 0, 10)
        raw = bytearray(seal(encoded))
        stamp(raw, 0, 3 * number, 0)
        data += raw
    (directory / f"{0:020d}.log").write_bytes(data)
    for name in ("recovery-point-offset-checkpoint", "log-start-offset-checkpoint"):
        (cluster.logs / name).unlink(missing_ok=True)


class Pair:
    """The two clusters `source` (dc1) and `here` (offline). The second cluster mirrors the
    first."""

    def __init__(
        self, folder: Path, zookeeper: str, *, source: Mapping[str, object] | None = None,
        here: Mapping[str, object] | None = None, patterns: Sequence[str] = (".*",),
    ) -> None:  # fmt: skip
        self.source = Cluster(folder, zookeeper, SOURCE, **(source or {}))
        sources = mirror_sources(self.source.address, patterns)
        self.here = Cluster(folder, zookeeper, HERE, mirror_sources=sources, **(here or {}))

    def start(self) -> Pair:
        self.source.start()
        self.here.start()
        return self

    def mirrored(self, topic: str) -> None:
        """Waits until the mirror has all records of the source's topic."""

        def done() -> bool:
            ends = self.source.ends(topic)
            return bool(ends) and self.here.ends(f"{SOURCE}.{topic}") == ends

        eventually(done, what=f"{topic} mirrored: {self.here.mirror()}")

    def same(self, topic: str, partitions: int = 1) -> None:
        """Asserts that the topic's logs have the same bytes in both clusters."""
        for number in range(partitions):
            theirs = self.source.log_bytes(topic, number)
            ours = self.here.log_bytes(f"{SOURCE}.{topic}", number)
            assert ours == theirs, f"{topic}-{number}: {len(ours)} bytes, not {len(theirs)}"

    def gaps(self, topic: str) -> list[Gap]:
        """Returns the gaps (ranges of offsets that the mirror skipped) that the config of the
        mirrored topic lists."""
        return gaps.decode(self.here.configs(f"{SOURCE}.{topic}")[gaps.CONFIG])

    def kill(self) -> None:
        for each in (self.here, self.source):
            if each.program.running:
                each.program.kill()


def mirror_sources(address: str, patterns: Sequence[str] = (".*",)) -> str:
    """Returns the setting `mirror.sources` in the form that the option --set takes. `address` is
    the address of a broker of the source. `patterns` says which topics to mirror."""
    return json.dumps([{"cluster": SOURCE, "bootstrap.servers": address, "topics": list(patterns)}])


def pair(folder: Path, zookeeper: str, **settings: Any) -> Iterator[Pair]:
    """Runs a pair of clusters for a fixture. The clusters are killed when the fixture ends."""
    made = Pair(folder, zookeeper, **settings)
    try:
        yield made.start()
    finally:
        made.kill()
