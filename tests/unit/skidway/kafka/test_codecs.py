"""The compression codecs are compatible with other clients, lose no data, and refuse data whose
uncompressed size is above a limit."""

from __future__ import annotations

import gzip
import struct

import cramjam
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skidway.kafka.batch import CorruptBatch
from skidway.kafka.codecs import BY_NUMBER, GZIP, LZ4, NONE, SNAPPY, ZSTD, Codec

CODECS = [GZIP, SNAPPY, LZ4, ZSTD]
TEXT = b"".join(
    b"2024-05-01 12:00:%02d INFO a log line that repeats\n" % (i % 60) for i in range(3000)
)


@pytest.mark.parametrize("codec", list(BY_NUMBER.values()))
@given(data=st.binary(max_size=3000), times=st.integers(1, 60))
def test_compressed_comes_back(codec: Codec, data: bytes, times: int) -> None:
    """Data that a codec compresses and uncompresses again is the same, even if it has several
    blocks."""
    assert bytes(codec.decompress(codec.compress(data * times))) == data * times


@pytest.mark.parametrize("codec", CODECS)
def test_the_limit_is_exact(codec: Codec) -> None:
    """Data whose uncompressed size is exactly the limit is accepted. Data with one byte more is
    refused as corrupt."""
    packed = codec.compress(TEXT)
    assert bytes(codec.decompress(packed, len(TEXT))) == TEXT
    with pytest.raises(CorruptBatch):
        codec.decompress(packed, len(TEXT) - 1)


def test_uncompressed_has_the_limit_too() -> None:
    """Data of a batch without compression is returned unchanged. If it is larger than the limit, it
    is refused as corrupt, like compressed data."""
    assert NONE.decompress(TEXT, len(TEXT)) is TEXT
    with pytest.raises(CorruptBatch):
        NONE.decompress(TEXT, len(TEXT) - 1)


@pytest.mark.parametrize("codec", CODECS)
def test_cut_data_is_corrupt(codec: Codec) -> None:
    """Truncated compressed data is refused as corrupt, except Snappy data that is cut between two
    blocks. Such data gives a shorter result, because Snappy's framing does not say how many blocks
    there are."""
    packed = codec.compress(TEXT)
    whole_blocks = set()
    if codec is SNAPPY:  # a cut between two Snappy blocks is not noticed
        at = 16
        while at < len(packed):
            whole_blocks.add(at)
            at += 4 + struct.unpack_from(">i", packed, at)[0]
    for cut in range(0, len(packed), 37):
        if cut not in whole_blocks:
            with pytest.raises(CorruptBatch):
                codec.decompress(packed[:cut])


@pytest.mark.parametrize("codec", CODECS)
@given(noise=st.binary(max_size=200), at=st.integers(0, 10_000), keep=st.booleans())
def test_damage_is_corrupt_or_harmless(codec: Codec, noise: bytes, at: int, keep: bool) -> None:
    """Decompressing arbitrary or damaged data either returns bytes within the limit or raises
    CorruptBatch."""
    packed = codec.compress(TEXT[:5000])
    at %= len(packed)
    data = packed[:at] + noise + packed[at + len(noise) :] if keep else noise
    try:
        assert len(codec.decompress(data, 10_000)) <= 10_000
    except CorruptBatch:
        pass


@pytest.mark.parametrize(
    ("codec", "bomb"),
    [
        (GZIP, gzip.compress(bytes(50_000_000))),
        (LZ4, LZ4.compress(bytes(50_000_000))),
        (ZSTD, ZSTD.compress(bytes(50_000_000))),
        (SNAPPY, SNAPPY.compress(bytes(50_000_000))),
    ],
)
def test_bombs_are_refused(codec: Codec, bomb: bytes) -> None:
    """Data that is small, but whose uncompressed size is far larger than the limit, is refused."""
    with pytest.raises(CorruptBatch):
        codec.decompress(bomb, 1 << 20)


def test_claims_of_size_are_not_believed() -> None:
    """Snappy and zstd data is refused if its header claims an uncompressed size of gigabytes."""
    claim = b"\xff\xff\xff\xff\x0f"  # 4 GiB - 1 as a varint
    with pytest.raises(CorruptBatch, match="claims"):
        SNAPPY.decompress(claim + b"\x00")
    frame = b"\x28\xb5\x2f\xfd\xe0" + (1 << 40).to_bytes(8, "little") + bytes(20)
    with pytest.raises(CorruptBatch):
        ZSTD.decompress(frame)
    window_of_2_gib = b"\x28\xb5\x2f\xfd\x00\xa8" + b"\x01\x00\x00" + bytes(20)
    with pytest.raises(CorruptBatch):
        ZSTD.decompress(window_of_2_gib)


def test_raw_snappy_of_other_clients_is_read() -> None:
    """Some other clients write Snappy data without xerial's framing, as one raw block. Such data
    can be read, too."""
    assert SNAPPY.decompress(bytes(cramjam.snappy.compress_raw(TEXT))) == TEXT


def test_several_zstd_frames_are_one() -> None:
    """Several consecutive zstd frames are all decompressed, even if the first frame states the size
    of its own content."""
    packed = ZSTD.compress(TEXT)
    assert bytes(ZSTD.decompress(packed + packed)) == TEXT + TEXT


def test_zstd_without_a_size_is_read() -> None:
    """A zstd frame that does not state the size of its content can be read. Kafka's Java client
    writes such frames."""
    stream = cramjam.zstd.Compressor(1)
    stream.compress(TEXT[:1000])
    packed = bytes(stream.flush())
    stream.compress(TEXT[1000:])
    assert bytes(ZSTD.decompress(packed + bytes(stream.finish()))) == TEXT


def test_lz4_blocks_are_independent() -> None:
    """LZ4 frames are written with independent blocks, because Java's consumer refuses dependent
    blocks."""
    packed = LZ4.compress(TEXT)
    assert packed[:4] == b"\x04\x22\x4d\x18"
    assert packed[4] & 0x20


def test_snappy_is_framed_as_java_expects() -> None:
    """Snappy data is written in xerial's framing, with its magic and versions."""
    packed = SNAPPY.compress(bytes(100_000))
    assert packed[:16] == b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1)


@pytest.mark.parametrize("size", [0, -1, -(2**31), 2**31 - 1])
def test_lying_xerial_blocks_are_corrupt(size: int) -> None:
    """Snappy data in xerial's framing is corrupt if a block has an impossible length."""
    data = b"\x82SNAPPY\x00" + struct.pack(">iii", 1, 1, size) + b"abc"
    with pytest.raises(CorruptBatch):
        SNAPPY.decompress(data)
