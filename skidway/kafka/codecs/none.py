"""No compression."""

from __future__ import annotations

from typing import Final

from skidway.kafka.batch import CorruptBatch, Readable
from skidway.kafka.codecs.codec import DECOMPRESSED_BYTES_MAX, Codec


class _None(Codec):
    number = 0
    name = "none"

    def compress(self, data: Readable) -> bytes:
        return bytes(data)

    def decompress(
        self,
        data: Readable,
        limit_bytes: int = DECOMPRESSED_BYTES_MAX,
        scratch: bytearray | None = None,
    ) -> Readable:
        """Returns `data` itself."""
        return self._decompressed(data, limit_bytes, scratch)

    def _decompressed(
        self, data: Readable, limit_bytes: int, scratch: bytearray | None
    ) -> Readable:
        if len(data) > limit_bytes:
            raise CorruptBatch(f"{len(data)} bytes of records, more than the limit {limit_bytes}")
        return data


NONE: Final = _None()
