"""Lists what differs between two schemas, field by field, for a developer to read.

Unlike the module `compatibility`, this module does not judge the differences, and lists harmless
differences as well, such as a changed doc. It matches old and new fields by name. If no old field
has the name of a new field, it uses the aliases of the new field. The path of a difference consists
of names joined by dots, with `[]` for the items of an array and `{}` for the values of a map, as in
`order.lines[].price`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from skidway.schemas.avro_schema import (
    Array,
    AvroType,
    Enum,
    Field,
    Fixed,
    Map,
    Named,
    Record,
    Union,
    logical_type,
    type_name,
)
from skidway.schemas.avro_schema.model import shown

DIFFERENCES_MAX: Final = 10_000


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference, at one path in the schemas (such as `order.lines[].price`). `change` says
    what was done, such as "field added". `old` and `new` describe what the old and the new schema
    have at this path. A description is None if the schema has nothing at the path. `note`: what
    readers make of it, if the compatibility of the schemas does not say that."""

    change: str
    place: str
    old: str | None
    new: str | None
    note: str | None = None

    def __str__(self) -> str:
        """Returns the difference as one line for people."""
        where = f"{self.place or 'the schema'}: {self.change}"
        note = "" if self.note is None else f" ({self.note})"
        if self.old is None:
            return f"{where}: {self.new}{note}"
        if self.new is None:
            return f"{where}: {self.old}{note}"
        return f"{where} from {self.old} to {self.new}{note}"


def differences(old: AvroType, new: AvroType) -> tuple[Difference, ...]:
    """Returns the differences, in the order of the new schema. Removed fields come at the end of
    their record.

    The result has at most `DIFFERENCES_MAX` differences, because schemas with more differences have
    little in common.
    """
    return tuple(islice(_Walk().types(old, new, ""), DIFFERENCES_MAX))


def branches(avro: AvroType) -> dict[str, AvroType]:
    """Returns the branches of a union by what tells them apart; another type is its only branch."""
    branches = avro.branches if isinstance(avro, Union) else (avro,)
    return {each.name if isinstance(each, Named) else each.kind: each for each in branches}


class _Walk:
    """Walks through both schemas together. Visits each pair of types once, because types may be
    recursive."""

    def __init__(self) -> None:
        self._seen: set[tuple[int, int]] = set()

    def types(self, old: AvroType, new: AvroType, place: str) -> Iterator[Difference]:
        if isinstance(old, Union) or isinstance(new, Union):
            yield from self._unions(branches(old), branches(new), place)
        elif old.kind != new.kind or logical_type(old) != logical_type(new):
            yield Difference("type changed", place, type_name(old), type_name(new))
        elif (id(old), id(new)) not in self._seen:
            self._seen.add((id(old), id(new)))
            yield from _attributes(_of_type(old), _of_type(new), place)
            yield from self._inside(old, new, place)

    def _inside(self, old: AvroType, new: AvroType, place: str) -> Iterator[Difference]:
        if isinstance(old, Array) and isinstance(new, Array):
            yield from self.types(old.items, new.items, f"{place}[]")
        elif isinstance(old, Map) and isinstance(new, Map):
            yield from self.types(old.values, new.values, f"{place}{{}}")
        elif isinstance(old, Record) and isinstance(new, Record):
            yield from self._fields(old, new, place)
        elif isinstance(old, Enum) and isinstance(new, Enum):
            yield from _symbols(old, new, place)

    def _fields(self, old: Record, new: Record, place: str) -> Iterator[Difference]:
        prefix, former = f"{place}." if place else "", _former(old, new)
        for each in new.fields:
            at, before = f"{prefix}{each.name}", former.get(each.name)
            if before is None:
                yield Difference("field added", at, None, _declared(each))
                continue
            if before.name != each.name:
                yield Difference("field renamed", at, before.name, each.name)
            yield from self.types(before.type, each.type, at)
            yield from _attributes(_of_field(before), _of_field(each), at)
        kept = dict.fromkeys(former[each.name].name for each in new.fields if each.name in former)
        for each in old.fields:
            if each.name not in kept:
                yield Difference("field removed", f"{prefix}{each.name}", _declared(each), None)
        yield from _order("fields", [each.name for each in old.fields], kept, place)

    def _unions(
        self, old: Mapping[str, AvroType], new: Mapping[str, AvroType], place: str
    ) -> Iterator[Difference]:
        for key, branch in new.items():
            if key not in old:
                yield Difference("type added", place, None, type_name(branch))
            else:
                yield from self.types(old[key], branch, place)
        for key, branch in old.items():
            if key not in new:
                yield Difference("type removed", place, type_name(branch), None)
        yield from _order("types", old, new, place)


def _former(old: Record, new: Record) -> dict[str, Field]:
    """Returns a dict that maps the name of each new field to the old field that matches it. Prefers
    a match by name to a match by alias. Leaves out new fields without a matching old field."""
    left = {each.name: each for each in old.fields}
    found = {each.name: left.pop(each.name) for each in new.fields if each.name in left}
    for each in new.fields:
        if each.name not in found:
            alias = next((name for name in each.aliases if name in left), None)
            if alias is not None:
                found[each.name] = left.pop(alias)
    return found


def _symbols(old: Enum, new: Enum, place: str) -> Iterator[Difference]:
    before, after = dict.fromkeys(old.symbols), dict.fromkeys(new.symbols)
    for symbol in after:
        if symbol not in before:
            note = _read("old", old.default)
            yield Difference("symbol added", place, None, symbol, note)
    for symbol in before:
        if symbol not in after:
            note = f"{_read('new', new.default)}; the loader's rows keep it"
            yield Difference("symbol removed", place, symbol, None, note)
    yield from _order("symbols", before, after, place)


def _read(which: str, default: str | None) -> str:
    """Returns what readers of one of the schemas make of a symbol that this schema lacks."""
    takes = "refuse it" if default is None else f"read it as {default}"
    return f"Avro readers of the {which} schema {takes}"


def _order(what: str, old: Iterable[str], new: Iterable[str], place: str) -> Iterator[Difference]:
    """Yields a difference if what is in both schemas has another order. `old`, `new`: all names."""
    in_old, in_new = set(old), set(new)
    before = ", ".join(each for each in old if each in in_new)
    after = ", ".join(each for each in new if each in in_old)
    if before != after:
        yield Difference(f"{what} in another order", place, before, after)


def _attributes(old: Mapping[str, Any], new: Mapping[str, Any], place: str) -> Iterator[Difference]:
    for key in dict.fromkeys([*old, *new]):
        before, after = ([each[key]] if key in each else [] for each in (old, new))
        if before != after:
            was, now = (shown(*each) if each else "none" for each in (before, after))
            yield Difference(f"{key} changed", place, was, now)


def _of_type(avro: AvroType) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if isinstance(avro, Named):
        found = {"name": avro.name} | _present(doc=avro.doc, aliases=avro.aliases)
    if isinstance(avro, Enum):
        found |= _present(default=avro.default)
    if isinstance(avro, Fixed):
        found |= {"size": avro.size}
    return found | dict(avro.properties)


def _of_field(field: Field) -> dict[str, Any]:
    default = {"default": field.default} if field.has_default else {}
    stated = _present(doc=field.doc, aliases=field.aliases)
    return default | stated | {"order": field.order} | dict(field.properties)


def _present(**attributes: Any) -> dict[str, Any]:
    return {key: value for key, value in attributes.items() if value not in (None, ())}


def _declared(field: Field) -> str:
    default = f", default {shown(field.default)}" if field.has_default else ""
    return f"{type_name(field.type)}{default}"
