"""The standard output and the standard error of a command. A terminal executes control characters,
and names of files, lines and answers of servers may contain them. So text gets through only with
escapes (see module printable). Data (`write_data`) keeps its bytes, but not on a terminal.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO, cast

from skidway.printable import printable, printable_data


@contextmanager
def guarded() -> Iterator[None]:
    """Inside the `with` block, texts reach standard output and standard error only with escapes."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (cast("TextIO", Guarded(raw(each))) for each in before)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def raw(stream: TextIO) -> TextIO:
    """Returns the stream behind a guarded stream. Only code that moves the cursor of a terminal
    writes to it, and only what has no control characters of others."""
    return stream.stream if isinstance(stream, Guarded) else stream


def write_data(data: bytes) -> None:
    """Writes data to standard output. On a terminal, control characters but tabs and the ends of
    lines are escaped."""
    out = raw(sys.stdout)
    if out.isatty():
        out.write(printable_data(data))
    else:
        out.flush()  # what was printed before comes first
        out.buffer.write(data)
    out.flush()


class Guarded:
    """A text stream that writes control characters as escapes. Everything else is done by the
    stream behind it."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        """Writes a text."""
        self.stream.write(printable(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Writes several texts."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)
