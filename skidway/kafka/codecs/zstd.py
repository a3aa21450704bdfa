"""Zstandard frames (RFC 8878)."""

from __future__ import annotations

from typing import Final

import cramjam

from skidway.kafka.batch import Readable
from skidway.kafka.codecs.codec import BELIEVED_RATIO_MAX, Codec, decompress_reserved

_LEVEL = 1  # 4.3 M records/s; level 3 takes twice as long, and saves a few percent
_MAGIC = b"\x28\xb5\x2f\xfd"


class _Zstd(Codec):
    number = 4
    name = "zstd"
    since_produce = 7  # KIP-110; and Fetch version 10

    def compress(self, data: Readable) -> bytes:
        return bytes(cramjam.zstd.compress(data, _LEVEL))

    def _decompressed(
        self, data: Readable, limit_bytes: int, scratch: bytearray | None
    ) -> Readable:
        size = _content_size(data)
        if size is not None and size <= min(limit_bytes, BELIEVED_RATIO_MAX * len(data)):
            buffer = bytearray(size)
            try:
                if cramjam.zstd.decompress_into(data, buffer) == size:
                    return buffer
            except cramjam.DecompressionError:
                pass  # several frames, or damaged data; the call below finds out which
        return decompress_reserved(cramjam.zstd, data, limit_bytes, limit_bytes)


def _content_size(data: Readable) -> int | None:
    """Returns the content size in the first frame's header (RFC 8878, section 3.1.1.1), or None if
    the header states no size or the data is too short to be sure."""
    if len(data) < 18 or bytes(data[:4]) != _MAGIC:
        return None
    descriptor = data[4]
    single = descriptor >> 5 & 1
    size_bytes = (single, 2, 4, 8)[descriptor >> 6]
    at = 5 + (1 - single) + (0, 1, 2, 4)[descriptor & 3]
    if size_bytes == 0:
        return None
    size = int.from_bytes(data[at : at + size_bytes], "little")
    return size + 256 if size_bytes == 2 else size


ZSTD: Final = _Zstd()
