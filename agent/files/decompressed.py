"""Reads a compressed generation (a rotated file) as if it were the plain, that is, uncompressed,
file from which it was made.

Positions count plain bytes. A file can only be decompressed forwards. To go back, this module
decompresses the file again from its first byte. The module keeps only the first bytes of the file,
the bytes that were read last with a few before them, and those that the reader asks it to keep.
"""

from __future__ import annotations

import bz2
import errno
import io
import lzma
import os
import re
import sys
import zlib
from collections.abc import Callable
from typing import Final, NamedTuple, Protocol

from skidway.agent.files.host import Handle, Status
from skidway.agent.values.identity import GUARD_BYTES
from skidway.dataclass import dataclass

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

MEMORY_BYTES: Final = 128 << 20
"""By default, the decompression of a file may need this much memory: the largest window that
`zstd --long` makes and zstd(1) reads by itself. `xz -9` needs half of it."""

PLAIN_RATIO: Final = 1_000
PLAIN_BYTES_LEAST: Final = 1 << 30
"""A file counts as damaged if it has more than PLAIN_BYTES_LEAST plain bytes, and also more than
the ratio (by default PLAIN_RATIO) plain bytes for each compressed byte. Only a file that was made
to do harm has as many."""

INPUT_BYTES: Final = 1 << 16
"""One step reads at most this many compressed bytes."""

WORK_MAX: Final = 16 << 20
STREAM_WORK: Final = 2 << 10
WORK_FOR_BYTE: Final = 64
"""Each compressed byte is one unit of work, and the beginning of a stream STREAM_WORK units. A file
may ask for WORK_MAX units without a plain byte, and for WORK_FOR_BYTE units more for each plain
byte; otherwise it counts as damaged. So a read takes only as long as its plain bytes allow. Only a
file that was made to do harm has so many empty streams, or so many bytes between its streams."""

_CHUNK: Final = 1 << 20
_HEAD: Final = 4096
_BACK: Final = GUARD_BYTES
_FIRST_BYTES: Final = 256
_NO_NUL: Final = re.compile(rb"[^\0]")

_DAMAGE: Final = (OSError, EOFError, ValueError, zlib.error, lzma.LZMAError, zstd.ZstdError)


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a compressed file may ask for: memory, and plain bytes for each compressed byte."""

    memory_bytes: int = MEMORY_BYTES
    plain_ratio: int = PLAIN_RATIO

    def plain_bytes(self, file_bytes: int) -> int:
        """Returns how many plain bytes a file of this size may have."""
        return max(PLAIN_BYTES_LEAST, self.plain_ratio * file_bytes)


class _Stream(Protocol):
    """Decompresses one compressed stream. A file may have several streams, one after the other.
    needs_input: whether there is no more output without more input. unused_data: the bytes that
    came after the end of the stream."""

    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes | memoryview, max_length: int = -1) -> bytes: ...


class _Gzip:
    """One member of a gzip file."""

    def __init__(self) -> None:
        self._stream = zlib.decompressobj(zlib.MAX_WBITS | 16)
        self.needs_input = True

    @property
    def eof(self) -> bool:
        return self._stream.eof

    @property
    def unused_data(self) -> bytes:
        return self._stream.unused_data

    def decompress(self, data: bytes | memoryview, max_length: int = -1) -> bytes:
        rest = self._stream.unconsumed_tail
        made = self._stream.decompress(rest + data if rest else data, max_length)
        self.needs_input = len(made) < max_length and not self._stream.unconsumed_tail
        return made


class _Format(NamedTuple):
    """A compression format. magic: the first bytes of every file in this format. stream: makes a
    stream that may need as many bytes of memory. ignores_rest: whether bytes behind a stream that
    are no further stream belong to nobody."""

    magic: bytes
    stream: Callable[[int], _Stream]
    ignores_rest: bool = False


def _gzip(_memory_bytes: int) -> _Stream:
    return _Gzip()


def _bz2(_memory_bytes: int) -> _Stream:
    return bz2.BZ2Decompressor()


def _lzma(memory_bytes: int) -> _Stream:
    return lzma.LZMADecompressor(memlimit=memory_bytes)


def _zstd(memory_bytes: int) -> _Stream:
    log = memory_bytes.bit_length() - 1  # a window has two to the power of this many bytes
    options = {int(zstd.DecompressionParameter.window_log_max): log}
    return zstd.ZstdDecompressor(options=options)


_FORMATS: Final = {
    ".gz": _Format(b"\x1f\x8b", _gzip),
    ".bz2": _Format(b"BZh", _bz2, ignores_rest=True),
    ".xz": _Format(b"\xfd7zXZ\x00", _lzma, ignores_rest=True),
    ".lzma": _Format(b"]\x00\x00", _lzma, ignores_rest=True),
    ".zst": _Format(b"\x28\xb5\x2f\xfd", _zstd),
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

    def __init__(self, path: str, descriptor: int, bounds: Bounds) -> None:
        self._memory_bytes = bounds.memory_bytes
        self._format = _FORMATS[os.path.splitext(path)[1]]
        self._file = io.FileIO(descriptor, closefd=False)
        self.rewind()

    def read(self, count: int) -> bytes:
        """Returns the next decompressed bytes: `count` bytes, or fewer at the end of the file.
        Raises OSError if the file cannot be decompressed.
        """
        parts = []
        while count and not self.is_at_end:
            part = self.step(min(count, _CHUNK))
            parts.append(part)
            count -= len(part)
        return b"".join(parts)

    def rewind(self) -> None:
        """Goes back to the start, so that the next read returns the first bytes again."""
        self._stream: _Stream | None = None
        self._is_first = True  # whether `_stream` is the file's first one
        self._next_bytes = 0  # how many bytes the stream gets next; 0: it has had none
        self._data, self._used = b"", 0  # bytes of the file, and how many of them streams have had
        self._work_left = WORK_MAX
        self.is_at_end = False

    @property
    def is_begun(self) -> bool:
        """Whether the file is open in the middle, so that decompressing it takes memory."""
        return self._stream is not None

    def step(self, most: int) -> bytes:
        """Decompresses at most INPUT_BYTES further bytes of the file. Returns at most `most` plain
        bytes; perhaps none, although the file goes on. Raises OSError if the file cannot be
        decompressed."""
        try:
            return self._step(most)
        except MemoryError as error:  # a damaged header can ask for a window of 4 GiB
            raise OSError(
                errno.ENOMEM, "it cannot be decompressed: there is not enough memory"
            ) from error
        except _DAMAGE as error:
            raise OSError(errno.EIO, f"it cannot be decompressed: {error}") from error

    def _step(self, most: int) -> bytes:
        if self._stream is None:
            self._file.seek(0)
            self._begin()
        elif self._stream.eof:
            if not self._find_next():
                return b""
            self._begin()
            self._is_first = False
        assert self._stream is not None
        is_new = not self._next_bytes
        try:
            made = self._stream.decompress(self._piece(self._stream), most)
        except (OSError, lzma.LZMAError):
            if not is_new or self._is_first or not self._format.ignores_rest:
                raise
            self.is_at_end = True
            return b""
        if self._stream.eof:
            self._used -= len(self._stream.unused_data)
        self._work_left = min(self._work_left + WORK_FOR_BYTE * len(made), WORK_MAX)
        return made

    def _begin(self) -> None:
        self._work(STREAM_WORK)
        self._stream = self._format.stream(self._memory_bytes)
        self._next_bytes = 0

    def _piece(self, stream: _Stream) -> bytes | memoryview:
        """Returns the bytes that a stream needs next. At its end, a stream copies what is left of
        them, so each piece is at most as long as all the pieces before it."""
        self._next_bytes = min(2 * self._next_bytes or _FIRST_BYTES, INPUT_BYTES)
        if not stream.needs_input:
            return b""
        if not self._fill():
            raise EOFError("its end is missing")
        piece = memoryview(self._data)[self._used : self._used + self._next_bytes]
        self._used += len(piece)
        return piece

    def _find_next(self) -> bool:
        """Goes on behind the end of a stream: skips NUL bytes behind one of gzip. Returns whether
        there are further bytes, and notes if they are at their end."""
        if not self._fill():
            self.is_at_end = True
            return False
        if self._format.stream is _gzip:
            found = _NO_NUL.search(self._data, self._used)
            self._used = len(self._data) if found is None else found.start()
        return self._used < len(self._data)

    def _fill(self) -> bool:
        """Reads from the file if all bytes are used. Returns whether there are bytes."""
        if self._used == len(self._data):
            self._data, self._used = self._file.read(INPUT_BYTES) or b"", 0
            self._work(len(self._data))
        return bool(self._data)

    def _work(self, units: int) -> None:
        self._work_left -= units
        if self._work_left < 0:
            raise ValueError("it has too many parts without content")


class Decompressed:
    """A handle of a compressed file whose plain size in bytes is known."""

    def __init__(
        self, handle: Handle, path: str, descriptor: int, size: int, bounds: Bounds
    ) -> None:
        self._handle = handle
        self._size = size
        self._plain = Decompressor(path, descriptor, bounds)
        self._at = 0
        self._last = b""  # the plain bytes before position `_at`
        self._head = b""
        self._kept = 0, b""  # a position, and the plain bytes from there on

    def read(self, count: int, position: int) -> bytes:
        """Returns at most `count` plain bytes of the file, from a position on."""
        count = max(min(count, self._size - position), 0)
        if position + count <= len(self._head):
            return self._head[position : position + count]
        if position == self._kept[0] and 0 < count <= len(self._kept[1]):
            data, self._kept = self._kept[1][:count], (0, b"")
            return data
        if position < self._at - len(self._last):
            self._plain.rewind()
            self._at, self._last = 0, b""
        while self._at < position and (part := self._plain.read(min(_CHUNK, position - self._at))):
            self._pass(part, 0)
        data = self._last[len(self._last) - (self._at - position) :] if self._at > position else b""
        if len(data) < count:
            part = self._plain.read(count - len(data))
            data += part
            self._pass(part, max(self._at - position, 0))
        if self._at >= self._size:
            self._plain.rewind()  # the last bytes are here; what decompressed them takes memory
        return data[:count]

    def keep(self, data: bytes, position: int) -> None:
        """Keeps plain bytes in memory, in place of those that were kept before, until they are read
        once more or `rest` is called. The file does not change, so nobody needs to go back."""
        self._kept = position, data

    @property
    def is_live(self) -> bool:
        """Whether the file is being decompressed, which takes memory."""
        return self._plain.is_begun

    def rest(self) -> None:
        """Frees what takes memory. The next read decompresses the file from its beginning."""
        self._plain.rewind()
        self._at, self._last, self._kept = 0, b"", (0, b"")

    def status(self) -> Status:
        """Returns the file's present status, but with the number of its plain bytes as the size."""
        return self._handle.status()._replace(size=self._size)

    def where(self) -> str:
        """Returns the path at which the file is now."""
        return self._handle.where()

    def close(self) -> None:
        """Closes the descriptor."""
        self._handle.close()

    def _pass(self, part: bytes, read: int) -> None:
        """Goes on behind new plain bytes. read: how many of the bytes before them are wanted,
        besides those from which the next read may begin (the guard before its position)."""
        if self._at == 0:
            self._head = part[:_HEAD]
        self._at += len(part)
        self._last = self._last[-(read + _BACK) :] + part
