"""Defines the columns that the loader adds to the columns of the schema, and the columns of files
of rejects.

_agent, _file_id, _offset, _length    the record's origin; a record without origin, or with an
                                      impossible origin, has the values that the audit's counts use:
                                      agent 0, its partition as the file, its offset in the topic,
                                      length 0
_host, _file                          host and path of the file `_file_id`, from the announcement of
                                      the file; in files of rows, null only for records without
                                      origin; in files of rejects, also if the file is not announced
_timestamp                            event time, ms, UTC; its hour decides the row's directory
_partition, _kafka_offset             partition and offset of the record in the topic
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skidway.kafka.columns import Origins

Int64s = npt.NDArray[np.int64]

TIMESTAMP: Final = pa.timestamp("ms", "UTC")
PLACE: Final = pa.dictionary(pa.int32(), pa.string())
"""The Arrow type of the columns `_host` and `_file`. It is a dictionary, because many rows have few
distinct hosts and paths. Parquet files store these columns as plain strings."""
OWN: Final = pa.schema(
    [
        pa.field("_agent", pa.int64(), nullable=False),
        pa.field("_file_id", pa.int64(), nullable=False),
        pa.field("_offset", pa.int64(), nullable=False),
        pa.field("_length", pa.int64(), nullable=False),
        pa.field("_host", PLACE),
        pa.field("_file", PLACE),
        pa.field("_timestamp", TIMESTAMP, nullable=False),
        pa.field("_partition", pa.int32(), nullable=False),
        pa.field("_kafka_offset", pa.int64(), nullable=False),
    ]
)
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
        *(field if field.name != "_timestamp" else field.with_nullable(True) for field in OWN),
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


def own_columns(records: Records, hosts: pa.Array, files: pa.Array) -> list[pa.Array]:
    """Returns the columns that the loader itself adds to the records' rows (`OWN`, in this
    order)."""
    origins = records.origins
    return [
        pa.array(origins.agent),
        pa.array(origins.file),
        pa.array(origins.first),
        pa.array(origins.length),
        hosts,
        files,
        pa.array(records.timestamps).cast(TIMESTAMP),
        pa.array(np.full(len(records), records.partition, np.int32)),
        pa.array(records.offsets),
    ]
