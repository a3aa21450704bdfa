"""Pieces of a frame: bytes to send, or a part of a file that is sent without being read.

A response is a list of pieces, in sending order. A ``FileSlice`` stands for bytes of a file that
the network layer sends with sendfile; this package uses only its length.
"""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from skidway.dataclass import dataclass


class HasFileno(Protocol):
    """An object that owns a file descriptor. The object keeps the file open while slices of the
    file exist."""

    @property
    def path(self) -> Path:
        """The file's path, for error messages."""

    def fileno(self) -> int:
        """Returns the descriptor, for os.sendfile."""


@dataclass(frozen=True, slots=True)
class FileSlice:
    """Bytes of a file that are sent in a response without being read."""

    file: HasFileno
    position: int
    length: int

    def __len__(self) -> int:
        return self.length

    def behind(self, sent_bytes: int) -> FileSlice:
        """Returns the rest of the slice after its first `sent_bytes` bytes."""
        return FileSlice(self.file, self.position + sent_bytes, self.length - sent_bytes)


Piece = bytes | bytearray | memoryview | FileSlice
