"""Computes the columns of a file that is made from several files.

Files of the same schema have the same columns, except for carried columns. Carried columns have the
values of fields that the schema lacks (see `rewriter`)."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from skidway.loader.reading.column_types import directory_schema
from skidway.loader.reading.columns import OWN_NAMES
from skidway.schemas.codec.spreading import null_of, repeated


def common(schemas: Sequence[pa.Schema]) -> pa.Schema:
    """Returns all columns that the files have. The loader's own columns come last. A column that
    some files lack, or have with other nested fields, may be null at any depth. Raises
    ArrowTypeError if a column has different types."""
    merged = pa.unify_schemas([directory_schema(each) for each in schemas])
    exact = {each.name: each for each in set.intersection(*map(set, schemas))}
    fields = [exact.get(each.name, each) for each in merged]
    return pa.schema(sorted(fields, key=lambda field: field.name in OWN_NAMES))


def filled(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Returns the table's rows in all columns of the schema. If the table lacks a column, the
    column is null in all rows."""
    columns = [
        table.column(each.name)
        if each.name in table.column_names
        else repeated(null_of(each.type), table.num_rows)
        for each in schema
    ]
    return pa.table(columns, schema=schema)
