"""The standard output and the standard error of a command. A terminal executes control characters,
and names of files, lines and answers of servers may contain them. So text gets through only with an
escape in place of each control character but the end of a line. The escapes are JSON's, so that a
JSON document keeps its meaning. Data (`write_data`) keeps its bytes, but not on a terminal.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO, cast

# C0, DEL and C1; marks, overrides and isolates of directions; separators; halves of pairs, by which
# Python stands for bytes that are not UTF-8
_UNSAFE = r"\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff"
_IN_TEXT = re.compile(rf"[\t{_UNSAFE}]")
_IN_DATA = re.compile(rf"[{_UNSAFE}]")


def printable(text: str) -> str:
    """Returns the text with an escape for each control character but the end of a line."""
    return _IN_TEXT.sub(_escape, text)


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
        out.write(_IN_DATA.sub(_escape, data.decode(errors="surrogateescape")))
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


def _escape(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"
