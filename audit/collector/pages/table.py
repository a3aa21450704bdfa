"""A table that pages show to people, and that programs get as JSON or CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, overload

from skidway.printable import printable

_FORMULA = ("=", "+", "-", "@", "\t", "\r")


@dataclass(frozen=True, slots=True)
class Column:
    """A column. key: its name in JSON and CSV. kind: "" for text, "number", "time", "path" or
    "code" (a command). rank: from 1 (every browser window shows the column) to 4 (only wide windows
    show it, and only if no other table is beside this table)."""

    key: str
    title: str
    kind: str = ""
    rank: int = 1


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell. text: what pages show. value: the value in JSON and CSV, if it differs from the
    text. status: the verdict that gives the cell its colour and glyph; "" for a plain cell. points:
    the values of a small line chart, oldest first."""

    text: str = ""
    value: Any = None
    href: str = ""
    status: str = ""
    points: tuple[float, ...] = ()

    @property
    def for_programs(self) -> Any:
        """The value in JSON and CSV: `value`, or the text if `value` is None."""
        return self.text or None if self.value is None else self.value


class Rows(Sequence[tuple[Cell, ...]]):
    """The rows of a table that may have thousands of rows. A row is made only when it is read."""

    def __init__(self, things: Sequence[Any], row: Callable[[Any], tuple[Cell, ...]]) -> None:
        self._things = things
        self._row = row

    def __len__(self) -> int:
        return len(self._things)

    @overload
    def __getitem__(self, index: int) -> tuple[Cell, ...]: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[tuple[Cell, ...]]: ...
    def __getitem__(self, index: int | slice) -> tuple[Cell, ...] | Sequence[tuple[Cell, ...]]:
        if isinstance(index, slice):
            return tuple(map(self._row, self._things[index]))
        return self._row(self._things[index])

    def __iter__(self) -> Iterator[tuple[Cell, ...]]:
        return map(self._row, self._things)


@dataclass(frozen=True, slots=True)
class Table:
    """A table. key: its name in addresses and JSON. empty: the sentence for a table without rows.
    more: how many rows the page leaves out; `rows` has all rows. note: a sentence below the table.
    title: the heading, if it differs from the key."""

    key: str
    caption: str
    columns: tuple[Column, ...]
    rows: Sequence[tuple[Cell, ...]]
    empty: str = ""
    shown_max: int = 500
    href: str = ""
    note: str = ""
    title: str = ""

    @property
    def heading(self) -> str:
        """The heading above the table."""
        return self.title or self.key.replace("_", " ").capitalize()

    @property
    def shown(self) -> Sequence[tuple[Cell, ...]]:
        """The rows that the page shows."""
        return self.rows[: self.shown_max]

    @property
    def more(self) -> int:
        """How many rows the page leaves out."""
        return max(len(self.rows) - self.shown_max, 0)

    def records(self, begin: int = 0, count: int | None = None) -> list[dict[str, Any]]:
        """Returns rows for JSON, each as values by the columns' keys: `count` rows from row `begin`
        on, or all rows if `count` is None. If a cell has a status, the row also has the status,
        under the column's key with the suffix `_status`.
        """
        end = len(self.rows) if count is None else begin + count
        return [self._record(row) for row in self.rows[begin:end]]

    def _record(self, row: tuple[Cell, ...]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for column, cell in zip(self.columns, row, strict=True):
            found[column.key] = cell.for_programs
            if cell.status:
                found[f"{column.key}_status"] = cell.status
        return found


def csv_text(table: Table) -> str:
    """Returns the table as CSV (RFC 4180) with a header. If a spreadsheet would interpret a text as
    a formula, the text gets an apostrophe in front. Control characters are escaped."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow([column.key for column in table.columns])
    writer.writerows([_plain(x.for_programs) for x in row] for row in table.rows)
    return out.getvalue()


def document(tables: Iterable[Table]) -> dict[str, Any]:
    """Returns the rows of several tables for JSON, by the tables' keys."""
    return {table.key: table.records() for table in tables}


def _plain(value: Any) -> str:
    text = "" if value is None else printable(str(value))
    return f"'{text}" if isinstance(value, str) and text.startswith(_FORMULA) else text
