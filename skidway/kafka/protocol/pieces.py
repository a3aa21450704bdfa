"""Pieces of a frame: bytes to send, or a part of a file that is sent without being read.

A response is a list of pieces, in the order in which they go out. A ``FileSlice`` stands for bytes
of a file that the network layer sends with sendfile; only its length is used here.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


class HasFileno(Protocol):
    """The owner of a file descriptor; it keeps the file open while slices of it exist."""

    @property
    def path(self) -> Path:
        """The file's path, for errors when it cannot be read."""

    def fileno(self) -> int:
        """The descriptor, for os.sendfile."""


@dataclass(frozen=True, slots=True)
class FileSlice:
    """Bytes of a file that are part of a response without having been read."""

    file: HasFileno
    position: int
    length: int

    def __len__(self) -> int:
        return self.length

    def behind(self, sent_bytes: int) -> FileSlice:
        """What is left after the first `sent_bytes`."""
        return FileSlice(self.file, self.position + sent_bytes, self.length - sent_bytes)


Piece = bytes | bytearray | memoryview | FileSlice
