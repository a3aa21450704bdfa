"""A broker with two log directories survives if the device under one directory fails with EIO on a
write, an fsync or a read.

In each case the broker takes the failed device's log directory offline, names this directory on
/health, refuses further requests for its partitions with KAFKA_STORAGE_ERROR, and continues to
serve the other directory. When the broker is started with a working device, every acknowledged
record is there again."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from skidway.kafka.batch import headers
from skidway.kafka.errors import ErrorCode
from skidway.kafka.protocol.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from support.batches import sized
from support.brokers import SkidwayBroker
from support.processes import Program, eventually
from support.promises import promise
from support.raw_client import RawClient

pytestmark = pytest.mark.foreign
LARGE_BYTES = 200_000


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[FailingDisk]:
    """A mounted file system. A test chooses which operations fail in it."""
    with FailingDisk(tmp_path / "failing").mounted() as disk:
        yield disk


@pytest.fixture
def broker(own_broker: SkidwayBroker, disk: FailingDisk) -> Iterator[SkidwayBroker]:
    """A broker with a topic of two partitions. Partition logs-0 is on the device that can fail, and
    logs-1 is on another disk. Each partition has three records."""
    own_broker.settings["log.dirs"] = f"[{disk.path}, {own_broker.logs}]"
    broker = own_broker.start()
    with RawClient(broker.port) as client:
        wanted = CreatableTopic(name="logs", num_partitions=2)
        answer = client.ask(CreateTopicsRequest(topics=(wanted,)), 5, CreateTopicsResponse)
        assert isinstance(answer, CreateTopicsResponse)
        assert answer.topics[0].error_code == 0
        for offset in range(3):
            for partition in range(2):
                stored = client.produce("logs", sized(LARGE_BYTES), partition=partition)
                assert (stored.error_code, stored.base_offset) == (0, offset)
    assert (disk.path / "logs-0").is_dir()
    yield broker
    broker.end()  # the broker must end before the device is unmounted


def refused_alone(broker: SkidwayBroker, disk: FailingDisk) -> None:
    """Asserts that /health reports the failed device's directory as offline, that the broker
    refuses requests for the partition on this device, and that it serves the other partition."""
    eventually(lambda: str(disk.path) in broker.health()["offline_log_dirs"])
    assert set(broker.health()["stopped_partitions"]) == {"logs-0"}
    assert broker.metric("skidway_broker_log_directories_offline") == 1
    with RawClient(broker.port) as client:
        for acks in (1, -1):
            refused = client.produce("logs", sized(1000), acks=acks)
            assert refused.error_code == ErrorCode.KAFKA_STORAGE_ERROR
            assert client.produce("logs", sized(1000), acks=acks, partition=1).error_code == 0
        assert client.fetch("logs", 0).error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert client.fetch("logs", 0, partition=1).error_code == 0


def back_again(broker: SkidwayBroker, disk: FailingDisk) -> int:
    """Starts the broker with a working device and asserts that every acknowledged record is there.
    Then appends one more record. Returns the offset of this record, which is the log end offset
    after the start."""
    disk.heal()
    broker.program.kill()
    broker.start()
    with RawClient(broker.port) as client:
        end = client.fetch("logs", 0).high_watermark
        assert end >= 3
        for offset in range(end):
            found = client.fetch("logs", offset, max_bytes=1)
            assert [header.base_offset for _, header in headers(found.records)] == [offset]
        assert client.produce("logs", sized(1000)).base_offset == end
    return end


@pytest.mark.parametrize("acks", [1, -1])
def test_a_write_error(broker: SkidwayBroker, disk: FailingDisk, acks: int) -> None:
    """If a batch cannot be written, the broker refuses the batch and takes the log directory
    offline. The batch is not stored."""
    disk.fail("write", ".log")
    with RawClient(broker.port) as client:
        refused = client.produce("logs", sized(1000), acks=acks)
        assert refused.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    refused_alone(broker, disk)
    assert back_again(broker, disk) == 3


@promise("4 failed fsync")
def test_a_failed_fsync_is_not_tried_again(broker: SkidwayBroker, disk: FailingDisk) -> None:
    """After a failed fsync, the broker refuses further batches of the partition and never repeats
    the fsync, because the kernel may have dropped the unwritten pages. A second fsync could then
    succeed without writing these pages."""
    disk.fail("fsync", ".log")
    with RawClient(broker.port) as client:
        refused = client.produce("logs", sized(1000))
        assert refused.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    refused_alone(broker, disk)
    disk.heal()
    disk.fail("fsync", "nothing")
    # the broker still refuses batches, although a second fsync would succeed
    refused_alone(broker, disk)
    of_log = [each.failed for each in disk.operations() if each.what == "fsync"
              and each.file.startswith("/logs-0/") and each.file.endswith(".log")]  # fmt: skip
    assert of_log.count(True) == 1
    assert of_log[-1] is True
    # The batch was written but not acknowledged, so it may or may not be in the log.
    assert back_again(broker, disk) in (3, 4)


def test_a_read_error_while_an_answer_is_sent(broker: SkidwayBroker, disk: FailingDisk) -> None:
    """If sendfile fails after the head of a Fetch answer was sent, the broker closes the
    connection. Further requests get KAFKA_STORAGE_ERROR."""
    broker.restart()  # afterwards no page of the log is in memory, so sendfile reads the disk
    disk.fail("read", ".log", above=LARGE_BYTES * 2)
    with RawClient(broker.port) as client:
        client.send_fetch("logs", 0)
        assert client.receive() == b"", "an answer that cannot be whole"
    refused_alone(broker, disk)
    assert back_again(broker, disk) == 3


def test_a_read_error_before_an_answer(broker: SkidwayBroker, disk: FailingDisk) -> None:
    """If a read error occurs while the broker looks up the position of a batch, the broker answers
    KAFKA_STORAGE_ERROR at once."""
    broker.restart()
    disk.fail("read", ".log")
    with RawClient(broker.port) as client:
        assert client.fetch("logs", 1).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    refused_alone(broker, disk)
    assert back_again(broker, disk) == 3


def test_a_read_error_in_recovery(broker: SkidwayBroker, disk: FailingDisk) -> None:
    """If recovery cannot read a log, it does not truncate the log. The log's directory stays
    offline until the broker is started with a device that can be read."""
    broker.program.kill()
    disk.fail("read", ".log")
    broker.program = type(broker.program)(broker.command(), broker.folder / "again.out")
    broker.program.start().wait_until(broker.up)
    refused_alone(broker, disk)
    assert back_again(broker, disk) == 3


MNT_DETACH = 2
LIBC = ctypes.CDLL(None, use_errno=True)


class Operation(NamedTuple):
    """An operation on the device, with its kind (`read`, `write` or `fsync`), its file, and whether
    it failed."""

    what: str
    file: str
    failed: bool


class FailingDisk:
    """A file system whose operations can fail, mounted at `path` during the block `with
    disk.mounted():`. The program `support.failing_device` serves it, and records every read, write
    and fsync. A program gets errors as from a faulty device: its operations go through the page
    cache, and the kernel decides which system call returns the error."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "disk"
        self._folder, self._control = folder / "device", folder / "control"
        for each in (self.path, self._folder, self._control):
            each.mkdir(parents=True)
        command = [sys.executable, "-m", "support.failing_device"]
        places = [str(each) for each in (self._folder, self.path, self._control)]
        self._program = Program(
            [*command, *places],
            folder / "disk.out",
            env={"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )

    def fail(self, what: str, suffix: str, *, above: int = 0) -> None:
        """Makes operations of the kind `what` fail on files whose names end in `suffix`. A read or
        a write fails only if it reaches beyond position `above`."""
        temporary = self._control / "fault.tmp"
        temporary.write_text(f"{what} {suffix} {above}")
        temporary.rename(self._control / "fault")

    def heal(self) -> None:
        """Makes all operations succeed again."""
        (self._control / "fault").unlink()

    def operations(self) -> list[Operation]:
        """Returns all reads, writes and fsyncs that have reached the file system, in their
        order."""
        lines = (self._control / "operations").read_text().splitlines()
        return [
            Operation(what, file, failed == "1") for what, file, failed in map(str.split, lines)
        ]

    @contextmanager
    def mounted(self) -> Iterator[FailingDisk]:
        """Mounts the disk and serves it during the `with` block."""
        self._program.start().wait_until(self.path.is_mount)
        try:
            yield self
        finally:
            LIBC.umount2(bytes(self.path), MNT_DETACH)
            self._program.kill()
