"""Apache Kafka's own reader of log files, unmodified, on the directories of our broker."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.broker import OurBroker
from support.java_clients import JavaClients
from support.kafka import tool
from support.processes import running
from support.zookeeper import ZooKeeper

pytestmark = [pytest.mark.conformance, pytest.mark.java]

DUMP = "kafka.tools.DumpLogSegments"
TOPIC = "dumped"
COUNT = 400
COMPLAINTS = ("Mismatches", "mismatch", "Found non-zero", "invalid", "corrupt", "Could not")


def dump(*arguments: str | Path) -> str:
    said = tool(DUMP, [str(each) for each in arguments])
    assert not [word for word in COMPLAINTS if word in said], said
    return said


@pytest.fixture(scope="module")
def written(
    tmp_path_factory: pytest.TempPathFactory,
    zookeeper_server: ZooKeeper,
    java_clients: JavaClients,
) -> Iterator[OurBroker]:
    """A broker that was filled by a Java producer and stopped, with several segments."""
    folder = tmp_path_factory.mktemp("dumped")
    settings = {"log.segment.bytes": 20_000, "log.index.interval.bytes": 1_000}
    broker = OurBroker(folder, f"{zookeeper_server.address}/{folder.name}", settings)
    with running(broker.program, broker.ready):
        with java_clients.admin(broker.address) as admin:
            java_clients.create(admin, TOPIC)
        for codec in ("none", "zstd"):
            with java_clients.producer(broker.address, compression_type=codec) as producer:
                for number in range(COUNT // 2):
                    value = b"%d " % number * 60
                    at_ms = 1_700_000_000_000 + number
                    producer.send(java_clients.record(TOPIC, value, timestamp=at_ms))
                    if number % 10 == 9:
                        producer.flush()
        broker.program.stop()
        yield broker


def test_segments_are_read_whole(written: OurBroker) -> None:
    """Every record of every segment, its CRC valid, offsets without holes, idempotent producers."""
    segments = written.segments(TOPIC)
    assert len(segments) > 2
    said = dump("--deep-iteration", "--files", ",".join(map(str, segments)))
    offsets = [int(found) for found in re.findall(r"^\| offset: (\d+)", said, re.MULTILINE)]
    assert offsets == list(range(COUNT))
    assert "isvalid: false" not in said
    assert {"none", "zstd"} == set(re.findall(r"compresscodec: (\w+)", said.lower()))
    assert "producerId: -1" not in said


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_indexes_agree_with_their_segments(written: OurBroker, suffix: str) -> None:
    """Offset and time index: every entry leads to the batch that it names."""
    indexes = [path for path in written.segments(TOPIC, suffix=suffix) if path.stat().st_size]
    assert indexes
    dump("--verify-index-only", "--files", ",".join(map(str, indexes)))
    said = dump("--files", ",".join(map(str, indexes)))
    assert len(re.findall(r"offset: \d+", said)) >= len(indexes)


def test_what_a_kill_leaves_is_read_too(
    tmp_path: Path, zookeeper_server: ZooKeeper, java_clients: JavaClients
) -> None:
    """kill -9, and a start behind it: the files are still those that Kafka's tools read."""
    broker = OurBroker(
        tmp_path, f"{zookeeper_server.address}/{tmp_path.name}", {"log.segment.bytes": 20_000}
    )
    with running(broker.program, broker.ready):
        with java_clients.admin(broker.address) as admin:
            java_clients.create(admin, TOPIC)
        with java_clients.producer(broker.address, batch_size=2_000) as producer:
            for number in range(300):
                producer.send(java_clients.record(TOPIC, b"%d " % number * 60))
            producer.flush()
        broker.restart()
        broker.program.kill()
    files = [*broker.segments(TOPIC), *broker.segments(TOPIC, suffix=".index")]
    said = dump("--deep-iteration", "--files", ",".join(map(str, broker.segments(TOPIC))))
    assert len(re.findall(r"^\| offset:", said, re.MULTILINE)) == 300
    sized = [path for path in files if path.suffix == ".index" and path.stat().st_size]
    if sized:
        dump("--verify-index-only", "--files", ",".join(map(str, sized)))
