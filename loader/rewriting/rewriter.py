"""Turns the rows of an older schema's files into the rows of the newest schema.

A file has the columns of its schema in the types of `column_types`, and the loader's own columns.
The rewriter goes back to the codec's types, projects the rows as the loader projects decoded values
(reading/projection.py), and goes forward again.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa
from pyarrow import types

from skidway.errors import SkidwayError
from skidway.loader.reading.column_types import column_schema, converted, reverted
from skidway.loader.reading.columns import OWN
from skidway.loader.reading.projection import Projection
from skidway.schemas.codec import Codec

_OWN: Final = pa.schema(
    [
        each.with_type(each.type.value_type) if types.is_dictionary(each.type) else each
        for each in OWN
    ]
)
"""The loader's own columns, as files have them."""


class RowsRefused(SkidwayError):
    """Rows of a file do not fit the newest schema, so the file stays as it is."""


class Rewriter:
    """Rewrites tables of one older schema."""

    def __init__(self, old: str, new: str) -> None:
        self._projection = Projection(old, new)
        self._written = Codec(old).arrow_schema
        self._columns = column_schema(Codec(new).arrow_schema)

    def rewritten(self, table: pa.Table) -> pa.Table:
        """The same rows in the columns of the newest schema. Raises RowsRefused."""
        batch = pa.RecordBatch.from_arrays(
            [reverted(_whole(table.column(each.name)), each.type) for each in self._written],
            schema=self._written,
        )
        projected = self._projection.apply(batch)
        if not projected.fits.all():
            count = int((~projected.fits).sum())
            raise RowsRefused(f"{count} of its rows do not fit the newest schema")
        pairs = zip(projected.columns, self._columns, strict=True)
        columns = [converted(column, field.type) for column, field in pairs]
        own = [table.select([each.name]).cast(pa.schema([each])).column(0) for each in _OWN]
        return pa.table([*columns, *own], schema=pa.schema([*self._columns, *_OWN]))


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return pa.concat_arrays(column.chunks)
