"""Apache Kafka's own unmodified tool for log files can read the log directories of our broker."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.brokers import SkidwayBroker
from support.java_clients import JavaClients
from support.kafka import tool
from support.zookeeper import ZooKeeper

pytestmark = [pytest.mark.java, pytest.mark.foreign]

DUMP = "org.apache.kafka.tools.DumpLogSegments"
TOPIC = "dumped"
COUNT = 400
COMPLAINTS = ("Mismatch", "mismatch", "Found", "isvalid: false", "corrupt", "Could not")


def dump(*arguments: str | Path) -> str:
    said = tool(DUMP, [str(each) for each in arguments])
    assert not [word for word in COMPLAINTS if word in said], said
    return said


def files_of(broker: SkidwayBroker, suffix: str = ".log") -> list[Path]:
    """Returns the files with this suffix in the directory of TOPIC's only partition, oldest
    first."""
    return sorted((broker.logs / f"{TOPIC}-0").glob(f"*{suffix}"))


def fill(java_clients: JavaClients, broker: SkidwayBroker) -> None:
    """Creates a topic with COUNT records in batches of ten. Half of the batches are compressed."""
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


@pytest.fixture(scope="module")
def written(
    tmp_path_factory: pytest.TempPathFactory,
    zookeeper_server: ZooKeeper,
    java_clients: JavaClients,
) -> Iterator[SkidwayBroker]:
    """A broker that was stopped after a Java producer had filled several segments."""
    folder = tmp_path_factory.mktemp("dumped")
    settings = {"log_segment_bytes": 20_000, "log_index_interval_bytes": 1_000}
    broker = SkidwayBroker(folder, f"{zookeeper_server.address}/{folder.name}", **settings)
    broker.start()
    try:
        fill(java_clients, broker)
        assert broker.program.stop() == 0
        yield broker
    finally:
        broker.program.kill()


def test_segments_are_read_whole(written: SkidwayBroker) -> None:
    """Kafka's tool can read every record of every segment. The tool finds that all CRCs are valid,
    that no offset is missing, and that the batches come from an idempotent producer."""
    segments = files_of(written)
    assert len(segments) > 2
    said = dump("--deep-iteration", "--files", ",".join(map(str, segments)))
    offsets = [int(found) for found in re.findall(r"^\| offset: (\d+)", said, re.MULTILINE)]
    assert offsets == list(range(COUNT))
    assert {"none", "zstd"} == set(re.findall(r"compresscodec: (\w+)", said.lower()))
    assert "producerId: -1" not in said


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_indexes_agree_with_their_segments(written: SkidwayBroker, suffix: str) -> None:
    """Kafka's tool finds that every entry of the offset index and the time index leads to the right
    batch."""
    indexes = [path for path in files_of(written, suffix) if path.stat().st_size]
    assert indexes
    dump("--verify-index-only", "--files", ",".join(map(str, indexes)))
    said = dump("--files", ",".join(map(str, indexes)))
    assert len(re.findall(r"offset: \d+", said)) >= len(indexes)


def test_what_a_kill_leaves_is_read_too(
    own_broker: SkidwayBroker, java_clients: JavaClients
) -> None:
    """Kafka's tools can still read the log files after the broker was killed with kill -9 and
    started again."""
    own_broker.settings |= {"log.segment.bytes": 20_000, "log.index.interval.bytes": 1_000}
    broker = own_broker.start()
    with java_clients.admin(broker.address) as admin:
        java_clients.create(admin, TOPIC)
    with java_clients.producer(broker.address, batch_size=2_000) as producer:
        for number in range(300):
            producer.send(java_clients.record(TOPIC, b"%d " % number * 60))
        producer.flush()
    broker.crash()
    broker.program.kill()
    said = dump("--deep-iteration", "--files", ",".join(map(str, files_of(broker))))
    assert len(re.findall(r"^\| offset:", said, re.MULTILINE)) == 300
    indexes = [path for path in files_of(broker, ".index") if path.stat().st_size]
    assert indexes
    dump("--verify-index-only", "--files", ",".join(map(str, indexes)))
