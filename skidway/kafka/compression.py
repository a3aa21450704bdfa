"""Compresses and decompresses record batches in the forms that Kafka's clients write and read.

    gzip     any gzip stream
    snappy   xerial framing (what Kafka's Java client writes) or one raw block (other clients)
    lz4      LZ4 frames of independent blocks, because Kafka's Java client refuses linked blocks
    zstd     Zstandard frames; needs Produce version 7 and Fetch version 10

Decompression is bounded: it never writes more than `limit_bytes`, whatever sizes the input claims.
Memory is allocated for a claimed size only if this size is at most 64 times the size of the input.
Damaged input raises `CorruptBatch`.
"""

from __future__ import annotations

import mmap
import struct
import zlib

import cramjam

from skidway.kafka.batch import Codec, CorruptBatch, Readable

__all__ = ["DECOMPRESSED_BYTES_MAX", "Codec", "compress", "decompress"]

# By default, the decompression of a batch fails if the result would have more bytes than this.
# Usual batches are far smaller: uncompressed, a batch of Skidway has 0.9 MB, and a batch of another
# producer has a few MB.
DECOMPRESSED_BYTES_MAX = 128 * 1024 * 1024

_ZSTD_LEVEL = 1  # 4.3 M records/s; level 3 takes twice as long, and saves a few percent
_LZ4_LEVEL = 1  # levels above 2 take five times as long, and save a tenth of the bytes
_GZIP_LEVEL = 6
_GZIP_WINDOW = 16 + zlib.MAX_WBITS  # 16 means: with the header and the checksum of gzip
_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER = _XERIAL_MAGIC + struct.pack(">ii", 1, 1)  # version, lowest compatible version
_XERIAL_BLOCK_BYTES = 32 * 1024  # snappy-java's default

# The largest ratio of uncompressed to compressed bytes that each format allows.
_SNAPPY_RATIO_MAX = 32  # three bytes (a copy element) become at most 64 bytes
_LZ4_RATIO_MAX = 256  # each byte of a length stands for at most 255 uncompressed bytes
_GZIP_RATIO_MAX = 1040  # deflate's limit is 1032

# If the data claim a higher ratio than this, the memory for the result is not allocated at once.
_BELIEVED_RATIO_MAX = 64
_INT32 = struct.Struct(">i")
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"


def compress(codec: Codec, data: Readable) -> bytes:
    """Returns the data, compressed with a codec and framed as Kafka frames the records of a
    batch."""
    if codec is Codec.ZSTD:
        return bytes(cramjam.zstd.compress(data, _ZSTD_LEVEL))
    if codec is Codec.LZ4:
        stream = cramjam.lz4.Compressor(
            level=_LZ4_LEVEL, content_checksum=False, block_linked=False
        )
        stream.compress(bytes(data))  # the stream accepts only bytes
        return bytes(stream.finish())
    if codec is Codec.SNAPPY:
        return _compress_xerial(memoryview(data))
    if codec is Codec.GZIP:
        return bytes(cramjam.gzip.compress(data, _GZIP_LEVEL))
    return bytes(data)


def decompress(
    codec: Codec,
    data: Readable,
    limit_bytes: int = DECOMPRESSED_BYTES_MAX,
    scratch: bytearray | None = None,
) -> Readable:
    """Returns the data as it was before compression. For `Codec.NONE`, this is `data` itself.

    scratch: memory that this function may overwrite. With `scratch`, the decompression of small lz4
    data needs no fresh memory from the kernel. This function never returns a view of `scratch`.

    Raises CorruptBatch when the data is damaged, cut off, followed by other bytes, or would be
    longer than `limit_bytes`.
    """
    if codec is Codec.NONE:
        if len(data) > limit_bytes:
            raise CorruptBatch(f"{len(data)} bytes of records, more than the limit {limit_bytes}")
        return data
    if len(data) == 0:
        raise CorruptBatch(f"no {codec.name.lower()} data at all")
    if codec is Codec.SNAPPY:
        return _decompress_snappy(memoryview(data), limit_bytes)
    if codec is Codec.ZSTD:
        return _decompress_zstd(data, limit_bytes)
    if codec is Codec.LZ4:
        whole = _decompress_small(data, limit_bytes, scratch)
        if whole is not None:
            return whole
        return _decompress_reserved(cramjam.lz4, data, limit_bytes, _LZ4_RATIO_MAX)
    whole = _decompress_member(data, limit_bytes)
    if whole is not None:
        return whole
    return _decompress_reserved(cramjam.gzip, data, limit_bytes, _GZIP_RATIO_MAX)


def _decompress_zstd(data: Readable, limit_bytes: int) -> Readable:
    size = _zstd_content_size(data)
    if size is not None and size <= min(limit_bytes, _BELIEVED_RATIO_MAX * len(data)):
        buffer = bytearray(size)
        try:
            if cramjam.zstd.decompress_into(data, buffer) == size:
                return buffer
        except cramjam.DecompressionError:
            pass  # several frames, or damaged data; the call below finds out which
    return _decompress_reserved(cramjam.zstd, data, limit_bytes, limit_bytes)


def _zstd_content_size(data: Readable) -> int | None:
    """Returns the content size in the first frame's header (RFC 8878, section 3.1.1.1), or None if
    the header states no size or the data is too short to be sure."""
    if len(data) < 18 or bytes(data[:4]) != _ZSTD_MAGIC:
        return None
    descriptor = data[4]
    single = descriptor >> 5 & 1
    size_bytes = (single, 2, 4, 8)[descriptor >> 6]
    at = 5 + (1 - single) + (0, 1, 2, 4)[descriptor & 3]
    if size_bytes == 0:
        return None
    size = int.from_bytes(data[at : at + size_bytes], "little")
    return size + 256 if size_bytes == 2 else size


def _decompress_small(data: Readable, limit_bytes: int, scratch: bytearray | None) -> bytes | None:
    """Decompresses lz4 frames into `scratch`. Returns None if there is no `scratch` of at most
    `limit_bytes`, or if the frames are damaged or do not fit into `scratch`; the caller then calls
    `_decompress_reserved`.
    """
    if scratch is None or len(scratch) > limit_bytes:
        return None
    try:
        size: int = cramjam.lz4.decompress_into(data, scratch)
    except cramjam.DecompressionError:
        return None
    return bytes(memoryview(scratch)[:size])


def _decompress_member(data: Readable, limit_bytes: int) -> bytes | None:
    """Decompresses a gzip stream of one member with zlib. Nearly all gzip streams have one member,
    and for a small stream zlib needs a third of the time that cramjam needs. Returns None if the
    data is not exactly one whole member, or if the result would be longer than `limit_bytes`. The
    caller then calls `_decompress_reserved`."""
    if limit_bytes < 1:  # zlib reads 0 as no limit
        return None
    stream = zlib.decompressobj(_GZIP_WINDOW)
    try:
        found = stream.decompress(data, limit_bytes)
    except zlib.error:
        return None
    return found if stream.eof and not stream.unused_data else None


def _decompress_reserved(module: object, data: Readable, limit_bytes: int, ratio: int) -> Readable:
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


def _compress_xerial(data: memoryview) -> bytes:
    pieces = [_XERIAL_HEADER]
    for at in range(0, len(data), _XERIAL_BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(data[at : at + _XERIAL_BLOCK_BYTES]))
        pieces += [_INT32.pack(len(block)), block]
    return b"".join(pieces)


def _decompress_snappy(data: memoryview, limit_bytes: int) -> bytes:
    if bytes(data[: len(_XERIAL_MAGIC)]) != _XERIAL_MAGIC:
        return _decompress_block(data, limit_bytes)
    pieces: list[bytes] = []
    at, total = len(_XERIAL_HEADER), 0
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
        if size > min(limit_bytes, _SNAPPY_RATIO_MAX * len(block)):
            raise CorruptBatch(f"a snappy block of {len(block)} bytes claims to hold {size}")
        return bytes(cramjam.snappy.decompress_raw(block))
    except cramjam.DecompressionError as error:
        raise CorruptBatch(f"snappy data cannot be unpacked: {error}") from error
