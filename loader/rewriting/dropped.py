"""Finds the fields of an older schema that a newer schema dropped. A rewritten file keeps the
columns of dropped fields (see `rewriter`), but no nested one, because its record has a new type."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from skidway.schemas.avro_schema import (
    Array,
    AvroType,
    Field,
    Map,
    Record,
    Recursive,
    Union,
    candidates,
    parse,
)
from skidway.schemas.codec.arrow import as_record, branches_of, unwrapped


def fields(schema: str) -> set[str]:
    """Returns the names of the schema's fields."""
    return {each.name for each in as_record(parse(schema, check_defaults=False)).fields}


def source(field: Field, known: Collection[str]) -> str | None:
    """Returns the name of that old field of `known` whose values go into a new field."""
    return next((name for name in (field.name, *field.aliases) if name in known), None)


def dropped(old: str, new: str) -> set[str]:
    """Returns the names of those fields of the old schema whose values go into no field of the new
    schema."""
    written, read = (as_record(parse(each, check_defaults=False)) for each in (old, new))
    known = {each.name for each in written.fields}
    return known - {source(each, known) for each in read.fields}


def lost(written: str, then: str, now: str) -> list[str]:
    """Returns the fields of records whose values a load put into a column, and a load with another
    schema would not put there. written: the schema of the records. then, now: the newest schemas at
    these loads. A column may have got another name, unless the old name is another field's now."""
    old, before, after = (as_record(parse(x, check_defaults=False)) for x in (written, then, now))
    columns, newer = _sources(old, before), _sources(old, after)
    others = {each.name for each in after.fields}
    found = [
        name
        for name, column in columns.items()
        if name is not None
        and (name not in newer or (newer[name].name != column.name and column.name in others))
    ]
    gone = set(nested_dropped(written, now)).difference(nested_dropped(written, then))
    return [*found, *sorted(gone)]


def nested_dropped(old: str, new: str) -> list[str]:
    """Returns the nested fields of the old schema, like `place.room`, whose values go into no field
    of the new schema, although those of their record do."""
    written, read = (as_record(parse(each, check_defaults=False)) for each in (old, new))
    gone = {each.name for each in written.fields} - _sources(written, read).keys()
    return [path for path in _dropped_of(written, read, set()) if path not in gone]


def _sources(old: Record, new: Record) -> dict[str | None, Field]:
    """Returns the new fields, by the names of the old fields from which their values come."""
    known = {each.name for each in old.fields}
    return {source(each, known): each for each in new.fields}


def _dropped_of(old: Record, new: Record, seen: set[tuple[str, str]]) -> Iterator[str]:
    sources = _sources(old, new)
    for each in old.fields:
        if each.name not in sources:
            yield each.name
        else:
            for path in _dropped(each.type, sources[each.name].type, seen):
                yield f"{each.name}.{path}"


def _dropped(old: AvroType, new: AvroType, seen: set[tuple[str, str]]) -> Iterator[str]:
    """Yields the dropped fields of all records in the old type. seen: the pairs of record types
    that were compared already; a type may contain itself."""
    old, new = (each.type if isinstance(each, Recursive) else each for each in (old, new))
    old, new = unwrapped(old)[0], unwrapped(new)[0]
    if isinstance(old, Union):
        for each in (old.branches[at] for at in branches_of(old)):
            yield from _dropped(each, new, seen)
    elif isinstance(new, Union):
        members = [new.branches[at] for at in branches_of(new)]
        for at in candidates(old, members)[:1]:
            yield from _dropped(old, members[at], seen)
    elif isinstance(old, Array) and isinstance(new, Array):
        yield from _dropped(old.items, new.items, seen)
    elif isinstance(old, Map) and isinstance(new, Map):
        yield from _dropped(old.values, new.values, seen)
    elif isinstance(old, Record) and isinstance(new, Record) and (old.name, new.name) not in seen:
        seen.add((old.name, new.name))
        yield from _dropped_of(old, new, seen)
