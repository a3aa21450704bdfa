from __future__ import annotations

import errno
from pathlib import Path

import pytest

from skidway.broker.log.config import LogConfig
from skidway.broker.log.files import StorageFailed
from skidway.broker.log.flusher import NothingSynced
from skidway.broker.log.segment import LogPosition
from skidway.broker.partitions.flush_policy import Flushing, must_flush
from skidway.kafka.types import TopicPartition
from support.batches import PARTITION
from support.hosting import World
from support.promises import promise


class Waiting:
    def __init__(self) -> None:
        self.asked = 0

    def try_complete(self, changed: TopicPartition) -> bool:
        self.asked += 1
        return False

    def expire(self) -> None:
        pass

    def abandon(self) -> None:
        pass


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


@promise("4 watermark")
def test_the_watermark_moves_by_flushing_alone(world: World) -> None:
    """A flush moves the high watermark to the offset at which the log ended when the flush began. A
    write alone does not move the high watermark."""
    world.produce(b"a")
    assert world.replica.offset == 0
    world.advance(0.05)
    assert len(world.worker.waiting) == 1
    assert world.replica.offset == 0, "a flush that has only begun is none"
    world.produce(b"b")
    world.worker.finish()
    assert world.replica.offset == 1


def test_nobody_waits_so_the_flush_waits(world: World) -> None:
    """If no request waits for a flush, and fewer than flush.messages records are not flushed, the
    flush begins flush.ms after the write, not before."""
    world.produce(b"a")
    world.advance(0.049)
    assert not world.worker.waiting
    world.advance(0.001)
    assert len(world.worker.waiting) == 1


def test_many_records_do_not_wait(tmp_path: Path) -> None:
    """As soon as the number of records that are not flushed reaches flush.messages, a flush
    begins."""
    world = World(tmp_path, LogConfig(flush_messages=3))
    world.produce(b"a", b"b")
    assert not world.worker.waiting
    world.produce(b"c")
    assert len(world.worker.waiting) == 1


@promise("4 flush")
def test_somebody_waits_so_the_flush_is_at_once(world: World) -> None:
    """If a request waits for the flush of its records, the flush begins in the same turn of the
    broker's loop in which the records are written. When the flush ends, the broker checks whether
    the request can be answered."""
    waiting = Waiting()
    world.purgatory.watch(waiting, [PARTITION], 1e9)
    world.produce(b"a")
    assert len(world.worker.waiting) == 1
    world.produce(b"b")
    assert len(world.worker.waiting) == 1, "one flush at a time"
    world.worker.finish()
    assert waiting.asked == 1
    assert len(world.worker.waiting) == 1, "what came meanwhile is flushed at once"
    world.worker.finish()
    assert world.replica.offset == 2


@promise("4 failed fsync")
def test_a_failed_flush_takes_the_directory_offline(world: World) -> None:
    """A failed fsync takes the log directory offline, whatever the error is. The fsync is not
    repeated: a second fsync of the same pages could succeed although they are not on disk."""
    waiting = Waiting()
    world.purgatory.watch(waiting, [PARTITION], 1e9)
    world.produce(b"a")
    world.worker.finish(OSError(errno.ENOSPC, "No space left on device"))
    assert world.replica.offset == 0
    assert not world.replica.served
    assert world.hosted.get(PARTITION) is None
    assert PARTITION in world.logs.stopped
    assert world.logs.directories[0].offline is not None
    assert waiting.asked == 1, "who waits is told"
    assert not world.worker.waiting
    world.advance(10)
    assert not world.worker.waiting


@pytest.mark.parametrize("number", [errno.EIO, errno.EROFS])
def test_a_device_that_fails_before_the_first_fsync_is_not_asked_for_ever(
    world: World, number: int
) -> None:
    """If the disk fails after a flush has begun and before its first fsync, the log directory goes
    offline, as it does after a failed fsync. The flush is not repeated forever."""
    world.produce(b"a")
    world.advance(0.05)
    world.worker.finish(NothingSynced(number, "the file of leader epochs"))
    assert world.logs.directories[0].offline is not None
    assert PARTITION in world.logs.stopped
    world.advance(1)
    assert not world.worker.waiting


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.EMFILE, "Too many open files"),
        OSError(errno.ENFILE, "Too many open files in system"),
        NothingSynced(errno.ENOSPC, "No space left on device"),
    ],
)
def test_a_flush_that_could_not_begin_is_put_off(world: World, error: OSError) -> None:
    """If a flush of records cannot begin, for example because no descriptor is free, no fsync has
    failed and no data is lost. So the broker tries the flush again later. The high watermark moves
    only after a flush that succeeds."""
    world.produce(b"a")
    world.advance(0.05)
    world.produce(b"b")
    world.worker.finish(error)
    assert world.hosted.get(PARTITION) is world.replica
    assert (world.replica.offset, len(world.worker.waiting)) == (0, 0)
    world.advance(0.1)
    world.worker.finish()
    assert world.replica.offset == 1
    world.advance(0.05)
    world.worker.finish()
    assert world.replica.offset == 2


def test_a_flush_of_a_new_segment_that_cannot_begin_waits_for_the_next_call(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A new segment is flushed even if no records wait for a flush. If the flush of such a segment
    cannot begin, the broker sets no timer for another attempt, because the timer would fire again
    and again. The next check of retention asks for the flush again."""
    world.produce(b"a")
    world.advance(0.05)
    world.worker.finish()
    log = world.replica.log
    log.roll(0)

    def fail() -> None:
        raise StorageFailed("open", log.directory, OSError(errno.EMFILE, "Too many open files"))

    with monkeypatch.context() as patch:
        patch.setattr(log, "begin_flush", fail)
        world.hosted.flush(PARTITION)
    assert not world.replica.flush_timer
    world.hosted.flush(PARTITION)
    world.worker.finish()
    assert not log.has_new_segment
    world.hosted.flush(PARTITION)
    assert not world.worker.waiting, "nothing is left to flush"


def test_a_full_disk_leaves_the_directory_online(world: World) -> None:
    """If a write fails because the disk is full, the partition and its log directory stay
    online."""
    path = world.logs.directories[0].path / "logs-0"
    failure = StorageFailed("append to", path, OSError(errno.ENOSPC, "full"))
    world.hosted.storage_failed(failure)
    assert world.hosted.get(PARTITION) is world.replica


def test_a_broken_disk_takes_its_partitions_with_it(world: World) -> None:
    """An EIO on a write takes the log directory offline, with all its partitions."""
    path = world.logs.directories[0].path / "logs-0"
    world.hosted.storage_failed(StorageFailed("append to", path, OSError(errno.EIO, "broken")))
    assert world.hosted.get(PARTITION) is None


def test_a_partition_dropped_during_its_flush_is_nobodys(world: World) -> None:
    """If a partition is deleted while it is flushed, its waiting requests are checked at once. The
    end of the flush does not check them again, and does not raise the high watermark."""
    waiting = Waiting()
    world.purgatory.watch(waiting, [PARTITION], 1e9)
    world.produce(b"a")
    world.hosted.drop(PARTITION)
    assert waiting.asked == 1
    world.worker.finish()
    assert (world.replica.offset, waiting.asked) == (0, 1)


def test_a_stop_waits_for_the_last_flush(world: World) -> None:
    """When the broker stops, it calls `flush_all`, which calls back when all records are flushed.
    In this test one record is written while another is being flushed, so `flush_all` waits for a
    second flush."""
    idle = []
    world.produce(b"a")
    world.advance(0.05)
    world.produce(b"b")
    world.hosted.flush_all(lambda: idle.append(1))
    world.worker.finish()
    assert idle == []
    world.worker.finish()
    assert idle == [1]


@promise("4 watermark")
def test_the_watermark_is_the_least_of_the_replicas(world: World) -> None:
    """A partition's high watermark is the lowest flushed offset of all its replicas, and never goes
    back."""
    world.replica.followers[2] = LogPosition(0, 0, 0)
    world.produce(b"a")
    world.advance(0.05)
    world.worker.finish()
    assert world.replica.offset == 0
    world.replica.followers[2] = world.replica.log.flushed
    assert world.replica.advance()
    assert world.replica.offset == 1
    world.replica.followers[3] = LogPosition(0, 0, 0)
    assert not world.replica.advance()
    assert world.replica.offset == 1


@promise("4 flush")
@pytest.mark.parametrize(
    ("unflushed", "running", "awaited", "waited_ms", "expected"),
    [
        (0, False, True, 1000.0, False),
        (1, True, True, 1000.0, False),
        (1, False, True, 0.0, True),
        (1, False, False, 49.9, False),
        (1, False, False, 50.0, True),
        (9_999, False, False, 0.0, False),
        (10_000, False, False, 0.0, True),
    ],
)
def test_the_policy(
    unflushed: int, running: bool, awaited: bool, waited_ms: float, expected: bool
) -> None:
    """Only one flush of a partition runs at a time. If a request waits for a flush, the next flush
    begins as soon as no flush is running. If no request waits, the next flush begins when
    flush.messages or flush.ms is reached."""
    state = Flushing(unflushed, running, awaited, waited_ms)
    assert must_flush(state, LogConfig()) is expected
