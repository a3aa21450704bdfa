"""After a crash, recovery accepts missing offsets in a mirror's log only if these offsets are a
named gap. A named gap is a range of offsets in the topic config `mirror.gaps`. If other offsets are
missing, recovery reports the log as damaged."""

from __future__ import annotations

from pathlib import Path

import pytest

from skidway.broker.log.config import LogConfig
from skidway.broker.log.files import DamagedLog
from skidway.broker.log.partition_log import PartitionLog
from skidway.broker.mirror.partition import last_batch
from skidway.broker.topics.configs import log_config
from skidway.kafka.batch import read_header, stamp
from skidway.kafka.gaps import Gap
from support.batches import NOW_MS, flush, open_in, recover_in, sized, stored

SMALL = 1024


def mirrored(*gaps: Gap, segment_bytes: int = 1 << 20) -> LogConfig:
    return LogConfig(segment_bytes=segment_bytes, contiguous=False, gaps=gaps)


def put(log: PartitionLog, base: int, count: int = 1, size: int = 200, epoch: int = 0) -> None:
    """Writes one batch of `count` records to the mirror's log, as a batch from the source. The
    batch begins at the offset `base` and has the leader epoch `epoch`."""
    view = memoryview(sized(size, count))
    stamp(view, 0, base, epoch)
    log.append_mirrored(view, read_header(view), NOW_MS)
    log.write()


def segments(directory: Path) -> list[int]:
    return sorted(int(path.stem) for path in directory.glob("*.log"))


def test_a_gap_inside_a_segment_survives(tmp_path: Path) -> None:
    """A mirror has written two batches to one segment, with a gap (a range of missing offsets)
    between them, and is then killed. Recovery keeps both batches, and the log continues after the
    second batch."""
    config = mirrored(Gap(0, 5, 20, "expired"))
    log = open_in(tmp_path, config)
    put(log, 0, 5)
    put(log, 20, 3)
    recovered = recover_in(tmp_path, config)
    assert recovered.log.log_end_offset == 23
    assert recovered.cut_bytes == 0
    assert stored(tmp_path) == [(0, 5), (20, 3)]
    below = last_batch(recovered.log)
    assert below is not None
    assert (below.base_offset, below.last_offset) == (20, 22)


def test_gaps_between_segments_survive(tmp_path: Path) -> None:
    """If a segment begins at the end of a gap that `mirror.gaps` lists, recovery accepts this
    segment as the continuation of the segment before the gap."""
    gaps = [Gap(0, 0, 7, "expired"), Gap(0, 12, 40, "expired"), Gap(1, 0, 99, "expired")]
    config = mirrored(*gaps, segment_bytes=SMALL)
    log = open_in(tmp_path, config)
    put(log, 7, 5, SMALL - 100)
    put(log, 40, 5, SMALL - 100)
    put(log, 45, 1)
    flush(log)
    assert segments(tmp_path) == [0, 40, 45]
    for point in (0, 12, 40, 46):
        recovered = recover_in(tmp_path, config, recovery_point=point)
        assert recovered.log.log_end_offset == 46
    with pytest.raises(DamagedLog, match="ends at offset 12, not 40"):
        open_in(tmp_path, mirrored(gaps[0], gaps[2], segment_bytes=SMALL))


def test_a_hole_that_nobody_named_is_damage(tmp_path: Path) -> None:
    """If records are missing in the middle of a mirror's log and no named gap covers them, recovery
    reports the log as damaged."""
    named = Gap(0, 5, 20, "expired")
    log = open_in(tmp_path, mirrored(named))
    for base, count in ((0, 5), (20, 3), (23, 1), (24, 1)):
        put(log, base, count)
    with pytest.raises(DamagedLog, match="base offset 20 where 5 is next"):
        open_in(tmp_path, mirrored(Gap(0, 5, 19, "expired")))
    with pytest.raises(DamagedLog):
        open_in(tmp_path, mirrored(Gap(1, 5, 20, "expired")))
    assert open_in(tmp_path, mirrored(Gap(0, 5, 11, "a"), Gap(0, 11, 20, "b"))).log_end_offset == 25


def test_a_missing_segment_is_damage(tmp_path: Path) -> None:
    """If somebody has deleted a segment of a mirror's log, recovery reports the log as damaged,
    because no named gap covers the missing offsets."""
    config = mirrored(segment_bytes=SMALL)
    log = open_in(tmp_path, config)
    for number in range(3):
        put(log, number, 1, SMALL - 100)
    flush(log)
    (tmp_path / f"{1:020d}.log").unlink()
    with pytest.raises(DamagedLog):
        open_in(tmp_path, config)


def test_a_torn_batch_behind_a_gap_is_cut_and_fetched_again(tmp_path: Path) -> None:
    """If a crash leaves an incomplete batch after a gap (a range of missing offsets), recovery cuts
    off this batch. The log then ends with the last complete batch."""
    config = mirrored(Gap(0, 5, 20, "expired"))
    log = open_in(tmp_path, config)
    put(log, 0, 5)
    put(log, 20, 3)
    path = tmp_path / f"{0:020d}.log"
    for lost in range(1, 201):
        data = path.read_bytes()[: 400 - lost]
        path.write_bytes(data)
        recovered = recover_in(tmp_path, config)
        assert recovered.log.log_end_offset == 5
        below = last_batch(recovered.log)
        assert below is not None
        assert below.last_offset == 4
        put(recovered.log, 20, 3)


def test_a_gap_may_be_larger_than_an_index_can_span(tmp_path: Path) -> None:
    """After a gap of three billion offsets, which is more than the index of one segment can span,
    the log begins a new segment. This is so even if the segment before the gap is empty."""
    end = 3_000_000_000
    config = mirrored(Gap(0, 0, end, "expired"), Gap(0, end + 9, 2 * end, "expired"))
    log = open_in(tmp_path, config)
    put(log, end, 9)
    put(log, 2 * end, 1, 8192)
    put(log, 2 * end + 1, 1, 8192)
    flush(log)
    assert segments(tmp_path) == [0, end, 2 * end]
    piece = log.read(end + 9, 1, log.flushed, at_least_one=True)
    assert piece is not None, "a reader at the end of a closed segment passes the gap"
    again = recover_in(tmp_path, config).log
    assert again.log_end_offset == 2 * end + 2
    for offset, expected in ((0, end), (end + 3, end), (end + 9, 2 * end)):
        piece = again.read(offset, 1, again.flushed, at_least_one=True)
        assert piece is not None
        with open(piece.file.path, "rb") as file:
            file.seek(piece.position)
            assert read_header(file.read(61)).base_offset == expected


def test_a_topic_says_which_offsets_its_logs_may_miss() -> None:
    """Recovery accepts only gaps that the topic config `mirror.gaps` lists. If the value of
    `mirror.gaps` is invalid, recovery accepts no gaps."""
    mirror = {"mirror.source.topic": "logs", "mirror.gaps": "0:5-20:expired"}
    config = log_config(LogConfig(), mirror)
    assert config.may_miss(0, 5, 20)
    assert not config.may_miss(0, 5, 21)
    assert not config.may_miss(1, 5, 20)
    assert not log_config(LogConfig(), {**mirror, "mirror.gaps": "?"}).may_miss(0, 5, 20)
    assert not log_config(LogConfig(), {"mirror.gaps": "0:5-20:expired"}).may_miss(0, 5, 20)
