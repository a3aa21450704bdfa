"""Lists what differs between two schemas, field by field, for a developer to read.

Unlike the module `compatibility`, this module does not judge the differences, and lists harmless
differences as well, such as a changed doc. It matches old and new fields by name. If no old field
has the name of a new field, it uses the aliases of the new field. The path of a difference consists
of names joined by dots, with `[]` for the items of an array and `{}` for the values of a map, as in
`order.lines[].price`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from enum import Enum as Enumeration
from typing import Any, Final

from skidway.dataclass import dataclass
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
)
from skidway.schemas.avro_schema.model import shown

DIFFERENCES_MAX: Final = 10_000


class Change(Enumeration):
    """The kinds of differences."""

    FIELD_ADDED = "field added"
    FIELD_REMOVED = "field removed"
    FIELD_RENAMED = "field renamed"
    FIELD_MOVED = "field moved"
    TYPE = "type changed"
    DEFAULT = "default changed"
    DOC = "doc changed"
    ORDER = "sort order changed"
    ALIASES = "aliases changed"
    PROPERTY = "property changed"
    NAME = "type renamed"
    SIZE = "size changed"
    SYMBOL_ADDED = "symbol added"
    SYMBOL_REMOVED = "symbol removed"
    SYMBOLS_MOVED = "symbols in another order"
    BRANCH_ADDED = "type added to the union"
    BRANCH_REMOVED = "type removed from the union"
    BRANCHES_MOVED = "types of the union in another order"


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference, at one path in the schemas (such as `order.lines[].price`). `old` and `new`
    describe what the old and the new schema have at this path. A description is None if the schema
    has nothing at the path. `note`: what readers make of it, if the compatibility of the schemas
    does not say that."""

    change: Change
    place: str
    old: str | None
    new: str | None
    note: str | None = None

    def __str__(self) -> str:
        """Returns the difference as one line for people."""
        where = f"{self.place or 'the schema'}: {self.change.value}"
        note = "" if self.note is None else f" ({self.note})"
        if self.old is None:
            return f"{where}: {self.new}{note}"
        if self.new is None:
            return f"{where}: {self.old}{note}"
        return f"{where} from {self.old} to {self.new}{note}"


def differences(old: AvroType, new: AvroType) -> list[Difference]:
    """Returns the differences, in the order of the new schema. Removed fields come at the end of
    their record.

    The result has at most `DIFFERENCES_MAX` differences, because schemas with more differences have
    little in common.
    """
    walk = _Walk()
    found = []
    for each in walk.types(old, new, ""):
        found.append(each)
        if len(found) == DIFFERENCES_MAX:
            break
    return found


def type_name(avro: AvroType) -> str:
    """Returns a short name for a type, such as `int`, `enum n.Level`, `array of string` or `null or
    long`. The logical type of a type other than array or map follows in parentheses, as in `fixed
    n.Price (decimal)`."""
    if isinstance(avro, Union):
        return " or ".join(map(type_name, avro.branches)) or "union of nothing"
    if isinstance(avro, Array):
        return f"array of {type_name(avro.items)}"
    if isinstance(avro, Map):
        return f"map of {type_name(avro.values)}"
    name = f"{avro.kind} {avro.name}" if isinstance(avro, Named) else avro.kind
    logical = logical_type(avro)
    return name if logical is None else f"{name} ({logical})"


class _Walk:
    """Walks through both schemas together. Visits each pair of named types once, because types may
    be recursive."""

    def __init__(self) -> None:
        self._seen: set[tuple[int, int]] = set()

    def types(self, old: AvroType, new: AvroType, place: str) -> Iterator[Difference]:
        if isinstance(old, Union) and isinstance(new, Union):
            yield from self._unions(old, new, place)
        elif isinstance(old, Array) and isinstance(new, Array):
            yield from self.types(old.items, new.items, f"{place}[]")
            yield from _properties(old.properties, new.properties, f"{place}[]")
        elif isinstance(old, Map) and isinstance(new, Map):
            yield from self.types(old.values, new.values, f"{place}{{}}")
            yield from _properties(old.properties, new.properties, f"{place}{{}}")
        elif old.kind != new.kind or logical_type(old) != logical_type(new):
            yield Difference(Change.TYPE, place, type_name(old), type_name(new))
            yield from self._beside_null(old, new, place)
        elif isinstance(old, Named) and isinstance(new, Named):
            yield from self._named(old, new, place)
        else:
            yield from _properties(old.properties, new.properties, place)

    def _beside_null(self, old: AvroType, new: AvroType, place: str) -> Iterator[Difference]:
        """If one type is a named type, and the other type is a union that has a branch of this
        name, yields the differences between the named type and this branch."""
        if not isinstance(old, Union) and not isinstance(new, Union):
            return
        for before in old.branches if isinstance(old, Union) else [old]:
            for after in new.branches if isinstance(new, Union) else [new]:
                if isinstance(before, Named) and _key(before) == _key(after):
                    yield from self.types(before, after, place)

    def _named(self, old: Named, new: Named, place: str) -> Iterator[Difference]:
        if (id(old), id(new)) in self._seen:
            return
        self._seen.add((id(old), id(new)))
        if old.name != new.name:
            yield Difference(Change.NAME, place, old.name, new.name)
        yield from _texts(Change.DOC, place, old.doc, new.doc)
        yield from _aliases(old.aliases, new.aliases, place)
        if isinstance(old, Record) and isinstance(new, Record):
            yield from self._fields(old, new, f"{place}." if place else "")
        elif isinstance(old, Enum) and isinstance(new, Enum):
            yield from _symbols(old, new, place)
        elif isinstance(old, Fixed) and isinstance(new, Fixed) and old.size != new.size:
            yield Difference(Change.SIZE, place, str(old.size), str(new.size))
        yield from _properties(old.properties, new.properties, place)

    def _fields(self, old: Record, new: Record, prefix: str) -> Iterator[Difference]:
        former = _former(old, new)
        kept = [former[each.name].name for each in new.fields if each.name in former]
        moved = _moved([each.name for each in old.fields if each.name in set(kept)], kept)
        ranks = {each.name: at for at, each in enumerate(old.fields, 1)}
        for at, each in enumerate(new.fields, 1):
            place = f"{prefix}{each.name}"
            before = former.get(each.name)
            if before is None:
                yield Difference(Change.FIELD_ADDED, place, None, _declared(each))
                continue
            if before.name != each.name:
                yield Difference(Change.FIELD_RENAMED, place, before.name, each.name)
            if before.name in moved:
                was, now = f"place {ranks[before.name]}", f"place {at}"
                yield Difference(Change.FIELD_MOVED, place, was, now)
            yield from self.types(before.type, each.type, place)
            yield from _field(before, each, place)
        for each in old.fields:
            if each.name not in set(kept):
                place = f"{prefix}{each.name}"
                yield Difference(Change.FIELD_REMOVED, place, _declared(each), None)

    def _unions(self, old: Union, new: Union, place: str) -> Iterator[Difference]:
        before = {_key(each): each for each in old.branches}
        after = {_key(each): each for each in new.branches}
        for key, branch in after.items():
            if key not in before:
                yield Difference(Change.BRANCH_ADDED, place, None, type_name(branch))
            else:
                yield from self.types(before[key], branch, place)
        for key, branch in before.items():
            if key not in after:
                yield Difference(Change.BRANCH_REMOVED, place, type_name(branch), None)
        if [key for key in before if key in after] != [key for key in after if key in before]:
            yield Difference(Change.BRANCHES_MOVED, place, type_name(old), type_name(new))


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


def _moved(before: list[str], after: list[str]) -> set[str]:
    """Returns the smallest set of names that must move so that the order `before` becomes the order
    `after`."""
    rank = {name: at for at, name in enumerate(before)}
    ends: list[int] = []  # ends[n]: the lowest rank that can end a rising sequence of n + 1 ranks
    lengths: list[int] = []
    for name in after:
        length = bisect_left(ends, rank[name])
        ends[length : length + 1] = [rank[name]]
        lengths.append(length)
    stay, wanted = set(), len(ends) - 1
    for name, length in zip(reversed(after), reversed(lengths), strict=True):
        if length == wanted:
            stay.add(name)
            wanted -= 1
    return set(after) - stay


def _field(old: Field, new: Field, place: str) -> Iterator[Difference]:
    before = shown(old.default) if old.has_default else None
    after = shown(new.default) if new.has_default else None
    same = old.has_default == new.has_default and old.default == new.default
    if not same:
        yield Difference(Change.DEFAULT, place, before or "none", after or "none")
    yield from _texts(Change.DOC, place, old.doc, new.doc)
    if old.order != new.order:
        yield Difference(Change.ORDER, place, old.order, new.order)
    yield from _aliases(old.aliases, new.aliases, place)
    yield from _properties(old.properties, new.properties, place)


def _symbols(old: Enum, new: Enum, place: str) -> Iterator[Difference]:
    before, after = dict.fromkeys(old.symbols), dict.fromkeys(new.symbols)
    for symbol in after:
        if symbol not in before:
            note = _read("old", old.default)
            yield Difference(Change.SYMBOL_ADDED, place, None, symbol, note)
    for symbol in before:
        if symbol not in after:
            note = f"{_read('new', new.default)}; the loader's rows keep it"
            yield Difference(Change.SYMBOL_REMOVED, place, symbol, None, note)
    if [each for each in before if each in after] != [each for each in after if each in before]:
        yield Difference(Change.SYMBOLS_MOVED, place, ", ".join(before), ", ".join(after))
    if old.default != new.default:
        yield Difference(Change.DEFAULT, place, old.default or "none", new.default or "none")


def _read(which: str, default: str | None) -> str:
    """Returns what readers of one of the schemas make of a symbol that this schema lacks."""
    takes = "refuse it" if default is None else f"read it as {default}"
    return f"Avro readers of the {which} schema {takes}"


def _texts(change: Change, place: str, old: str | None, new: str | None) -> Iterator[Difference]:
    if old != new:
        before, after = (None if each is None else shown(each) for each in (old, new))
        yield Difference(change, place, before or "none", after or "none")


def _aliases(old: tuple[str, ...], new: tuple[str, ...], place: str) -> Iterator[Difference]:
    if old != new:
        before, after = (", ".join(each) or "none" for each in (old, new))
        yield Difference(Change.ALIASES, place, before, after)


def _properties(old: Mapping[str, Any], new: Mapping[str, Any], place: str) -> Iterator[Difference]:
    for key in dict.fromkeys([*old, *new]):
        if key not in old:
            yield Difference(Change.PROPERTY, place, None, f"{key} = {shown(new[key])}")
        elif key not in new:
            yield Difference(Change.PROPERTY, place, f"{key} = {shown(old[key])}", None)
        elif old[key] != new[key]:
            before, after = (f"{key} = {shown(each[key])}" for each in (old, new))
            yield Difference(Change.PROPERTY, place, before, after)


def _declared(field: Field) -> str:
    default = f", default {shown(field.default)}" if field.has_default else ""
    return f"{type_name(field.type)}{default}"


def _key(avro: AvroType) -> str:
    return avro.name if isinstance(avro, Named) else avro.kind
