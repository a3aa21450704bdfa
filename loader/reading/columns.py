"""Gives the columns of `skidway.row_columns` their Arrow types and values, and defines the columns
of files of rejects."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skidway.kafka.columns import Origins
from skidway.kafka.record_headers import COLUMN as HEADERS
from skidway.row_columns import TIMESTAMP as EVENT_TIME
from skidway.row_columns import RowColumn, Type, columns

Int64s = npt.NDArray[np.int64]

TIMESTAMP: Final = pa.timestamp("ms", "UTC")
PLACE: Final = pa.dictionary(pa.int32(), pa.string())
"""The Arrow type of the columns `_host` and `_file`. It is a dictionary, because many rows have few
distinct hosts and paths. Parquet files store these columns as plain strings."""
TYPES: Final[dict[Type, pa.DataType]] = {
    "int": pa.int32(), "long": pa.int64(), "timestamp": TIMESTAMP, "place": PLACE,
    "string": pa.string(), "headers": HEADERS,
}  # fmt: skip


def field_of(column: RowColumn) -> pa.Field:
    """Returns the Arrow field of a column in files."""
    return pa.field(column.name, TYPES[column.type], nullable=column.is_null)


OWN: Final = pa.schema([field_of(each) for each in columns(in_files=True)])
OWN_NAMES: Final = frozenset(OWN.names)
RESERVED: Final = OWN_NAMES | {"dt", "hour"}
"""Names that no field of a schema may have: the loader's own columns, and `dt` and `hour`, which
occur in the names of directories."""

REJECTED: Final = pa.schema(
    [
        pa.field("reason", pa.string(), nullable=False),
        pa.field("detail", pa.string(), nullable=False),
        pa.field("value", pa.binary()),
        pa.field("key", pa.binary()),
        pa.field("timestamp_ms", pa.int64(), nullable=False),
        *(field if field.name != EVENT_TIME.name else field.with_nullable(True) for field in OWN),
    ]
)
"""The columns of a file of rejects. `timestamp_ms` is the event time in the record; `_timestamp` is
null if this event time is outside the years 1970 to 9999. The other columns of `OWN` are the same
as in files of rows."""


def file_schema(reader: pa.Schema) -> pa.Schema:
    """Returns the columns of a file of rows: first the columns of the schema, then the columns that
    the loader adds."""
    return pa.schema([*reader, *OWN])


@dataclass(frozen=True, slots=True)
class Records:
    """Offset, time (ms) and origin of consecutive records of one partition, as columns."""

    partition: int
    offsets: Int64s
    timestamps: Int64s
    origins: Origins

    def take(self, rows: npt.NDArray[np.intp]) -> Records:
        """Returns the records with these indices, in the order given."""
        return Records(
            self.partition, self.offsets[rows], self.timestamps[rows], select(self.origins, rows)
        )

    def slice(self, end: int) -> Records:
        """Returns the first `end` records."""
        return Records(
            self.partition,
            self.offsets[:end],
            self.timestamps[:end],
            select(self.origins, slice(end)),
        )

    def __len__(self) -> int:
        return len(self.offsets)


def select(origins: Origins, rows: npt.NDArray[np.intp] | slice) -> Origins:
    """Returns the origins with these indices, in the order given."""
    return Origins(
        origins.agent[rows], origins.file[rows], origins.first[rows], origins.length[rows]
    )


@dataclass(frozen=True, slots=True)
class WrittenRows:
    """What the columns that Skidway adds are made from."""

    records: Records
    hosts: pa.Array
    files: pa.Array
    topic: str = ""
    headers: pa.Array | None = None


def own_columns(records: Records, hosts: pa.Array, files: pa.Array) -> list[pa.Array]:
    """Returns the columns that the loader itself adds to the records' rows (`OWN`, in this
    order)."""
    return values_of(columns(in_files=True), WrittenRows(records, hosts, files))


def values_of(some: Iterable[RowColumn], rows: WrittenRows) -> list[pa.Array]:
    """Returns the values of columns."""
    return [_array(each.values(rows), TYPES[each.type], len(rows.records)) for each in some]


def _array(values: Any, type_: pa.DataType, count: int) -> pa.Array:
    if isinstance(values, pa.Array):
        return values
    if not isinstance(values, np.ndarray):
        return pa.repeat(pa.scalar(values, type_), count)
    found = pa.array(values)
    return found if found.type == type_ else found.cast(type_)
