"""Any gzip stream."""

from __future__ import annotations

import zlib
from typing import Final

import cramjam

from skidway.kafka.batch import Readable
from skidway.kafka.codecs.codec import Codec, decompress_reserved

_LEVEL = 6
_WINDOW = 16 + zlib.MAX_WBITS  # 16 means: with the header and the checksum of gzip
_RATIO_MAX = 1040  # deflate's limit is 1032 bytes for each compressed byte


class _Gzip(Codec):
    number = 1
    name = "gzip"

    def compress(self, data: Readable) -> bytes:
        return bytes(cramjam.gzip.compress(data, _LEVEL))

    def _decompressed(
        self, data: Readable, limit_bytes: int, scratch: bytearray | None
    ) -> Readable:
        whole = _decompress_member(data, limit_bytes)
        if whole is not None:
            return whole
        return decompress_reserved(cramjam.gzip, data, limit_bytes, _RATIO_MAX)


def _decompress_member(data: Readable, limit_bytes: int) -> bytes | None:
    """Decompresses a gzip stream of one member with zlib. Nearly all gzip streams have one member,
    and for a small stream zlib needs a third of the time that cramjam needs. Returns None if the
    data is not exactly one whole member, or if the result would be longer than `limit_bytes`. The
    caller then calls `decompress_reserved`."""
    if limit_bytes < 1:  # zlib reads 0 as no limit
        return None
    stream = zlib.decompressobj(_WINDOW)
    try:
        found = stream.decompress(data, limit_bytes)
    except zlib.error:
        return None
    return found if stream.eof and not stream.unused_data else None


GZIP: Final = _Gzip()
