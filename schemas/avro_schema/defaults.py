"""Checks that a JSON value is a valid default of a type. Without this check, an invalid default
might be noticed only years later, when a reader needs it.

Avro 1.12 specification, "Complex Types: Records": the defaults of bytes and fixed are texts of code
points below 256. The default of a union may be a default of any branch, as in Avro Java 1.12.
(Until version 1.11, the specification demanded a default of the first branch.) Unlike Avro Java,
this module refuses defaults that cannot be encoded: unknown symbols of an enum, a fixed of the
wrong size, a text in place of a number, and characters above 255 in bytes or fixed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import Any, Final

from skidway.schemas.avro_schema.model import (
    Array,
    AvroType,
    Enum,
    Fixed,
    Map,
    Named,
    Primitive,
    Record,
    SchemaInvalid,
    Union,
    shown,
)
from skidway.schemas.avro_schema.recursion import Recursive

STEPS_MAX: Final = 2_000_000
"""The check of a schema's defaults takes at most this many steps, one for each value, field or
character. So many steps take two seconds. Without this limit, some checks would take hours: many
defaults whose type is one large record, or one large default whose type is a large union."""

EXPANDED_MAX: Final = 10_000
"""A default has at most this many values, together with the defaults of the fields that it leaves
out. Without this limit, few records could have a default of any size: each has two fields of the
record before it, with a default. A record could even have a default that contains itself."""

_INT_MAX: Final = 2**31 - 1
_LONG_MAX: Final = 2**63 - 1
_FLOAT_MAX: Final = (2 - 2**-23) * 2.0**127


def default_fault(avro: AvroType, value: Any) -> str | None:
    """Returns why the JSON `value` is no valid default of the type `avro`. Returns None if it is a
    valid default. It is enough if the default of a union fits one of its branches. Raises
    `SchemaInvalid` if the check needs more than `STEPS_MAX` steps."""
    return DefaultCheck().of(avro, value)


def _kind(avro: AvroType) -> str:
    return f"{avro.kind} {avro.name}" if isinstance(avro, Named) else avro.kind


def _is_byte_text(value: Any) -> bool:
    return isinstance(value, str) and all(ord(character) < 256 for character in value)


def _is_number(value: Any, limit: float) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and -limit <= value <= limit


def is_integer(value: Any, limit: int) -> bool:
    """Returns whether the value is a whole number from -limit-1 to limit. Returns False for JSON's
    true and false."""
    return isinstance(value, int) and not isinstance(value, bool) and -limit - 1 <= value <= limit


_LEAF_CHECKS: Final[dict[str, Callable[[Any], bool]]] = {
    "null": lambda value: value is None,
    "boolean": lambda value: isinstance(value, bool),
    "int": lambda value: is_integer(value, _INT_MAX),
    "long": lambda value: is_integer(value, _LONG_MAX),
    "float": lambda value: _is_number(value, _FLOAT_MAX),
    "double": lambda value: _is_number(value, sys.float_info.max),
    "bytes": _is_byte_text,
    "string": lambda value: isinstance(value, str),
}


class DefaultCheck:
    """Checks the defaults of one schema. All these checks together take at most `STEPS_MAX` steps.
    The caller must keep the schema in memory as long as it uses this object, because the object
    identifies types by their Python ids.

    Checks each value against each type only once. Without this rule, unions whose branches contain
    further unions would multiply the checks.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[int, int], str | None] = {}
        self._sizes: dict[tuple[int, int], int] = {}
        self._symbols: dict[int, frozenset[str]] = {}
        self._steps = 0

    def of(self, avro: AvroType, value: Any) -> str | None:
        """Does the same as `default_fault`. Raises `SchemaInvalid` if the checks of all defaults
        together need too many steps."""
        self._known.clear()
        self._sizes.clear()
        try:
            fault = self._fault(avro, value)
            if fault is None and self._size(avro, value) > EXPANDED_MAX:
                return f"with the defaults inside it, it has more than {EXPANDED_MAX} values"
        except RecursionError:  # record types contain one another in too long a chain
            return "it is nested too deeply"
        return fault

    def _fault(self, avro: AvroType, value: Any) -> str | None:
        # The objects `avro` and `value` stay in memory while `of` checks a default, so no other
        # object gets their ids.
        pair = (id(avro), id(value))
        if pair not in self._known:
            self._count(1 + (len(value) if isinstance(value, str) else 0))
            self._known[pair] = self._checked(avro, value)
        return self._known[pair]

    def _size(self, avro: AvroType, value: Any) -> int:
        """Returns how many values a valid default has, together with the defaults of the fields
        that it leaves out; at most one more than `EXPANDED_MAX`."""
        pair = (id(avro), id(value))
        if pair not in self._sizes:
            self._sizes[pair] = EXPANDED_MAX + 1  # if it contains itself, it is too large
            self._count(1)
            sizes = (self._size(*each) for each in _parts(avro, value))
            is_union = isinstance(avro, Union | Recursive)
            size = max(sizes, default=0) if is_union else 1 + sum(sizes)
            self._sizes[pair] = min(size, EXPANDED_MAX + 1)
        return self._sizes[pair]

    def _count(self, steps: int) -> None:
        self._steps += steps
        if self._steps > STEPS_MAX:
            raise SchemaInvalid("The schema's defaults are too large to be checked.")

    def _checked(self, avro: AvroType, value: Any) -> str | None:
        if isinstance(avro, Recursive):
            return self._fault(avro.type, value)
        if isinstance(avro, Union):
            if any(self._fault(branch, value) is None for branch in avro.branches):
                return None
            return f"{shown(value)} fits no branch of the union"
        if isinstance(avro, Record):
            return self._record(avro, value)
        if isinstance(avro, Array):
            if not isinstance(value, list):
                return f"{shown(value)} is no array"
            return self._items(avro.items, value)
        if isinstance(avro, Map):
            if not isinstance(value, dict):
                return f"{shown(value)} is no map"
            return self._items(avro.values, value.values())
        return None if self._is_leaf(avro, value) else f"{shown(value)} is no {_kind(avro)}"

    def _is_leaf(self, avro: Primitive | Enum | Fixed, value: Any) -> bool:
        if isinstance(avro, Enum):
            known = self._symbols.get(id(avro))
            if known is None:
                known = self._symbols[id(avro)] = frozenset(avro.symbols)
            return isinstance(value, str) and value in known
        if isinstance(avro, Fixed):
            return _is_byte_text(value) and len(value) == avro.size
        return _LEAF_CHECKS[avro.kind](value)

    def _record(self, record: Record, value: Any) -> str | None:
        if not record.is_complete:
            return f"record {record.name} cannot be a default inside itself"
        if not isinstance(value, dict):
            return f"{shown(value)} is no record {record.name}"
        self._count(len(record.fields))
        for each in record.fields:
            if each.name in value:
                fault = self._fault(each.type, value[each.name])
                if fault:
                    return fault
            elif not each.has_default:  # the field's default is checked where it is declared
                return f"field {each.name} is missing in {shown(value)}"
        return None

    def _items(self, avro: AvroType, items: Iterable[Any]) -> str | None:
        return next((fault for item in items if (fault := self._fault(avro, item))), None)


def _parts(avro: AvroType, value: Any) -> Iterable[tuple[AvroType, Any]]:
    """Returns the parts of a default, and their types. The parts of a union are the default itself,
    for each branch that it may have."""
    if isinstance(avro, Recursive):
        return [(avro.type, value)]
    if isinstance(avro, Union):
        return [(branch, value) for branch in avro.branches]
    if isinstance(avro, Record) and isinstance(value, dict):
        return [(each.type, value.get(each.name, each.default)) for each in avro.fields]
    if isinstance(avro, Array) and isinstance(value, list):
        return [(avro.items, each) for each in value]
    if isinstance(avro, Map) and isinstance(value, dict):
        return [(avro.values, each) for each in value.values()]
    return ()
