"""The content sum of a record is a hash of the record's whole content. The hash has 8 bytes.

For a sample of lines, the audit checks that brokers and output have the content that the agent
read. The agent reads the sampled lines again, makes the records that it would send, and computes
the sums of these records. The audit computes the sums from the records in brokers, and from rows of
the output. A sum is computed from

    the event time      8 bytes, little-endian, ms since 1970
    the length          8 bytes, little-endian, the bytes of the line in its file
    the Avro datum      as the agent's codec writes it, without the schema's id that precedes the
                        datum

A datum is the canonical form of a record's values. Our codec has one encoding for each value: it
writes each array and each map as one block, and chooses the branch of a union by the value alone.
So if the audit encodes a row with the schema of the row's record, the result is the record's bytes.
If a value has changed, the result is not the record's bytes. Of 2^64 pairs of different contents,
about one has equal sums by chance.
"""

from __future__ import annotations

import struct
from hashlib import blake2b
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

SUM_BYTES: Final = 8

Int64s = npt.NDArray[np.int64]

_HEAD = struct.Struct("<qq")


def content_sums(times: Int64s, lengths: Int64s, datums: pa.BinaryArray) -> list[bytes]:
    """Returns the content sum of each record. If the datum is null, the record has no content, and
    the sum is empty.
    """
    columns = times.tolist(), lengths.tolist(), datums.to_pylist()
    return [
        b"" if datum is None else _sum(time_ms, length, datum)
        for time_ms, length, datum in zip(*columns, strict=True)
    ]


def _sum(time_ms: int, length: int, datum: bytes) -> bytes:
    head = _HEAD.pack(time_ms, length)
    return blake2b(head + datum, digest_size=SUM_BYTES).digest()
