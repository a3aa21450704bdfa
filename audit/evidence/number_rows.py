"""The digests of all numbered messages, 64 numbers of a sender in a row.

A digest has 8 bytes: the CRC-32 and the CRC-32C of the encoded message. Nobody chooses messages so
that their digests are equal, so 64 bits without a cryptographic function are enough.

Format of the column `digests`: 8 bytes with a bit for each number of the block, least byte first,
then the digests of the numbers whose bits are set, in ascending order. Senders send their numbers
in ascending order, so a new digest mostly goes to the end. The block comes first in the primary
key, so the rows that senders of the same age change are near to each other on disk.
"""

from __future__ import annotations

import sqlite3
import zlib
from typing import Final

import google_crc32c

BLOCK: Final = 64
KEPT_BLOCKS_MAX: Final = 40_000
"""At most this many blocks, of about 600 bytes each, stay in memory between two transactions."""

_BITS_BYTES: Final = 8
_DIGEST_BYTES: Final = 8
_EMPTY: Final = bytes(_BITS_BYTES)

_Key = tuple[int, int]
"""Block and sender, as in the primary key."""


def digest_of(value: bytes) -> bytes:
    """The digest of an encoded message."""
    both = zlib.crc32(value) | google_crc32c.value(value) << 32
    return int(both).to_bytes(_DIGEST_BYTES, "little")


class NumberRows:
    """The digests that the messages of one transaction add. The same object is used for one
    transaction after the other; after a failed transaction, nobody may use it."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._blocks: dict[_Key, bytes] = {}
        """The blocks that were used last are at the end."""
        self._changed: set[_Key] = set()

    def add(self, sender: int, number: int, digest: bytes) -> bytes | None:
        """Adds the digest of a message, unless a message with this number is known. Returns the
        digest of the known message, or None if there is none."""
        block, index = divmod(number, BLOCK)
        key = block, sender
        value = self._blocks.get(key)
        if value is None:
            value = _read(self._connection, key)
        bits = int.from_bytes(value[:_BITS_BYTES], "little")
        place = _BITS_BYTES + _DIGEST_BYTES * (bits & (1 << index) - 1).bit_count()
        if bits >> index & 1:
            self._blocks[key] = value
            return value[place : place + _DIGEST_BYTES]
        bits |= 1 << index
        self._blocks[key] = (
            bits.to_bytes(_BITS_BYTES, "little") + value[_BITS_BYTES:place] + digest + value[place:]
        )
        self._changed.add(key)
        return None

    def write(self) -> None:
        """Writes the blocks that were changed."""
        changed, self._changed = sorted(self._changed), set()
        self._connection.executemany(
            "INSERT OR REPLACE INTO numbers VALUES (?, ?, ?)",
            [(*key, self._blocks[key]) for key in changed],
        )
        for key in changed:
            self._blocks[key] = self._blocks.pop(key)
        while len(self._blocks) > KEPT_BLOCKS_MAX:
            del self._blocks[next(iter(self._blocks))]


def first_missing(connection: sqlite3.Connection, sender: int, first: int) -> int:
    """The least number above `first` that no message of this sender has. first: the number of a
    message of the sender."""
    block, index = divmod(first, BLOCK)
    while True:
        bits = int.from_bytes(_read(connection, (block, sender))[:_BITS_BYTES], "little")
        holes = ~bits >> index
        index += (holes & -holes).bit_length() - 1
        if index < BLOCK:
            return block * BLOCK + index
        block, index = block + 1, 0


def _read(connection: sqlite3.Connection, key: _Key) -> bytes:
    row = connection.execute(
        "SELECT digests FROM numbers WHERE (block, sender) = (?, ?)", key
    ).fetchone()
    return _EMPTY if row is None else bytes(row[0])
