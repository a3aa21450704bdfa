"""What a datum may claim: no count in it causes an allocation out of proportion.

Items of arrays and maps usually take bytes in the datum, so its length bounds their number. Two
kinds of items need a further bound. Items that take no bytes (null, a record without fields) could
be any number: a datum may have `EMPTY_ITEMS_MAX` of them. And an item of one byte (a null) can
stand for a record of ten thousand columns: all items of a datum may take `CLAIM_MAX` times its
length.
"""

from __future__ import annotations

from typing import Final

from skidway.schemas.avro_schema import Array, AvroType, Fixed, Map, Record, Union

EMPTY_ITEMS_MAX: Final = 1024
"""Items without bytes in one datum."""
CLAIM_MAX: Final = 256
"""Bytes in columns for each byte of a datum."""
ITEMS_BYTES_MAX: Final = 4 << 20
"""Bytes of datums with arrays or maps that are decoded at once: an empty array takes one byte in a
datum, and some hundred in memory until its column is made."""
ROWS_BYTES_MAX: Final = 1 << 20
"""Bytes of datums whose values are in Python at once: an empty array takes one byte in a datum, and
some 64 in Python."""

_SIZES: Final = {"null": 0, "float": 4, "double": 8}


def least_bytes(avro: AvroType) -> int:
    """The length of the shortest datum of a type with columns (so it does not contain itself)."""
    return _least_bytes(avro, {})


def _least_bytes(avro: AvroType, known: dict[str, int]) -> int:
    if isinstance(avro, Record):
        if avro.name not in known:
            known[avro.name] = 0  # for one that contains itself
            known[avro.name] = sum(_least_bytes(each.type, known) for each in avro.fields)
        return known[avro.name]
    if isinstance(avro, Fixed):
        return avro.size
    return _SIZES.get(avro.kind, 1)


def item_types(avro: AvroType) -> list[AvroType]:
    """The types of all items of arrays and values of maps in the type."""
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
