"""LZ4 frames of independent blocks, because Kafka's Java client refuses linked blocks."""

from __future__ import annotations

from typing import Final

import cramjam

from skidway.kafka.batch import Readable
from skidway.kafka.codecs.codec import Codec, decompress_reserved

_LEVEL = 1  # levels above 2 take five times as long, and save a tenth of the bytes
_RATIO_MAX = 256  # each byte of a length stands for at most 255 uncompressed bytes


class _Lz4(Codec):
    number = 3
    name = "lz4"

    def compress(self, data: Readable) -> bytes:
        stream = cramjam.lz4.Compressor(level=_LEVEL, content_checksum=False, block_linked=False)
        stream.compress(bytes(data))  # the stream accepts only bytes
        return bytes(stream.finish())

    def _decompressed(
        self, data: Readable, limit_bytes: int, scratch: bytearray | None
    ) -> Readable:
        whole = _decompress_small(data, limit_bytes, scratch)
        if whole is not None:
            return whole
        return decompress_reserved(cramjam.lz4, data, limit_bytes, _RATIO_MAX)


def _decompress_small(data: Readable, limit_bytes: int, scratch: bytearray | None) -> bytes | None:
    """Decompresses lz4 frames into `scratch`. Returns None if there is no `scratch` of at most
    `limit_bytes`, or if the frames are damaged or do not fit into `scratch`; the caller then calls
    `decompress_reserved`.
    """
    if scratch is None or len(scratch) > limit_bytes:
        return None
    try:
        size: int = cramjam.lz4.decompress_into(data, scratch)
    except cramjam.DecompressionError:
        return None
    return bytes(memoryview(scratch)[:size])


LZ4: Final = _Lz4()
