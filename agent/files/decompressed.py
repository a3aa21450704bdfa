"""Reads a compressed generation (a rotated file) as if it were the plain, that is, uncompressed,
file from which it was made.

Positions count plain bytes. A file can only be decompressed forwards. To go back, this module
decompresses the file again from its first byte. The module keeps only the first bytes of the file
and the bytes that were read last.
"""

from __future__ import annotations

import bz2
import errno
import gzip
import io
import lzma
import os
import sys
import zlib
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from skidway.agent.files.host import Handle, Status

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

_CHUNK: Final = 1 << 20
_HEAD: Final = 4096

_DAMAGE: Final = (OSError, EOFError, ValueError, zlib.error, lzma.LZMAError, zstd.ZstdError)


class _Format(NamedTuple):
    """A compression format. magic: the first bytes of every file in this format."""

    magic: bytes
    stream: Callable[[io.FileIO], Any]


_FORMATS: Final = {
    ".gz": _Format(b"\x1f\x8b", lambda file: gzip.GzipFile(fileobj=file)),
    ".bz2": _Format(b"BZh", bz2.BZ2File),
    ".xz": _Format(b"\xfd7zXZ\x00", lzma.LZMAFile),
    ".lzma": _Format(b"]\x00\x00", lzma.LZMAFile),
    ".zst": _Format(b"\x28\xb5\x2f\xfd", zstd.ZstdFile),
}


_ENDINGS: Final = tuple(_FORMATS)


def is_decompressed(path: str) -> bool:
    """Whether a file's name ends like the names of files that the agent can decompress."""
    return path.endswith(_ENDINGS)


def begins_compressed(path: str, head: bytes) -> bool:
    """Whether the first bytes show that the file is compressed. The name does not prove that the
    file is compressed, because some programs give such names to plain files.
    """
    return head.startswith(_FORMATS[os.path.splitext(path)[1]].magic)


class Decompressor:
    """Reads the plain bytes of an open descriptor. Reading moves the descriptor's offset. This
    class does not close the descriptor.
    """

    def __init__(self, path: str, descriptor: int) -> None:
        self._format = _FORMATS[os.path.splitext(path)[1]]
        self._descriptor = descriptor
        self._stream: Any = None

    def read(self, count: int) -> bytes:
        """Returns the next decompressed bytes: `count` bytes, or fewer at the end of the file.
        Raises OSError if the file cannot be decompressed.
        """
        try:
            if self._stream is None:
                self.rewind()
            parts = []
            while count and (part := self._stream.read(min(count, _CHUNK))):
                parts.append(part)
                count -= len(part)
            return b"".join(parts)
        except MemoryError as error:  # a damaged header can ask for a window of 4 GiB
            raise OSError(
                errno.ENOMEM, "it cannot be decompressed: there is not enough memory"
            ) from error
        except _DAMAGE as error:
            raise OSError(errno.EIO, f"it cannot be decompressed: {error}") from error

    def rewind(self) -> None:
        """Goes back to the start, so that the next read returns the first bytes again."""
        os.lseek(self._descriptor, 0, os.SEEK_SET)
        self._stream = self._format.stream(io.FileIO(self._descriptor, closefd=False))

    def length(self, most: int) -> int:
        """Returns how many decompressed bytes follow those that were read. Raises OSError if more
        than `most` bytes follow, or if the file cannot be decompressed.
        """
        total = 0
        while part := self.read(_CHUNK):
            total += len(part)
            if total > most:
                raise OSError(errno.EFBIG, f"it has more than {most:,} bytes")
        return total


class Decompressed:
    """A handle of a compressed file whose plain size in bytes is known."""

    def __init__(self, handle: Handle, path: str, descriptor: int, size: int) -> None:
        self._handle = handle
        self._size = size
        self._plain = Decompressor(path, descriptor)
        self._at = 0
        self._last = b""  # the plain bytes before position `_at`
        self._head = b""

    def read(self, count: int, position: int) -> bytes:
        """Returns at most `count` plain bytes of the file, from a position on."""
        if position + count <= len(self._head):
            return self._head[position : position + count]
        if position < self._at - len(self._last):
            self._plain.rewind()
            self._at, self._last = 0, b""
        while self._at < position and (part := self._plain.read(min(_CHUNK, position - self._at))):
            self._pass(part)
        data = self._last[len(self._last) - (self._at - position) :] if self._at > position else b""
        if len(data) < count:
            part = self._plain.read(count - len(data))
            data += part
            if self._at == 0:
                self._head = part[:_HEAD]
            self._at += len(part)
            self._last = data
        return data[:count]

    def status(self) -> Status:
        """Returns the file's present status, but with the number of its plain bytes as the size."""
        return self._handle.status()._replace(size=self._size)

    def where(self) -> str:
        """Returns the path at which the file is now."""
        return self._handle.where()

    def close(self) -> None:
        """Closes the descriptor."""
        self._handle.close()

    def _pass(self, part: bytes) -> None:
        if self._at == 0:
            self._head = part[:_HEAD]
        self._at += len(part)
        self._last = part
