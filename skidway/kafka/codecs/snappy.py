"""Snappy in xerial framing (what Kafka's Java client writes), or as one raw block (what other
clients write)."""

from __future__ import annotations

import struct
from typing import Final

import cramjam

from skidway.kafka.batch import CorruptBatch, Readable
from skidway.kafka.codecs.codec import Codec

_MAGIC = b"\x82SNAPPY\x00"
_HEADER = _MAGIC + struct.pack(">ii", 1, 1)  # version, lowest compatible version
_BLOCK_BYTES = 32 * 1024  # snappy-java's default
_RATIO_MAX = 32  # three bytes (a copy element) become at most 64 bytes
_INT32 = struct.Struct(">i")


class _Snappy(Codec):
    number = 2
    name = "snappy"

    def compress(self, data: Readable) -> bytes:
        return _compress_xerial(memoryview(data))

    def _decompressed(
        self, data: Readable, limit_bytes: int, scratch: bytearray | None
    ) -> Readable:
        return _decompress_snappy(memoryview(data), limit_bytes)


def _compress_xerial(data: memoryview) -> bytes:
    pieces = [_HEADER]
    for at in range(0, len(data), _BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(data[at : at + _BLOCK_BYTES]))
        pieces += [_INT32.pack(len(block)), block]
    return b"".join(pieces)


def _decompress_snappy(data: memoryview, limit_bytes: int) -> bytes:
    if bytes(data[: len(_MAGIC)]) != _MAGIC:
        return _decompress_block(data, limit_bytes)
    pieces: list[bytes] = []
    at, total = len(_HEADER), 0
    while at < len(data):
        if len(data) - at < _INT32.size:
            raise CorruptBatch("snappy data ends inside a block's length")
        size = _INT32.unpack_from(data, at)[0]
        at += _INT32.size
        if not 0 < size <= len(data) - at:
            raise CorruptBatch(f"a snappy block of {size} bytes with {len(data) - at} left")
        pieces.append(_decompress_block(data[at : at + size], limit_bytes - total))
        total += len(pieces[-1])
        at += size
    return b"".join(pieces)


def _decompress_block(block: memoryview, limit_bytes: int) -> bytes:
    try:
        size = cramjam.snappy.decompress_raw_len(block)
        if size > min(limit_bytes, _RATIO_MAX * len(block)):
            raise CorruptBatch(f"a snappy block of {len(block)} bytes claims to hold {size}")
        return bytes(cramjam.snappy.decompress_raw(block))
    except cramjam.DecompressionError as error:
        raise CorruptBatch(f"snappy data cannot be unpacked: {error}") from error


SNAPPY: Final = _Snappy()
