"""Checks and decompresses many batches at once, for readers of small batches.

The checks of `batch_unpacking` take a few microseconds for each batch. In this time dozens of
records can be decoded. To save this time, this module reads the headers of all batches as columns,
and checks a whole column at once. It decompresses the Zstandard frames of many batches with one
decoder, because making a decoder takes longer than decompressing a small batch.

This module stops before the first batch that fails one of its checks. The caller then passes that
batch to `unpack`, which either accepts the batch or says what is wrong with it.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import google_crc32c
import numpy as np
import numpy.typing as npt

from skidway.kafka import codecs, zstd_frames
from skidway.kafka.batch import (
    CODEC_MASK,
    CONTROL,
    COUNT_MAX,
    CRC_START,
    HEADER_BYTES,
    LENGTH_END,
    LOG_APPEND_TIME,
    MAGIC,
    OFFSET_MAX,
    CorruptBatch,
)
from skidway.kafka.batch_unpacking import UnpackedRun
from skidway.kafka.codecs import DECOMPRESSED_BYTES_MAX, NONE, ZSTD, Codec
from skidway.kafka.record_layout import RECORD_BYTES_MIN, Bools, Int64s

Headers = npt.NDArray[Any]
"""Headers of batches: an array of the type `HEADER`."""

HEADER = np.dtype(
    [
        ("base_offset", ">i8"),
        ("length", ">i4"),
        ("leader_epoch", ">i4"),
        ("magic", "i1"),
        ("crc", ">u4"),
        ("attributes", ">i2"),
        ("last_offset_delta", ">i4"),
        ("base_timestamp", ">i8"),
        ("max_timestamp", ">i8"),
        ("producer_id", ">i8"),
        ("producer_epoch", ">i2"),
        ("base_sequence", ">i4"),
        ("count", ">i4"),
    ]
)
"""The NumPy type of a batch's header, with the fields of `BatchHeader`."""

assert HEADER.itemsize == HEADER_BYTES


@dataclass(frozen=True, slots=True)
class Taken:
    """What `unpack_run` returns. `unpack_run` has checked and decompressed some of the given
    batches, from the first batch on. `headers` has the headers of these batches. `run` has only the
    batches that contain records and are no control batches. The bytes of the records may be in the
    memory of the `Workspace`.
    """

    headers: Headers
    run: UnpackedRun


class Workspace:
    """Memory for `unpack_run`. Each call overwrites it. If each call used new memory, the kernel
    would have to supply new pages every time."""

    __slots__ = ("packed", "scratch", "unpacked")

    def __init__(self, size_bytes: int) -> None:
        self.packed = bytearray(size_bytes)
        self.unpacked = bytearray(size_bytes)
        self.scratch = bytearray(size_bytes)


def unpack_run(
    raws: Sequence[memoryview], limit_bytes: int, space: Workspace, records_max: int = COUNT_MAX
) -> Taken:
    """Checks and decompresses batches of one partition, from the first batch on. Stops before a
    batch that fails a check, that does not begin at the offset at which the previous batch ends, or
    that has more than `records_max` records.
    Also stops as soon as the decompressed records together have at least `limit_bytes` bytes. If
    the first batch fails a check, the result has no batch.

    The result is valid until the next call with the same `space`.
    """
    heads = b"".join([raw[:HEADER_BYTES] for raw in raws])
    if len(heads) < HEADER_BYTES * len(raws):  # a batch is shorter than a header
        return unpack_run(raws[: _whole_headers(raws)], limit_bytes, space, records_max)
    headers = np.frombuffer(heads, HEADER)
    sizes = np.array([len(raw) for raw in raws], np.int64) - HEADER_BYTES
    is_small = headers["count"] <= records_max
    sound = _first_false(_sound_headers(headers, sizes) & _follows(headers) & is_small)
    filled = (headers["count"] > 0) & (headers["attributes"] & CONTROL == 0)
    total = int(sizes[:sound][filled[:sound]].sum())
    packed = _room(space.packed, total)
    sound = _copy_bodies(raws[:sound], heads, headers, filled.tolist(), packed)
    rows = np.flatnonzero(filled[:sound])
    bodies = _Bodies(headers[rows], packed, sizes[rows])
    payload, sizes = _decompress_all(bodies, limit_bytes, space)
    if len(sizes) < len(rows):  # leave out batches that were not decompressed
        sound, rows = int(rows[len(sizes)]), rows[: len(sizes)]
    return Taken(headers[:sound], _as_run(headers[rows], payload, sizes))


@dataclass(frozen=True, slots=True)
class _Bodies:
    """Batches that have records. packed: their compressed records, one batch after the other.
    sizes: the size of each batch's compressed records."""

    headers: Headers
    packed: memoryview
    sizes: Int64s


class _Output:
    """The decompressed records of batches, one after the other. The records are in the memory of
    the workspace if they fit into it, and otherwise in new, larger memory.
    """

    def __init__(self, space: Workspace) -> None:
        self._buffer, self._used = space.unpacked, 0

    def room(self, size: int) -> memoryview:
        """Returns memory for the next `size` bytes of decompressed records."""
        at, end = self._used, self._used + size
        if end > len(self._buffer):
            larger = bytearray(max(end, 2 * len(self._buffer)))
            larger[:at] = memoryview(self._buffer)[:at]
            self._buffer = larger
        self._used = end
        return memoryview(self._buffer)[at:end]

    def drop(self, size: int) -> None:
        self._used -= size

    def payload(self) -> memoryview:
        return memoryview(self._buffer)[: self._used]


def _room(buffer: bytearray, size: int) -> memoryview:
    return memoryview(buffer if size <= len(buffer) else bytearray(size))[:size]


def _whole_headers(raws: Sequence[memoryview]) -> int:
    return next(index for index, raw in enumerate(raws) if len(raw) < HEADER_BYTES)


def _sound_headers(headers: Headers, packed_sizes: Int64s) -> Bools:
    """Returns for each batch whether its header passes the checks of `read_header`, `check` and
    `unpack` (except the check of the CRC). packed_sizes: the number of bytes after each header."""
    delta = headers["last_offset_delta"].astype(np.int64)
    base = headers["base_offset"].astype(np.int64)
    count, attributes = headers["count"], headers["attributes"]
    sound: Bools = (headers["magic"] == MAGIC) & (
        headers["length"] == packed_sizes + (HEADER_BYTES - LENGTH_END)
    )
    sound &= (delta >= 0) & (delta < COUNT_MAX) & (count >= 0) & (count <= delta + 1)
    sound &= (base >= 0) & (base < OFFSET_MAX - delta)
    sound &= np.isin(attributes & CODEC_MASK, list(codecs.BY_NUMBER))
    sound &= (count > 0) | (packed_sizes == 0) | (attributes & CONTROL != 0)
    return sound


def _follows(headers: Headers) -> Bools:
    base = headers["base_offset"].astype(np.int64)
    follows = np.ones(len(headers), np.bool_)
    follows[1:] = base[1:] == base[:-1] + headers["last_offset_delta"][:-1] + 1
    return follows


def _copy_bodies(
    raws: Sequence[memoryview],
    heads: bytes,
    headers: Headers,
    filled: Sequence[bool],
    packed: memoryview,
) -> int:
    """Copies the compressed records of batches to `packed`, one batch after the other. Returns the
    number of batches before the first batch with a wrong CRC."""
    value, extend = google_crc32c.value, google_crc32c.extend
    crcs = headers["crc"].tolist()
    start, end, at = CRC_START, HEADER_BYTES, 0
    for index, raw in enumerate(raws):
        body = bytes(raw[HEADER_BYTES:])  # google_crc32c accepts only bytes
        if extend(value(heads[start:end]), body) != crcs[index]:
            return index
        if filled[index]:
            packed[at : at + len(body)] = body
            at += len(body)
        start += HEADER_BYTES
        end += HEADER_BYTES
    return len(raws)


def _decompress_all(
    bodies: _Bodies, limit_bytes: int, space: Workspace
) -> tuple[memoryview, Int64s]:
    """Decompresses batches, from the first one on, until their records together have at least
    `limit_bytes` bytes. Stops before the first batch that is damaged. Returns the records, and the
    size of each batch's records."""
    numbers = bodies.headers["attributes"] & CODEC_MASK
    ends = np.cumsum(bodies.sizes)
    known = _known_sizes(bodies, numbers, ends)
    if (numbers == NONE.number).all() and (known >= 0).all():
        sizes = _enough(known, limit_bytes, bodies.headers["count"])
        return bodies.packed[: int(sizes.sum())], sizes
    ways = 2 * numbers + (known >= 0)
    fresh = (np.flatnonzero(ways[1:] != ways[:-1]) + 1).tolist()
    output, found = _Output(space), [np.zeros(0, np.int64)]
    for first, end in itertools.pairwise([0, *fresh, len(ways)]):
        part, start = slice(first, end), int(ends[first - 1]) if first else 0
        packed = bodies.packed[start : int(ends[end - 1])]
        sizes = _enough(known[part], limit_bytes, bodies.headers["count"][part])
        codec = codecs.BY_NUMBER[int(numbers[first])]
        if known[first] < 0 or not _decompress_known(
            codec, packed, bodies.sizes[part], sizes, output
        ):
            sizes = _decompress_each(
                codec, packed, bodies.sizes[part], bodies.headers["count"][part],
                limit_bytes, output, space.scratch,
            )  # fmt: skip
        found.append(sizes)
        limit_bytes -= int(sizes.sum())
        if limit_bytes <= 0 or len(sizes) < end - first:
            break
    return output.payload(), np.concatenate(found)


def _known_sizes(bodies: _Bodies, numbers: Int64s, ends: Int64s) -> Int64s:
    """Returns for each batch the size of its decompressed records, or -1 if this size is not known
    before the records are decompressed."""
    plain = (numbers == NONE.number) & (bodies.sizes <= DECOMPRESSED_BYTES_MAX)
    sizes = np.where(plain, bodies.sizes, -1)
    zstd = np.flatnonzero(numbers == ZSTD.number)
    if len(zstd):
        starts = ends[zstd] - bodies.sizes[zstd]
        sizes[zstd] = zstd_frames.content_sizes(bodies.packed, starts, ends[zstd])
    return sizes


def _enough(sizes: Int64s, limit_bytes: int, counts: Int64s) -> Int64s:
    """Returns the first elements of `sizes`, and stops as soon as their sum is at least
    `limit_bytes`. Also stops before a batch that claims more records than its bytes can contain."""
    sizes = sizes[: int(np.searchsorted(np.cumsum(sizes), limit_bytes)) + 1]
    return sizes[: _first_false(counts[: len(sizes)] <= sizes // RECORD_BYTES_MIN)]


def _decompress_known(
    codec: Codec, packed: memoryview, packed_sizes: Int64s, sizes: Int64s, output: _Output
) -> bool:
    """Decompresses the first `len(sizes)` batches into `output`; `sizes` are the sizes of their
    uncompressed records. Returns whether all these batches are sound; if not, `output` stays as it
    was."""
    size = int(sizes.sum())
    packed = packed[: int(packed_sizes[: len(sizes)].sum())]
    room = output.room(size)
    if codec is NONE:
        room[:] = packed
    elif len(sizes) and not zstd_frames.decompress_into(packed, room):
        output.drop(size)
        return False
    return True


def _decompress_each(
    codec: Codec,
    packed: memoryview,
    packed_sizes: Int64s,
    counts: Int64s,
    limit_bytes: int,
    output: _Output,
    scratch: bytearray,
) -> Int64s:
    """Decompresses one batch after the other, until their records together have at least
    `limit_bytes` bytes. Stops before the first batch that is damaged; `unpack` will say what is
    wrong with it. Returns for each decompressed batch the size of its records."""
    found: list[int] = []
    at = 0
    for size, count in zip(packed_sizes.tolist(), counts.tolist(), strict=True):
        try:
            piece = codec.decompress(packed[at : at + size], DECOMPRESSED_BYTES_MAX, scratch)
        except CorruptBatch:
            break
        if count > len(piece) // RECORD_BYTES_MIN:
            break
        output.room(len(piece))[:] = piece
        found.append(len(piece))
        limit_bytes -= len(piece)
        at += size
        if limit_bytes <= 0:
            break
    return np.array(found, np.int64)


def _as_run(headers: Headers, payload: memoryview, sizes: Int64s) -> UnpackedRun:
    def column(name: str) -> Int64s:
        return headers[name].astype(np.int64)

    return UnpackedRun(
        payload,
        sizes,
        column("count"),
        column("base_offset"),
        column("last_offset_delta"),
        column("base_timestamp"),
        column("max_timestamp"),
        headers["attributes"] & LOG_APPEND_TIME != 0,
    )


def _first_false(sound: Bools) -> int:
    return len(sound) if sound.all() else int(sound.argmin())
