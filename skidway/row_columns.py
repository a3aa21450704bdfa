"""The columns that Skidway adds to loaded rows and to the results of queries. Everything about a
column is in its object.

Here are no values of Arrow or NumPy, so the programs that only need the names stay light. Who reads
or writes rows uses the columns that are registered when its module is imported.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any, Final, Literal

from skidway.dataclass import dataclass

Type = Literal["int", "long", "timestamp", "place", "string", "headers"]
"""The type of a column. place: a text that many rows share. headers: a record's headers."""


@dataclass(frozen=True, slots=True)
class RowColumn:
    """A column that Skidway adds to the columns of a schema.

    name: no field of a schema may have it. type, is_null: of its values; is_null says whether a
    value may be null. values: makes the column of rows that are written
    (`skidway.loader.reading.columns.WrittenRows`): an array of NumPy or Arrow, or one value that
    all rows have. rises: whether its numbers rise from row to row. in_files: whether files of rows
    have it; if not, only queries of the data source have it.
    """

    name: str
    type: Type
    values: Callable[[Any], Any]
    is_null: bool = False
    rises: bool = False
    in_files: bool = True


# A record without origin, or with an impossible origin, has the values that the audit's counts use:
# agent 0, its partition as the file, its offset in the topic, length 0.
AGENT: Final = RowColumn("_agent", "long", attrgetter("records.origins.agent"))
"""The agent's id."""
FILE_ID: Final = RowColumn("_file_id", "long", attrgetter("records.origins.file"))
"""The id that the agent has given to the file."""
OFFSET: Final = RowColumn("_offset", "long", attrgetter("records.origins.first"), rises=True)
"""The position of the line's first byte in the file."""
LENGTH: Final = RowColumn("_length", "long", attrgetter("records.origins.length"))
"""The length of the line in bytes."""
ORIGIN: Final = (AGENT, FILE_ID, OFFSET, LENGTH)

# Host and path come from the announcement of the file. In files of rows they are null only for
# records without origin; in files of rejects, also if the file is not announced.
HOST: Final = RowColumn("_host", "place", attrgetter("hosts"), is_null=True)
"""The name of the host."""
FILE: Final = RowColumn("_file", "place", attrgetter("files"), is_null=True)
"""The path of the file."""

TIMESTAMP: Final = RowColumn("_timestamp", "timestamp", attrgetter("records.timestamps"))
"""The event time, ms, UTC; its hour decides the row's directory."""
TOPIC: Final = RowColumn("_topic", "string", attrgetter("topic"), in_files=False)
"""The topic from which the row was read, for example `dc1.nginx`."""
PARTITION: Final = RowColumn("_partition", "int", attrgetter("records.partition"))
"""The partition of the record."""
KAFKA_OFFSET: Final = RowColumn("_kafka_offset", "long", attrgetter("records.offsets"), rises=True)
"""The offset of the record in its partition."""
HEADERS: Final = RowColumn(
    "_headers", "headers", attrgetter("headers"), is_null=True, in_files=False
)
"""All headers of the record; null if it has none."""

_columns = [*ORIGIN, HOST, FILE, TIMESTAMP, TOPIC, PARTITION, KAFKA_OFFSET, HEADERS]


def register(column: RowColumn) -> None:
    """Adds a column, behind the others."""
    _columns.append(column)


def columns(*, in_files: bool = False) -> list[RowColumn]:
    """Returns all columns, in their order; only those of files of rows if `in_files`."""
    return [each for each in _columns if each.in_files or not in_files]
