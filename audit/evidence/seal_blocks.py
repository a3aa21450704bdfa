"""Encodes the seals of an agent in few bytes. A block has the seals of 64 successive numbers.

By default, an agent sends a seal every 15 s, so the ledger has millions of seals. In a block, a
seal takes about four bytes: a byte with the last six bits of its number and the flag `final`, then
two numbers of variable length. The first number is the difference between the `sealed_until` of
this seal and of the previous seal. The second number is the difference between the seal's own
number and its `at` (the number of the agent's last delta before the seal). Seals are sorted by
number.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

BLOCK: Final = 64

_FINAL: Final = 0x40
_MORE: Final = 0x80


class Row(NamedTuple):
    """What one seal says about a set of topics. final: 1 if the seal is a last word (the last seal
    of a host that is removed); otherwise 0.
    """

    number: int
    sealed_until: int
    at: int
    final: int


class Block(NamedTuple):
    """A packed block of seals. packed: the bytes of all seals. last: the seal with the greatest
    number. least, newest: the least and the greatest `sealed_until`.
    """

    packed: bytes
    last: Row
    least: int
    newest: int

    @classmethod
    def of(cls, rows: Iterable[Row]) -> Block:
        """Packs the seals of one block (at least one seal). If two seals have the same number, the
        later one in `rows` is used."""
        first, *others = sorted({row.number: row for row in rows}.values())
        found = cls(_bytes_of(first, 0), first, first.sealed_until, first.sealed_until)
        for row in others:
            found = found._and(row)
        return found

    @classmethod
    def read(cls, block: int, packed: bytes) -> Block:
        """Reads a packed block. block: the number of the block."""
        rows = list(unpack(block, packed))
        times = [row.sealed_until for row in rows]
        return cls(packed, rows[-1], min(times), max(times))

    def and_(self, row: Row) -> Block:
        """Returns the block with this seal added."""
        if row.number > self.last.number:
            return self._and(row)
        return Block.of([*unpack(row.number // BLOCK, self.packed), row])

    def thinned(self) -> Block:
        """Returns a block with only the last seal of this block."""
        return Block.of([self.last])

    def _and(self, row: Row) -> Block:
        packed = self.packed + _bytes_of(row, self.last.sealed_until)
        until = row.sealed_until
        return Block(packed, row, min(self.least, until), max(self.newest, until))


def unpack(block: int, packed: bytes) -> Iterator[Row]:
    """The seals of a block, by ascending number."""
    at, until = 0, 0
    while at < len(packed):
        head = packed[at]
        number = block * BLOCK + head % BLOCK
        further, at = _read(packed, at + 1)
        behind, at = _read(packed, at)
        until += further
        yield Row(number, until, number - behind, int(bool(head & _FINAL)))


def _bytes_of(row: Row, before: int) -> bytes:
    head = row.number % BLOCK | (_FINAL if row.final else 0)
    packed = bytearray((head,))
    _write(packed, row.sealed_until - before)
    _write(packed, row.number - row.at)
    return bytes(packed)


def _write(packed: bytearray, number: int) -> None:
    """Appends a number, seven bits in each byte, the lowest bits first. The lowest bit is the
    sign."""
    left = number << 1 if number >= 0 else ~number << 1 | 1
    while left >= _MORE:
        packed.append(left & 0x7F | _MORE)
        left >>= 7
    packed.append(left)


def _read(packed: bytes, at: int) -> tuple[int, int]:
    found = shift = 0
    while True:
        byte = packed[at]
        found |= (byte & 0x7F) << shift
        shift, at = shift + 7, at + 1
        if byte < _MORE:
            return (~(found >> 1) if found & 1 else found >> 1), at
