"""Proposes edits of a new schema that cannot read datums of the old schema. The edits try to make
these datums readable."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from skidway.schemas.advice.draft import Draft, place_name
from skidway.schemas.advice.edit import Edit, keep_name, keep_type, named_at
from skidway.schemas.advice.pieces import NOTHING, or_null, union, zeros
from skidway.schemas.avro_schema import AvroType, Enum, Field, Named, Primitive, Union
from skidway.schemas.compatibility import Incompatibility, incompatibilities
from skidway.schemas.differences import type_name


def add_default(fault: Incompatibility, new: AvroType, old: AvroType) -> Iterator[Edit]:
    """Proposes edits for a field that only the new schema has, and that has no default. The edits
    add the name of an old field as an alias, or add a default. If this default is null, the edit
    also makes the field nullable."""
    name, field = place_name(new, fault.path), Draft(new).field_at(fault.path)
    former = _renamed_from(field, fault, new, old)
    if former is not None:

        def alias(draft: Draft) -> None:
            each = draft.field_at(fault.path)
            each.aliases = (*each.aliases, former)

        yield Edit(f"give field {name} the alias {former}, its former name", alias)
    yield _default_null(name, fault.path, field.type)
    yield from _default_zero(name, fault.path, field.type)


def _default_null(name: str, path: str, avro: AvroType) -> Edit:
    def change(draft: Draft) -> None:
        field = draft.field_at(path)
        field.type = or_null(field.type)
        field.default, field.has_default = None, True

    if isinstance(avro, Union) and NOTHING in avro.branches:
        return Edit(f"give field {name} the default null", change)
    return Edit(f"let field {name} be null as well, with the default null", change)


def _default_zero(name: str, path: str, avro: AvroType) -> Iterator[Edit]:
    for value in zeros(avro):

        def change(draft: Draft, value: Any = value) -> None:
            field = draft.field_at(path)
            field.default, field.has_default = value, True

        yield Edit(f"give field {name} the default {json.dumps(value)}", change)


def widen(fault: Incompatibility, new: AvroType, old: AvroType) -> Iterator[Edit]:
    """Proposes edits for a changed type. One edit makes a union of both types, another keeps the
    old type. If both types are primitive and the old type can also hold all values of the new one,
    the edit that keeps the old type comes first."""
    place, name = fault.reader_place, place_name(new, fault.reader_place) or "the schema"
    ours, theirs = Draft(new).type_at(place), Draft(old).type_at(fault.writer_place)
    if _is_primitive(ours) and _is_primitive(theirs) and not incompatibilities(theirs, ours):
        yield keep_type(place, name, theirs)

    def beside(draft: Draft) -> None:
        draft.put(place, union([draft.type_at(place), theirs]))

    yield Edit(f"let {name} be {type_name(theirs)} as well, as it was before", beside)
    yield keep_type(place, name, theirs)


def keep_symbols(fault: Incompatibility, new: AvroType, old: AvroType) -> Iterator[Edit]:
    """Proposes edits for symbols that the old schema has and the new schema lacks. The edits keep
    these symbols, or add a default to the enum."""
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

    name = named_at(new, place)
    yield Edit(f"keep the symbols {fault.detail} of {name}", keep)
    yield Edit(f"give {name} a default, which readers take for symbols they do not know", default)


def alias_type(fault: Incompatibility, new: AvroType, old: AvroType) -> Iterator[Edit]:
    """Proposes edits for a type that has another name in the old schema. The edits add the old name
    as an alias, or keep the old name."""
    there = Draft(old).type_at(fault.writer_place)

    def alias(draft: Draft) -> None:
        made = draft.type_at(fault.reader_place)
        if isinstance(made, Named) and isinstance(there, Named):
            made.aliases = (*made.aliases, there.name)

    if isinstance(there, Named):
        words = f"give {named_at(new, fault.reader_place)} the alias {there.name}, its former name"
        yield Edit(words, alias)
        yield from keep_name(fault.reader_place, there)


def drop_aliases(fault: Incompatibility, new: AvroType, old: AvroType) -> Iterator[Edit]:
    """Proposes an edit for a field whose aliases match several old fields. The edit drops the
    field's aliases."""

    def drop(draft: Draft) -> None:
        draft.field_at(fault.path).aliases = ()

    yield Edit(f"give field {place_name(new, fault.path)} no alias that is a field too", drop)


def _renamed_from(field: Field, fault: Incompatibility, new: AvroType, old: AvroType) -> str | None:
    """Returns the name of the old field that no field of the new schema reads, and whose values
    `field` could read. Returns None if there is no such old field, or if there are several."""
    ours = Draft(new).record_at(fault.reader_place)
    theirs = Draft(old).record_at(fault.writer_place)
    read = {name for each in ours.fields for name in (each.name, *each.aliases)}
    left = [
        each
        for each in theirs.fields
        if each.name not in read and not incompatibilities(field.type, each.type)
    ]
    return left[0].name if len(left) == 1 else None


def _is_primitive(avro: AvroType) -> bool:
    return isinstance(avro, Primitive)
