from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from skidway.broker.log import partition_log
from skidway.broker.log.config import LogConfig
from skidway.broker.log.files import StorageFailed
from skidway.broker.log.offset_lookup import OffsetOutside
from skidway.broker.log.producer_state import OutOfOrderSequence
from skidway.broker.log.segment import Segment
from skidway.kafka.batch import read_header
from support.batches import NOW_MS, append, batch, contents, flush, open_in, put, sized, stored
from support.promises import promise


def test_offsets_go_on_from_batch_to_batch(tmp_path: Path) -> None:
    """Each batch gets the offsets after those of the previous batch. Except for its offset and its
    leader epoch, the bytes of a batch stay unchanged."""
    log = open_in(tmp_path)
    sent = batch(b"a", b"b", b"c")
    assert append(log, bytearray(sent), epoch=7) == 0
    assert append(log, bytearray(sent), epoch=7) == 3
    data = (tmp_path / "00000000000000000000.log").read_bytes()
    first, second = data[: len(sent)], data[len(sent) :]
    assert [read_header(each).base_offset for each in (first, second)] == [0, 3]
    assert read_header(second).leader_epoch == 7
    assert second[16:] == bytes(sent[16:])
    assert log.log_end_offset == 6


def test_a_turn_is_written_at_once(tmp_path: Path) -> None:
    """Batches that are appended in one turn of the broker's loop are written to the file together,
    at the end of the turn."""
    log = open_in(tmp_path)
    for _ in range(2000):  # one call of pwritev does not accept so many batches
        put(log, batch(b"x"))
    assert stored(tmp_path) == []
    log.write()
    assert len(stored(tmp_path)) == 2000


def test_nothing_unflushed_is_read(tmp_path: Path) -> None:
    """A read ends at the flushed offset, even if the log has later records."""
    log = open_in(tmp_path)
    append(log, batch(b"a"))
    flush(log)
    append(log, batch(b"b"))
    assert contents(log) == [(0, 1)]
    assert log.read(1, 1000, log.flushed, at_least_one=True) is None
    flush(log)
    assert contents(log) == [(0, 1), (1, 1)]


def test_a_flush_counts_what_was_there_before_it(tmp_path: Path) -> None:
    """A flush makes durable what was appended before the flush began. Later batches wait for the
    next flush."""
    log = open_in(tmp_path)
    append(log, batch(b"a"))
    running = log.begin_flush()
    assert running is not None
    append(log, batch(b"b"))
    assert log.begin_flush() is None
    log.finish_flush(running)
    assert log.flushed.offset == 1
    assert log.unflushed_messages == 1


def test_a_flush_after_a_roll_has_the_old_segment_and_the_directory(tmp_path: Path) -> None:
    """The first flush after a roll (the beginning of a new segment) makes three things durable: the
    file of the old segment, the file of the new segment, and their names in the directory."""
    log = open_in(tmp_path, LogConfig(segment_bytes=200))
    append(log, sized(150))
    append(log, sized(150))
    work = log.begin_flush()
    assert work is not None
    assert [file.path.name for file in work.files] == [
        "00000000000000000000.log",
        "00000000000000000001.log",
    ]
    assert work.directory == tmp_path


def test_a_roll_while_a_flush_runs_keeps_the_old_segment_for_the_next(tmp_path: Path) -> None:
    """If the log begins a new segment (a roll) while a flush runs, the old segment may have records
    at its end that this flush does not make durable. So the next flush makes both segments
    durable."""
    log = open_in(tmp_path, LogConfig(segment_bytes=400))
    append(log, sized(150))
    running = log.begin_flush()
    assert running is not None
    append(log, sized(150))
    append(log, sized(150))
    log.finish_flush(running)
    work = log.begin_flush()
    assert work is not None
    assert len(work.files) == 2


def test_segments_roll_by_size(tmp_path: Path) -> None:
    """If a batch would make a segment larger than segment.bytes, the batch begins a new segment."""
    log = open_in(tmp_path, LogConfig(segment_bytes=1000))
    for _ in range(10):
        append(log, sized(400))
    assert [segment.size for segment in log.segments] == [800] * 5


def test_segments_roll_by_append_time(tmp_path: Path) -> None:
    """The log begins a new segment when segment.ms has passed since the first append to the active
    segment, whatever the event times of the segment's records are."""
    log = open_in(tmp_path, LogConfig(segment_ms=1000))
    append(log, batch(b"old", timestamps=[5]), NOW_MS)
    append(log, batch(b"far", timestamps=[NOW_MS * 2]), NOW_MS + 999)
    assert len(log.segments) == 1
    append(log, batch(b"new"), NOW_MS + 1000)
    assert len(log.segments) == 2


def test_the_first_append_time_survives_a_restart(tmp_path: Path) -> None:
    """After a restart, too, a segment is closed when segment.ms has passed since the first append
    to it."""
    log = open_in(tmp_path, LogConfig(segment_ms=1000))
    append(log, batch(b"a"), NOW_MS)
    log = open_in(tmp_path, LogConfig(segment_ms=1000))
    append(log, batch(b"b"), NOW_MS + 500)
    assert len(log.segments) == 1
    append(log, batch(b"c"), NOW_MS + 1001)
    assert len(log.segments) == 2


def test_segments_roll_when_an_index_is_full(tmp_path: Path) -> None:
    """The log begins a new segment when an index of the active segment has reached
    segment.index.bytes."""
    log = open_in(tmp_path, LogConfig(index_interval_bytes=0, segment_index_bytes=80))
    for _ in range(60):
        append(log, batch(b"x"))
    assert len(log.segments) > 1
    assert all(segment.index_bytes <= 96 for segment in log.segments)


@pytest.mark.parametrize("interval", [0, 300, 100_000])
def test_every_offset_is_found(tmp_path: Path, interval: int) -> None:
    """A read at any offset begins with the batch that contains the offset, however few entries the
    index has."""
    log = open_in(tmp_path, LogConfig(index_interval_bytes=interval, segment_bytes=3000))
    for count in (1, 7, 2, 3) * 20:
        append(log, batch(*[b"v" * 20] * count))
    flush(log)
    bases = [base for base, _ in stored(tmp_path)]
    for offset in range(log.log_end_offset):
        piece = log.read(offset, 1, log.flushed, at_least_one=True)
        assert piece is not None
        data = os.pread(piece.file.fileno(), piece.length, piece.position)
        header = read_header(data)
        assert header.base_offset == max(base for base in bases if base <= offset)
        assert header.base_offset <= offset <= header.last_offset


def test_reads_are_whole_batches_within_the_limit(tmp_path: Path) -> None:
    """A read returns only whole batches, and not more bytes than the caller asked for. With
    `at_least_one`, the read returns the first batch even if this batch alone is larger than the
    limit."""
    log = open_in(tmp_path, LogConfig(index_interval_bytes=500))
    for _ in range(50):
        append(log, sized(200))
    flush(log)
    for limit in (1, 199, 200, 399, 400, 1000, 3333, 100_000):
        piece = log.read(0, limit, log.flushed, at_least_one=True)
        assert piece is not None
        assert piece.length % 200 == 0
        assert piece.length <= max(limit, 200)
        assert piece.length >= min(limit, 10_000) - 700 or limit < 700
    assert log.read(0, 199, log.flushed, at_least_one=False) is None


def test_reads_outside_are_refused(tmp_path: Path) -> None:
    """A read at an offset lower than the log start or higher than the log end raises OffsetOutside.
    A read at the log end returns nothing."""
    log = open_in(tmp_path)
    append(log, batch(b"a", b"b"))
    flush(log)
    assert log.read(2, 100, log.flushed, at_least_one=True) is None
    for offset in (-1, 3):
        with pytest.raises(OffsetOutside):
            log.read(offset, 100, log.flushed, at_least_one=True)


def test_a_duplicate_is_not_stored_again(tmp_path: Path) -> None:
    """A duplicate batch from an idempotent producer is not stored again. The answer to the producer
    has the first offset of the stored batch."""
    log = open_in(tmp_path)
    first = batch(b"a", b"b", producer_id=5, epoch=0, sequence=0)
    assert append(log, bytearray(first)) == 0
    assert append(log, batch(b"c", producer_id=5, epoch=0, sequence=2)) == 2
    assert append(log, bytearray(first)) == 0
    assert stored(tmp_path) == [(0, 2), (2, 1)]


@promise("4 duplicate")
def test_other_bytes_under_a_used_sequence_are_refused(tmp_path: Path) -> None:
    """If a batch has the sequence number of a stored batch, but another CRC, it is refused. A
    duplicate would have the same CRC."""
    log = open_in(tmp_path)
    append(log, batch(b"a", producer_id=5, epoch=0, sequence=0))
    with pytest.raises(OutOfOrderSequence):
        put(log, batch(b"A", producer_id=5, epoch=0, sequence=0))


class FullDisk:
    """Replaces os.pwritev. It writes at most `room` bytes, and then fails as on a full disk."""

    def __init__(self, room: int) -> None:
        self.room = room

    def __call__(self, descriptor: int, buffers: list[memoryview], position: int) -> int:
        data = b"".join(bytes(each) for each in buffers)[: self.room]
        if not data:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.room -= len(data)
        return os.pwrite(descriptor, data, position)


@pytest.mark.parametrize("room", [0, 1, 60, 61, 150, 200])
def test_a_full_disk_takes_nothing_by_half(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, room: int
) -> None:
    """After a failed write, the file, the offsets, the indexes and the states of producers are the
    same as before the write. The next write succeeds."""
    log = open_in(tmp_path, LogConfig(index_interval_bytes=0))
    append(log, batch(b"a", producer_id=1, epoch=0, sequence=0))
    before = stored(tmp_path)
    size = log.active.size
    put(log, batch(b"b" * 100, producer_id=1, epoch=0, sequence=1))
    put(log, batch(b"c" * 100, producer_id=2, epoch=0, sequence=0, timestamps=[NOW_MS + 9]))
    with monkeypatch.context() as patch:
        patch.setattr("skidway.broker.log.files.os.pwritev", FullDisk(room))
        with pytest.raises(StorageFailed) as caught:
            log.write()
    assert caught.value.is_passing
    assert stored(tmp_path) == before
    assert log.log_end_offset == log.written.offset == 1
    assert log.active.size == size == (tmp_path / "00000000000000000000.log").stat().st_size
    assert log.active.max_timestamp == NOW_MS
    assert len(log.active.offset_index) == 0
    assert append(log, batch(b"b", producer_id=1, epoch=0, sequence=1)) == 1
    assert append(log, batch(b"c", producer_id=2, epoch=0, sequence=0)) == 2


def test_a_roll_that_fails_refuses_the_rest_of_the_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the log cannot begin a new segment (a roll), the batches that were appended earlier in the
    same turn are stored, and the later batches are refused."""
    log = open_in(tmp_path, LogConfig(segment_bytes=200))
    put(log, sized(150))

    def fail(*_: object) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    with monkeypatch.context() as patch:
        patch.setattr(partition_log.Segment, "create", fail)
        with pytest.raises(StorageFailed):
            put(log, sized(150))
        with pytest.raises(StorageFailed):
            put(log, sized(40 + 61))
    with pytest.raises(StorageFailed):
        log.write()
    assert log.written.offset == log.log_end_offset == 1
    assert append(log, sized(150)) == 1
    assert stored(tmp_path) == [(0, 1), (1, 1)]


def test_a_roll_of_retention_that_fails_refuses_no_later_append(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If retention cannot begin a new segment (a roll), no batch waits for it. So the next append,
    which may come hours later, is not refused with the old error."""
    log = open_in(tmp_path)
    append(log, sized(150))
    flush(log)

    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(partition_log.Segment, "create", fail)
        with pytest.raises(StorageFailed):
            log.roll(NOW_MS)
    assert append(log, sized(150)) == 1
    assert stored(tmp_path) == [(0, 1), (1, 1)]


def test_a_deleted_segment_can_be_read_to_its_end(tmp_path: Path) -> None:
    """A reader that has got a range of a segment can read the range to its end, even if retention
    deletes the segment in the meantime."""
    log = open_in(tmp_path, LogConfig(segment_bytes=200))
    append(log, sized(150))
    append(log, sized(150))
    flush(log)
    piece = log.read(0, 1000, log.flushed, at_least_one=True)
    assert piece is not None
    gone = log.take_out(1)
    for segment in gone:
        for path in segment.rename_deleted():
            path.unlink()
    del gone
    assert log.log_start_offset == 1
    assert len(os.pread(piece.file.fileno(), 1000, piece.position)) == 150
    with pytest.raises(OffsetOutside):
        log.read(0, 1000, log.flushed, at_least_one=True)


def test_bytes_between_counts_across_segments(tmp_path: Path) -> None:
    """A fetch may wait until its partitions have a certain number of bytes. The bytes of all
    segments up to the high watermark are counted."""
    log = open_in(tmp_path, LogConfig(segment_bytes=200))
    for _ in range(3):
        append(log, sized(150))
    flush(log)
    append(log, sized(150))
    assert log.bytes_between(0, log.flushed, 1 << 20) == 450
    assert log.bytes_between(2, log.flushed, 1 << 20) == 150
    assert log.bytes_between(3, log.flushed, 1 << 20) == 0


def test_what_was_not_touched_is_not_written_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At a clean stop, the broker writes nothing for a partition that has not changed since the
    start. It writes and syncs the files of a partition if batches were appended to it, or if it has
    begun a new segment."""
    log = open_in(tmp_path)
    append(log, batch(b"a"))
    flush(log)
    log.close_cleanly()
    synced: list[int] = []
    monkeypatch.setattr(os, "fdatasync", synced.append)
    again = open_in(tmp_path, clean=True)
    again.close_cleanly()
    assert synced == []
    append(again, batch(b"b"))
    flush(again)
    synced.clear()
    again.close_cleanly()
    assert synced
    rolled = open_in(tmp_path, clean=True)
    rolled.roll(NOW_MS)
    synced.clear()
    rolled.close_cleanly()
    assert synced


def test_an_unclean_start_is_closed_in_full(tmp_path: Path) -> None:
    """If the broker was started after an unclean stop, the next clean stop writes the indexes and
    the producer state that recovery has computed, even if nothing was appended."""
    log = open_in(tmp_path)
    append(log, batch(b"a"))
    flush(log)
    open_in(tmp_path).close_cleanly()
    assert (tmp_path / "00000000000000000001.producers").exists()
    assert open_in(tmp_path, clean=True).log_end_offset == 1


def test_who_reads_on_needs_no_search(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A read that begins at the end of the last read does not search the index."""
    log = open_in(tmp_path, LogConfig(index_interval_bytes=500, segment_bytes=10_000))
    for _ in range(150):
        append(log, sized(200))
    flush(log)
    assert len(log.segments) == 3
    monkeypatch.setattr(Segment, "find", None)
    offset, read = 0, 0
    while piece := log.read(offset, 3333, log.flushed, at_least_one=True):
        offset += piece.length // 200
        read += piece.length
    assert (offset, read) == (150, 150 * 200)
