"""Writes and reads one file of a table (state/tables.py)."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from skidway.errors import StateRefused
from skidway.loader.state.layout import LoadId
from skidway.loader.state.manifest import DataFile
from skidway.loader.state.parquet_file import write_table
from skidway.loader.store import Store


class TableStaging:
    """Writes the files of tables of one load into the staging directory. files: the entries of the
    files written so far, for the manifest's field `files`."""

    def __init__(self, store: Store, load: LoadId) -> None:
        self._store = store
        self.load = load
        self.files: list[DataFile] = []

    def write(self, kind: str, path: str, table: pa.Table) -> str:
        """Writes `table` to a file in the staging directory. The loader moves this file to `path`
        later. Returns `path`."""
        staged = f"{self.load.staging}/{kind}-{len(self.files)}.parquet"
        self.files.append(write_table(self._store, table, kind, path, staged))
        return path


def read_file(store: Store, path: str, schema: pa.Schema) -> pa.Table:
    """Returns the columns of `schema` from a table's file. Raises StateRefused if the file is gone
    or damaged."""
    data = store.read(path)
    if data is None:
        raise StateRefused(
            f"{path}, which the newest manifest names, is missing; restore it before loading on"
        )
    try:
        return pq.read_table(io.BytesIO(data)).select(schema.names).cast(schema)
    except (pa.ArrowException, KeyError, OSError) as error:
        raise StateRefused(f"{path} is damaged: {error}") from error


def read_rows(store: Store, paths: Sequence[str], schema: pa.Schema) -> list[tuple[Any, ...]]:
    """Returns the rows of several files of one table, as tuples. Raises StateRefused if a file is
    gone or damaged."""
    rows: list[tuple[Any, ...]] = []
    for path in paths:
        table = read_file(store, path, schema)
        columns = [table.column(name).to_pylist() for name in schema.names]
        rows += zip(*columns, strict=True)
    return rows


def table_of(rows: Sequence[tuple[Any, ...]], schema: pa.Schema) -> pa.Table:
    """Returns the rows as an Arrow table with this schema."""
    if not rows:
        return schema.empty_table()
    columns = [
        pa.array(column, each.type)
        for column, each in zip(zip(*rows, strict=True), schema, strict=True)
    ]
    return pa.Table.from_arrays(columns, schema=schema)
