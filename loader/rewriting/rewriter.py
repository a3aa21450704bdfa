"""Turns the rows of an older schema's files into the rows of the newest schema.

A file has the columns of its schema in the types of `column_types`, and the loader's own columns.
The rewriter goes back to the codec's types, projects the rows as the loader projects decoded values
(reading/projection.py), and goes forward again.

Columns of fields that the newest schema lacks are carried: they keep their values, because a later
version, or a reader who asks for them, may need them. Readers who take the columns of the newest
schema do not see them. If a later version has a field with the name and the type of a carried
column, the field takes the column's values. If only the name is the same (Spark does not tell upper
from lower case), the column gets another name, because plain Spark would refuse the file: `user`
becomes `user_1`.
"""

from __future__ import annotations

from collections.abc import Collection
from itertools import chain, count
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from skidway.errors import SkidwayError
from skidway.loader.reading.column_types import (
    column_schema,
    converted,
    reverted,
    stored_schema,
)
from skidway.loader.reading.columns import OWN, OWN_NAMES
from skidway.loader.reading.projection import Projection
from skidway.schemas.avro_schema import Recursive, parse
from skidway.schemas.codec import Codec
from skidway.schemas.codec.arrow import as_record

_OWN: Final = stored_schema(OWN)


class RowsRefused(SkidwayError):
    """Rows of a file do not fit the newest schema, so the file stays as it is."""


class Rewriter:
    """Rewrites tables of one older schema."""

    def __init__(self, old: str, new: str) -> None:
        self._projection = Projection(old, new)
        self._written = Codec(old).arrow_schema
        self._columns = column_schema(Codec(new).arrow_schema)
        self._sources = _sources(old, new)
        self._texts = _texts(new)

    def rewritten(self, table: pa.Table) -> pa.Table:
        """The same rows in the columns of the newest schema. Raises RowsRefused."""
        columns = self._projected(table)
        fields = [x.with_type(y.type) for x, y in zip(self._columns, columns, strict=True)]
        carried = self._carried(table.schema)
        named = [table.schema.field(name).with_name(to) for name, to in carried.items()]
        schema = pa.schema([*fields, *named, *_OWN])
        columns += [table.column(name) for name in carried]
        columns += [table.select([each.name]).cast(pa.schema([each])).column(0) for each in _OWN]
        return pa.table(columns, schema=schema)

    def _projected(self, table: pa.Table) -> list[pa.Array | pa.ChunkedArray]:
        batch = pa.RecordBatch.from_arrays(
            [reverted(_whole(table.column(each.name)), each.type) for each in self._written],
            schema=self._written,
        )
        projected = self._projection.apply(batch)
        if not projected.fits.all():
            count = int((~projected.fits).sum())
            raise RowsRefused(f"{count} of its rows do not fit the newest schema")
        pairs = zip(projected.columns, self._columns, strict=True)
        return [self._taken_back(table, converted(x, field.type), field) for x, field in pairs]

    def _taken_back(
        self, table: pa.Table, column: pa.Array, field: pa.Field
    ) -> pa.Array | pa.ChunkedArray:
        """The values of the field's carried column, if the file has one; `column` for rows without
        a value."""
        if not self._takes_back(table.schema, field):
            return column
        before = table.column(field.name)
        return pc.if_else(before.is_valid(), before, column.cast(before.type))

    def _takes_back(self, old: pa.Schema, field: pa.Field) -> bool:
        if field.name in self._sources or field.name not in old.names:
            return False
        if field.name in self._texts:  # a column of strings may hold something else than this JSON
            return False
        (stored,) = stored_schema(pa.schema([field]))
        return bool(old.field(field.name).type == stored.type)

    def _carried(self, old: pa.Schema) -> dict[str, str]:
        """The columns of a file that no new column replaces: old name -> new name."""
        replaced = {*self._sources.values(), *OWN_NAMES}
        replaced |= {each.name for each in self._columns if self._takes_back(old, each)}
        kept = [name for name in old.names if name not in replaced]
        taken = {name.lower() for name in (*self._columns.names, *OWN_NAMES)}
        found: dict[str, str] = {}
        for name in sorted(kept, key=lambda each: each.lower() in taken):
            found[name] = _free_name(name, taken)
            taken.add(found[name].lower())
        return found


def _free_name(name: str, taken: Collection[str]) -> str:
    """The name, with a number if it is taken. taken: names in lower case."""
    names = chain([name], (f"{name}_{number}" for number in count(1)))
    return next(each for each in names if each.lower() not in taken)


def _sources(old: str, new: str) -> dict[str, str]:
    """Which old field gives a new field its values, by the new field's name."""
    written, read = (as_record(parse(each, check_defaults=False)) for each in (old, new))
    known = {each.name for each in written.fields}
    matches = ((x.name, [y for y in (x.name, *x.aliases) if y in known]) for x in read.fields)
    return {name: found[0] for name, found in matches if found}


def _texts(new: str) -> set[str]:
    """The fields whose columns hold JSON texts, because their types contain themselves."""
    fields = as_record(parse(new, check_defaults=False)).fields
    return {each.name for each in fields if isinstance(each.type, Recursive)}


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return pa.concat_arrays(column.chunks)
