"""Reads the lines of a file, one at a time. Needs little memory even if a line is very long."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO, Final

LINE_BYTES_MAX: Final = 1 << 20
"""A line may have at most this many bytes, without its line end. A longer line counts as a line
that does not fit the log's format."""


def read_lines(file: BinaryIO) -> Iterator[bytes]:
    """Yields the lines without LF or CRLF. If a line is too long, yields its first `LINE_BYTES_MAX`
    + 1 bytes. By this length, the caller recognises a line that is too long."""
    while line := file.readline(LINE_BYTES_MAX + 2):  # the longest line with its CRLF
        if len(line) == LINE_BYTES_MAX + 2 and not line.endswith(b"\n"):
            _skip(file)
            yield line[: LINE_BYTES_MAX + 1]
        else:
            yield line.removesuffix(b"\n").removesuffix(b"\r")


def _skip(file: BinaryIO) -> None:
    """Reads the file to the end of the current line."""
    while (rest := file.readline(LINE_BYTES_MAX)) and not rest.endswith(b"\n"):
        pass
