"""A broker whose log directory has not one free byte starts, serves what it has, and goes on by
itself when there is space."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from skidway.broker.log import names
from skidway.kafka.batch import headers
from skidway.kafka.errors import ErrorCode
from skidway.kafka.protocol.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from skidway.kafka.protocol.delete_records import (
    HIGH_WATERMARK,
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from support.batches import sized, stored
from support.brokers import SkidwayBroker
from support.processes import eventually
from support.raw_client import RawClient
from support.small_disks import KINDS, SmallDisk, small_disk

pytestmark = pytest.mark.root
DISK_BYTES = 8 << 20
BATCH_BYTES, BATCHES = 50_000, 12
TORN = bytes(sized(60_000))[:40_000]
"""What a crash leaves of a batch, if it comes while the batch is written."""


@pytest.fixture(params=KINDS)
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SmallDisk]:
    with small_disk(request.param, tmp_path, DISK_BYTES) as made:
        yield made


@pytest.fixture
def broker(own_broker: SkidwayBroker, disk: SmallDisk) -> Iterator[SkidwayBroker]:
    """A broker with all its logs on the small disk."""
    own_broker.settings |= {
        "log.dirs": disk.path,
        "log.segment.bytes": 4 * BATCH_BYTES,
        "log.flush.offset.checkpoint.interval.ms": 500,
    }
    yield own_broker.start()
    own_broker.end()  # the broker must end before its disk is unmounted


def create(client: RawClient, *topics: str) -> None:
    wanted = tuple(CreatableTopic(name=name, num_partitions=1) for name in topics)
    answer = client.ask(CreateTopicsRequest(topics=wanted), 5, CreateTopicsResponse)
    assert isinstance(answer, CreateTopicsResponse)
    assert [each.error_code for each in answer.topics] == [0] * len(topics)


def produce(client: RawClient, topic: str, count: int = BATCHES) -> None:
    for _ in range(count):
        assert client.produce(topic, sized(BATCH_BYTES)).error_code == 0


def deleted(client: RawClient, topic: str, offset: int) -> tuple[int, int]:
    row = DeleteRecordsPartition(partition_index=0, offset=offset)
    request = DeleteRecordsRequest(topics=(DeleteRecordsTopic(name=topic, partitions=(row,)),))
    answer = client.ask(request, 1, DeleteRecordsResponse)
    assert isinstance(answer, DeleteRecordsResponse)
    found = answer.topics[0].partitions[0]
    return found.error_code, found.low_watermark


def start_full(broker: SkidwayBroker) -> None:
    """Starts the broker without waiting until it is healthy."""
    output = broker.folder / f"full-{len(list(broker.folder.iterdir()))}.out"
    broker.program = type(broker.program)(broker.command(), output)
    broker.program.start().wait_until(broker.up)


def assert_served(client: RawClient, topic: str, first: int, end: int) -> None:
    """Asserts that consumers can read each offset from `first` up to `end`."""
    for offset in range(first, end):
        found = client.fetch(topic, offset, max_bytes=1)
        assert (found.error_code, found.high_watermark) == (0, end)
        assert [header.base_offset for _, header in headers(found.records)] == [offset]


def torn(broker: SkidwayBroker, disk: SmallDisk) -> None:
    """Kills the broker. In the file system is what it was just writing to the partition."""
    broker.program.kill()
    last = max((disk.path / "logs-0").glob("*.log"))
    with last.open("ab") as file:
        file.write(TORN)


def torn_with_lost_indexes(broker: SkidwayBroker, disk: SmallDisk) -> None:
    """Like `torn`, and no index or checkpoint file is there."""
    torn(broker, disk)
    for path in (*disk.path.glob("logs-0/*index"), *disk.path.glob("*-checkpoint")):
        path.unlink()


def stopped(broker: SkidwayBroker, _disk: SmallDisk) -> None:
    assert broker.program.stop() == 0


@pytest.mark.parametrize("end", [torn, torn_with_lost_indexes, stopped])
def test_a_broker_starts_on_a_full_disk_and_goes_on_with_space(
    broker: SkidwayBroker, disk: SmallDisk, end: Callable[[SkidwayBroker, SmallDisk], None]
) -> None:
    """After a kill and after a clean stop, a broker starts on a disk without one free byte. It
    serves all partitions up to the last whole batch, refuses appends, and names the directory as
    full. When there is space, it accepts batches again without a restart."""
    with RawClient(broker.port) as client:
        create(client, "logs", "other")
        produce(client, "logs")
        produce(client, "other", 1)
    end(broker, disk)
    disk.fill()
    start_full(broker)
    with RawClient(broker.port) as client:
        assert_served(client, "logs", 0, BATCHES)
        assert_served(client, "other", 0, 1)
        eventually(lambda: list(broker.health()["full_log_dirs"]) == [str(disk.path)])
        assert broker.health()["stopped_partitions"] == {}
        assert broker.metric("skidway_broker_log_directories_full") == 1
        for acks in (-1, 1):
            refused = client.produce("logs", sized(BATCH_BYTES), acks=acks)
            assert refused.error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert_served(client, "logs", 0, BATCHES)
        disk.make_room()
        eventually(lambda: broker.health()["ok"])
        assert client.produce("logs", sized(BATCH_BYTES)).base_offset == BATCHES
        assert_served(client, "logs", 0, BATCHES + 1)
    kept = [path.read_bytes() for path in (disk.path / "logs-0").glob(f"*{names.CUT}")]
    assert kept == ([] if end is stopped else [TORN])
    broker.crash()
    with RawClient(broker.port) as client:
        assert_served(client, "logs", 0, BATCHES + 1)
    assert stored(disk.path / "logs-0") == [(number, 1) for number in range(BATCHES + 1)]


def test_a_broker_that_is_killed_again_while_the_disk_is_full_loses_nothing(
    broker: SkidwayBroker, disk: SmallDisk
) -> None:
    """A broker on a full disk may be killed or stopped again and again. Every start serves the same
    records, and the bytes of the incomplete batch are kept."""
    with RawClient(broker.port) as client:
        create(client, "logs")
        produce(client, "logs")
    torn(broker, disk)
    disk.fill()
    for leave in ("kill", "stop", "kill"):
        start_full(broker)
        with RawClient(broker.port) as client:
            assert_served(client, "logs", 0, BATCHES)
            refused = client.produce("logs", sized(BATCH_BYTES))
            assert refused.error_code == ErrorCode.KAFKA_STORAGE_ERROR
        getattr(broker.program, leave)()
    disk.make_room()
    broker.start()
    with RawClient(broker.port) as client:
        assert client.produce("logs", sized(BATCH_BYTES)).base_offset == BATCHES
    kept = [path.read_bytes() for path in (disk.path / "logs-0").glob(f"*{names.CUT}")]
    assert kept == [TORN]


@pytest.mark.parametrize("segment_bytes", [4 * BATCH_BYTES, 1 << 30], ids=["many", "one"])
def test_records_are_deleted_from_a_full_disk(
    broker: SkidwayBroker, disk: SmallDisk, segment_bytes: int
) -> None:
    """DeleteRecords succeeds on a full disk, and frees the space of all segments without a record,
    even if a partition has only one segment. The records stay deleted after a kill."""
    broker.settings["log.segment.bytes"] = segment_bytes
    broker.restart()
    with RawClient(broker.port) as client:
        create(client, "logs", "other")
        produce(client, "logs")
        produce(client, "other", 1)
        disk.fill()
        refused = client.produce("other", sized(BATCH_BYTES))
        assert refused.error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert deleted(client, "logs", HIGH_WATERMARK) == (0, BATCHES)
        assert disk.free_bytes() > BATCHES * BATCH_BYTES / 2
        assert client.produce("other", sized(BATCH_BYTES)).base_offset == 1
        assert client.produce("logs", sized(BATCH_BYTES)).base_offset == BATCHES
    broker.crash()
    with RawClient(broker.port) as client:
        assert client.fetch("logs", 0).log_start_offset == BATCHES
        assert_served(client, "logs", BATCHES, BATCHES + 1)


def test_records_of_a_log_with_a_torn_end_are_deleted(
    broker: SkidwayBroker, disk: SmallDisk
) -> None:
    """If the end of a log could not be repaired because the disk was full, DeleteRecords frees the
    space for the repair, and the partition accepts batches again."""
    with RawClient(broker.port) as client:
        create(client, "logs")
        produce(client, "logs")
    torn(broker, disk)
    disk.fill()
    start_full(broker)
    with RawClient(broker.port) as client:
        assert deleted(client, "logs", BATCHES - 1) == (0, BATCHES - 1)
        assert client.produce("logs", sized(BATCH_BYTES)).base_offset == BATCHES
        assert_served(client, "logs", BATCHES - 1, BATCHES + 1)


def test_retention_frees_a_full_disk(broker: SkidwayBroker, disk: SmallDisk) -> None:
    """On a full disk, retention deletes expired segments, and also the last one, although its index
    cannot be written."""
    broker.settings |= {"log.segment.bytes": 1 << 30, "log.retention.check.interval.ms": 200}
    broker.settings |= {"log.segment.delete.delay.ms": 0, "log.retention.ms": 3_600_000}
    broker.restart()
    with RawClient(broker.port) as client:
        create(client, "logs")
        produce(client, "logs")
    assert broker.program.stop() == 0
    disk.fill()
    broker.settings["log.retention.ms"] = 1
    start_full(broker)
    eventually(lambda: disk.free_bytes() > BATCHES * BATCH_BYTES / 2)
    with RawClient(broker.port) as client:
        eventually(lambda: client.produce("logs", sized(BATCH_BYTES)).base_offset == BATCHES)
