"""Reads and writes columns of JSON texts (`json_text`), for values whose type contains itself. This
module reads, skips and writes these values one by one, unlike the values of all other columns.

A cursor is the position that was reached in each datum (`cursor`). If a value does not match its
type, or is nested too deeply, its row is marked as bad.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from skidway.schemas.avro_schema import Recursive
from skidway.schemas.codec.cursor import Cursor
from skidway.schemas.codec.json_text import JsonText, Malformed
from skidway.schemas.strict import value_end


def text_reader(avro: Recursive) -> Callable[[Cursor], pa.StringArray]:
    """Returns a reader: a function that moves a cursor past one value in each row, and returns the
    values as JSON texts."""
    form = JsonText(avro.type)

    def read(cursor: Cursor) -> pa.StringArray:
        return pa.array(_moved(cursor, form.read), pa.string())

    return read


def text_skipper(avro: Recursive) -> Callable[[Cursor], None]:
    """Returns a function that moves a cursor past one value in each row."""

    def end(data: bytes, begin: int, end: int) -> tuple[None, int]:
        return None, value_end(avro.type, data, begin, end)

    def skip(cursor: Cursor) -> None:
        _moved(cursor, end)

    return skip


def text_writer(avro: Recursive) -> Callable[[pa.StringArray], pa.BinaryArray]:
    """Returns a function that turns JSON texts back into datums. The texts must come from a
    `text_reader`."""
    form = JsonText(avro.type)
    return lambda texts: pa.array(map(form.datum, texts.to_pylist()), pa.binary())


def _moved(cursor: Cursor, read: Callable[[bytes, int, int], tuple[Any, int]]) -> list[Any]:
    """Moves the cursor past one value in each good row, and returns the results of `read` for these
    values. `read` returns its result, and the position after the value."""
    found: list[Any] = [None] * len(cursor)
    wrong, at = np.zeros(len(cursor), bool), cursor.at.copy()
    for row in np.flatnonzero(~cursor.bad).tolist():
        try:
            found[row], at[row] = read(cursor.chunk.raw, int(at[row]), int(cursor.end[row]))
        except Malformed:
            wrong[row] = True
    cursor.at = at
    cursor.fail(wrong)
    return found
