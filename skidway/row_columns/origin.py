"""The record's origin. A record without origin, or with an impossible origin, has the values that
the audit's counts use: agent 0, its partition as the file, its offset in the topic, length 0."""

from __future__ import annotations

from typing import Any

from skidway.row_columns.column import RowColumn, Rows


class Agent(RowColumn):
    """The agent's id."""

    name, type = "_agent", "long"

    def values(self, rows: Rows) -> Any:
        return rows.origins.agent


class FileId(RowColumn):
    """The id that the agent has given to the file."""

    name, type = "_file_id", "long"

    def values(self, rows: Rows) -> Any:
        return rows.origins.file


class Offset(RowColumn):
    """The position of the line's first byte in the file."""

    name, type, rises = "_offset", "long", True

    def values(self, rows: Rows) -> Any:
        return rows.origins.first


class Length(RowColumn):
    """The length of the line in bytes."""

    name, type = "_length", "long"

    def values(self, rows: Rows) -> Any:
        return rows.origins.length


ORIGIN = (Agent(), FileId(), Offset(), Length())
