from __future__ import annotations

from pathlib import Path

import pytest

from skidway.broker.log.config import LogConfig
from skidway.broker.log.producer_state import OutOfOrderSequence
from skidway.broker.log.timestamps import at_or_after, with_max_timestamp
from skidway.kafka.batch import check, headers
from skidway.kafka.codecs import NONE, ZSTD, Codec, codec_of
from support.batches import NOW_MS, append, batch, flush, open_in

STAMPED = LogConfig(append_time=True)


@pytest.mark.parametrize("codec", [NONE, ZSTD])
def test_records_get_the_time_of_appending(tmp_path: Path, codec: Codec) -> None:
    """With LogAppendTime, the broker writes the timestamp type, the append time and a new CRC into
    the header of a batch. The records stay unchanged."""
    log = open_in(tmp_path, STAMPED)
    sent = batch(b"a", b"b", timestamps=[5, 9], codec=codec)
    body = bytes(sent[61:])
    append(log, sent, NOW_MS + 3)
    flush(log)
    data = log.active.path.read_bytes()
    ((_, header),) = headers(data)
    check(data, 0, header)
    assert header.has_log_append_time
    assert (codec_of(header), header.base_timestamp, header.max_timestamp) == (codec, 5, NOW_MS + 3)
    assert data[61:] == body


def test_times_are_looked_up_by_the_time_of_appending(tmp_path: Path) -> None:
    """With LogAppendTime, a look-up of an offset by time uses the append time. The event times in
    the records are ignored."""
    log = open_in(tmp_path, STAMPED)
    append(log, batch(b"a", timestamps=[NOW_MS * 2]), NOW_MS)
    append(log, batch(b"b", b"c", timestamps=[5, 6]), NOW_MS + 10)
    flush(log)
    assert at_or_after(log, NOW_MS + 1, log.flushed) == (NOW_MS + 10, 1)
    assert with_max_timestamp(log, log.flushed) == (NOW_MS + 10, 1)
    log.start_at(2)
    assert with_max_timestamp(log, log.flushed) == (NOW_MS + 10, 2)


def test_a_duplicate_is_known_by_what_was_sent(tmp_path: Path) -> None:
    """With LogAppendTime, the broker recognizes a duplicate batch by the bytes that the producer
    sent, and not by the stored bytes. After a crash, the broker no longer knows what the producer
    sent, and recognizes a duplicate by its sequence numbers alone."""
    log = open_in(tmp_path, STAMPED)

    def sent(value: bytes) -> bytearray:
        return batch(value, producer_id=7, epoch=0, sequence=0)

    assert append(log, sent(b"a")) == 0
    assert append(log, sent(b"a"), NOW_MS + 50) == 0
    with pytest.raises(OutOfOrderSequence):
        append(log, sent(b"other"))
    flush(log)
    again = open_in(tmp_path, STAMPED)
    assert append(again, sent(b"a"), NOW_MS + 99) == 0
    assert again.log_end_offset == 1


def test_event_times_are_not_bounded_where_they_do_not_count() -> None:
    """With LogAppendTime, the limits message.timestamp.*.max.ms are ignored. As in Kafka, these
    limits apply only to CreateTime."""
    assert LogConfig(timestamp_after_max_ms=1).bounds_timestamps
    assert not LogConfig(timestamp_after_max_ms=1, append_time=True).bounds_timestamps
