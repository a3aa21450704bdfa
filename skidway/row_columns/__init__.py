"""The columns that Skidway adds to loaded rows and to the results of queries. Everything about a
column is in its class: the modules origin, place and record have them; what a column is says the
module column.

Here are no values of Arrow or NumPy, so the programs that only need the names stay light. Who reads
or writes rows uses the columns that are registered when its module is imported.
"""

from __future__ import annotations

from skidway.row_columns.column import RowColumn, Rows, Type
from skidway.row_columns.origin import ORIGIN
from skidway.row_columns.place import PLACE
from skidway.row_columns.record import KAFKA_OFFSET, POSITION, RECORD, TIMESTAMP

__all__ = [
    "KAFKA_OFFSET", "ORIGIN", "PLACE", "POSITION", "RECORD", "TIMESTAMP", "RowColumn", "Rows",
    "Type", "columns", "names_of", "register",
]  # fmt: skip

_columns: list[RowColumn] = [*ORIGIN, *PLACE, *RECORD]


def register(column: RowColumn) -> None:
    """Adds a column, behind the others."""
    _columns.append(column)


def columns(*, in_files: bool = False) -> tuple[RowColumn, ...]:
    """Returns all columns, in their order; only those of files of rows if `in_files`."""
    return tuple(each for each in _columns if each.in_files or not in_files)


def names_of(some: tuple[RowColumn, ...]) -> tuple[str, ...]:
    """Returns the names of columns."""
    return tuple(each.name for each in some)
