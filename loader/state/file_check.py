"""Checks whether a committed file of rows has the committed length and number of rows. Does not
read the rows."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq

from skidway.loader.state.manifest import DataFile
from skidway.loader.store import Store


def fault(store: Store, file: DataFile) -> str:
    """Returns what is wrong with a committed file. Returns an empty text if the file has the length
    and the number of rows that were committed. Does not check the bytes of the rows; only the
    audit's recount does this."""
    length = store.length(file.path)
    if length is None:
        return f"{file.path} is gone, with {file.rows} rows"
    if length != file.length:
        return f"{file.path} has {length} bytes instead of {file.length}"
    opened = store.open(file.path)
    if opened is None:
        return f"{file.path} is gone, with {file.rows} rows"
    with opened:
        try:
            rows = pq.read_metadata(opened).num_rows
        except (pa.ArrowException, OSError) as error:
            return f"{file.path} cannot be read: {error}"
    return "" if rows == file.rows else f"{file.path} has {rows} rows instead of {file.rows}"
