"""Removes the circles (cycles) from a schema. A schema has a circle if a record contains itself, at
any depth. Code that walks all types of a schema, such as the code that makes columns, would never
end in a circle.

A field *leads back* if its type contains, at any depth, the record that has the field. This module
replaces the type of such a field by a `Recursive`, and changes no other type. The `Recursive` has
the field's original type in `type`, but code that walks the types does not walk into a `Recursive`.
Whether a field leads back depends only on its record, not on where the schema uses this record. So
the record has the same field types wherever it is used, and can be compared with the same record in
another version of the schema.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field, replace

from skidway.dataclass import dataclass
from skidway.schemas.avro_schema.model import (
    Array,
    AvroType,
    Map,
    Primitive,
    Record,
    Union,
    named_types,
)

Names = Mapping[str, list[str]]


@dataclass(frozen=True, slots=True)
class Recursive(Primitive):
    """`without_circles` gives this type to each field that leads back, that is, to each field whose
    type contains the field's own record. `type` is the type that the schema declares for the field.
    A datum of a `Recursive` has the bytes of a datum of `type`."""

    type: AvroType = field(kw_only=True)


def without_circles(avro: AvroType) -> AvroType:
    """Returns the schema with a `Recursive` as the type of each field that leads back (whose type
    contains the field's own record). If no field leads back, returns the schema unchanged. This
    function does not recurse into records, because a chain of references may be too long for the
    stack."""
    records = {each.name: each for each in _records(avro)}
    inside = {
        name: [each.name for field in record.fields for each in _referred(field.type)]
        for name, record in records.items()
    }
    group = _groups(inside)
    leading = {
        (name, at)
        for name, record in records.items()
        for at, each in enumerate(record.fields)
        if any(group[inner.name] == group[name] for inner in _referred(each.type))
    }
    if not leading:
        return avro
    copies = {name: replace(record, fields=[]) for name, record in records.items()}
    for name, record in records.items():
        copies[name].fields += [
            replace(
                each,
                type=Recursive("recursive", type=each.type)
                if (name, at) in leading
                else _copied(each.type, copies),
            )
            for at, each in enumerate(record.fields)
        ]
    return _copied(avro, copies)


def leading_back(avro: AvroType) -> str | None:
    """Returns the name of a field that leads back, or None if there is none. The schema must come
    from `without_circles`, which has replaced the types of such fields by `Recursive`."""
    fields = (each for record in _records(avro) for each in record.fields)
    return next((each.name for each in fields if isinstance(each.type, Recursive)), None)


def _records(avro: AvroType) -> list[Record]:
    return [each for each in named_types(avro).values() if isinstance(each, Record)]


def _referred(avro: AvroType) -> Iterator[Record]:
    """Yields the type itself if it is a record. Otherwise yields the records inside its unions,
    arrays and maps, but does not search inside these records."""
    if isinstance(avro, Record):
        yield avro
    elif isinstance(avro, Union):
        for branch in avro.branches:
            yield from _referred(branch)
    elif isinstance(avro, Array | Map):
        yield from _referred(avro.items if isinstance(avro, Array) else avro.values)


def _copied(avro: AvroType, copies: Mapping[str, Record]) -> AvroType:
    if isinstance(avro, Record):
        return copies[avro.name]
    if isinstance(avro, Union):
        return Union(tuple(_copied(branch, copies) for branch in avro.branches))
    if isinstance(avro, Array):
        return Array(_copied(avro.items, copies), avro.properties)
    return Map(_copied(avro.values, copies), avro.properties) if isinstance(avro, Map) else avro


def _groups(inside: Names) -> dict[str, str]:
    """Returns, for each record, the name of its group. `inside` has, for each record, the names of
    the records that it contains. Two records are in one group if each contains the other at some
    depth. The groups are the strongly connected components of the graph of records, found with
    Kosaraju's algorithm."""
    around: dict[str, list[str]] = {name: [] for name in inside}
    for name, inner in inside.items():
        for each in inner:
            around[each].append(name)
    group: dict[str, str] = {}
    for name in reversed(_in_order_of_leaving(inside)):
        waiting = [name]
        while waiting:
            each = waiting.pop()
            if each not in group:
                group[each] = name
                waiting += around[each]
    return group


def _in_order_of_leaving(inside: Names) -> list[str]:
    """Returns the names of all records in postorder, which is the order in which a depth-first walk
    leaves the records."""
    order: list[str] = []
    seen: set[str] = set()
    for name in inside:
        path = [] if name in seen else [(name, iter(inside[name]))]
        seen.add(name)
        while path:
            here, rest = path[-1]
            following = next((each for each in rest if each not in seen), None)
            if following is None:
                order.append(here)
                path.pop()
            else:
                seen.add(following)
                path.append((following, iter(inside[following])))
    return order
