"""Turns the rows of an older schema's files into the rows of the newest schema.

A file has the columns of its schema, in types that Spark can read (loader/reading/column_types.py),
and the loader's own columns. The rewriter first converts the columns back to the types of the Avro
codec (schemas/codec). Then it projects the rows to the newest schema, as the loader projects
decoded values (reading/projection.py). Then it converts the result to types that Spark can read
again.

If the newest schema lacks a field, the rewriter copies the field's column with its values and its
name into the new file, because a query may ask for this column. Such a column is called *carried*.
A query that reads only the columns of the newest schema does not get the carried columns.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from skidway.errors import SkidwayError
from skidway.loader.reading.column_types import (
    column_schema,
    converted,
    reverted,
    stored_schema,
)
from skidway.loader.reading.columns import OWN, OWN_NAMES
from skidway.loader.reading.projection import Projection
from skidway.loader.rewriting.dropped import dropped
from skidway.schemas.codec import Codec
from skidway.schemas.codec.spreading import batch_of

_OWN: Final = stored_schema(OWN)


class RowsRefused(SkidwayError):
    """Raised if rows of a file do not fit the newest schema. The file then stays as it is."""


class Rewriter:
    """Turns rows of one older schema into rows of the newest schema. Raises NotProjectable if no
    row can have the columns of the newest schema."""

    def __init__(self, old: str, new: str) -> None:
        self._projection = Projection(old, new)
        self._written = Codec(old).arrow_schema
        self._columns = column_schema(Codec(new).arrow_schema)
        self._used = {each.name for each in self._written} - dropped(old, new)

    def rewritten(self, table: pa.Table) -> pa.Table:
        """Returns the same rows, with the columns of the newest schema, then the carried columns,
        then the loader's own columns. Raises RowsRefused."""
        columns = self._projected(table)
        kept = [each for each in table.schema if each.name not in self._used | OWN_NAMES]
        names = {each.name.lower() for each in self._columns}  # Spark ignores case in names
        if taken := sorted(each.name for each in kept if each.name.lower() in names):
            raise RowsRefused(f"it has another column {taken[0]} than the newest schema")
        schema = pa.schema([*self._columns, *kept, *_OWN])
        columns += [table.column(each.name) for each in kept]
        columns += [table.select([each.name]).cast(pa.schema([each])).column(0) for each in _OWN]
        return pa.table(columns, schema=schema)

    def _projected(self, table: pa.Table) -> list[pa.Array | pa.ChunkedArray]:
        columns = [reverted(_whole(table.column(each.name)), each.type) for each in self._written]
        batch = batch_of(columns, self._written, table.num_rows)
        projected = self._projection.apply(batch)
        if not projected.fits.all():
            count = int((~projected.fits).sum())
            raise RowsRefused(f"{count} of its rows do not fit the newest schema")
        pairs = zip(projected.columns, self._columns, strict=True)
        return [converted(column, field.type) for column, field in pairs]


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return pa.concat_arrays(column.chunks)
