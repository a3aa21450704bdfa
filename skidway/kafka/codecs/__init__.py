"""Compresses and decompresses the records of batches in the forms that Kafka's clients write and
read. Everything about a codec is in its module: none, gzip, snappy, lz4, zstd. What a codec is says
the module codec.

Decompression is bounded: it never writes more than `limit_bytes`, whatever sizes the input claims.
Memory is allocated for a claimed size only if this size is at most 64 times the size of the input.
Damaged input raises `CorruptBatch`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from skidway.kafka.batch import CODEC_MASK, BatchHeader, CorruptBatch
from skidway.kafka.codecs.codec import DECOMPRESSED_BYTES_MAX, Codec
from skidway.kafka.codecs.gzip import GZIP
from skidway.kafka.codecs.lz4 import LZ4
from skidway.kafka.codecs.none import NONE
from skidway.kafka.codecs.snappy import SNAPPY
from skidway.kafka.codecs.zstd import ZSTD

__all__ = [
    "BY_NAME", "BY_NUMBER", "DECOMPRESSED_BYTES_MAX", "GZIP", "LZ4", "NONE", "SNAPPY", "ZSTD",
    "Codec", "codec_of", "register",
]  # fmt: skip

_by_number: dict[int, Codec] = {}
_by_name: dict[str, Codec] = {}
BY_NUMBER: Final[Mapping[int, Codec]] = MappingProxyType(_by_number)
BY_NAME: Final[Mapping[str, Codec]] = MappingProxyType(_by_name)


def register(codec: Codec) -> None:
    """Adds a codec to those that brokers accept, that clients read and that settings offer."""
    _by_number[codec.number] = codec
    _by_name[codec.name] = codec


def codec_of(header: BatchHeader) -> Codec:
    """Returns the codec of a batch. Raises CorruptBatch if no codec has its number."""
    number = header.attributes & CODEC_MASK
    try:
        return _by_number[number]
    except KeyError:
        raise CorruptBatch(f"unknown compression codec {number}") from None


for _each in (NONE, GZIP, SNAPPY, LZ4, ZSTD):
    register(_each)
