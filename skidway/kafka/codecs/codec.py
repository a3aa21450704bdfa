"""What a codec is, and the bounds of decompression."""

from __future__ import annotations

import mmap
from abc import ABC, abstractmethod
from typing import ClassVar, Final

import cramjam

from skidway.kafka.batch import CorruptBatch, Readable

DECOMPRESSED_BYTES_MAX: Final = 128 * 1024 * 1024
"""By default, the decompression of a batch fails if the result would have more bytes than this.
Usual batches are far smaller: uncompressed, a batch of Skidway has 0.9 MB, and a batch of another
producer has a few MB."""
BELIEVED_RATIO_MAX: Final = 64
"""If the data claim a higher ratio than this, the memory for the result is not allocated at
once."""


class Codec(ABC):
    """A way to compress the records of a batch.

    number: Kafka's number, in the lowest three bits of a batch's attributes. name: its name in
    settings. since_produce: the least version of Produce whose batches may have it. least_bytes:
    the size of the shortest compressed data.
    """

    number: ClassVar[int]
    name: ClassVar[str]
    since_produce: ClassVar[int] = 0
    least_bytes: ClassVar[int] = 1

    def __repr__(self) -> str:
        return self.name

    @abstractmethod
    def compress(self, data: Readable) -> bytes:
        """Returns the data, compressed and framed as Kafka frames the records of a batch."""

    def decompress(
        self,
        data: Readable,
        limit_bytes: int = DECOMPRESSED_BYTES_MAX,
        scratch: bytearray | None = None,
    ) -> Readable:
        """Returns the data as it was before compression.

        scratch: memory that this method may overwrite. With `scratch`, the decompression of small
        data may need no fresh memory from the kernel. This method never returns a view of
        `scratch`.

        Raises CorruptBatch when the data is damaged, cut off, followed by other bytes, or would be
        longer than `limit_bytes`.
        """
        if len(data) < self.least_bytes:
            raise CorruptBatch(f"no {self.name} data at all")
        return self._decompressed(data, limit_bytes, scratch)

    @abstractmethod
    def _decompressed(
        self, data: Readable, limit_bytes: int, scratch: bytearray | None
    ) -> Readable: ...


def decompress_reserved(module: object, data: Readable, limit_bytes: int, ratio: int) -> Readable:
    """Reserves address space for the longest result that `limit_bytes` and `ratio` allow, and
    decompresses into it. Unused address space costs no memory, because the kernel supplies a page
    of memory only when the page is first written.
    """
    most = min(limit_bytes, max(ratio * len(data), mmap.PAGESIZE))
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    buffer = mmap.mmap(-1, max(most, 1), flags=flags)
    try:
        size: int = module.decompress_into(data, buffer)  # type: ignore[attr-defined]
    except cramjam.DecompressionError as error:
        raise CorruptBatch(
            f"records of at most {most} bytes cannot be unpacked: {error}"
        ) from error
    if size > limit_bytes:
        raise CorruptBatch(f"unpacked records exceed the limit of {limit_bytes} bytes")
    return memoryview(buffer)[:size]
