"""No compression."""

from __future__ import annotations

from typing import Final

from skidway.kafka.batch import CorruptBatch, Readable
from skidway.kafka.codecs.codec import Codec


class _None(Codec):
    number = 0
    name = "none"
    least_bytes = 0

    def compress(self, data: Readable) -> bytes:
        return bytes(data)

    def _decompressed(
        self, data: Readable, limit_bytes: int, scratch: bytearray | None
    ) -> Readable:
        if len(data) > limit_bytes:
            raise CorruptBatch(f"{len(data)} bytes of records, more than the limit {limit_bytes}")
        return data


NONE: Final = _None()
