from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from broker.log.config import LogConfig
from broker.log.timestamps import NOT_FOUND, TimestampOffset, at_or_after, with_max_timestamp
from skidway.kafka.batch import Codec, EncodedBatch, seal
from support.batches import append, batch, flush, open_in


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    times=st.lists(st.lists(st.integers(1, 60), min_size=1, max_size=4), min_size=1, max_size=25),
    codec=st.sampled_from([Codec.NONE, Codec.ZSTD, Codec.GZIP]),
    interval=st.sampled_from([0, 150, 5000]),
)
def test_the_first_record_at_or_after_a_time(
    tmp_path_factory: pytest.TempPathFactory, times: list[list[int]], codec: Codec, interval: int
) -> None:
    """Event times in any order: the answer is what looking at every record gives."""
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
    """Neither a time nor the largest time may show a record above the watermark."""
    log = open_in(tmp_path)
    assert with_max_timestamp(log, log.flushed) == NOT_FOUND
    append(log, batch(b"a", timestamps=[10]))
    flush(log)
    append(log, batch(b"b", timestamps=[20]))
    assert at_or_after(log, 15, log.flushed) == NOT_FOUND
    assert with_max_timestamp(log, log.flushed) == (10, 0)


def test_a_batch_that_cannot_be_unpacked_stands_for_itself(tmp_path: Path) -> None:
    """A producer that compresses nonsense cannot stop the partition for others."""
    log = open_in(tmp_path)
    append(log, bytearray(seal(EncodedBatch(b"nonsense", Codec.GZIP, 3, 5, 9, 8))))
    flush(log)
    assert at_or_after(log, 7, log.flushed) == (9, 0)
