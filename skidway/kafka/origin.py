"""The `origin` header of a record: the agent, file and bytes that the record came from.

Header key `origin`, value 28 bytes, big-endian:

    agent id    u64   (ids are below 2^63, so that they are positive in signed types, too)
    file id     u64
    first byte  u64   position in the file
    length      u32   bytes, including the line terminator

If a line is sent again, it has the same origin as before. So programs that read the records
recognize records that come twice (docs/delivery.md). If a header has this key but its value has
another length, no agent wrote the header, and the header is ignored.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

ORIGIN_HEADER = b"origin"
ORIGIN_BYTES = 28
_LAYOUT = struct.Struct(">QQQI")
_ID_END = 1 << 63

assert _LAYOUT.size == ORIGIN_BYTES


class Origin(NamedTuple):
    """Agent id, file id, first byte (a position) and length in bytes."""

    agent: int
    file: int
    first: int
    length: int


def pack(agent: int, file: int, first: int, length: int) -> bytes:
    """Returns the value of an `origin` header (28 bytes). Raises ValueError when a number does not
    fit its field.
    """
    if not (0 <= agent < _ID_END and 0 <= file < _ID_END and 0 <= first < _ID_END):
        raise ValueError("agent, file and first byte must lie in 0 .. 2^63-1")
    if not 0 <= length < 1 << 32:
        raise ValueError("a length must lie in 0 .. 2^32-1")
    return _LAYOUT.pack(agent, file, first, length)


def unpack(value: bytes | bytearray | memoryview) -> Origin | None:
    """Returns the origin in a header's value, or None if the value is not an agent's origin."""
    if len(value) != ORIGIN_BYTES:
        return None
    origin = Origin._make(_LAYOUT.unpack(value))
    return origin if max(origin[:3]) < _ID_END else None
