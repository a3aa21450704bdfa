"""Lines of a file, one at a time, in bounded memory however long they are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO, Final

LINE_BYTES_MAX: Final = 1 << 20
"""The agent's own largest line by default; a longer one does not fit."""


def read_lines(file: BinaryIO) -> Iterator[bytes]:
    """The lines without LF or CRLF. An over-long line is cut to `LINE_BYTES_MAX` + 1 bytes, by
    which the caller recognises it."""
    while line := file.readline(LINE_BYTES_MAX + 1):
        if len(line) > LINE_BYTES_MAX and not line.endswith(b"\n"):
            _skip(file)
            yield line
        else:
            yield line.removesuffix(b"\n").removesuffix(b"\r")


def _skip(file: BinaryIO) -> None:
    """Reads to the end of the line that is under way."""
    while (rest := file.readline(LINE_BYTES_MAX)) and not rest.endswith(b"\n"):
        pass
