"""Record batches as columns: encodes Arrow and NumPy columns into a batch, and decodes a batch.

This is the public interface of `record_layout` (the form of a record), `record_encoding`,
`batch_unpacking`, `run_unpacking`, `record_bounds`, `record_headers` and `record_decoding`. No
Python object is made for each record in either direction, except for headers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa

from skidway.dataclass import dataclass
from skidway.kafka import origin
from skidway.kafka.batch import HEADER_BYTES, CorruptBatch, EncodedBatch, Readable
from skidway.kafka.batch_unpacking import UnpackedBatch, UnpackedRun, joined, unpack
from skidway.kafka.codecs import DECOMPRESSED_BYTES_MAX, NONE, ZSTD, Codec
from skidway.kafka.origin import ORIGIN_BYTES, Origin
from skidway.kafka.record_decoding import Parsed, cut, origins_of, parse
from skidway.kafka.record_encoding import check_columns, records_of
from skidway.kafka.record_headers import header_values, headers_column
from skidway.kafka.record_layout import (
    ORIGIN,
    ORIGIN_HEAD,
    RECORD_OVERHEAD_MAX,
    Bools,
    Int64s,
    OneHeader,
    Origins,
    Pieces,
)
from skidway.kafka.run_unpacking import Taken, Workspace, unpack_run

__all__ = [
    "RECORD_OVERHEAD_MAX",
    "TOGETHER_BYTES",
    "Bools",
    "DecodedRecords",
    "HeaderColumns",
    "Int64s",
    "OneHeader",
    "Origins",
    "Pieces",
    "Taken",
    "UnpackedBatch",
    "UnpackedRun",
    "Workspace",
    "cuts",
    "decode",
    "decode_batches",
    "decode_headers",
    "decode_run",
    "decode_values",
    "encode",
    "joined",
    "last_origin",
    "sound_batches",
    "unpack",
    "unpack_run",
]

TOGETHER_BYTES: Final = 1 << 20
"""Readers collect batches until they have about this many uncompressed bytes, and pass them to one
call of `decode_batches`. If readers collected more bytes, the columns would not fit into the
processor's cache."""


@dataclass(frozen=True, slots=True)
class DecodedRecords:
    """The records of one batch or of several batches, in offset order. Timestamps are in ms.

    `origins` says from which file and bytes each record came; it is None if no record has an
    origin. A row without an origin has zeros in the columns of `origins`, and False in
    `has_origin`. A control batch (transaction markers) has no rows. `headers` contains all headers
    of each record, as a column of the type `record_headers.COLUMN`; it is None if `decode` was
    called without `with_headers`.
    """

    offsets: Int64s
    timestamps: Int64s
    keys: pa.BinaryArray
    values: pa.BinaryArray
    origins: Origins | None
    has_origin: Bools
    headers: pa.Array | None = None


class ValueColumns(NamedTuple):
    """Three of the columns of `DecodedRecords`, and for each record the value of the header that
    the caller asked for; None if the record does not have this header."""

    offsets: Int64s
    timestamps: Int64s
    values: pa.BinaryArray
    header: list[bytes | None]


class HeaderColumns(NamedTuple):
    """Four of the columns of `DecodedRecords`, with the same names and contents."""

    offsets: Int64s
    timestamps: Int64s
    origins: Origins | None
    has_origin: Bools


def encode(
    values: pa.BinaryArray | Pieces,
    timestamps: Int64s,
    *,
    origins: Origins | None = None,
    header: OneHeader | None = None,
    keys: pa.BinaryArray | None = None,
    codec: Codec = ZSTD,
) -> EncodedBatch:
    """Encodes all rows as one batch. Keys may be null. If `values` is an Arrow array, values may be
    null, too. Records have either origins or one other header. Encoding the same rows again
    produces the same bytes.

    If the codec does not make the records smaller, they stay uncompressed. Raises ValueError if
    there are no rows, if the columns have different lengths, if an origin does not fit its fields,
    or if the batch could have 2 GiB or more.
    """
    count = len(values)
    headers = header if origins is None else origins
    check_columns(values, timestamps, headers, keys)
    base = int(timestamps[0])
    records = records_of(values, timestamps - timestamps[0], headers, keys)
    body = codec.compress(records)
    if len(body) >= len(records) and codec is not NONE:
        codec, body = NONE, bytes(records)
    return EncodedBatch(body, codec.number, count, base, int(timestamps.max()), len(records))


def decode(
    raw: Readable, *, limit_bytes: int = DECOMPRESSED_BYTES_MAX, with_headers: bool = False
) -> DecodedRecords:
    """Decodes all records of one whole batch, from any producer. Keeps no reference to `raw`.

    `with_headers` says whether to decode all headers, too. Decoding headers makes Python objects
    for each record.

    Raises CorruptBatch when the batch is damaged, or larger than `limit_bytes` after decompression.
    """
    return _decoded(parse(joined([unpack(raw, limit_bytes)])), with_headers=with_headers)


def decode_batches(batches: Sequence[UnpackedBatch]) -> DecodedRecords:
    """Decodes all records of several batches that `unpack` has checked and decompressed. If the
    batches are small (one or two records each), this function takes far less time than a call of
    `decode` for each batch.

    Raises CorruptBatch if the records of a batch are damaged (`sound_batches` finds the damaged
    batch), and ValueError if the batches have 2 GiB or more together.
    """
    return _decoded(parse(joined(batches)), with_headers=False)


def decode_headers(batches: Sequence[UnpackedBatch]) -> HeaderColumns:
    """Decodes the records without their keys and values. Raises the same errors as
    `decode_batches`."""
    return decode_run(joined(batches))


def decode_run(run: UnpackedRun) -> HeaderColumns:
    """Does the same as `decode_headers`, for batches that `unpack_run` returned."""
    parsed = parse(run)
    return HeaderColumns(parsed.offsets, parsed.timestamps, *origins_of(parsed))


def decode_values(run: UnpackedRun, header_key: bytes) -> ValueColumns:
    """Decodes the values of batches that `unpack_run` returned, and the header with this key. Does
    not look for origins. Raises CorruptBatch if the records of a batch are damaged."""
    parsed = parse(run)
    return ValueColumns(
        parsed.offsets,
        parsed.timestamps,
        cut(parsed.payload, parsed.value_at, parsed.value_size),
        header_values(parsed.payload, parsed.headers_at, parsed.ends, header_key),
    )


def last_origin(batch: UnpackedBatch) -> Origin | None:
    """Returns the origin of the batch's last record, or None if this record does not end with an
    origin. Does not decode the records. In a batch that an agent has sent, the origins of all
    records name this agent."""
    if not batch.count or batch.payload[-ORIGIN.itemsize : -ORIGIN_BYTES] != ORIGIN_HEAD:
        return None
    return origin.unpack(batch.payload[-ORIGIN_BYTES:])


def sound_batches(batches: Sequence[UnpackedBatch]) -> tuple[int, CorruptBatch | None]:
    """Returns the number of batches before the first one that cannot be decoded, and what is wrong
    with that one (None if all can be decoded).
    """
    for count, batch in enumerate(batches):
        try:
            origins_of(parse(joined([batch])))
        except CorruptBatch as error:
            return count, error
    return len(batches), None


def _decoded(parsed: Parsed, *, with_headers: bool) -> DecodedRecords:
    return DecodedRecords(
        parsed.offsets,
        parsed.timestamps,
        cut(parsed.payload, parsed.key_at, parsed.key_size),
        cut(parsed.payload, parsed.value_at, parsed.value_size),
        *origins_of(parsed),
        headers_column(parsed.payload, parsed.headers_at, parsed.ends) if with_headers else None,
    )


def cuts(value_sizes: Int64s, limit_bytes: int) -> list[int]:
    """Divides rows into batches. value_sizes: the bytes of each row's value and key together.
    Returns the end index of each batch.

    An encoded batch has at most `limit_bytes` (with header, before compression). Only a batch of a
    single row may be larger.
    """
    room = limit_bytes - HEADER_BYTES
    ends = np.cumsum(np.maximum(value_sizes, 0) + RECORD_OVERHEAD_MAX)
    found: list[int] = []
    start, used = 0, 0
    while start < len(ends):
        end = max(int(np.searchsorted(ends, used + room, side="right")), start + 1)
        found.append(end)
        start, used = end, int(ends[end - 1])
    return found
