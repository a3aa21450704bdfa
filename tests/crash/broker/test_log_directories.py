"""If one of a broker's two log directories fails, the broker continues to serve the other
directory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from skidway.broker.log import checkpoints, names
from skidway.kafka.errors import ErrorCode
from skidway.kafka.protocol.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from skidway.kafka.protocol.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from skidway.kafka.protocol.describe_log_dirs import (
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
)
from skidway.kafka.protocol.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from support.batches import sized, stored
from support.brokers import SkidwayBroker
from support.processes import eventually, run_skidway
from support.raw_client import RawClient
from support.small_disks import MS_RDONLY, MS_REMOUNT, mount, small_disk, unmount

pytestmark = pytest.mark.root
SMALL_BYTES = 1 << 20


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A file system with space for one MiB."""
    with small_disk("tmpfs", tmp_path, SMALL_BYTES) as disk:
        yield disk.path


@pytest.fixture
def two(own_broker: SkidwayBroker, small: Path) -> SkidwayBroker:
    """A broker with a small and a large log directory, and a topic with one partition in each."""
    own_broker.settings |= {
        "log.dirs": f"[{small}, {own_broker.logs}]",
        "log.segment.bytes": 1024,
    }
    broker = own_broker.start()
    create(broker, "logs", 2)
    assert (small / "logs-0").is_dir()
    assert (own_broker.logs / "logs-1").is_dir()
    return broker


def create(broker: SkidwayBroker, topic: str, partitions: int) -> int:
    with RawClient(broker.port) as client:
        wanted = CreatableTopic(name=topic, num_partitions=partitions)
        answer = client.ask(CreateTopicsRequest(topics=(wanted,)), 5, CreateTopicsResponse)
        assert isinstance(answer, CreateTopicsResponse)
        return answer.topics[0].error_code


def fill(client: RawClient) -> int:
    """Produces batches to the partition in the small directory until the directory is full. Returns
    the number of batches that the broker accepted."""
    for number in range(100):
        answer = client.produce("logs", sized(100_000))
        if answer.error_code:
            assert answer.error_code == ErrorCode.KAFKA_STORAGE_ERROR
            return number
        assert answer.base_offset == number
    raise AssertionError("it never became full")


def test_a_full_directory_refuses_alone_and_goes_on(two: SkidwayBroker, small: Path) -> None:
    """If a log directory is full, batches for its partitions get KAFKA_STORAGE_ERROR, and the other
    directory works as before. When there is space again, the partitions of both directories accept
    batches."""
    ballast = small / "ballast"
    ballast.write_bytes(b"x" * 300_000)
    with RawClient(two.port) as client:
        taken = fill(client)
        assert taken > 3
        for acks in (-1, 1):
            refused = client.produce("logs", sized(100_000), acks=acks)
            assert refused.error_code == ErrorCode.KAFKA_STORAGE_ERROR
            good = client.produce("logs", sized(100_000), acks=acks, partition=1)
            assert good.error_code == 0
        assert client.fetch("logs", 0, max_wait_ms=1000).high_watermark == taken
        health = two.health()
        assert not health["ok"]
        assert "No space left on device" in health["full_log_dirs"][str(small)]
        assert "No space left on device" in (refused.error_message or "")
        assert list(health["full_log_dirs"]) == [str(small)]
        assert two.metric("skidway_broker_log_directories_full") == 1
        free = two.metric(f'skidway_broker_log_directory_free_bytes{{directory="{small}"}}')
        assert free < 100_000
        assert two.metric('skidway_broker_batches_refused_total{reason="DiskFull"}') == 3
        ballast.unlink()
        assert client.produce("logs", sized(100_000)).base_offset == taken
        assert two.health()["ok"]
        assert two.metric("skidway_broker_log_directories_full") == 0
    two.restart()
    with RawClient(two.port) as client:
        assert client.fetch("logs", 0).high_watermark == taken + 1
    assert stored(small / "logs-0") == [(number, 1) for number in range(taken + 1)]


def test_topics_are_deleted_from_a_full_directory(two: SkidwayBroker, small: Path) -> None:
    """A topic can be deleted although a log directory with files of this topic is full. A new topic
    with the same name begins at offset 0."""
    with RawClient(two.port) as client:
        fill(client)
        answer = client.ask(DeleteTopicsRequest(topic_names=("logs",)), 5, DeleteTopicsResponse)
        assert isinstance(answer, DeleteTopicsResponse)
        assert answer.responses[0].error_code == 0
        eventually(lambda: not [each for each in small.iterdir() if each.is_dir()])
    assert create(two, "logs", 2) == 0
    with RawClient(two.port) as client:
        assert client.produce("logs", sized(1000)).base_offset == 0


def test_a_directory_that_is_gone_fails_alone(two: SkidwayBroker, small: Path) -> None:
    """If a log directory is lost, requests for its partitions get an error, and /health names these
    partitions. The broker still serves all other partitions, and topics can be created."""
    with RawClient(two.port) as client:
        assert client.produce("logs", sized(1000)).error_code == 0
        unmount(small)  # as if somebody had pulled the disk out
        refused = client.produce("logs", sized(1000))
        assert refused.error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert client.produce("logs", sized(1000), partition=1).error_code == 0
        eventually(lambda: str(small) in two.health()["offline_log_dirs"])
        assert set(two.health()["stopped_partitions"]) == {"logs-0"}
        assert two.metric("skidway_broker_log_directories_offline") == 1
        described = client.ask(DescribeLogDirsRequest(), 4, DescribeLogDirsResponse)
        assert isinstance(described, DescribeLogDirsResponse)
        assert [each.error_code for each in described.results] == [
            ErrorCode.KAFKA_STORAGE_ERROR,
            0,
        ]
        asked = MetadataRequest(topics=(MetadataRequestTopic(name="logs"),))
        known = client.ask(asked, 8, MetadataResponse)
        assert isinstance(known, MetadataResponse)
        assert [each.offline_replicas for each in known.topics[0].partitions] == [(1,), ()]
    assert create(two, "more", 2) == 0
    assert (two.logs / "more-0").is_dir()
    assert (two.logs / "more-1").is_dir()


def test_a_start_without_one_directory(two: SkidwayBroker, small: Path) -> None:
    """If the broker cannot write to a log directory at its start, /health names the directory, and
    the broker does not serve the directory's partitions. If the broker can write to the directory
    at a later start, it serves these partitions again."""
    with RawClient(two.port) as client:
        client.produce("logs", sized(1000))
    assert two.program.stop() == 0
    mount(b"tmpfs", small, b"", flags=MS_REMOUNT | MS_RDONLY)
    two.program = type(two.program)(two.command(), two.folder / "again.out")
    two.program.start().wait_until(two.up)
    assert str(small) in two.health()["offline_log_dirs"]
    with RawClient(two.port) as client:
        assert client.fetch("logs", 0).error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert client.produce("logs", sized(1000), partition=1).error_code == 0
    assert two.program.stop() == 0
    mount(b"tmpfs", small, b"size=%d" % SMALL_BYTES, flags=MS_REMOUNT)
    two.start()
    with RawClient(two.port) as client:
        assert client.fetch("logs", 0).high_watermark == 1


def test_each_directory_is_marked_and_locked(two: SkidwayBroker, small: Path) -> None:
    """Each log directory has a file meta.properties with the directory's own id, and a lock file
    that keeps other brokers out."""
    ids = [checkpoints.read_meta(path) for path in (small, two.logs)]
    assert ids[0] is not None
    assert ids[1] is not None
    assert ids[0].directory_id != ids[1].directory_id
    other = SkidwayBroker(two.folder / "other", str(two.settings["zookeeper.connect"]))
    other.settings |= {"log.dirs": small, "broker.id": 2}
    done = run_skidway(*other.command()[3:])
    assert done.returncode == 65
    assert f"process {two.program.pid}" in done.stderr
    assert (small / names.META_PROPERTIES).exists()
