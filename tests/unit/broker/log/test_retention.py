from __future__ import annotations

import os
from pathlib import Path

from skidway.broker.log.config import LogConfig
from skidway.broker.log.expiration import Expiration
from skidway.broker.log.flusher import WorkOutcome, timed
from skidway.broker.log.log_manager import LogManager
from skidway.broker.log.retention import Expired, SegmentAge, expired
from skidway.kafka.types import TopicPartition
from support.batches import NOW_MS, append, batch, flush, open_in
from support.clock import ManualClock
from support.promises import promise

HOUR = 3_600_000


def decide(
    *ages_h: int, size: int = 100, flushed: int = 1 << 40, start: int = 0, held: int | None = None,
    **config: int,
) -> Expired:  # fmt: skip
    """Returns what retention decides about segments of 10 records each. `ages_h` says, for each
    segment, how many hours ago its last append was; `size` is the size of each segment in bytes.
    Records from the offset `flushed` on are not flushed, and a group has not read the records from
    `held` on."""
    segments = [SegmentAge(10 * at, size, NOW_MS - age * HOUR) for at, age in enumerate(ages_h)]
    return expired(
        segments, LogConfig(**config), now_ms=NOW_MS, log_start_offset=start,
        flushed_offset=flushed, flushed_segment=flushed, held_from=held,
    )  # fmt: skip


def test_old_segments_go_and_the_first_young_one_stops_it() -> None:
    """Retention by time deletes segments, beginning with the oldest. It stops at the first segment
    whose last append is not longer ago than the limit."""
    assert decide(5, 4, 3, 0, retention_ms=3 * HOUR).count == 2
    assert decide(1, 5, 5, 0, retention_ms=3 * HOUR).count == 0


def test_an_old_active_segment_is_rolled_and_kept() -> None:
    """If the active segment is old, retention makes the log begin a new segment, but does not
    delete the old one yet."""
    assert decide(5, 5, retention_ms=3 * HOUR) == Expired(1, roll=True)
    assert decide(5, 5, retention_ms=3 * HOUR, size=0) == Expired(1, roll=False)
    assert decide(5, 0, retention_ms=3 * HOUR) == Expired(1, roll=False)


def test_size_goes_by_what_remains() -> None:
    """Retention by size deletes only whole segments, and the oldest first. It deletes a segment
    only if the remaining segments together have at least retention.bytes."""
    assert decide(0, 0, 0, 0, retention_bytes=250).count == 1
    assert decide(0, 0, 0, 0, retention_bytes=300).count == 1
    assert decide(0, 0, 0, 0, retention_bytes=301).count == 0
    assert decide(0, 0, 0, 0, retention_bytes=0).count == 3


def test_no_limit_is_no_limit() -> None:
    """With a limit of -1, retention keeps everything."""
    assert decide(9000, 9000, 9000, retention_ms=-1) == Expired(0, roll=False)


def test_what_is_not_flushed_stays() -> None:
    """A segment with records that are not flushed is kept, because these records could still be
    lost in a crash."""
    assert decide(5, 5, 0, retention_ms=HOUR, flushed=19).count == 1


def test_what_is_below_the_log_start_goes() -> None:
    """Segments below the log start offset are deleted, whatever their age."""
    assert decide(0, 0, 0, start=20).count == 2


def test_what_a_reader_holds_stays() -> None:
    """A segment is kept while a group in the setting retention.hold has not read all records of the
    segment."""
    assert decide(5, 5, 5, retention_ms=HOUR, held=15) == Expired(1, roll=False, held=True)
    assert decide(5, 5, 5, retention_ms=HOUR, held=20).count == 2


def test_nobody_holds_for_ever() -> None:
    """The setting retention.hold has limits of age and size. Beyond these limits, segments are
    deleted as usual, even if a group in retention.hold has not read them."""
    limits = {"retention_ms": HOUR, "hold_ms_max": 4 * HOUR}
    assert decide(9, 5, 3, 0, held=0, **limits) == Expired(2, roll=False, held=True)
    limits = {"retention_ms": HOUR, "hold_bytes_max": 250, "hold_ms_max": -1}
    assert decide(9, 9, 9, 9, held=0, **limits) == Expired(1, roll=False, held=True)


def test_an_active_segment_is_rolled_when_nobody_holds_it() -> None:
    """Retention closes an old active segment and begins a new one (a roll) only when the groups in
    retention.hold have read up to the log's end."""
    assert decide(5, 5, retention_ms=HOUR, held=15, flushed=20) == Expired(1, False, held=True)
    assert decide(5, 5, retention_ms=HOUR, held=20, flushed=20) == Expired(1, True)


def test_deleted_records_are_held_by_nobody() -> None:
    """Segments below the log start offset are deleted, even if a group in retention.hold has not
    read them."""
    assert decide(0, 0, 0, start=20, held=0).count == 2


class AtOnce:
    def submit(self, work: object, done: object) -> None:
        outcome: WorkOutcome = timed(work)  # type: ignore[arg-type]
        done(outcome)  # type: ignore[operator]


@promise("4 append time")
def test_expired_segments_leave_the_log_by_append_time(tmp_path: Path) -> None:
    """Segments expire by the append time of their records, even after a restart. Event times do not
    matter, even if they are years old."""
    partition = TopicPartition("logs", 0)
    directory = tmp_path / "logs-0"
    directory.mkdir()
    config = LogConfig(segment_bytes=150, retention_ms=HOUR)
    log = open_in(directory, config)
    for number in range(3):
        append(log, batch(b"x" * 60, timestamps=[1000 + number]))
    flush(log)
    clock = ManualClock(time_ms=NOW_MS)
    manager = LogManager(clock, AtOnce())
    manager.open_directories([tmp_path])
    manager.logs[partition] = log
    assert manager.expire(lambda _: None, 1) == Expiration()
    os.utime(log.segments[0].path, (0, (NOW_MS - 2 * HOUR) // 1000))
    manager.logs[partition] = log = open_in(directory, config)
    log.segments[1].last_append_ms = log.segments[2].last_append_ms = NOW_MS
    found = manager.expire(lambda _: None, 1)
    assert found.failures == []
    assert found.cuts == [(partition, 0, 1)]
    (renamed,) = found.renamed.values()
    assert log.log_start_offset == 1
    assert {path.suffix for path in renamed} == {".deleted"}
    assert not (directory / "00000000000000000000.log").exists()
    manager.remove(renamed)
    assert not any(path.exists() for path in renamed)
    manager.release()
