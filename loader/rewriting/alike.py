"""Finds the fields of an older schema whose files plain Spark (Spark without Skidway's code) cannot
read together with files of a newer schema. Plain Spark uses the columns of the newer schema for all
files. In each file it finds these columns by their names, and it does not convert their values.

If plain Spark would read wrong values from the files of the older schema, the loader must rewrite
these files before it adds the first row of the newer schema
(docs/adr/0019-columns-that-stay-readable.md).
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

import pyarrow as pa
from pyarrow import types

from skidway.loader.reading.column_types import column_type
from skidway.loader.rewriting.dropped import source
from skidway.schemas.avro_schema import (
    Array,
    AvroType,
    Field,
    Fixed,
    Map,
    Named,
    Record,
    Recursive,
    Union,
    candidates,
    has_name,
    parse,
)
from skidway.schemas.codec.arrow import arrow_type, as_record, branches_of, is_nullable, unwrapped
from skidway.schemas.codec.matching import TooManyTypes, Unresolvable
from skidway.schemas.codec.promotion import PROMOTIONS
from skidway.schemas.codec.resolution import chosen_member

_PROMOTIONS: Final = {("int", "long"), ("float", "double")}
"""Avro lets a reader read values of the first type of each pair as values of the second type. In
the loader's Parquet files, both types have the same column type."""
_LOGICAL: Final = ("logicalType", "precision", "scale")
"""Avro properties that say what a number or a byte string means."""


def unlike(old: str, new: str) -> list[str]:
    """Returns the names of the fields of the new schema in whose columns Spark, when it reads rows
    of the old schema, does not get the values that the loader's projection gives
    (`loader/reading/projection.py`). One difference does not count: for a field that the old schema
    lacks, Spark may read null where the projection gives the default."""
    written, read = (as_record(parse(each, check_defaults=False)) for each in (old, new))
    return _unlike_fields(written, read)


def clashing(
    old: str, old_columns: Collection[str], new: str, new_columns: Collection[str]
) -> list[str]:
    """Returns those columns of the old schema that readers take for a column of the new schema,
    although it is another field, has another type, or was renamed. old_columns, new_columns: the
    columns that files have of each schema."""
    written, read = (as_record(parse(each, check_defaults=False)) for each in (old, new))
    others = [each for each in read.fields if each.name in new_columns]
    names = {each.name for each in written.fields}
    return [
        each.name
        for each in written.fields
        if each.name in old_columns and any(_clash(each, field, names) for field in others)
    ]


def _clash(column: Field, field: Field, names: Collection[str]) -> bool:
    """names: all fields of the column's schema."""
    if column.name == field.name:
        return not _alike(column.type, field.type)
    return column.name.lower() == field.name.lower() or column.name == source(field, names)


def _alike(old: AvroType, new: AvroType) -> bool:
    if isinstance(old, Recursive) or isinstance(new, Recursive):
        return isinstance(old, Recursive) and isinstance(new, Recursive) and _same_texts(old, new)
    old, new = unwrapped(old)[0], unwrapped(new)[0]
    if isinstance(old, Record) and isinstance(new, Record):
        # If a file has none of the fields of the new struct, Spark reads null instead of the
        # struct.
        return _shares_a_field(old, new) and not _unlike_fields(old, new)
    if isinstance(old, Array) and isinstance(new, Array):
        return _alike(old.items, new.items)
    if isinstance(old, Map) and isinstance(new, Map):
        return _alike(old.values, new.values)
    if isinstance(old, Union) and isinstance(new, Union):
        return _same_members(old, new)
    return _same_values(old, new)


def _same_values(old: AvroType, new: AvroType) -> bool:
    """Returns whether both Avro types have the same column type in a Parquet file, and every value
    stays the same when it is resolved from `old` to `new`. The caller passes no nested types and no
    unions."""
    is_same = old.kind == new.kind or (old.kind, new.kind) in _PROMOTIONS
    same_meaning = all(old.properties.get(each) == new.properties.get(each) for each in _LOGICAL)
    return is_same and same_meaning and bool(_file_type(old) == _file_type(new))


def _unlike_fields(old: Record, new: Record) -> list[str]:
    """Returns the names of the fields of the new record that do not have the name and type of the
    old field from which their values come."""
    known = {each.name: each for each in old.fields}
    spelled = {name.lower() for name in known}  # Spark ignores case in names
    found = []
    for each in new.fields:
        if each.name in known:
            is_unlike = not _alike(known[each.name].type, each.type)
        else:
            is_unlike = each.name.lower() in spelled or not known.keys().isdisjoint(each.aliases)
        if is_unlike:
            found.append(each.name)
    return found


def _shares_a_field(old: Record, new: Record) -> bool:
    names = {each.name for each in old.fields}
    return any(each.name in names for each in new.fields) or not (old.fields or new.fields)


def _same_members(old: Union, new: Union) -> bool:
    """Returns whether each member of the old union has the same position in the new union. The
    position must be the same, because a member's column is named after the member's position."""
    after = [new.branches[at] for at in branches_of(new)]
    for place, at in enumerate(branches_of(old)):
        member = old.branches[at]
        try:
            if chosen_member(member, new) != place or not _alike(member, after[place]):
                return False
        except (TooManyTypes, Unresolvable):
            return False
    return True


def _same_texts(old: Recursive, new: Recursive) -> bool:
    """Returns whether every JSON text of the old type stays the same when it is resolved to the new
    type. (Values of a type that contains itself are stored as JSON text.)"""
    try:
        return _same_text(old.type, new.type, set())
    except RecursionError:
        return False


def _same_text(old: AvroType, new: AvroType, known: set[tuple[str, str]]) -> bool:
    """Returns whether every JSON text of the old type stays the same when it is resolved to the new
    type. known: the pairs of record types whose comparison has begun. A record type may contain
    itself, so these pairs are not compared again.
    """
    if is_nullable(old) and not is_nullable(new):
        return False
    old, new = unwrapped(old)[0], unwrapped(new)[0]
    if isinstance(old, Union) and isinstance(new, Union):
        before, after = ([x.branches[at] for at in branches_of(x)] for x in (old, new))
        return all(
            [at for at in candidates(each, after) if _may_become(each, after[at])] == [place]
            and _same_text(each, after[place], known)
            for place, each in enumerate(before)
        )
    if not _may_become(old, new):
        return False
    if isinstance(old, Record) and isinstance(new, Record):
        if (old.name, new.name) in known:
            return True
        known.add((old.name, new.name))
        return [x.name for x in old.fields] == [x.name for x in new.fields] and all(
            _same_text(x.type, y.type, known) for x, y in zip(old.fields, new.fields, strict=True)
        )
    if isinstance(old, Array) and isinstance(new, Array):
        return _same_text(old.items, new.items, known)
    if isinstance(old, Map) and isinstance(new, Map):
        return _same_text(old.values, new.values, known)
    if isinstance(old, Fixed) and isinstance(new, Fixed) and old.size != new.size:
        return False
    return _same_values(old, new)


def _may_become(old: AvroType, new: AvroType) -> bool:
    """Returns whether Avro may read values of the old type as the new type, as far as the kinds and
    the names of both types say."""
    if isinstance(old, Named) and isinstance(new, Named):
        return old.kind == new.kind and has_name(old, new)
    return new.kind in (old.kind, *PROMOTIONS.get(old.kind, ()))


def _file_type(avro: AvroType) -> pa.DataType:
    found = column_type(arrow_type(avro))
    return found.value_type if types.is_dictionary(found) else found
