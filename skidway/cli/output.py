"""Prints the output of commands: tables, JSON, and the progress of long commands."""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any

from skidway.cli.streams import raw
from skidway.printable import printable

Row = Mapping[str, Any]

PROGRESS_EVERY_S = 0.2


def table(rows: Iterable[Row], columns: Sequence[str]) -> None:
    """Prints rows as a table with column names. Numbers are right-aligned, and None is printed as a
    dash."""
    print(render_table(list(rows), columns), end="")


def print_lines(lines: Iterable[str]) -> None:
    """Prints lines of text. Escapes control characters, for example in the name of a file, because
    a terminal would execute them as commands."""
    for line in lines:
        print(_printable(line))


def print_json(document: Any) -> None:
    """Prints one JSON document."""
    print(json.dumps(document, indent=2, default=str, ensure_ascii=False))


def print_good(words: str, *, as_json: bool) -> int:
    """Prints that a configuration is valid, and what it contains (`words`). Returns the exit status
    0."""
    if as_json:
        print_json({"ok": True, "says": words})
    else:
        print(f"good: {words}")
    return 0


def print_rows(rows: Iterable[Row], columns: Sequence[str], *, as_json: bool) -> None:
    """Prints rows as a table, or as one JSON list with the same columns."""
    if as_json:
        print_json([{column: row.get(column) for column in columns} for row in rows])
    else:
        table(rows, columns)


def render_table(rows: Sequence[Row], columns: Sequence[str]) -> str:
    """Returns the rows as the text of a table, with a line of column names. No line ends with
    spaces."""
    cells = [[_cell(row.get(column)) for column in columns] for row in rows]
    heads = [column.upper().replace("_", " ") for column in columns]
    widths = [max(len(head), *(len(line[i]) for line in cells), 0) for i, head in enumerate(heads)]
    right = [bool(rows) and all(_is_number(row.get(column)) for row in rows) for column in columns]
    return "".join(
        "  ".join(
            text.rjust(width) if to_right else text.ljust(width)
            for text, width, to_right in zip(line, widths, right, strict=True)
        ).rstrip()
        + "\n"
        for line in [heads, *cells]
    )


class Progress:
    """Shows progress on standard error. On a terminal, redraws one line with a bar. Elsewhere,
    prints a plain line from time to time, if it differs from the previous line."""

    def __init__(self, what: str, total: int, *, plain_every_s: float = 10.0) -> None:
        self._what = what
        self._total = total
        self._is_terminal = sys.stderr.isatty()
        self._every_s = PROGRESS_EVERY_S if self._is_terminal else plain_every_s
        self._last: float | None = None
        self._said = ""

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._is_terminal and self._last is not None:
            sys.stderr.write("\n")

    def show(self, done: int, note: str = "") -> None:
        """Shows how much is done. Callers may call this method very often, because it takes little
        time."""
        now = time.monotonic()
        shown_lately = self._last is not None and now - self._last < self._every_s
        if shown_lately and done < self._total:
            return
        self._last = now
        line = progress_line(self._what, done, self._total, note)
        if self._is_terminal:
            columns = shutil.get_terminal_size().columns
            # If the line is too long for the terminal, leave out the bar, so that the note fits.
            if len(line) >= columns:
                line = progress_line(self._what, done, self._total, note, has_bar=False)
            shown = printable(line.replace("\n", " "))[: columns - 1].ljust(columns - 1)
            raw(sys.stderr).write("\r" + shown)
        elif line != self._said:
            self._said = line
            sys.stderr.write(line + "\n")
        sys.stderr.flush()


def progress_line(what: str, done: int, total: int, note: str = "", *, has_bar: bool = True) -> str:
    """Returns one line that shows progress. If `total` is 0 (unknown), the line shows only how much
    is done."""
    if total <= 0:
        return f"{what}  {done:,}  {note}".rstrip()
    filled = min(20, 20 * done // total)
    bar = "[" + "#" * filled + "." * (20 - filled) + "] " if has_bar else ""
    percent = min(100, 100 * done // total)
    return f"{what}  {bar}{percent:3d}%  {done:,} of {total:,}  {note}".rstrip()


def _cell(value: Any) -> str:
    return _printable(_text(value))


def _printable(text: str) -> str:
    if text.isprintable():
        return text
    return "".join(x if x.isprintable() else ascii(x)[1:-1] for x in text)


def _text(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, list | tuple | set | frozenset):
        return ", ".join(str(each) for each in value)
    return str(value)


def _is_number(value: Any) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))
