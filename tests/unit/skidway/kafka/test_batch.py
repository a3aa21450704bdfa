"""Tests the header of record batches."""

from __future__ import annotations

import google_crc32c
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skidway.kafka import batch
from skidway.kafka.batch import BatchHeader, CorruptBatch, EncodedBatch
from skidway.kafka.codecs import LZ4, codec_of

INT64 = st.integers(-(2**63), 2**63 - 1)


def encoded(body: bytes = b"not looked into", count: int = 3) -> EncodedBatch:
    return EncodedBatch(body, LZ4.number, count, 1_000, 1_500, 40)


def test_sealed_bytes_are_the_documented_layout() -> None:
    """In a sealed batch (a batch with its header) every field is at the position that Kafka's
    format defines."""
    sealed = batch.seal(encoded(b"xyz"), 0x0102030405060708, 9, 10)
    assert sealed[0:8] == bytes(8)  # base offset
    assert sealed[8:12] == (49 + 3).to_bytes(4, "big")  # length
    assert sealed[12:16] == b"\xff\xff\xff\xff"  # leader epoch
    assert sealed[16] == 2  # magic
    assert sealed[17:21] == google_crc32c.value(sealed[21:]).to_bytes(4, "big")
    assert sealed[21:23] == b"\x00\x03"  # attributes: lz4
    assert sealed[23:27] == (2).to_bytes(4, "big")  # last offset delta
    assert sealed[27:35] == (1_000).to_bytes(8, "big")
    assert sealed[35:43] == (1_500).to_bytes(8, "big")
    assert sealed[43:51] == bytes(range(1, 9))  # producer id
    assert sealed[51:53] == b"\x00\x09"
    assert sealed[53:57] == (10).to_bytes(4, "big")
    assert sealed[57:61] == (3).to_bytes(4, "big")
    assert sealed[61:] == b"xyz"


@given(st.binary(max_size=100), st.integers(1, 2**31 - 1), INT64, st.integers(0, 2**31 - 1))
def test_sealed_is_read_back(body: bytes, count: int, producer_id: int, sequence: int) -> None:
    """A sealed batch (a batch with its header) passes `check`, and its header is read as it was
    written. Sealing the batch again gives the same bytes."""
    sealed = batch.seal(encoded(body, count), producer_id, 7, sequence)
    header = batch.read_header(sealed)
    batch.check(sealed, 0, header)
    assert sealed == batch.seal(encoded(body, count), producer_id, 7, sequence)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (
        producer_id,
        7,
        sequence,
    )
    assert header.count == header.last_offset_delta + 1 == count
    assert header.size_bytes == len(sealed) == encoded(body, count).size_bytes
    assert codec_of(header) is LZ4
    assert (header.base_timestamp, header.max_timestamp) == (1_000, 1_500)


def test_stamping_keeps_the_crc() -> None:
    """`stamp` changes the base offset and the leader epoch of a batch in place. The batch's CRC
    stays valid, because it does not cover these two fields."""
    buffer = bytearray(b"before") + batch.seal(encoded(), 1, 2, 3)
    batch.stamp(buffer, 6, 1 << 40, 77)
    header = batch.read_header(buffer, 6)
    batch.check(buffer, 6, header)
    assert (header.base_offset, header.leader_epoch, header.last_offset) == (
        1 << 40,
        77,
        (1 << 40) + 2,
    )
    assert buffer[:6] == b"before"


@pytest.mark.parametrize("position", range(12, 66))
def test_every_covered_bit_is_guarded(position: int) -> None:
    """If a bit in any byte from the magic byte on is flipped, `check` raises an error. A flipped
    bit of the leader epoch (before the magic byte) is not noticed, because the CRC does not cover
    it."""
    sealed = bytearray(batch.seal(encoded(), 1, 2, 3))
    sealed[position] ^= 0x10
    if position in range(12, 16):
        batch.check(sealed, 0, batch.read_header(sealed))
    else:
        with pytest.raises(CorruptBatch):
            batch.check(sealed, 0, batch.read_header(sealed))


def test_headers_leaves_out_a_cut_batch() -> None:
    """The function `headers` returns the headers of all complete batches, with the batches'
    positions. If the last batch is truncated, it is left out."""
    one, two = batch.seal(encoded(b"1")), batch.seal(encoded(b"22"))
    whole = one + two
    for cut in range(len(whole) + 1):
        found = [position for position, _ in batch.headers(memoryview(whole)[:cut])]
        assert found == [0, len(one)][: (cut >= len(one)) + (cut >= len(whole))]


@pytest.mark.parametrize("magic", [0, 1, 3])
def test_other_formats_are_refused(magic: int) -> None:
    """A message format other than v2 is refused with an error that contains the number of the
    format."""
    sealed = bytearray(batch.seal(encoded()))
    sealed[16] = magic
    with pytest.raises(CorruptBatch, match=f"message format {magic}"):
        list(batch.headers(sealed))


@pytest.mark.parametrize("length", [-(2**31), -1, 0, 48])
def test_impossible_lengths_do_not_loop(length: int) -> None:
    """If a batch's length is too small for a header, CorruptBatch is raised, and the reader does
    not loop forever."""
    sealed = bytearray(batch.seal(encoded()))
    sealed[8:12] = length.to_bytes(4, "big", signed=True)
    with pytest.raises(CorruptBatch, match="length"):
        list(batch.headers(sealed))


@given(st.binary(max_size=300))
def test_any_bytes_are_batches_or_corrupt(noise: bytes) -> None:
    """Reading batches from arbitrary bytes either yields batch headers or raises CorruptBatch."""
    try:
        for position, header in batch.headers(noise):
            batch.check(noise, position, header)
    except CorruptBatch:
        pass


def test_unknown_codec_is_corrupt() -> None:
    """Codec numbers that Kafka does not define are refused."""
    header = batch.read_header(batch.seal(encoded()))
    with pytest.raises(CorruptBatch, match="codec 6"):
        _ = codec_of(header._replace(attributes=6))


def test_counts_must_fit_the_offsets() -> None:
    """A batch with more records than offsets is corrupt. A batch with fewer records than offsets is
    legal, because compaction leaves such batches."""
    sealed = batch.seal(encoded())
    header = batch.read_header(sealed)
    batch.check(sealed, 0, header._replace(count=0))
    for wrong in (
        header._replace(count=4),
        header._replace(count=-1),
        header._replace(last_offset_delta=-1),
    ):
        with pytest.raises(CorruptBatch):
            batch.check(sealed, 0, wrong)


def test_attributes_have_names() -> None:
    """Each property of a batch header that is a flag (such as `is_transactional`) is read from the
    bit of `attributes` that Kafka defines for it."""
    plain = batch.read_header(batch.seal(encoded()))

    def flags(header: BatchHeader) -> tuple[bool, bool, bool]:
        return header.has_log_append_time, header.is_transactional, header.is_control

    assert flags(plain) == (False, False, False)
    assert flags(plain._replace(attributes=8)) == (True, False, False)
    assert flags(plain._replace(attributes=16)) == (False, True, False)
    assert flags(plain._replace(attributes=32)) == (False, False, True)


def test_sequences_wrap() -> None:
    """The sequence number after 2^31-1 is 0."""
    assert batch.next_sequence(2**31 - 1, 1) == 0
    assert batch.next_sequence(2**31 - 2, 5) == 3
    header = batch.read_header(batch.seal(encoded(), 1, 0, 2**31 - 2))
    assert header.last_sequence == 0
    assert batch.read_header(batch.seal(encoded())).last_sequence == -1
