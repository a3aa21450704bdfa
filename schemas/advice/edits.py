"""The edits of a new schema that can mend an incompatibility, the one that keeps most first.

Each is a sentence for the author and a function that changes a draft; whether it mends anything is
for `repair` to find out. An edit can only change the new schema: the old one is kept for ever.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

from schemas.advice.draft import Draft, PlaceMissing, place_name
from schemas.avro_schema import (
    Array,
    AvroType,
    Enum,
    Field,
    Fixed,
    Map,
    Named,
    Primitive,
    Record,
    Union,
)
from schemas.compatibility import Incompatibility, incompatibilities
from schemas.differences import type_name

NOTHING: Final = Primitive("null")
FIXED_ZERO_MAX: Final = 64
"""Bytes of a fixed whose zeros are still a default that somebody would write."""


@dataclass(frozen=True, slots=True)
class Edit:
    """One edit: what it does, and how."""

    words: str
    change: Callable[[Draft], None]


def edits(fault: Incompatibility, new: AvroType, old: AvroType) -> Iterator[Edit]:
    """What can be tried. `new` and `old` are the schemas of which the fault was found."""
    try:
        if fault.reader == "new":
            yield from _NEW_READS[fault.kind](fault, new, old)
        else:
            yield from _OLD_READS[fault.kind](fault, new, old)
    except PlaceMissing:
        return


# The new schema cannot read what the old one wrote.


def _add_default(fault: Incompatibility, new: AvroType, old: AvroType) -> Iterator[Edit]:
    name, field = place_name(new, fault.path), Draft(new).field_at(fault.path)
    former = _renamed_from(field, fault, new, old)
    if former is not None:

        def alias(draft: Draft) -> None:
            each = draft.field_at(fault.path)
            each.aliases = (*each.aliases, former)

        yield Edit(f"give field {name} the alias {former}, as which it was written before", alias)
    yield _default_null(name, fault.path, field.type)
    yield from _default_zero(name, fault.path, field.type)


def _default_null(name: str, path: str, avro: AvroType) -> Edit:
    def change(draft: Draft) -> None:
        field = draft.field_at(path)
        field.type = _or_null(field.type)
        field.default, field.has_default = None, True

    if isinstance(avro, Union) and NOTHING in avro.branches:
        return Edit(f"give field {name} the default null", change)
    return Edit(f"let field {name} be null as well, with the default null", change)


def _default_zero(name: str, path: str, avro: AvroType) -> Iterator[Edit]:
    for value in _zero(avro):

        def change(draft: Draft, value: Any = value) -> None:
            field = draft.field_at(path)
            field.default, field.has_default = value, True

        yield Edit(f"give field {name} the default {json.dumps(value)}", change)


def _widen(fault: Incompatibility, new: AvroType, old: AvroType) -> Iterator[Edit]:
    """The type of before beside the new one; or the wider of two numbers."""
    place, name = fault.reader_place, place_name(new, fault.reader_place) or "the schema"
    ours, theirs = Draft(new).type_at(place), Draft(old).type_at(fault.writer_place)
    if _is_primitive(ours) and _is_primitive(theirs) and not incompatibilities(theirs, ours):
        yield _keep(place, name, theirs)

    def beside(draft: Draft) -> None:
        draft.put(place, _union([draft.type_at(place), theirs]))

    yield Edit(f"let {name} be {type_name(theirs)} as well, as it was before", beside)
    yield _keep(place, name, theirs)


def _keep(place: str, name: str, theirs: AvroType) -> Edit:
    return Edit(
        f"keep the type of {name}: {type_name(theirs)}", lambda draft: draft.put(place, theirs)
    )


def _keep_symbols(fault: Incompatibility, new: AvroType, old: AvroType) -> Iterator[Edit]:
    place, there = fault.reader_place, Draft(old).type_at(fault.writer_place)
    before = there.symbols if isinstance(there, Enum) else ()

    def keep(draft: Draft) -> None:
        enum = draft.type_at(place)
        if isinstance(enum, Enum):
            enum.symbols = tuple(dict.fromkeys((*before, *enum.symbols)))

    def default(draft: Draft) -> None:
        enum = draft.type_at(place)
        if isinstance(enum, Enum) and enum.symbols:
            enum.default = enum.symbols[0]

    name = _type_at(new, place)
    yield Edit(f"keep the symbols {fault.detail} of {name}", keep)
    yield Edit(f"give {name} a default, which readers take for symbols they do not know", default)


def _alias_type(fault: Incompatibility, new: AvroType, old: AvroType) -> Iterator[Edit]:
    there = Draft(old).type_at(fault.writer_place)

    def alias(draft: Draft) -> None:
        made = draft.type_at(fault.reader_place)
        if isinstance(made, Named) and isinstance(there, Named):
            made.aliases = (*made.aliases, there.name)

    if isinstance(there, Named):
        words = f"give {_type_at(new, fault.reader_place)} the alias {there.name}, its former name"
        yield Edit(words, alias)
        yield from _keep_name(fault.reader_place, there)


def _keep_name(place: str, there: Named) -> Iterator[Edit]:
    def keep(draft: Draft) -> None:
        made = draft.type_at(place)
        if isinstance(made, Named):
            made.name = there.name

    yield Edit(f"keep the name {there.name}", keep)


def _keep_size(place: str, there: AvroType) -> Iterator[Edit]:
    def keep(draft: Draft) -> None:
        made = draft.type_at(place)
        if isinstance(made, Fixed) and isinstance(there, Fixed):
            made.size = there.size

    if isinstance(there, Fixed):
        yield Edit(f"keep the size of fixed {there.name}: {there.size}", keep)


def _drop_aliases(fault: Incompatibility, new: AvroType, old: AvroType) -> Iterator[Edit]:
    def drop(draft: Draft) -> None:
        draft.field_at(fault.path).aliases = ()

    yield Edit(f"give field {place_name(new, fault.path)} no alias that is a field too", drop)


# The old schema cannot read what the new one writes.


def _put_back(fault: Incompatibility, new: AvroType, old: AvroType) -> Iterator[Edit]:
    lost = Draft(old).field_at(fault.path)
    name = place_name(old, fault.path)
    again = [(f"keep field {name}: {type_name(lost.type)}", lost)]
    for value in _zero(lost.type):
        words = f"keep field {name}: {type_name(lost.type)}, with the default {json.dumps(value)}"
        again.append((words, replace(lost, default=value, has_default=True)))
    for words, field in again:

        def change(draft: Draft, field: Field = field) -> None:
            record = draft.record_at(fault.writer_place)
            record.fields.append(replace(field, aliases=_free(field.aliases, record)))

        yield Edit(words, change)


def _narrow(fault: Incompatibility, new: AvroType, old: AvroType) -> Iterator[Edit]:
    place = fault.writer_place
    name = place_name(new, place) or "the schema"
    above, _, last = place.rpartition("/")
    if last.isdigit():
        union = Draft(new).type_at(above)
        if isinstance(union, Union):
            gone = union.branches[int(last)]

            def drop(draft: Draft) -> None:
                now = draft.type_at(above)
                left = [each for at, each in enumerate(_branches(now)) if at != int(last)]
                draft.put(above, left[0] if len(left) == 1 else _union(left))

            yield Edit(f"let {name} not be {type_name(gone)}", drop)
    yield _keep(place, name, Draft(old).type_at(fault.reader_place))


def _drop_symbols(fault: Incompatibility, new: AvroType, old: AvroType) -> Iterator[Edit]:
    there = Draft(old).type_at(fault.reader_place)

    def drop(draft: Draft) -> None:
        enum = draft.type_at(fault.writer_place)
        if isinstance(enum, Enum) and isinstance(there, Enum):
            enum.symbols = tuple(each for each in enum.symbols if each in there.symbols)
            enum.default = enum.default if enum.default in enum.symbols else None

    name = _type_at(new, fault.writer_place)
    yield Edit(
        f"leave the symbols {fault.detail} out of {name}; give it a default first, in a version "
        "of its own, and then add them",
        drop,
    )


def _former_name(fault: Incompatibility, new: AvroType, old: AvroType) -> Iterator[Edit]:
    there = Draft(old).type_at(fault.reader_place)
    if isinstance(there, Named):
        yield from _keep_name(fault.writer_place, there)


def _rename(fault: Incompatibility, new: AvroType, old: AvroType) -> Iterator[Edit]:
    """A field of the old schema is several of ours, by its aliases: all but its own name go."""
    field = Draft(old).field_at(fault.path)
    gone = set(field.aliases) - {field.name}

    def drop(draft: Draft) -> None:
        record = draft.record_at(fault.writer_place)
        record.fields[:] = [each for each in record.fields if each.name not in gone]

    yield Edit(f"leave out {', '.join(sorted(gone))}: {field.name} has these names too", drop)


Finder = Callable[[Incompatibility, AvroType, AvroType], Iterator[Edit]]

_NEW_READS: Final[dict[str, Finder]] = {
    "READER_FIELD_MISSING_DEFAULT_VALUE": _add_default,
    "READER_FIELD_AMBIGUOUS": _drop_aliases,
    "TYPE_MISMATCH": _widen,
    "MISSING_UNION_BRANCH": _widen,
    "MISSING_ENUM_SYMBOLS": _keep_symbols,
    "NAME_MISMATCH": _alias_type,
    "FIXED_SIZE_MISMATCH": lambda fault, new, old: _keep_size(
        fault.reader_place, Draft(old).type_at(fault.writer_place)
    ),
}
_OLD_READS: Final[dict[str, Finder]] = {
    "READER_FIELD_MISSING_DEFAULT_VALUE": _put_back,
    "READER_FIELD_AMBIGUOUS": _rename,
    "TYPE_MISMATCH": _narrow,
    "MISSING_UNION_BRANCH": _narrow,
    "MISSING_ENUM_SYMBOLS": _drop_symbols,
    "NAME_MISMATCH": _former_name,
    "FIXED_SIZE_MISMATCH": lambda fault, new, old: _keep_size(
        fault.writer_place, Draft(old).type_at(fault.reader_place)
    ),
}


def _renamed_from(field: Field, fault: Incompatibility, new: AvroType, old: AvroType) -> str | None:
    """The one field of the old record that nobody reads any more and that this one could."""
    ours = Draft(new).record_at(fault.reader_place)
    theirs = Draft(old).record_at(fault.writer_place)
    read = {name for each in ours.fields for name in (each.name, *each.aliases)}
    left = [
        each
        for each in theirs.fields
        if each.name not in read and not incompatibilities(field.type, each.type)
    ]
    return left[0].name if len(left) == 1 else None


def _zero(avro: AvroType) -> Iterator[Any]:
    """A default that says as little as one can; none for a record."""
    if isinstance(avro, Union):
        for branch in avro.branches:
            yield from _zero(branch)
    elif isinstance(avro, Enum):
        yield from avro.symbols[:1]
    elif isinstance(avro, Fixed) and avro.size <= FIXED_ZERO_MAX:
        yield "\0" * avro.size
    elif isinstance(avro, Array):
        yield []
    elif isinstance(avro, Map):
        yield {}
    elif isinstance(avro, Primitive):
        yield _ZEROS[avro.kind]


_ZEROS: Final[dict[str, Any]] = {
    "null": None,
    "boolean": False,
    "int": 0,
    "long": 0,
    "float": 0.0,
    "double": 0.0,
    "bytes": "",
    "string": "",
}


def _or_null(avro: AvroType) -> AvroType:
    """With null first: readers of older specifications take a default of the first branch only."""
    rest = [each for each in _branches(avro) if each.kind != "null"]
    return Union((NOTHING, *rest))


def _branches(avro: AvroType) -> tuple[AvroType, ...]:
    return avro.branches if isinstance(avro, Union) else (avro,)


def _union(types: list[AvroType]) -> Union:
    """Each name once: what two types of one name would read is one of them."""
    named: dict[str, AvroType] = {}
    for each in (branch for avro in types for branch in _branches(avro)):
        named.setdefault(each.name if isinstance(each, Named) else each.kind, each)
    return Union(tuple(named.values()))


def _is_primitive(avro: AvroType) -> bool:
    return isinstance(avro, Primitive)


def _free(aliases: tuple[str, ...], record: Record) -> tuple[str, ...]:
    taken = {each.name for each in record.fields}
    return tuple(each for each in aliases if each not in taken)


def _type_at(root: AvroType, place: str) -> str:
    return type_name(Draft(root).type_at(place))
