"""Limits on the counts in a datum, so that a small datum cannot cause a large allocation.

Items of arrays and maps usually take bytes in the datum, so the length of the datum bounds their
number. Two kinds of items need a further bound. First, a datum could claim any number of items that
take no bytes (null, a record without fields), so it may have at most `EMPTY_ITEMS_MAX` of them.
Second, an item of one byte (a null) can stand for a record of ten thousand columns. So the columns
for all items of a datum together may take at most `CLAIM_MAX` times the length of the datum.
"""

from __future__ import annotations

from typing import Final

from skidway.schemas.avro_schema import Array, AvroType, Fixed, Map, Record, Union

EMPTY_ITEMS_MAX: Final = 1024
"""A datum may have at most this many items that take no bytes."""
CLAIM_MAX: Final = 256
"""For each byte of a datum, the datum's items may take at most this many bytes in columns."""
ITEMS_BYTES_MAX: Final = 4 << 20
"""At most this many bytes of datums with arrays or maps are decoded at once, because an empty array
takes one byte in a datum, but about a hundred bytes in memory until its column is made."""
ROWS_BYTES_MAX: Final = 1 << 20
"""At most this many bytes of datums are turned into Python objects at once, because an empty array
takes one byte in a datum, but about 64 bytes in Python."""

_SIZES: Final = {"null": 0, "float": 4, "double": 8}


def least_bytes(avro: AvroType) -> int:
    """The length in bytes of the shortest datum of the type. The type must be one that columns can
    hold, so it must not contain itself."""
    return _least_bytes(avro, {})


def _least_bytes(avro: AvroType, known: dict[str, int]) -> int:
    if isinstance(avro, Record):
        if avro.name not in known:
            known[avro.name] = 0  # ends the recursion if the record contains itself
            known[avro.name] = sum(_least_bytes(each.type, known) for each in avro.fields)
        return known[avro.name]
    if isinstance(avro, Fixed):
        return avro.size
    return _SIZES.get(avro.kind, 1)


def item_types(avro: AvroType) -> list[AvroType]:
    """The types of all array items and all map values inside the type."""
    found: list[AvroType] = []
    seen: set[int] = set()

    def walk(each: AvroType) -> None:
        if id(each) in seen:
            return
        seen.add(id(each))
        if isinstance(each, Record):
            for field in each.fields:
                walk(field.type)
        elif isinstance(each, Union):
            for branch in each.branches:
                walk(branch)
        elif isinstance(each, Array | Map):
            inside = each.items if isinstance(each, Array) else each.values
            found.append(inside)
            walk(inside)

    walk(avro)
    return found
