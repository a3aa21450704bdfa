"""Host and path of the file `_file_id`, from the announcement of the file. In files of rows they
are null only for records without origin; in files of rejects, also if the file is not announced."""

from __future__ import annotations

from typing import Any

from skidway.row_columns.column import RowColumn, Rows


class Host(RowColumn):
    """The name of the host."""

    name, type, is_null = "_host", "place", True

    def values(self, rows: Rows) -> Any:
        return rows.hosts


class File(RowColumn):
    """The path of the file."""

    name, type, is_null = "_file", "place", True

    def values(self, rows: Rows) -> Any:
        return rows.files


PLACE = (Host(), File())
