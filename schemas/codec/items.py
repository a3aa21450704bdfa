"""Finds where the items of arrays and maps begin, for all rows of a chunk of datums at once. A
cursor is the position that was reached in each datum (`cursor`).

An item begins where the item before it ends. The last byte of a varint has its highest bit clear.
So if the items are varints, one pass over the whole chunk finds where all of them end. If the items
have a fixed size, their positions are computed. Items of other types are skipped in rounds: the
first items of all rows together, then the second items, and so on. Blocks of items are skipped in
rounds, too. A round saves time only if many rows have an item or block in this round. So the first
items and the first blocks of all rows are read together. If fewer than `ROWS_MIN` rows have further
items or blocks, these rows are decoded one datum at a time.

This module does not trust the count of items in a datum. The rest of the datum must have enough
bytes for the shortest form of all these items, and the items must not take more memory than
`skidway.schemas.bounds` allows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from skidway.dataclass import dataclass
from skidway.schemas.avro_schema import Array, AvroType, Fixed, Map, Record, Recursive, Union
from skidway.schemas.bounds import CLAIM_MAX, least_bytes
from skidway.schemas.codec.arrow import column_bytes
from skidway.schemas.codec.cursor import Cursor, Ints, Mask
from skidway.schemas.codec.text_columns import text_skipper

ROWS_MIN: Final = 32
"""If fewer rows than this number have items left, it takes less time to decode their datums one by
one than to continue with these few rows together."""
EMPTY_ITEMS_FEW: Final = 32
"""This module reads only blocks with at most this many items that take no bytes. If a block has
more of these items, the block's datum is decoded alone."""
_KEY_BYTES: Final = 4

_SIZES: Final = {"null": 0, "boolean": 1, "float": 4, "double": 8}
_NUMBERS: Final = ("int", "long", "enum")

Skip = Callable[[Cursor], None]
Finder = Callable[[Cursor, Ints], Ints]


@dataclass(frozen=True, slots=True)
class Located:
    """The items of all rows. `cursor` has the position of each item, `rows` has the row of each
    item, and `offsets` are the offsets of the Arrow list column that these items form."""

    cursor: Cursor
    rows: Ints
    offsets: np.ndarray[Any, np.dtype[np.int32]]


def locator(avro: AvroType, *, is_map: bool = False) -> Callable[[Cursor], Located]:
    """Returns a function that finds all items of arrays whose items have the type `avro`, and moves
    the cursor past the arrays. With `is_map`, the function finds all pairs of key and value of maps
    instead."""
    blocks = _Blocks(avro, column_bytes(avro, {}), is_map)

    def locate(cursor: Cursor) -> Located:
        found = blocks.over(cursor)
        if len(found) == 1:
            ((rows, counts, starts),) = found
            owners = np.repeat(rows, counts)
        else:
            owners, starts = _in_order(found)
        offsets = np.zeros(len(cursor) + 1, np.int32)
        np.cumsum(np.bincount(owners, minlength=len(cursor)), out=offsets[1:])
        items = Cursor(cursor.chunk, starts, cursor.end[owners], cursor.bad[owners])
        items.fail(items.bad.copy())
        return Located(items, owners, offsets)

    return locate


Blocks = list[tuple[Ints, Ints, Ints]]
"""For each round (the first blocks of all rows, then the second blocks, and so on): the rows that
have a block, the number of items in each block, and where the items begin."""


class _Blocks:
    """Moves cursors past arrays or maps, block by block (Avro stores the items of an array in
    blocks)."""

    def __init__(self, avro: AvroType, column_bytes: int, is_map: bool) -> None:
        self._least = least_bytes(avro) + is_map
        self._width = column_bytes + (_KEY_BYTES if is_map else 0)
        self._goes_by_rounds = is_map or not _is_arithmetic(avro)
        self._find = _finder(avro, is_map)

    def over(self, cursor: Cursor) -> Blocks:
        """Finds the items of the arrays, and moves the cursor past the arrays."""
        found: Blocks = []
        begin, totals = cursor.at.copy(), np.zeros(len(cursor), np.int64)
        rows, part = np.arange(len(cursor)), cursor
        while len(rows):
            counts, ends = self._header(part, totals[rows], begin[rows])
            going_on = np.flatnonzero(counts)
            if part is not cursor:
                cursor.merge(rows, part)
            rows, part = rows[going_on], part.select(going_on)
            counts, ends = counts[going_on], ends[going_on]
            if found and len(rows) < ROWS_MIN:
                part.fail(np.ones(len(rows), bool))
                cursor.merge(rows, part)
                break
            if self._goes_by_rounds and 0 < np.count_nonzero(counts > 1) < ROWS_MIN:
                part.fail(counts > 1)  # do this before memory is allocated for the items
                cursor.merge(rows, part)
                few = np.flatnonzero(counts == 1)
                rows, part, counts, ends = rows[few], part.select(few), counts[few], ends[few]
            starts = self._find(part, counts)
            part.fail((ends >= 0) & (part.at != ends))
            totals[rows] += counts
            found.append((rows, counts, starts))
        return found

    def _header(self, cursor: Cursor, before: Ints, begin: Ints) -> tuple[Ints, Ints]:
        """Reads the header of each row's next block. Returns the number of items in each block
        (zero after the last block), and the position at which each block ends (-1 if the block does
        not state its size)."""
        counts = cursor.number()
        ends = np.full(len(cursor), -1, np.int64)
        sized = np.flatnonzero(counts < 0)
        if len(sized):
            part = cursor.select(sized)
            sizes = part.length()
            ends[sized] = part.at + sizes
            cursor.merge(sized, part)
            counts[sized] = -counts[sized]
        cursor.fail(self._claims(counts, before, cursor, begin))
        counts[cursor.bad] = 0
        return counts, ends

    def _claims(self, counts: Ints, before: Ints, cursor: Cursor, begin: Ints) -> Mask:
        """Returns a mask that is true for the rows whose count of items is too high. A count is too
        high if the row does not have enough bytes for so many items, or if the items would take too
        much memory. If the items take no bytes, a count above `EMPTY_ITEMS_FEW` is too high. The
        mask also includes rows with the count -2**63, which stays negative when `_header` negates
        it."""
        room = cursor.end - cursor.at
        if not self._least:
            return (counts < 0) | (counts > EMPTY_ITEMS_FEW)
        wrong: Mask = (counts < 0) | (counts > room // self._least)
        if self._width > CLAIM_MAX * self._least:
            wrong |= (before + counts) > (cursor.end - begin) * CLAIM_MAX // self._width
        return wrong


def _in_order(found: Blocks) -> tuple[Ints, Ints]:
    """Returns, for each item, its row and the position where it begins. The items are in the order
    of rows."""
    if not found:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    owners = np.concatenate([np.repeat(rows, counts) for rows, counts, _ in found])
    order = np.argsort(owners, kind="stable")
    return owners[order], np.concatenate([starts for _, _, starts in found])[order]


def _finder(avro: AvroType, is_map: bool) -> Finder:
    """Returns a function that finds where each item begins, row after row. The function gets a
    cursor, which must be at the first item of each row, and the number of items of each row."""
    if is_map:
        value = _skipper(avro)

        def pair(cursor: Cursor) -> None:
            _skip_sized(cursor)
            value(cursor)

        return _by_rounds(pair)
    if avro.kind in _NUMBERS:
        return _numbers
    size = _fixed_size(avro)
    return _by_rounds(_skipper(avro)) if size is None else _by_size(size)


def _by_size(size: int) -> Finder:
    def find(cursor: Cursor, counts: Ints) -> Ints:
        starts = np.repeat(cursor.at, counts) + _ranks(counts) * size
        cursor.at = cursor.at + counts * size
        return starts

    return find


def _ranks(counts: Ints) -> Ints:
    """Returns, for all items of all rows, the index of the item in its row: 0, 1, 2, ..."""
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    return np.arange(total) - np.repeat(ends - counts, counts)


def _numbers(cursor: Cursor, counts: Ints) -> Ints:
    """Returns where each item begins if the items are varints: each begins after the last byte of
    the previous one."""
    stops = cursor.chunk.last_bytes
    first = np.searchsorted(stops, cursor.at)
    # `stops` is never empty, because zero bytes follow the data, and each of them counts as the
    # last byte of a varint.
    last = np.minimum(first + counts, len(stops)) - 1
    places = np.repeat(first, counts) + _ranks(counts) - 1
    ranks = _ranks(counts)
    behind = stops[np.clip(places, 0, len(stops) - 1)] + 1
    starts = np.where(ranks == 0, np.repeat(cursor.at, counts), behind)
    cursor.at = stops[last] + 1
    return starts


def _by_rounds(skip: Skip) -> Finder:
    def find(cursor: Cursor, counts: Ints) -> Ints:
        first = np.cumsum(counts) - counts
        starts = np.full(int(counts.sum()), cursor.chunk.sink, np.int64)
        rows, part, taken = np.arange(len(counts)), cursor.select(np.arange(len(counts))), 0
        while len(rows):
            starts[first[rows] + taken] = part.at
            skip(part)
            taken += 1
            going_on = (counts[rows] > taken) & ~part.bad
            if not going_on.all():
                cursor.merge(rows, part)
                rows, part = rows[going_on], part.select(np.flatnonzero(going_on))
            if 0 < len(rows) < ROWS_MIN:
                part.fail(np.ones(len(rows), bool))
                cursor.merge(rows, part)
                break
        return starts

    return find


def _fixed_size(avro: AvroType) -> int | None:
    """Returns the size in bytes of each value of the type, or None if the values differ in size."""
    if isinstance(avro, Fixed):
        return avro.size
    if not isinstance(avro, Record):
        return _SIZES.get(avro.kind)
    sizes = [_fixed_size(each.type) for each in avro.fields]
    return None if None in sizes else sum(size for size in sizes if size is not None)


def _is_arithmetic(avro: AvroType) -> bool:
    """Returns whether the positions of an array's items can be computed without moving a cursor
    past one item after the other."""
    return avro.kind in _NUMBERS or _fixed_size(avro) is not None


def _skipper(avro: AvroType) -> Skip:
    size = _fixed_size(avro)
    if size is not None:
        return _skip_size(size)
    if isinstance(avro, Record):
        return _skip_all([_skipper(each.type) for each in avro.fields])
    if isinstance(avro, Union):
        return _skip_union([_skipper(each) for each in avro.branches])
    if isinstance(avro, Array):
        return _skip_items(avro.items, is_map=False)
    if isinstance(avro, Map):
        return _skip_items(avro.values, is_map=True)
    if isinstance(avro, Recursive):
        return text_skipper(avro)
    return _skip_number if avro.kind in _NUMBERS else _skip_sized


def _skip_size(size: int) -> Skip:
    def skip(cursor: Cursor) -> None:
        cursor.at = cursor.at + size
        cursor.fail(cursor.at > cursor.end)

    return skip


def _skip_number(cursor: Cursor) -> None:
    cursor.number()


def _skip_sized(cursor: Cursor) -> None:
    cursor.at = cursor.at + cursor.length()


def _skip_all(skips: list[Skip]) -> Skip:
    def skip(cursor: Cursor) -> None:
        for each in skips:
            each(cursor)

    return skip


def _skip_union(skips: list[Skip]) -> Skip:
    def skip(cursor: Cursor) -> None:
        branch = cursor.index(len(skips))
        for at, each in enumerate(skips):
            rows = np.flatnonzero(branch == at)
            if len(rows):
                part = cursor.select(rows)
                each(part)
                cursor.merge(rows, part)

    return skip


def _skip_items(avro: AvroType, *, is_map: bool) -> Skip:
    blocks = _Blocks(avro, 0, is_map)

    def skip(cursor: Cursor) -> None:
        blocks.over(cursor)

    return skip
