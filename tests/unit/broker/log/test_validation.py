from __future__ import annotations

from collections.abc import Callable

import google_crc32c
import pytest

from skidway.broker.log.config import LogConfig
from skidway.broker.log.validation import (
    BatchCorrupt,
    BatchInvalid,
    BatchRefused,
    BatchTooLarge,
    TimestampRefused,
    UnsupportedCompression,
    UnsupportedFormat,
    validate,
)
from skidway.kafka.codecs import BY_NUMBER, ZSTD, Codec
from support.batches import NOW_MS, batch, sized


def check(data: bytes | bytearray, version: int = 9) -> None:
    validate(memoryview(data), LogConfig(max_message_bytes=10_000), NOW_MS, version)


def changed(at: int, value: bytes, *, crc: bool = True) -> bytearray:
    """Returns a good batch in which `value` replaces the bytes from the position `at` on. If `crc`
    is true, the batch's CRC is computed again."""
    data = batch(b"a", b"b", producer_id=1, epoch=0, sequence=0)
    data[at : at + len(value)] = value
    if crc:
        data[17:21] = google_crc32c.value(bytes(data[21:])).to_bytes(4, "big")
    return data


@pytest.mark.parametrize("codec", list(BY_NUMBER.values()))
def test_good_batches_of_every_codec_are_taken(codec: Codec) -> None:
    """The broker accepts batches of every codec that stock producers use."""
    check(batch(b"a", b"b", codec=codec))


@pytest.mark.parametrize(
    ("data", "refusal"),
    [
        (b"", BatchInvalid),
        (b"\0" * 60, UnsupportedFormat),
        (bytes(changed(16, b"\1", crc=False)), UnsupportedFormat),
        (bytes(changed(16, b"\3", crc=False)), BatchCorrupt),
        (bytes(changed(17, b"\0\0\0\0", crc=False)), BatchCorrupt),
        (bytes(batch(b"a") + batch(b"b")), BatchInvalid),
        (bytes(batch(b"a")) + b"\0", BatchInvalid),
        (bytes(batch(b"a"))[:-1], BatchInvalid),
        (bytes(changed(0, b"\0\0\0\0\0\0\0\1")), BatchInvalid),
        (bytes(changed(57, b"\0\0\0\3")), BatchInvalid),
        (bytes(changed(57, b"\0\0\0\1")), BatchInvalid),
        (bytes(changed(57, b"\0\0\0\0")), BatchInvalid),
        (bytes(changed(23, b"\xff\xff\xff\xff")), BatchInvalid),
        (bytes(changed(21, b"\0\x05")), BatchInvalid),
        (bytes(changed(21, b"\0\x20")), BatchInvalid),
        (bytes(changed(21, b"\0\x10")), BatchInvalid),
        (bytes(changed(21, b"\0\x08")), TimestampRefused),
        (bytes(changed(21, b"\x80\0")), BatchInvalid),
        (bytes(changed(51, b"\xff\xff")), BatchInvalid),
        (bytes(changed(53, b"\xff\xff\xff\xff")), BatchInvalid),
        (bytes(sized(10_001)), BatchTooLarge),
    ],
)
def test_bad_batches_are_refused_by_kind(data: bytes, refusal: type[BatchRefused]) -> None:
    """The broker refuses a bad batch with the error that Kafka uses for the same fault."""
    with pytest.raises(refusal):
        check(data)


def test_zstd_needs_a_client_that_knows_it() -> None:
    """In a Produce request with a version below 7, a batch that is compressed with zstd is refused
    (KIP-110)."""
    data = batch(b"a", codec=ZSTD)
    check(data, version=7)
    with pytest.raises(UnsupportedCompression):
        check(data, version=6)


@pytest.mark.parametrize("at", range(12, len(batch(b"a" * 40))))
def test_every_flipped_bit_behind_the_length_is_found(at: int) -> None:
    """Any flipped bit after the length field, up to the end of the batch, is detected, except in
    the leader epoch, which the broker writes itself."""
    for bit in range(8):
        data = batch(b"a" * 40)
        data[at] ^= 1 << bit
        if at < 16:
            check(data)
        else:
            with pytest.raises(BatchRefused):
                check(data)


def window(limit: int) -> Callable[[int], None]:
    config = LogConfig(timestamp_before_max_ms=limit, timestamp_after_max_ms=limit)

    def within(timestamp: int) -> None:
        validate(memoryview(batch(b"a", timestamps=[timestamp])), config, 1_000_000, 9)

    return within


def test_event_times_are_bounded_only_where_configured() -> None:
    """A batch is refused if an event time is further before or after the broker's clock than the
    configured limits allow. Other event times are accepted."""
    within = window(500)
    for good in (999_500, 1_000_000, 1_000_500):
        within(good)
    for bad in (999_499, 1_000_501):
        with pytest.raises(TimestampRefused):
            within(bad)
