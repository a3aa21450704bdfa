"""Writes, into the staging directory, the file that lists the columns of the rows. The commit puts
this file into the topic's directory of rows (state/layout.columns)."""

from __future__ import annotations

from skidway.loader.reading.column_types import directory_schema
from skidway.loader.reading.columns import RESERVED, file_schema
from skidway.loader.reading.decoder import check_reader
from skidway.loader.state import layout
from skidway.loader.state.layout import LoadId
from skidway.loader.state.manifest import Replacement
from skidway.loader.state.parquet_file import columns_file
from skidway.loader.store import Store


def stage_columns(store: Store, load: LoadId, schema: str) -> Replacement | None:
    """Writes, into the staging directory, the file that lists the columns. Returns the file's final
    path, and its path in the staging directory. If the output already has a file with the same
    content, writes nothing and returns None. schema: the text of the schema that the load's rows
    follow."""
    path = layout.columns(load.topic)
    data = columns_file(directory_schema(file_schema(check_reader(schema, RESERVED))))
    if store.read(path) == data:
        return None
    staged = f"{load.staging}/columns.parquet"
    writer = store.create(staged)
    writer.write(data)
    writer.close()
    return Replacement(path, staged)
