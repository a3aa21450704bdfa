from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skidway.broker.log.config import LogConfig
from skidway.broker.log.timestamps import (
    NOT_FOUND,
    TimestampOffset,
    at_or_after,
    with_max_timestamp,
)
from skidway.kafka.batch import HEADER_BYTES, EncodedBatch, seal
from skidway.kafka.codecs import GZIP, NONE, ZSTD, Codec
from support.batches import append, batch, flush, open_in, record, varint


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    times=st.lists(st.lists(st.integers(1, 60), min_size=1, max_size=4), min_size=1, max_size=25),
    codec=st.sampled_from([NONE, ZSTD, GZIP]),
    interval=st.sampled_from([0, 150, 5000]),
)
def test_the_first_record_at_or_after_a_time(
    tmp_path_factory: pytest.TempPathFactory, times: list[list[int]], codec: Codec, interval: int
) -> None:
    """A look-up by time finds the first record whose event time is not earlier than the given time.
    The order of the event times in the log does not matter."""
    directory = tmp_path_factory.mktemp("log")
    log = open_in(directory, LogConfig(index_interval_bytes=interval, segment_bytes=1024))
    for each in times:
        append(log, batch(*[b"v" * 30] * len(each), timestamps=each, codec=codec))
    flush(log)
    flat = [at for each in times for at in each]
    for asked in range(62):
        expected = next(
            (TimestampOffset(at, offset) for offset, at in enumerate(flat) if at >= asked),
            NOT_FOUND,
        )
        assert at_or_after(log, asked, log.flushed) == expected
    largest = max(flat)
    assert with_max_timestamp(log, log.flushed) == (largest, flat.index(largest))


def test_what_is_not_flushed_is_not_found(tmp_path: Path) -> None:
    """A look-up by time, or of the largest time, never finds a record at or above the high
    watermark."""
    log = open_in(tmp_path)
    assert with_max_timestamp(log, log.flushed) == NOT_FOUND
    append(log, batch(b"a", timestamps=[10]))
    flush(log)
    append(log, batch(b"b", timestamps=[20]))
    assert at_or_after(log, 15, log.flushed) == NOT_FOUND
    assert with_max_timestamp(log, log.flushed) == (10, 0)


def test_a_batch_that_cannot_be_unpacked_stands_for_itself(tmp_path: Path) -> None:
    """If a batch cannot be decompressed, a look-up by time uses the times in its header, and does
    not fail. So a bad batch of one producer does not prevent look-ups in the partition."""
    log = open_in(tmp_path)
    append(log, bytearray(seal(EncodedBatch(b"nonsense", GZIP.number, 3, 5, 9, 8))))
    flush(log)
    assert at_or_after(log, 7, log.flushed) == (9, 0)


def claiming(times: list[int], largest: int) -> bytearray:
    """Makes a batch of records with the given times. The batch's header says that the maximum time
    is `largest`, which is larger than all these times."""
    honest = batch(*[b"v"] * len(times), timestamps=times)
    body = bytes(honest[HEADER_BYTES:])
    return bytearray(
        seal(EncodedBatch(body, NONE.number, len(times), times[0], largest, len(body)))
    )


def test_a_header_that_promises_too_much_is_no_riddle(tmp_path: Path) -> None:
    """The maximum time in a batch's header may be later than the times of all its records. A
    look-up by time then goes on behind the batch. A look-up of the largest time returns the batch's
    first offset."""
    log = open_in(tmp_path)
    append(log, claiming([5, 6], 1000))
    append(log, batch(b"a", timestamps=[20]))
    flush(log)
    assert with_max_timestamp(log, log.flushed) == (1000, 0)
    assert at_or_after(log, 7, log.flushed) == (20, 2)
    assert at_or_after(log, 6, log.flushed) == (6, 1)
    assert at_or_after(log, 21, log.flushed) == NOT_FOUND


def test_the_largest_time_may_lie_below_the_log_start(tmp_path: Path) -> None:
    """A look-up of the largest time uses only records at or above the log start offset, although
    the segment may also contain records with lower offsets. If all records have expired, there is
    no largest time."""
    log = open_in(tmp_path)
    append(log, batch(b"a", timestamps=[1000]))
    append(log, batch(b"b", b"c", timestamps=[1, 2]))
    flush(log)
    log.log_start_offset = 1
    assert with_max_timestamp(log, log.flushed) == (2, 2)
    log.log_start_offset = 3
    assert with_max_timestamp(log, log.flushed) == NOT_FOUND


def test_a_time_whose_record_expired_is_not_its_batchs(tmp_path: Path) -> None:
    """If the log start is inside a batch, and the remaining records of the batch are earlier than
    the given time, a look-up by time continues in the next batch."""
    log = open_in(tmp_path)
    append(log, batch(b"a", b"b", timestamps=[1000, 1]))
    append(log, batch(b"c", timestamps=[2000]))
    flush(log)
    log.log_start_offset = 1
    assert at_or_after(log, 500, log.flushed) == (2000, 2)


@pytest.mark.parametrize(
    "records",
    [
        record(b"x", 0, 1 << 30),
        record(b"x", 0, -1),
        record(b"x", 50, 0),
        varint(-5) + b"\0" * 8,
    ],
    ids=["far", "negative", "late", "length"],
)
def test_records_that_contradict_their_header_are_not_believed(
    tmp_path: Path, records: bytes
) -> None:
    """A look-up ignores records that contradict the header of their batch. So it never returns an
    offset outside the batch, or a time later than the maximum time in the header."""
    log = open_in(tmp_path)
    append(log, batch(b"first", timestamps=[10]))
    append(log, bytearray(seal(EncodedBatch(records, NONE.number, 1, 10, 20, len(records)))))
    flush(log)
    assert at_or_after(log, 15, log.flushed) == (20, 1)
    assert with_max_timestamp(log, log.flushed) == (20, 1)


def test_a_time_beyond_the_clock_is_a_time(tmp_path: Path) -> None:
    """The time of a record is the batch's base time plus the record's own difference. If the sum is
    too large for an int64, a look-up returns the maximum time in the batch's header instead."""
    log = open_in(tmp_path)
    latest = (1 << 63) - 1
    records = record(b"x", 1000, 0)
    append(log, bytearray(seal(EncodedBatch(records, NONE.number, 1, latest, latest, 9))))
    flush(log)
    assert with_max_timestamp(log, log.flushed) == (latest, 0)
