"""The standard output and the standard error of a command. A terminal executes control characters,
and names of files, lines and answers of servers may contain them. So text gets through only with an
escape in place of each control character but the end of a line, and of each sign that nobody sees
and no language needs. The escapes are JSON's, so that a JSON document keeps its meaning. Data
(`write_data`) keeps its bytes, but not on a terminal.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO, cast

# C0, DEL and C1; marks, overrides and isolates of directions; separators; halves of pairs, by which
# Python stands for bytes that are not UTF-8
_CONTROLS = r"\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff"
# Signs that nobody sees; but joiners and selectors of variants, which languages and emoji need, are
# let through.
_UNSEEN = (
    r"\xad\u034f\u115f\u1160\u17b4\u17b5\u180e\u200b\u2060-\u2065\u206a-\u206f\u3164\ufeff\uffa0"
    r"\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_IN_TEXT = re.compile(rf"[\t{_CONTROLS}{_UNSEEN}]")
_IN_DATA = re.compile(rf"[{_CONTROLS}{_UNSEEN}]")


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
    units = found[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))
