"""Tests how the records of fetched batches of audit topics are decoded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from unittest.mock import patch

import google_crc32c
import numpy as np
import pyarrow as pa
import pytest

from skidway.audit.evidence.collection import WAITING_RECORDS_MAX, Waiting
from skidway.audit.topic.topic import TOGETHER_MAX, DamagedBatch, TopicBatch, records_of
from skidway.kafka import columns
from skidway.kafka.batch import (
    CONTROL,
    CRC_START,
    HEADER_BYTES,
    CorruptBatch,
    read_header,
    seal,
    stamp,
    stamp_append_time,
)
from skidway.kafka.codecs import BY_NUMBER, NONE, ZSTD, Codec
from skidway.kafka.types import TopicPartition
from support.undecodable import filled, sealed

ONE, OTHER = TopicPartition("a", 0), TopicPartition("b", 0)


def _batch(
    offset: int,
    *values: bytes | None,
    appended_ms: int | None = None,
    codec: Codec = ZSTD,
) -> bytes:
    """Returns a batch that has a record for each of the given values and begins at `offset`.
    appended_ms: if given, the time of the batch's append (LogAppendTime)."""
    times = np.full(len(values), 5, np.int64)
    raw = bytearray(seal(columns.encode(pa.array(values, pa.binary()), times, codec=codec)))
    stamp(raw, 0, offset, 0)
    if appended_ms is not None:
        stamp_append_time(raw, 0, read_header(raw), appended_ms)
    return bytes(raw)


def _found(*batches: TopicBatch) -> list[tuple[TopicPartition, int, bytes]]:
    return [tuple(record)[:3] for record in records_of(batches)]


def _of(tp: TopicPartition, raws: Sequence[bytes], begin: int = 0) -> list[TopicBatch]:
    return [TopicBatch(tp, begin, raw) for raw in raws]


@pytest.mark.parametrize("count", [1, 2, TOGETHER_MAX, TOGETHER_MAX + 1])
def test_each_record_of_many_small_batches_is_found_once(count: int) -> None:
    """However many batches arrive together, each record is found once, with its partition and its
    offset, and in the order of its log, even if the batches of two partitions alternate."""
    mine = _of(ONE, [_batch(n, b"one %d" % n) for n in range(count)])
    others = _of(OTHER, [_batch(9 + 2 * n, b"other", b"second") for n in range(count)])
    mixed = [each for pair in zip(mine, others, strict=True) for each in pair]
    found = _found(*mixed)
    assert [x for x in found if x[0] == ONE] == [(ONE, n, b"one %d" % n) for n in range(count)]
    assert [x[1] for x in found if x[0] == OTHER] == list(range(9, 9 + 2 * count))
    assert len(found) == 3 * count


@pytest.mark.parametrize("codec", BY_NUMBER.values())
def test_batches_of_every_codec_are_decoded(codec: Codec) -> None:
    """Producers may compress batches as they like. The records of batches with different codecs are
    found in the order of the log."""
    text = b"a text that repeats, a text that repeats, a text that repeats"
    raws = [_batch(0, text), _batch(1, text, text, codec=codec), _batch(3, text)]
    assert _found(*_of(ONE, raws)) == [(ONE, offset, text) for offset in range(4)]


def test_records_before_the_wanted_offset_and_without_a_value_are_left_out() -> None:
    """A batch may begin before the offset that is wanted, and a record may have no value. Such
    records are left out, also in a log whose offsets have gaps."""
    raws = [_batch(0, b"a", b"b"), _batch(2, b"c", None, b"e"), _batch(90, b"f")]
    assert _found(*_of(ONE, raws, begin=1)) == [
        (ONE, 1, b"b"), (ONE, 2, b"c"), (ONE, 4, b"e"), (ONE, 90, b"f"),
    ]  # fmt: skip


def test_markers_of_transactions_are_no_records() -> None:
    """A control batch, with which a broker ends a transaction, has no records for readers. The
    records of the batches before and after it are found, and each with the time at which its own
    batch was read."""
    marker = bytearray(_batch(1, b"commit"))
    marker[CRC_START + 1] |= CONTROL
    crc = int(google_crc32c.value(bytes(marker[CRC_START:])))
    marker[CRC_START - 4 : CRC_START] = crc.to_bytes(4)
    assert read_header(marker).is_control
    batches = _of(ONE, [_batch(0, b"a"), bytes(marker), _batch(2, b"c")])
    assert _found(*batches) == [(ONE, 0, b"a"), (ONE, 2, b"c")]
    waiting = Waiting()
    for taken_ms, batch in enumerate(batches):
        waiting.add(batch, "id", taken_ms, is_live=True)
    assert [(value, where.taken_ms) for value, where in waiting.records()] == [(b"a", 0), (b"c", 2)]


def test_a_damaged_batch_is_an_error_behind_the_records_before_it() -> None:
    """If a batch is damaged, its records are not used. The records of the batches before it are
    returned first, and then the error is raised."""
    damaged = bytearray(_batch(1, b"bad"))
    damaged[-1] ^= 1
    found = records_of(_of(ONE, [_batch(0, b"good"), bytes(damaged), _batch(2, b"more")]))
    assert next(found) == (ONE, 0, b"good", None)
    with pytest.raises(CorruptBatch):
        next(found)


@pytest.mark.parametrize("index", [0, 3])
def test_the_error_names_the_damaged_batch(index: int) -> None:
    """The error about a damaged batch says which partition cannot be read, and from which offset
    on. It does not take this offset from the batch's own header, which may be damaged, too."""
    raws = [_batch(n, b"%d" % n, codec=NONE) for n in range(5)]
    damaged = bytearray(raws[index])
    damaged[HEADER_BYTES] ^= 0x7E  # the length of the first record
    damaged[7] = 0x55  # the base offset, which the checksum does not cover
    raws[index] = bytes(damaged)
    found = records_of([TopicBatch(OTHER, n, raw) for n, raw in enumerate(raws)])
    assert [record.offset for record in islice(found, index)] == list(range(index))
    with pytest.raises(DamagedBatch, match=f"b-0 cannot be read at offset {index}") as error:
        next(found)
    assert (error.value.tp, error.value.offset) == (OTHER, index)


def _damaged_records() -> Iterator[bytes]:
    """Yields batches of one offset, 1, whose writer has sent what nobody can decode."""
    plain, packed = _batch(1, b"one", codec=NONE), _batch(1, b"x" * 500)
    for raw in (plain, packed):
        for filling in (b"\0", b"\xff"):
            yield filled(raw, filling)
    for codec in range(8):
        yield sealed(packed, attributes=codec if codec != ZSTD else NONE)
    at = plain.index(b"one")
    yield from (sealed(plain[:n] + b"\x7e" + plain[n + 1 :]) for n in range(HEADER_BYTES, at))


def test_records_that_nobody_can_decode_are_one_record_that_is_no_message() -> None:
    """If the CRC of a batch is right, its records are what its writer sent. If they cannot be
    decoded, they are one record without content, and all other records are read."""
    found = 0
    for raw in _damaged_records():
        records = _found(
            *_of(ONE, [_batch(0, b"a")]), TopicBatch(ONE, 1, raw), *_of(ONE, [_batch(2, b"b")])
        )
        assert (records[0], records[-1]) == ((ONE, 0, b"a"), (ONE, 2, b"b"))
        found += records[1:-1] == [(ONE, 1, b"")]
    assert found > 12


def test_a_batch_of_millions_of_equal_records_is_no_message() -> None:
    """A few kilobytes can say millions of equal records. They count as one record without content,
    and take neither memory nor time."""
    count = 19_000_000
    body = ZSTD.compress(bytes([12, 0, 0, 0, 1, 1, 0]) * count)
    one = columns.encode(pa.array([b""], pa.binary()), np.array([5]))
    many = replace(one, body=bytes(body), codec=ZSTD.number, count=count)
    raw = bytearray(seal(many))
    stamp(raw, 0, 1, 0)
    assert len(raw) < 20_000
    last = TopicBatch(ONE, 1 + count, _batch(1 + count, b"b"))
    with patch("skidway.kafka.columns.unpack", side_effect=AssertionError("not decompressed")):
        found = _found(TopicBatch(ONE, 0, _batch(0, b"a")), TopicBatch(ONE, 1, bytes(raw)), last)
    assert found == [(ONE, 0, b"a"), (ONE, 1, b""), (ONE, 1 + count, b"b")]


def test_the_time_of_the_broker_is_no_time_of_the_sender() -> None:
    """If the broker has written its own time into the records of a batch, this time is the time of
    their append. Otherwise the time of a record is the time at which its sender sent it."""
    waiting = Waiting()
    for batch in _of(ONE, [_batch(0, b"a"), _batch(1, b"b", appended_ms=70), _batch(2, b"c")]):
        waiting.add(batch, "id", 100, is_live=True)
    found = dict(waiting.records())
    assert [(x.sent_ms, x.appended_ms) for x in found.values()] == [
        (5, None),
        (None, 70),
        (5, None),
    ]
    assert {(x.topic, x.topic_id, x.partition, x.taken_ms, x.is_live) for x in found.values()} == {
        ("a", "id", 0, 100, True)
    }
    assert [x.offset for x in found.values()] == [0, 1, 2]


def test_the_collector_leaves_out_what_is_not_wanted() -> None:
    """A collector that was restarted in the middle of a batch does not take the records before its
    position again, and it takes no record without a value."""
    waiting = Waiting()
    waiting.add(TopicBatch(ONE, 1, _batch(0, b"a", b"b", None, b"d")), "id", 0, is_live=False)
    assert [(value, where.offset) for value, where in waiting.records()] == [(b"b", 1), (b"d", 3)]


def test_only_a_limited_number_of_records_waits() -> None:
    """The collector stores the waiting records at the latest when WAITING_RECORDS_MAX of them wait,
    however small and however well compressed they are. Afterwards none waits."""
    waiting, full = Waiting(), TopicBatch(ONE, 0, _batch(0, *[b""] * 1_024))
    for _ in range(WAITING_RECORDS_MAX // 1_024 - 1):
        waiting.add(full, "id", 0, is_live=False)
    assert not waiting.is_full
    waiting.add(full, "id", 0, is_live=False)
    assert waiting.is_full
    assert sum(1 for _ in waiting.records()) == WAITING_RECORDS_MAX
    waiting.clear()
    assert list(waiting.records()) == []
    assert not waiting.is_full
