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

    name: no field of a schema may have it. help: what its values are, in a few words. type,
    is_null: of its values; is_null says whether a value may be null. values: makes the column of
    rows that are written (`skidway.loader.reading.columns.WrittenRows`): an array of NumPy or
    Arrow, or one value that all rows have. rises: whether its numbers rise from row to row.
    in_files: whether files of rows have it; if not, only queries of the data source have it.
    """

    name: str
    help: str
    type: Type
    values: Callable[[Any], Any]
    is_null: bool = False
    rises: bool = False
    in_files: bool = True


# A record without origin, or with an impossible origin, has the values that the audit's counts use:
# agent 0, its partition as the file, its offset in the topic, length 0.
AGENT: Final = RowColumn("_agent", "the agent's id", "long", attrgetter("records.origins.agent"))
FILE_ID: Final = RowColumn(
    "_file_id", "the id that the agent gave the file", "long", attrgetter("records.origins.file")
)
OFFSET: Final = RowColumn(
    "_offset", "position of the line's first byte in the file", "long",
    attrgetter("records.origins.first"), rises=True,
)  # fmt: skip
LENGTH: Final = RowColumn(
    "_length", "length of the line in bytes", "long", attrgetter("records.origins.length")
)
ORIGIN: Final = (AGENT, FILE_ID, OFFSET, LENGTH)

HOST: Final = RowColumn(
    "_host", "the host's name; null if no agent announced the file", "place",
    attrgetter("hosts"), is_null=True,
)  # fmt: skip
FILE: Final = RowColumn(
    "_file", "the file's path; null if no agent announced it", "place", attrgetter("files"),
    is_null=True,
)  # fmt: skip

TIMESTAMP: Final = RowColumn(
    "_timestamp", "event time; its hour decides the row's directory", "timestamp",
    attrgetter("records.timestamps"),
)  # fmt: skip
TOPIC: Final = RowColumn(
    "_topic", "the topic of the record", "string", attrgetter("topic"), in_files=False
)
PARTITION: Final = RowColumn(
    "_partition", "partition of the record", "int", attrgetter("records.partition")
)
KAFKA_OFFSET: Final = RowColumn(
    "_kafka_offset", "offset of the record in its partition", "long",
    attrgetter("records.offsets"), rises=True,
)  # fmt: skip
HEADERS: Final = RowColumn(
    "_headers", "all headers of the record; null if there are none", "headers",
    attrgetter("headers"), is_null=True, in_files=False,
)  # fmt: skip

_columns = [*ORIGIN, HOST, FILE, TIMESTAMP, TOPIC, PARTITION, KAFKA_OFFSET, HEADERS]


def register(column: RowColumn) -> None:
    """Adds a column, behind the others."""
    _columns.append(column)


def columns(*, in_files: bool = False) -> list[RowColumn]:
    """Returns all columns, in their order; only those of files of rows if `in_files`."""
    return [each for each in _columns if each.in_files or not in_files]
