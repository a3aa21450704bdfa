"""Reads the whole lines of files: which bytes they have, and a hash of their texts."""

from __future__ import annotations

import bz2
import glob
import gzip
import hashlib
import lzma
import os
import re
import stat
import zlib
from array import array
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import IO, Any, Final, cast

import numpy as np

from skidway.audit.comparison.shapes import without_end
from skidway.errors import SkidwayError, UsageError

LINES_MAX: Final = 20_000_000
"""All files together may have at most this many lines. Each line takes 24 bytes of memory, and
about 100 bytes while lines are joined with records.
"""
LINE_BYTES_MAX: Final = 16 << 20
END: Final = (1 << 63) - 1
"""A position after the last byte of any file."""

_UNREADABLE: Final = (OSError, EOFError, zlib.error, lzma.LZMAError)
PACKED: Final = (".gz", ".bz2", ".xz")
_MIX: Final = np.uint64(0x9E3779B97F4A7C15)
_NOT_A_NAME = re.compile(r"[-._]")
_OF_COPIES = re.compile(r"|[-._]([0-9][-._0-9T]*|bak|old|orig|copy)")


@dataclass(slots=True)
class FileLines:
    """The lines of one file. begins, lengths, hashes: for each line, the position of its first
    byte, its length with its terminator (the line feed), and the hash of its text. Empty lines and
    a last line without a terminator are left out.

    The other fields are set only if the lines come from notes. names: the paths that the file had,
    the newest last; empty if only `path` is known. after_ms: all lines were written after this
    time; None if this is unknown. is_gone: whether the file is at none of its paths any more.
    old_end: the lines before this byte were noted so long ago that the shipper should have sent
    them. whole_from: the lines from this byte on were noted so late that all of their records are
    compared.
    """

    path: str
    begins: array[int] = field(default_factory=lambda: array("q"))
    lengths: array[int] = field(default_factory=lambda: array("q"))
    hashes: array[int] = field(default_factory=lambda: array("Q"))
    names: tuple[str, ...] = ()
    after_ms: int | None = None
    is_gone: bool = False
    old_end: int = 0
    whole_from: int = END

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths that the file had, as far as they are known."""
        return self.names or (self.path,)

    def text_at(self, first: int, length: int) -> bytes:
        """Reads the text of a line again. Returns b"" if no file at one of the paths has this line
        any more."""
        wanted = self.hashes[bisect_left(self.begins, first)]
        texts = (_text(path, first, length) for path in reversed(self.paths))
        return next((text for text in texts if hash_of(text) == wanted), b"")


def hash_of(text: bytes) -> int:
    """Returns the 64-bit hash of a text."""
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")


def keys_of(hashes: Any, begins: Any) -> Any:
    """Returns an array with a number (64 bits) for each line, made from the hash of the line's text
    and the position of its first byte. Lines with the same text at the same position have the same
    number. hashes, begins: for each line, the hash of its text, and the position of its first
    byte."""
    return hashes ^ ((begins.astype(np.uint64) + np.uint64(1)) * _MIX)


def files_of(patterns: Iterable[str]) -> list[str]:
    """Returns the absolute paths of the regular files that match the patterns, sorted by the files'
    times of modification, the oldest time first. If several paths lead to one file, returns one of
    them. Raises UsageError if no file matches, or if a file cannot be accessed."""
    found: dict[tuple[int, int], tuple[float, str]] = {}
    for pattern in patterns:
        for path in sorted(glob.glob(os.path.abspath(pattern), recursive=True)):
            try:
                status = os.stat(path)
            except FileNotFoundError:
                continue  # the file was deleted meanwhile, or the path is a broken link
            except OSError as error:
                raise UsageError(f"--files: cannot read {path}: {error.strerror}.") from error
            if stat.S_ISREG(status.st_mode):
                found.setdefault((status.st_dev, status.st_ino), (status.st_mtime, path))
    if not found:
        raise UsageError(f"--files: no file has a path like {', '.join(patterns)}.")
    return [path for _, path in sorted(found.values())]


def read(path: str, room: int = LINES_MAX) -> FileLines:
    """Reads the lines of a file. room: the file may have at most this many lines. Raises UsageError
    if the file has more lines, and SkidwayError if the file cannot be read.
    """
    lines = FileLines(path)
    at = 0
    try:
        with _opened(path) as file:
            while line := file.readline(LINE_BYTES_MAX):
                if not line.endswith(b"\n") and len(line) < LINE_BYTES_MAX:
                    break  # the line is unfinished: it may still grow
                text = without_end(line)
                if text:
                    if len(lines.begins) >= room:
                        raise UsageError(
                            f"--files: more than {LINES_MAX:,} lines; name fewer files."
                        )
                    lines.begins.append(at)
                    lines.lengths.append(len(line))
                    lines.hashes.append(hash_of(text))
                at += len(line)
    except _UNREADABLE as error:
        raise SkidwayError(f"{path} cannot be read: {error}.") from error
    return lines


def any_may_have_been(paths: Iterable[str], shipped: str) -> bool:
    """Whether a record with the path `shipped` may have a line of a file that had `paths`: see
    `may_have_been`."""
    return any(may_have_been(path, shipped) for path in paths)


def any_may_have_copy(paths: Iterable[str], shipped: str) -> bool:
    """Whether `shipped`, the path in a record, may be the path of a copy of a file that had
    `paths`. The name of a copy is the file's name with a number, a date or, for example, `.bak`
    added. Notes do not have the paths of copies: the agent notes the lines of a file once, and not
    again for its copy.
    """
    return any(may_have_been(shipped, path) and _is_copy(shipped, path) for path in paths)


def may_have_been(path: str, shipped: str) -> bool:
    """Whether the file that is at `path` now may have been at `shipped` (the path in a record) when
    its lines were sent. The answer is yes if the paths are equal, or if rotation may have renamed
    `shipped` to `path`: for example app.log to app.log.1, app.log-20260131.gz or app-20260131.log.
    """
    if path == shipped:
        return True
    folder, name = os.path.split(path)
    before, base = os.path.split(shipped)
    if folder != before:
        return False
    name = name.removesuffix(os.path.splitext(name)[1]) if name.endswith(PACKED) else name
    if name == base or (name.startswith(base) and _NOT_A_NAME.match(name[len(base) :])):
        return True
    stem, extension = os.path.splitext(base)
    rest = name[len(stem) : -len(extension)] if extension else ""
    return bool(
        extension and name.startswith(stem) and name.endswith(extension) and _NOT_A_NAME.match(rest)
    )


def _is_copy(copy: str, path: str) -> bool:
    """Whether the names of `copy` and `path` are equal, or the name of `copy` has only a number, a
    date or a word such as bak in addition. A suffix such as .gz is ignored. The caller must have
    checked that `may_have_been(copy, path)` is true."""
    name, base = os.path.basename(copy), os.path.basename(path)
    name = name.removesuffix(os.path.splitext(name)[1]) if name.endswith(PACKED) else name
    stem, extension = os.path.splitext(base)
    if name.startswith(base):
        added = name[len(base) :]
    else:
        added = name[len(stem) : len(name) - len(extension)]
    return _OF_COPIES.fullmatch(added) is not None


def _text(path: str, first: int, length: int) -> bytes:
    try:
        with _opened(path) as file:
            file.seek(first)
            return without_end(file.read(min(length, LINE_BYTES_MAX)))
    except _UNREADABLE:
        return b""


def _opened(path: str) -> IO[bytes]:
    if path.endswith(".gz"):
        return cast(IO[bytes], gzip.open(path))
    if path.endswith(".bz2"):
        return bz2.open(path)
    if path.endswith(".xz"):
        return lzma.open(path)
    return open(path, "rb")
