"""Finds the members of JSON objects for which the schema has no field, also inside other objects.

    a        a member of the line's object
    a.b      the member b of the record a
    a[].b    the member b of the items of the array a
    a{}.b    the member b of the values of the map a

Members are counted by these names. A *place* names one member of one line, and so has the index of
an item or the key of a value: `a[0].b`, `a{x}.b`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any

import pyarrow as pa
from pyarrow import types

from skidway.dataclass import dataclass

AGAIN = "{} (again)"
"""The name under which a member is counted that a line has more than once. Only the member's last
value counts."""


@dataclass(frozen=True, slots=True)
class KnownMembers:
    """The members of an object for which there are fields. names: their names. inner: those of them
    that contain records, each with the brackets that lead to the records (see the module's
    docstring), and the known members of the records.
    """

    names: frozenset[str]
    inner: tuple[tuple[str, str, KnownMembers], ...]

    def inside(
        self, value: dict[str, Any], without: Collection[str] = ()
    ) -> Iterator[tuple[str, str, Any]]:
        """Yields the members of the records inside an object that have no field: the name, the
        place and the value of each. Does not look inside the members `without`."""
        for name, brackets, inner in self.inner:
            if name in without:
                continue
            for at, record in _placed(value.get(name), brackets):
                for own in record.keys() - inner.names:
                    yield f"{name}{brackets}.{own}", f"{name}{at}.{own}", record[own]
                for further, place, each in inner.inside(record):
                    yield f"{name}{brackets}.{further}", f"{name}{at}.{place}", each


def known_members(fields: Iterable[pa.Field], hidden: Collection[str] = ()) -> KnownMembers:
    """Returns the known members of an object whose members fill these fields. hidden: names of
    members that a rule of `shape` removes; nothing inside them is found."""
    fields = list(fields)
    found = ((x.name, *_records_in(x.type)) for x in fields if x.name not in hidden)
    inner = tuple((name, brackets, known_members(kind)) for name, brackets, kind in found if kind)
    return KnownMembers(frozenset({*hidden, *(x.name for x in fields)}), inner)


def _records_in(kind: pa.DataType) -> tuple[str, pa.StructType | None]:
    brackets = ""
    while types.is_list(kind) or types.is_map(kind):
        brackets += "[]" if types.is_list(kind) else "{}"
        kind = kind.value_type if types.is_list(kind) else kind.item_type
    return brackets, kind if types.is_struct(kind) else None


def _placed(value: Any, brackets: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields the records to which brackets lead from a value, each with its index or key."""
    if not brackets:
        if type(value) is dict:
            yield "", value
        return
    inside: Iterable[tuple[str, Any]] = ()
    if brackets[0] == "[" and type(value) is list:
        inside = ((f"[{index}]", each) for index, each in enumerate(value))
    elif brackets[0] == "{" and type(value) is dict:
        inside = ((f"{{{key}}}", each) for key, each in value.items())
    for at, each in inside:
        for further, record in _placed(each, brackets[2:]):
            yield at + further, record
