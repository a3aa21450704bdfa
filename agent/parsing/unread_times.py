"""Says why the time of a line could not be read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from skidway.agent.parsing.parser import TIMESTAMP, ZONE, Int64s, Reject
from skidway.agent.parsing.timestamps import TimeFormat


def rejects(
    form: TimeFormat, names: Sequence[str], texts: pa.StringArray, rows: Int64s, now_ms: int
) -> Iterator[Reject]:
    """Yields a reject for each of the rows. names: the fields that contain the time. texts: the
    times of all rows."""
    if not len(rows):
        return
    unread = texts.take(pa.array(rows))
    letters = form.foreign_letters(unread, now_ms)
    name = " ".join(names)
    for row, text, foreign in zip(rows.tolist(), unread.to_pylist(), letters, strict=True):
        if foreign:
            why = f"{foreign} is not what clocks of the timezone {form.timezone} show then"
            yield Reject(row, ZONE, f"{name}: {why}")
            continue
        odd = next((f" ({_named(char)} is no part of one)" for char in text if _is_odd(char)), "")
        yield Reject(row, TIMESTAMP, f"{name}: not a time of timestamp.format{odd}")


def _is_odd(char: str) -> bool:
    return not char.isascii() and not char.isspace()


def _named(char: str) -> str:
    return f"U+{ord(char):04X}"
