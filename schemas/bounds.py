"""Limits the number of items that a datum may claim to have, so that a small datum cannot cause a
large allocation.

Items of arrays and maps usually take bytes in the datum, so the length of the datum limits the
number of items. Two kinds of items need a further limit. First, items may take no bytes at all
(null, a record without fields). A datum may have at most `EMPTY_ITEMS_MAX` of these items. Second,
an item of one byte (a null of a union) can take as much memory as a record of ten thousand columns.
So the columns for all items of a datum may take at most `CLAIM_MAX` times as many bytes in memory
as the datum has.

Values of a type that contains itself become JSON text. The nesting of these values is limited
(`DEPTH_MAX`). The text also contains names of fields and symbols, which take no bytes in the datum.
So the length of the text is limited, too (`TextBound`).
"""

from __future__ import annotations

from typing import Final

from skidway.schemas.avro_schema import (
    Array,
    AvroType,
    Enum,
    Fixed,
    Map,
    Record,
    Union,
    named_types,
)

EMPTY_ITEMS_MAX: Final = 1024
"""A datum may have at most this many items that take no bytes."""
CLAIM_MAX: Final = 256
"""In memory, the columns for all items of a datum may take at most this many bytes for each byte of
the datum."""
ITEMS_BYTES_MAX: Final = 4 << 20
"""At most this many bytes of datums with arrays or maps, or a single longer datum, are decoded at
once. An empty array takes one byte in a datum, but about a hundred bytes in memory until its column
is made."""
ROWS_BYTES_MAX: Final = 1 << 20
"""At most this many bytes of datums, or a single longer datum, are turned into Python objects at
once, because an empty array takes one byte in a datum, but about 64 bytes in Python."""
DEPTH_MAX: Final = 256
"""Records, arrays and maps of a datum may be nested at most this many levels deep. Python's stack
is large enough for this depth, and Spark's JSON reader allows a thousand levels."""
TEXT_MAX: Final = 1 << 24
"""The JSON text of one value has at most this many characters."""
_FIELD_BYTES: Final = 64
"""`TextBound` counts this many bytes for each field of a record, in addition to its name and its
value."""

_SIZES: Final = {"null": 0, "float": 4, "double": 8}


def least_bytes(avro: AvroType) -> int:
    """Returns the length in bytes of the shortest datum of the type. If the type contains a union
    or contains itself, returns a lower bound of this length."""
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


class TextBound:
    """Checks that no small datum of a schema can become a large JSON text. A text can be larger
    than its datum, because the text also contains names of fields and symbols of enums. Each named
    type is checked once, however many fields have it."""

    def __init__(self) -> None:
        self._checked: set[str] = set()
        self._names: dict[str, int] = {}
        self._least: dict[str, int] = {}

    def fault(self, avro: AvroType) -> str | None:
        """Returns why a small datum of the type could become a large text, or None. After a fault,
        this object cannot be used further."""
        found = named_types(avro, self._checked)
        try:
            for each in found.values():
                least = max(_least_bytes(each, self._least), 1)
                if _named_bytes(each, self._names) > CLAIM_MAX * least:
                    return (
                        f"{each.kind} {each.name} takes up to {CLAIM_MAX} times its bytes and more"
                    )
        except RecursionError:  # record types contain one another in too long a chain
            return "it is nested too deeply"
        self._checked |= found.keys()
        return None


def _named_bytes(avro: AvroType, known: dict[str, int]) -> int:
    """Returns how many bytes the names of fields and the symbols can take at most in the JSON text
    of one value. Does not count names and symbols inside unions, arrays and maps, because each
    value there takes at least one byte of the datum."""
    if not isinstance(avro, Enum | Record):
        return 0
    if avro.name not in known:
        if isinstance(avro, Enum):
            known[avro.name] = max(map(len, avro.symbols), default=0)
        else:
            known[avro.name] = 0  # ends the recursion if the record contains itself
            known[avro.name] = sum(
                _FIELD_BYTES + len(each.name) + _named_bytes(each.type, known)
                for each in avro.fields
            )
    return known[avro.name]


def item_types(avro: AvroType) -> list[AvroType]:
    """Returns the types of all array items and all map values inside the type."""
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
