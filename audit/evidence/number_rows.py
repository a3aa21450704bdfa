"""The digests of all numbered messages. A digest is a short hash of a message. A row has the
digests of a *block*: 64 successive numbers of one sender.

A digest has 4 bytes, which depend on the CRC-32 and the CRC-32C of the encoded message. No attacker
chooses messages to get equal digests. If two different messages have the same number, the ledger
fails to notice this in one of four billion cases. A sender that was copied or restored sends
thousands of such messages, so the ledger still notices the copy.

Format of the column `digests`: 8 bytes with a bit for each number of the block, least byte first,
then the digests of the numbers whose bits are set, in ascending order. Senders send their numbers
in ascending order, so most new digests are appended. `newest` is the latest time of a message of
the block, by the sender's clock. The block comes first in the primary key, because senders of the
same age send about the same numbers: so the rows that they change are near to each other on disk.

Full blocks of old messages are *settled*: the ledger deletes their digests, and only stores the
number below which all numbers are settled, and the latest time of these messages. If another
message with a settled number arrives, its time decides. If its time is later than the stored time,
the message counts as a clone; otherwise it counts as a repetition.
"""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple

import google_crc32c

BLOCK: Final = 64
KEPT_BLOCKS_MAX: Final = 40_000
"""At most this many blocks (each with the digests of 64 messages, about 350 bytes) stay in memory
between two transactions."""

SETTLED_MAX: Final = 16
"""One call of `settle` deletes the digests of at most this many blocks of one sender."""

_LAST_BLOCK: Final = ((1 << 63) - 1) // BLOCK
"""The block of the greatest number that a message can have. (A block has 64 successive numbers.)"""

_BITS_BYTES: Final = 8
_DIGEST_BYTES: Final = 4
_FACTOR: Final = 0x9E3779B97F4A7C15
_FULL: Final = (1 << BLOCK) - 1

_Key = tuple[int, int]
"""Block and sender: the primary key of the table `numbers`."""


def digest_of(value: bytes) -> bytes:
    """The digest of an encoded message."""
    both: int = zlib.crc32(value) | google_crc32c.value(value) << 32
    return (both * _FACTOR >> 32 & 0xFFFFFFFF).to_bytes(_DIGEST_BYTES, "little")


@dataclass(slots=True)
class _Block:
    """The digests of a block. bits: a bit for each number of the block that has arrived. digests:
    their digests, in ascending order of the numbers. newest: the latest time of these messages."""

    bits: int = 0
    digests: bytes = b""
    newest: int = 0

    @property
    def packed(self) -> bytes:
        """This block's value in the column `digests` (see the module's docstring)."""
        return self.bits.to_bytes(_BITS_BYTES, "little") + self.digests


class _Settled(NamedTuple):
    below: int
    newest: int


class NumberRows:
    """Reads and writes digests. The same object serves one transaction after the other; after a
    failed transaction, the object must not be used any more.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._blocks: dict[_Key, _Block] = {}
        """A cache of blocks. If it is full, the blocks at its beginning are dropped; the blocks
        that were written last are at its end."""
        self._changed: set[_Key] = set()
        rows = connection.execute("SELECT sender, below, newest FROM settled")
        self._settled = {sender: _Settled(*row) for sender, *row in rows}

    def add(self, sender: int, number: int, digest: bytes, time_ms: int) -> bytes | None:
        """If no message with this number has arrived before, adds the digest of the message, and
        returns None. If an earlier message has this number, changes nothing, and normally returns
        the digest of the earlier message, so that the caller can compare the two digests. If that
        digest was deleted because the earlier message is old (see *settled* in the module's
        docstring), the time of the new message decides: if the new message may be a repetition,
        returns `digest`, as if both digests were equal; if it cannot be one, returns b"".
        """
        settled = self._settled.get(sender)
        if settled is not None and number < settled.below:
            return digest if time_ms <= settled.newest else b""
        block, index = divmod(number, BLOCK)
        key = block, sender
        known = self._blocks.get(key) or _read(self._connection, key)
        self._blocks[key] = known
        bit, digests = 1 << index, known.digests
        place = _DIGEST_BYTES * (known.bits & bit - 1).bit_count()
        if known.bits & bit:
            return digests[place : place + _DIGEST_BYTES]
        known.newest = max(known.newest, time_ms) if known.bits else time_ms
        known.digests = digests[:place] + digest + digests[place:]
        known.bits |= bit
        self._changed.add(key)
        return None

    def write(self) -> None:
        """Writes the blocks that have changed since the last call into the table `numbers`."""
        changed, self._changed = sorted(self._changed), set()
        self._connection.executemany(
            "INSERT OR REPLACE INTO numbers VALUES (?, ?, ?, ?)",
            [(*key, self._blocks[key].newest, self._blocks[key].packed) for key in changed],
        )
        for key in changed:
            self._blocks[key] = self._blocks.pop(key)
        while len(self._blocks) > KEPT_BLOCKS_MAX:
            del self._blocks[next(iter(self._blocks))]

    def settle(self, senders: Iterable[tuple[int, int]], before_ms: int) -> list[_Key]:
        """Deletes the digests of blocks whose messages are all older than `before_ms` (settles
        these blocks). senders: for each sender, its id and the number of the first of its messages
        that have arrived. Returns the settled blocks. Does not settle a sender's blocks from the
        first missing number on, because every number of a settled block counts as arrived. Does not
        settle the block with the greatest possible numbers either, because no 64-bit number comes
        after it."""
        settled = []
        for sender, first in senders:
            found = self._settled.get(sender, _Settled(first - first % BLOCK, -(1 << 63)))
            before = found
            for _ in range(SETTLED_MAX):
                key = found.below // BLOCK, sender
                if key[0] == _LAST_BLOCK:
                    break
                block = _read(self._connection, key)
                needed = _FULL if found.below > first else _FULL << first % BLOCK & _FULL
                if block.bits & needed != needed or block.newest >= before_ms:
                    break
                found = _Settled(found.below + BLOCK, max(found.newest, block.newest))
                self._connection.execute("DELETE FROM numbers WHERE (block, sender) = (?, ?)", key)
                self._blocks.pop(key, None)
                settled.append(key)
            if found != before:
                self._settled[sender] = found
                self._connection.execute(
                    "INSERT OR REPLACE INTO settled VALUES (?, ?, ?)", (sender, *found)
                )
        return settled


def first_missing(connection: sqlite3.Connection, sender: int, first: int) -> int:
    """Returns the sender's least missing number above `first`. first: the number of a message that
    has arrived.
    """
    row = connection.execute("SELECT below FROM settled WHERE sender = ?", (sender,)).fetchone()
    block, index = divmod(first if row is None else max(first, row[0]), BLOCK)
    while True:
        holes = ~_read(connection, (block, sender)).bits >> index
        index += (holes & -holes).bit_length() - 1
        if index < BLOCK:
            return block * BLOCK + index
        block, index = block + 1, 0


def _read(connection: sqlite3.Connection, key: _Key) -> _Block:
    row = connection.execute(
        "SELECT digests, newest FROM numbers WHERE (block, sender) = (?, ?)", key
    ).fetchone()
    if row is None:
        return _Block()
    packed, newest = row
    return _Block(int.from_bytes(packed[:_BITS_BYTES], "little"), packed[_BITS_BYTES:], newest)
