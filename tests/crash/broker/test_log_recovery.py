"""Recovery repairs log files after a crash, and refuses log files that were damaged by bad disks or
by people. The recovery point is the offset up to which the log is known to be flushed.
"""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from skidway.broker.log import names, offset_index, scan, torn_tail
from skidway.broker.log.config import LogConfig
from skidway.broker.log.files import DamagedLog, StorageFailed
from skidway.broker.log.partition_log import OffsetOutside, PartitionLog
from skidway.broker.log.producer_state import OutOfOrderSequence
from skidway.kafka.batch import headers, read_header, stamp
from support.batches import (
    NOW_MS,
    append,
    batch,
    contents,
    flush,
    open_in,
    put,
    recover_in,
    sized,
    stored,
)
from support.promises import promise

FIRST = "00000000000000000000.log"


def write_log(directory: Path, batches: int = 5, config: LogConfig | None = None) -> PartitionLog:
    """Writes and flushes a log whose batches have 1, 2, 3 and more records. Returns the log."""
    log = open_in(directory, config)
    for number in range(batches):
        append(
            log,
            batch(
                *[b"v%d" % number] * (number + 1),
                producer_id=3,
                epoch=0,
                sequence=log.log_end_offset,
            ),
        )
    flush(log)
    return log


def ends(path: Path) -> list[int]:
    """Returns the position in the file at which each batch ends."""
    return [position + header.size_bytes for position, header in headers(path.read_bytes())]


def test_a_tail_cut_anywhere_in_the_last_batch_is_repaired(tmp_path: Path) -> None:
    """If a crash cuts off the end of the last batch at any position, recovery keeps all batches
    before this batch. The next batch is appended after the kept batches."""
    source = tmp_path / "source"
    source.mkdir()
    write_log(source)
    before = stored(source)
    *_, previous, end = ends(source / FIRST)
    data = (source / FIRST).read_bytes()
    for size in range(previous, end):
        directory = tmp_path / str(size)
        directory.mkdir()
        (directory / FIRST).write_bytes(data[:size])
        recovered = recover_in(directory)
        assert contents(recovered.log) == before[:-1]
        assert recovered.cut_bytes == size - previous
        if size > previous:
            cut = directory / names.cut_file(0, previous)
            assert cut.read_bytes() == data[previous:size]
        assert append(recovered.log, batch(b"next")) == before[-1][0]
        flush(recovered.log)
        assert contents(recovered.log) == [*before[:-1], (before[-1][0], 1)]
        shutil.rmtree(directory)


@pytest.mark.parametrize(
    "tail",
    [
        b"\0",
        b"\0" * 61,
        b"\0" * 10_000,
        b"\xff" * 500,
        random.Random(1).randbytes(3000),
        b"GET / HTTP/1.1\r\n",
    ],
    ids=["zero", "zeros", "many-zeros", "ones", "noise", "text"],
)
def test_nonsense_behind_the_end_is_cut_and_kept(tmp_path: Path, tail: bytes) -> None:
    """If zeros or old disk blocks follow the last batch, recovery cuts them off and keeps them in a
    separate file."""
    write_log(tmp_path)
    before = stored(tmp_path)
    size = (tmp_path / FIRST).stat().st_size
    with (tmp_path / FIRST).open("ab") as file:
        file.write(tail)
    recovered = recover_in(tmp_path, recovery_point=15)
    assert contents(recovered.log) == before
    assert (tmp_path / FIRST).stat().st_size == size
    assert (tmp_path / names.cut_file(0, size)).read_bytes() == tail


def full(*_: object) -> None:
    raise OSError(28, "No space left on device")


def test_a_torn_tail_stays_until_there_is_space(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the disk has no space for the copy of a torn tail, recovery changes nothing, the log is
    read up to its last whole batch, and every append is refused. When there is space, the next
    append keeps the torn tail and cuts it off."""
    write_log(tmp_path)
    before = stored(tmp_path)
    size = (tmp_path / FIRST).stat().st_size
    with (tmp_path / FIRST).open("ab") as file:
        file.write(b"torn" * 300)
    with monkeypatch.context() as patch:
        patch.setattr(torn_tail, "write_all_at", full)
        log = recover_in(tmp_path, recovery_point=15).log
        assert contents(log) == before
        for attempt in (lambda: log.roll(NOW_MS), lambda: append(log, batch(b"x")), log.write):
            with pytest.raises(StorageFailed) as caught:
                attempt()
            assert caught.value.is_disk_full
        with pytest.raises(OSError, match="No space"):
            log.close_cleanly()
        assert (tmp_path / FIRST).stat().st_size == size + 1200
        assert not list(tmp_path.glob(f"*{names.CUT}"))
    assert append(log, batch(b"x")) == 15
    flush(log)
    assert (tmp_path / names.cut_file(0, size)).read_bytes() == b"torn" * 300
    assert contents(open_in(tmp_path, recovery_point=16)) == [*before, (15, 1)]


def test_indexes_that_do_not_fit_stay_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the disk has no space for indexes, recovery opens the log nevertheless, and every offset
    and time is found. When there is space, the indexes are written."""
    config = LogConfig(index_interval_bytes=1)
    write_log(tmp_path, 40, config)
    before = stored(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(offset_index, "TAIL_MAX", 4)
        patch.setattr(os, "pwrite", full)
        log = open_in(tmp_path, config)
        assert contents(log) == before
    assert not (tmp_path / "00000000000000000000.index").stat().st_size
    log.close_cleanly()
    again = recover_in(tmp_path, config, clean=True, recovery_point=log.log_end_offset)
    assert again.scanned_bytes == 0
    assert contents(again.log) == before


def test_every_damaged_byte_of_a_batch_in_front_stops_the_partition(tmp_path: Path) -> None:
    """If a byte is changed in a batch, and valid batches follow this batch, the log is damaged.
    Recovery reports the file and the position, and changes no file.

    The CRC does not cover the leader epoch. Recovery notices a changed leader epoch because it is
    higher than the leader epoch of the next batch, or lower than that of the previous batch."""
    source = tmp_path / "source"
    source.mkdir()
    write_log(source)
    start, end = ends(source / FIRST)[0:2]
    data = (source / FIRST).read_bytes()
    for at in range(start, end):
        directory = tmp_path / str(at)
        directory.mkdir()
        broken = bytearray(data)
        broken[at] ^= 0x81
        (directory / FIRST).write_bytes(broken)
        with pytest.raises(DamagedLog) as caught:
            open_in(directory)
        assert str(directory / FIRST) in str(caught.value)
        assert start <= caught.value.position <= end
        assert (directory / FIRST).read_bytes() == broken
        shutil.rmtree(directory)


def test_damage_below_the_recovery_point_is_never_cut(tmp_path: Path) -> None:
    """If flushed data is damaged, even in the last batch, recovery reports the damage and cuts off
    nothing."""
    write_log(tmp_path)
    path = tmp_path / FIRST
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    with pytest.raises(DamagedLog, match="recovery point"):
        open_in(tmp_path, recovery_point=15)
    assert path.read_bytes() == data


def test_a_log_that_lost_flushed_batches_is_damaged(tmp_path: Path) -> None:
    """The recovery point is the offset up to which the log was flushed. If a file ends before this
    point, flushed batches are lost, even if the file ends at the end of a batch. Recovery reports
    the file as damaged.
    """
    write_log(tmp_path)
    path = tmp_path / FIRST
    os.truncate(path, ends(path)[2])
    with pytest.raises(DamagedLog, match="on disk up to 15"):
        open_in(tmp_path, recovery_point=15)
    assert open_in(tmp_path, recovery_point=6).log_end_offset == 6


def test_a_missing_segment_is_damage(tmp_path: Path) -> None:
    """A log is damaged if a segment between two other segments is missing. It is also damaged if
    all its segments are missing although its recovery point (the end of the flushed data) says that
    records were flushed."""
    log = write_log(tmp_path, 6, LogConfig(segment_bytes=200))
    assert len(log.segments) > 2
    log.segments[1].path.unlink()
    with pytest.raises(DamagedLog):
        open_in(tmp_path, recovery_point=14)
    for path in tmp_path.iterdir():
        path.unlink()
    with pytest.raises(DamagedLog):
        open_in(tmp_path, recovery_point=10)


def test_a_torn_segment_in_front_of_an_empty_one_is_repaired(tmp_path: Path) -> None:
    """A crash right after a roll may leave the old segment's last batch incomplete. Recovery cuts
    off this batch and deletes the empty new segment."""
    log = write_log(tmp_path, 3)
    log.roll(0)
    data = (tmp_path / FIRST).read_bytes()
    (tmp_path / FIRST).write_bytes(data[:-5])
    again = open_in(tmp_path)
    assert again.log_end_offset == 3
    assert len(again.segments) == 1
    assert append(again, batch(b"x")) == 3


@pytest.mark.parametrize("lost", [1, 2, 3])
def test_whole_batches_lost_in_front_of_an_empty_segment(tmp_path: Path, lost: int) -> None:
    """If a crash right after a roll loses batches that were never flushed, recovery deletes the
    empty segment that the roll created. The log then ends before the lost batches."""
    log = write_log(tmp_path, 3)
    log.roll(0)
    os.truncate(tmp_path / FIRST, [0, *ends(tmp_path / FIRST)][3 - lost])
    again = open_in(tmp_path)
    assert again.log_end_offset == (0, 1, 3)[3 - lost]
    assert len(again.segments) == 1
    assert append(again, batch(b"x")) == again.log_end_offset - 1
    flush(again)
    assert open_in(tmp_path).log_end_offset == again.log_end_offset


def test_an_empty_segment_behind_lost_flushed_batches_hides_nothing(tmp_path: Path) -> None:
    """If batches before the recovery point (the end of the flushed data) are lost, recovery reports
    the log as damaged, even if an empty segment follows. It does not delete the empty segment.
    """
    log = write_log(tmp_path, 3)
    log.roll(0)
    os.truncate(tmp_path / FIRST, ends(tmp_path / FIRST)[1])
    with pytest.raises(DamagedLog):
        open_in(tmp_path, recovery_point=6)
    assert log.active.path.exists()


def test_what_a_roll_that_failed_left_behind_goes(tmp_path: Path) -> None:
    """If a roll failed and batches were then appended to the old segment, recovery deletes the
    empty segment whose base offset is within the old segment."""
    write_log(tmp_path, 3)
    (tmp_path / "00000000000000000004.log").touch()
    assert contents(open_in(tmp_path)) == [(0, 1), (1, 2), (3, 3)]


PAGE = 4096


def write_pages(directory: Path) -> list[int]:
    """Writes a log of 20 batches of 1000 bytes. Returns the position at which each batch begins."""
    log = open_in(directory)
    for _ in range(20):
        append(log, sized(1000))
    flush(log)
    return [0, *ends(directory / FIRST)][:-1]


@pytest.mark.parametrize(("first", "end"), [(PAGE, 2 * PAGE), (6000, 2 * PAGE), (8192, 16384)])
def test_pages_that_a_power_failure_left_out_cost_what_is_behind_them(
    tmp_path: Path, first: int, end: int
) -> None:
    """The kernel may write pages to a disk in any order, so after a power failure a page may be
    missing although later pages were written. Only batches before the first missing page can have
    been flushed. Recovery cuts the log after the last whole batch before this page, and keeps the
    rest in a separate file. Later batches are appended at the cut."""
    starts = write_pages(tmp_path)
    path = tmp_path / FIRST
    data = bytearray(path.read_bytes())
    data[first:end] = bytes(end - first)
    path.write_bytes(data)
    good = sum(start + 1000 <= first for start in starts)
    recovered = recover_in(tmp_path, recovery_point=good)
    assert [offset for offset, _ in contents(recovered.log)] == list(range(good))
    assert (tmp_path / names.cut_file(0, good * 1000)).read_bytes() == data[good * 1000 :]
    assert append(recovered.log, sized(1000)) == good
    flush(recovered.log)
    assert len(contents(open_in(tmp_path))) == good + 1


@pytest.mark.parametrize(("first", "end"), [(PAGE, 2 * PAGE), (6000, 2 * PAGE)])
def test_a_page_that_is_missing_below_the_recovery_point_is_damage(
    tmp_path: Path, first: int, end: int
) -> None:
    """A page before the recovery point (the end of the flushed data) was flushed. So if such a page
    is missing, the cause cannot be a power failure. The log is damaged, and recovery changes no
    file.
    """
    write_pages(tmp_path)
    path = tmp_path / FIRST
    data = bytearray(path.read_bytes())
    data[first:end] = bytes(end - first)
    path.write_bytes(data)
    with pytest.raises(DamagedLog, match="below the recovery point"):
        open_in(tmp_path, recovery_point=first // 1000 + 1)
    assert path.read_bytes() == data


def test_zeros_that_are_no_page_are_damage(tmp_path: Path) -> None:
    """A power failure can only leave out whole pages. So a hundred zero bytes within a page are
    damage."""
    write_pages(tmp_path)
    path = tmp_path / FIRST
    data = bytearray(path.read_bytes())
    data[5000:5100] = bytes(100)
    path.write_bytes(data)
    with pytest.raises(DamagedLog, match="a valid batch follows"):
        open_in(tmp_path)


@pytest.mark.parametrize("lost", [5, 500, 1500])
def test_a_segment_whose_end_is_missing_in_front_of_data(tmp_path: Path, lost: int) -> None:
    """After a roll, the first flush of the new segment also flushes the end of the old segment. If
    the end of the old segment is missing, no data in the new segment was flushed. So recovery moves
    the whole content of the new segment to a separate file."""
    write_pages(tmp_path)
    log = open_in(tmp_path)
    log.roll(0)
    append(log, batch(b"x"))
    behind = log.active.path.read_bytes()
    os.truncate(tmp_path / FIRST, 20_000 - lost)
    good = (20_000 - lost) // 1000
    with pytest.raises(DamagedLog):
        open_in(tmp_path, recovery_point=good + 1)
    recovered = recover_in(tmp_path, recovery_point=good)
    assert len(contents(recovered.log)) == good
    assert (tmp_path / names.cut_file(20, 0)).read_bytes() == behind
    assert recovered.cut_bytes == len(behind) + -lost % 1000
    assert append(recovered.log, sized(1000)) == good
    flush(recovered.log)
    assert len(contents(open_in(tmp_path))) == good + 1


def test_a_segment_behind_a_missing_end_is_set_aside_on_a_full_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the disk has no space for the copy of a segment's torn end, the segment behind it is not
    read either, and the log can be opened again and again."""
    write_pages(tmp_path)
    log = open_in(tmp_path)
    log.roll(0)
    append(log, batch(b"x"))
    behind = log.active.path.read_bytes()
    os.truncate(tmp_path / FIRST, 19_500)
    with monkeypatch.context() as patch:
        patch.setattr(torn_tail, "write_all_at", full)
        for _ in range(2):
            assert len(contents(open_in(tmp_path, recovery_point=19))) == 19
    log = open_in(tmp_path, recovery_point=19)
    assert (tmp_path / names.cut_file(20, 0)).read_bytes() == behind
    assert append(log, sized(1000)) == 19
    flush(log)
    assert len(contents(open_in(tmp_path))) == 20


@pytest.mark.parametrize("lost", [1000, 2000])
def test_a_segment_that_ends_between_two_batches_in_front_of_data(
    tmp_path: Path, lost: int
) -> None:
    """If a segment ends with a whole batch, but before the base offset of the next segment, the log
    is damaged. A segment between these two may have been deleted, and the deleted segment may have
    been flushed."""
    write_pages(tmp_path)
    log = open_in(tmp_path)
    log.roll(0)
    append(log, batch(b"x"))
    os.truncate(tmp_path / FIRST, 20_000 - lost)
    with pytest.raises(DamagedLog, match="ends at offset"):
        open_in(tmp_path)


def test_a_torn_segment_in_front_of_several_stops_the_partition(tmp_path: Path) -> None:
    """If the last batch of a segment is incomplete and two more segments follow, the log counts as
    damaged. A power failure loses only unflushed data, and the broker normally has no unflushed
    data in three segments. So recovery assumes another cause."""
    log = write_log(tmp_path, 3)
    for _ in range(2):
        log.roll(0)
        append(log, batch(b"x"))
    data = (tmp_path / FIRST).read_bytes()
    (tmp_path / FIRST).write_bytes(data[:-5])
    with pytest.raises(DamagedLog, match="goes on behind it"):
        open_in(tmp_path)


def test_a_changed_length_at_the_end_of_a_segment_is_no_missing_end(tmp_path: Path) -> None:
    """If the length field of a segment's last batch is changed, so that the batch looks incomplete,
    the log is damaged. Recovery does not cut off the batch, because the file contains the whole
    batch, and the batch may have been flushed."""
    log = write_log(tmp_path, 3)
    log.roll(0)
    append(log, batch(b"x"))
    data = bytearray((tmp_path / FIRST).read_bytes())
    data[ends(tmp_path / FIRST)[1] + 10] ^= 0x40
    (tmp_path / FIRST).write_bytes(data)
    with pytest.raises(DamagedLog, match="goes on behind it"):
        open_in(tmp_path)


def damage_missing(path: Path) -> None:
    path.unlink()


def damage_empty(path: Path) -> None:
    path.write_bytes(b"")


def damage_short(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:24])


def damage_torn(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-3])


def damage_zeros(path: Path) -> None:
    path.write_bytes(b"\0" * path.stat().st_size)


def damage_stale(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"\x7f" * 24)


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
@pytest.mark.parametrize(
    "damage", [damage_missing, damage_empty, damage_short, damage_torn, damage_zeros, damage_stale]
)
def test_damaged_indexes_are_made_again(
    tmp_path: Path, damage: object, suffix: str, clean: bool
) -> None:
    """If indexes are damaged in any way, the log still finds every batch, and no batch is
    changed."""
    config = LogConfig(index_interval_bytes=100, segment_bytes=3000)
    log = open_in(tmp_path, config)
    for number in range(40):
        append(log, batch(b"%d" % number * 50, timestamps=[1000 + number]))
    flush(log)
    log.close_cleanly()
    before, count = stored(tmp_path), len(log.segments)
    assert count > 1
    for path in tmp_path.glob(f"*{suffix}"):
        damage(path)  # type: ignore[operator]
    again = open_in(tmp_path, config, clean=clean, recovery_point=40)
    assert len(again.segments) == count
    for offset, _ in before:
        piece = again.read(offset, 1, again.flushed, at_least_one=True)
        assert piece is not None
        assert (
            next(headers(os.pread(piece.file.fileno(), piece.length, piece.position)))[
                1
            ].base_offset
            == offset
        )
    assert stored(tmp_path) == before


def test_a_clean_stop_is_not_believed_about_a_torn_file(tmp_path: Path) -> None:
    """Recovery notices and cuts off bytes after the last batch of a log, even if the broker has
    noted that it was stopped cleanly."""
    log = write_log(tmp_path)
    log.close_cleanly()
    before = stored(tmp_path)
    with (tmp_path / FIRST).open("ab") as file:
        file.write(b"\0" * 100)
    recovered = recover_in(tmp_path, clean=True, recovery_point=15)
    assert contents(recovered.log) == before
    assert recovered.cut_bytes == 100


def test_a_clean_stop_saves_reading(tmp_path: Path) -> None:
    """After a clean stop, recovery does not scan any segment. It looks only at the segments'
    ends."""
    log = write_log(tmp_path)
    log.close_cleanly()
    recovered = recover_in(tmp_path, clean=True, recovery_point=15)
    assert recovered.scanned_bytes == 0
    assert recovered.log.log_end_offset == 15


@pytest.mark.parametrize("keep", ["snapshots", "none", "damaged"])
@pytest.mark.parametrize("clean", [True, False])
def test_producers_come_back_from_the_log(tmp_path: Path, keep: str, clean: bool) -> None:
    """After a clean stop or a crash, the log still recognizes duplicates of a producer's last five
    batches. It also still refuses a gap in the producer's sequence numbers. The log does both even
    if the snapshots of producers are missing or damaged."""
    config = LogConfig(segment_bytes=400)
    log = open_in(tmp_path, config)
    sent = [batch(b"%d" % n * 20, producer_id=9, epoch=2, sequence=n) for n in range(12)]
    for one in sent:
        append(log, bytearray(one))
    flush(log)
    assert len(log.segments) > 2
    if clean:
        log.close_cleanly()
    for path in tmp_path.glob("*.producers"):
        if keep == "none":
            path.unlink()
        elif keep == "damaged":
            path.write_bytes(path.read_bytes()[:-1] + b"?")
    again = open_in(tmp_path, config, clean=clean, recovery_point=12)
    assert again.producers.highest_id == 9
    for n in range(7, 12):
        assert append(again, bytearray(sent[n])) == n
    for bad in (bytearray(sent[6]), batch(b"gap", producer_id=9, epoch=2, sequence=13)):
        with pytest.raises(OutOfOrderSequence):
            put(again, bad)
    assert append(again, batch(b"next", producer_id=9, epoch=2, sequence=12)) == 12


@promise("4 append time")
@pytest.mark.parametrize("clean", [True, False])
def test_producers_that_are_read_again_count_as_appended_now(tmp_path: Path, clean: bool) -> None:
    """The log forgets a producer some time after the producer's last append. Recovery treats each
    producer that it finds in the log as if the producer had appended just now, even if the
    producer's batches have old timestamps. It is worse to forget a producer too early than to
    remember it for too long."""
    log = open_in(tmp_path)
    append(log, batch(b"x", producer_id=9, epoch=2, sequence=0, timestamps=[1000]))
    flush(log)
    if clean:
        log.close_cleanly()
    for path in tmp_path.glob("*.producers"):
        path.unlink()
    again = open_in(tmp_path, clean=clean, recovery_point=1)
    assert again.producers.expire(NOW_MS) == 0
    assert 9 in again.producers.producers


@pytest.mark.parametrize("keep", ["all", "none"])
def test_recovery_reads_each_segment_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keep: str
) -> None:
    """Recovery reads each segment only once. From the segments it rebuilds the same state of
    producers that the running log had."""
    config = LogConfig(segment_bytes=400)
    log = open_in(tmp_path, config)
    for number in range(12):
        for producer in (9, 4):
            epoch = int(number > 6 and producer == 4)
            sequence = number - 7 * epoch
            append(log, batch(b"x", producer_id=producer, epoch=epoch, sequence=sequence))
    flush(log)
    if keep == "none":
        for path in tmp_path.glob("*.producers"):
            path.unlink()
    read: list[int] = []
    headers_of = scan.headers

    def noted(descriptor: int, *rest: Any, **options: Any) -> Any:
        read.append(os.fstat(descriptor).st_ino)
        return headers_of(descriptor, *rest, **options)

    monkeypatch.setattr(scan, "headers", noted)
    recovered = recover_in(tmp_path, config)
    assert sorted(read) == sorted(each.path.stat().st_ino for each in log.segments if each.size)
    assert recovered.scanned_bytes == log.size_bytes
    assert recovered.log.producers.highest_id == 9
    found, known = recovered.log.producers.producers, log.producers.producers
    assert {each: (found[each].epoch, found[each].batches) for each in found} == {
        each: (known[each].epoch, known[each].batches) for each in known
    }


def test_deleted_and_temporary_files_go_at_the_start(tmp_path: Path) -> None:
    """Recovery deletes files that retention had renamed but not yet deleted, temporary files, and
    indexes that have no log file."""
    write_log(tmp_path)
    left = [f"{FIRST}.deleted", "00000000000000000099.index", "00000000000000000000.producers.tmp"]
    for name in left:
        (tmp_path / name).write_bytes(b"old")
    open_in(tmp_path)
    assert not any((tmp_path / name).exists() for name in left)


def test_records_below_the_log_start_are_not_served_again(tmp_path: Path) -> None:
    """After recovery the log starts at the given log start offset (of log-start-offset-checkpoint),
    even if this offset is within a segment and a batch. A read below it is refused."""
    write_log(tmp_path)
    log = open_in(tmp_path, log_start_offset=4)
    assert log.log_start_offset == 4
    for below in (0, 3):
        with pytest.raises(OffsetOutside):
            log.read(below, 1000, log.flushed, at_least_one=True)
    piece = log.read(4, 1000, log.flushed, at_least_one=True)
    assert piece is not None
    assert next(headers(os.pread(piece.file.fileno(), 1000, piece.position)))[1].base_offset == 3


def test_a_mirror_keeps_its_gaps(tmp_path: Path) -> None:
    """In the log of a mirrored topic, recovery accepts missing offsets (`contiguous=False`). In any
    other log, missing offsets are damage."""
    log = write_log(tmp_path, 2)
    view = memoryview(sized(100, 4))
    stamp(view, 0, 10, 0)
    log.append_mirrored(view, read_header(view), 0)
    log.write()
    again = open_in(tmp_path, LogConfig(contiguous=False))
    assert again.log_end_offset == 14
    piece = again.read(5, 1000, again.flushed, at_least_one=True)
    assert piece is not None
    assert next(headers(os.pread(piece.file.fileno(), 1000, piece.position)))[1].base_offset == 10
    with pytest.raises(DamagedLog):
        open_in(tmp_path, recovery_point=14)


UNCOVERED = [*range(8), 16]
"""The positions of the base offset and the magic byte, which the batch's CRC does not cover. The
CRC does not cover the leader epoch either, but recovery accepts a leader epoch that has risen."""


@promise("4 recovery")
@pytest.mark.quick
@pytest.mark.parametrize("at", UNCOVERED)
@pytest.mark.parametrize("bit", [0, 3, 7])
def test_a_whole_batch_at_the_end_is_never_cut(tmp_path: Path, at: int, bit: int) -> None:
    """If a bit of the base offset or of the magic byte changes in the last batch, recovery reports
    the damage, although the CRC does not cover these bytes. It does not cut off the batch, which
    may have been flushed and acknowledged."""
    write_log(tmp_path)
    path = tmp_path / FIRST
    data = bytearray(path.read_bytes())
    last = ends(path)[-2]
    data[last + at] ^= 1 << bit
    path.write_bytes(data)
    with pytest.raises(DamagedLog) as caught:
        open_in(tmp_path)
    assert caught.value.position == last
    assert path.read_bytes() == data


@pytest.mark.parametrize("at", range(12, 16))
def test_a_raised_epoch_does_not_cost_the_batch_behind_it(tmp_path: Path, at: int) -> None:
    """If the leader epoch in the second to last batch is damaged, recovery raises DamagedLog with
    the reason, and does not cut off the last batch."""
    write_log(tmp_path)
    path = tmp_path / FIRST
    data = bytearray(path.read_bytes())
    data[ends(path)[-3] + at] ^= 0x41
    path.write_bytes(data)
    with pytest.raises(DamagedLog, match="CRC-32C is right"):
        open_in(tmp_path)
    assert path.read_bytes() == data


def synced_names(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Returns a list to which every later call of fsync or fdatasync adds the name of its file."""
    found: list[str] = []

    def record(sync: Callable[[int], None]) -> Callable[[int], None]:
        def synced(descriptor: int) -> None:
            found.append(Path(os.readlink(f"/proc/self/fd/{descriptor}")).name)
            sync(descriptor)

        return synced

    monkeypatch.setattr(os, "fsync", record(os.fsync))
    monkeypatch.setattr(os, "fdatasync", record(os.fdatasync))
    return found


@promise("4 recovery")
@pytest.mark.quick
def test_all_that_recovery_believes_is_on_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Recovery calls fsync for every segment file of the log, because the log treats everything
    that recovery has read as flushed."""
    config = LogConfig(segment_bytes=200)
    log = open_in(tmp_path, config)
    for number in range(6):
        append(log, batch(b"%d" % number * 50))
    assert len(log.segments) > 2
    synced = synced_names(monkeypatch)
    again = open_in(tmp_path, config)
    assert again.flushed.offset == 6
    assert {path.name for path in tmp_path.glob("*.log")} <= set(synced)


def test_indexes_of_a_flushed_segment_are_flushed_before_they_are_believed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If all records of a segment are flushed when a new segment begins, the next flush calls fsync
    for the indexes of the old segment. If the broker ends before this flush, recovery builds these
    indexes again."""
    config = LogConfig(index_interval_bytes=0)
    log = write_log(tmp_path, 5, config)
    log.roll(0)
    assert recover_in(tmp_path, config, recovery_point=15).indexes_rebuilt == 1
    append(log, batch(b"x"))
    synced = synced_names(monkeypatch)
    flush(log)
    assert {FIRST, "00000000000000000000.index", "00000000000000000000.timeindex"} <= set(synced)
    assert recover_in(tmp_path, config, recovery_point=16).indexes_rebuilt == 1, "the last one"


def test_a_new_segment_without_records_is_flushed_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If retention begins a new segment, a flush makes the segment's file durable although it has
    no records. Afterwards retention may delete all older segments, and the log still ends at the
    same offset."""
    log = write_log(tmp_path)
    log.roll(0)
    synced = synced_names(monkeypatch)
    assert flush(log).end.offset == 15
    assert tmp_path.name in synced
    assert log.begin_flush() is None
    for each in log.take_out(1):
        each.rename_deleted()
        each.let_go()
    assert open_in(tmp_path, recovery_point=15).log_end_offset == 15


def test_every_changed_byte_of_an_index_costs_nothing_but_time(tmp_path: Path) -> None:
    """The log finds the whole batch for each offset, whatever an index entry says, because an index
    is only a hint."""
    config = LogConfig(index_interval_bytes=100)
    log = open_in(tmp_path, config)
    for number in range(12):
        append(log, batch(b"%d" % number * 60))
    flush(log)
    log.close_cleanly()
    path = tmp_path / "00000000000000000000.index"
    good = path.read_bytes()
    assert len(good) > 24
    log = open_in(tmp_path, config, clean=True, recovery_point=12)
    for at in range(len(good)):
        for mask in (0x01, 0x80, 0xFF):
            broken = bytearray(good)
            broken[at] ^= mask
            path.write_bytes(broken)
            for offset in range(12):
                piece = log.read(offset, 300, log.flushed, at_least_one=True)
                assert piece is not None
                found = [
                    header.base_offset
                    for _, header in headers(
                        os.pread(piece.file.fileno(), piece.length, piece.position)
                    )
                ]
                assert found[0] == offset
            if mask == 0xFF:
                assert open_in(tmp_path, config, clean=True, recovery_point=12).log_end_offset == 12
