"""Turns the rows of an older schema's files into the rows of the newest schema.

A file has the columns of its schema in the types of `column_types`, and the loader's own columns.
The rewriter goes back to the codec's types, projects the rows as the loader projects decoded values
(reading/projection.py), and goes forward again.

Columns of fields that the newest schema lacks are carried: they keep their values, because a later
version, or a reader who asks for them, may need them. Readers who take the columns of the newest
schema do not see them. If a later version has a field with the name and the type of a carried
column, the field takes the column's values. If only the name is the same, the column goes, because
plain Spark would refuse the file.
"""

from __future__ import annotations

from collections.abc import Iterable
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
from skidway.schemas.avro_schema import parse
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
        self._matches = FieldMatches(old, new)

    def rewritten(self, table: pa.Table) -> pa.Table:
        """The same rows in the columns of the newest schema. Raises RowsRefused."""
        columns = self._projected(table)
        kept = [name for name in table.column_names if self._matches.keeps(name)]
        fields = [x.with_type(y.type) for x, y in zip(self._columns, columns, strict=True)]
        schema = pa.schema([*fields, *map(table.schema.field, kept), *_OWN])
        columns += [table.column(name) for name in kept]
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
        if field.name in self._matches or field.name not in table.column_names:
            return column
        before, (after,) = table.column(field.name), stored_schema(pa.schema([field]))
        if before.type != after.type:
            return column
        return pc.if_else(before.is_valid(), before, column.cast(after.type))


class FieldMatches:
    """Which fields of a new schema have their values from which fields of an old schema."""

    def __init__(self, old: str, new: str) -> None:
        written, read = (as_record(parse(each, check_defaults=False)) for each in (old, new))
        self._old = [each.name for each in written.fields]
        found = {
            each.name: [name for name in (each.name, *each.aliases) if name in self._old]
            for each in read.fields
        }
        self._sources = {name: matches[0] for name, matches in found.items() if matches}
        self._taken = {name.lower() for name in (*found, *OWN_NAMES)}

    def __contains__(self, name: str) -> bool:
        """Whether a field of the old schema gives the new field its values."""
        return name in self._sources

    def keeps(self, name: str) -> bool:
        """Whether a file's column stays as it is: no new column has its values or its name."""
        return name not in self._sources.values() and name.lower() not in self._taken

    def carried(self, before: Iterable[str]) -> set[str]:
        """The names of the columns that a file has beside those of the new schema after it was
        rewritten. before: such names of the file as it is."""
        return {name for name in (*self._old, *before) if self.keeps(name)}


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return pa.concat_arrays(column.chunks)
