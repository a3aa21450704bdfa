"""The notes of `skidway agent count` say which lines the files of this host had, even if the files
are gone now. This module defines how the notes are stored, and reads them for `skidway audit
compare --counted`. (These notes are not messages to the audit.)

The notes are tables of one SQLite database, `<directory>/count.db`. The database also has the
positions up to which the agent has read the files. One transaction writes new notes and moves the
positions, so a crash neither loses nor doubles a note.

    notes         the range of one reading (of one file), with its lines: for each line its
                  length (u32), and then for each line its hash (u64), little-endian. The sum of
                  the lengths is the length of the range. The hash NOT_COMPARED (that of an empty
                  text) marks a line that the comparison leaves out, because it is empty or not
                  whole
    noted_files   the files of the notes, in the order in which the agent found them
    noted_paths   the paths that each file had, the newest last
    unnoted       bytes whose lines are not noted, or may be noted twice, with the reason

If a note does not match its checksum, it is damaged, and the reader raises StateRefused. If there
are too many notes, or if notes are too old, the agent deletes the oldest notes. After that,
`counted_from` in the table `meta` says since when all lines are noted.
"""

from __future__ import annotations

import os
import sqlite3
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final

import google_crc32c
import numpy as np

from skidway.audit.comparison.lines import END, LINES_MAX, FileLines, hash_of, keys_of
from skidway.database_reader import open_to_read
from skidway.errors import SkidwayError, StateRefused, UsageError

DATABASE: Final = "count.db"
FORMAT: Final = 1
FORMAT_KEY: Final = "notes_format"
COUNTED_FROM: Final = "counted_from"
"""This key of the table `meta` has the time (ms) since when all lines that the agent has read are
noted."""

NOT_COMPARED: Final = hash_of(b"")
LAG_MS: Final = 3_600_000
"""The comparison expects a shipper to send a line at most this many ms after the agent has noted
it. So if the comparison takes only the records since 12:00, it takes the lines that were noted
since 11:00, because their records may have been sent after 12:00."""

UNNOTED_MAX: Final = 10_000

TABLES: Final = """
CREATE TABLE noted_files ( -- after_ms: all its lines were written after this time
    file INTEGER PRIMARY KEY, serial INTEGER NOT NULL, after_ms INTEGER NOT NULL,
    is_divided INTEGER NOT NULL -- whether the last noted line has no line end yet
) STRICT;

CREATE TABLE noted_paths (
    id INTEGER PRIMARY KEY, file INTEGER NOT NULL, path BLOB NOT NULL, UNIQUE (file, path)
) STRICT;

CREATE TABLE notes ( -- segment: notes that are deleted together; crc: `checksum`
    id INTEGER PRIMARY KEY, segment INTEGER NOT NULL, bytes INTEGER NOT NULL,
    file INTEGER NOT NULL, first INTEGER NOT NULL, "end" INTEGER NOT NULL,
    read_ms INTEGER NOT NULL, lines BLOB NOT NULL, crc INTEGER NOT NULL
) STRICT;

CREATE INDEX notes_of_segments ON notes (segment, file, read_ms, bytes);

CREATE TABLE unnoted ( -- is_uncertain: noted, perhaps as lines of another file too
    id INTEGER PRIMARY KEY, file INTEGER, path TEXT NOT NULL, first INTEGER NOT NULL,
    "end" INTEGER, is_uncertain INTEGER NOT NULL, reason TEXT NOT NULL, noted_ms INTEGER NOT NULL
) STRICT;
"""

_ENVIRONMENT: Final = (
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_READONLY,
)
LINE_BYTES: Final = 12
"""A line takes this many bytes in a note."""


IsAt = Callable[[str, int, int], bool]


@dataclass(frozen=True, slots=True)
class Unnoted:
    """Bytes of a file whose lines are not noted, or may be noted twice. end: None if the end is
    unknown."""

    path: str
    first: int
    end: int | None
    reason: str


@dataclass(slots=True)
class Counted:
    """The lines that one directory of notes has. files: the file that the agent found first comes
    first. from_ms: since when all lines that the agent has read are noted. until_ms: the time of
    the last look at which the agent could read all files that it found; 0 if there was no such
    look. unnoted: bytes whose lines are not noted. uncertain: bytes whose lines may be noted twice
    (see `_leave_out_repeats`).
    """

    from_ms: int
    until_ms: int
    files: list[FileLines] = field(default_factory=list)
    unnoted: list[Unnoted] = field(default_factory=list)
    uncertain: list[Unnoted] = field(default_factory=list)


# --- the form of a note -----------------------------------------------------------------------


def lines_of(data: bytes, *, is_divided: bool) -> bytes:
    """Returns the column `lines` for a range with these bytes. A last line without a line end is
    marked as not compared. is_divided: whether the range begins inside a line; then its first line
    is also marked.
    """
    is_open = not data.endswith(b"\n")
    texts = data.split(b"\n")
    if not is_open:
        texts.pop()
    if b"\r" in data:
        texts = [text.rstrip(b"\r") for text in texts]
    hashes = [blake2b(text, digest_size=8).digest() for text in texts]
    empty = NOT_COMPARED.to_bytes(8, "little")
    if is_divided:
        hashes[0] = empty
    if is_open:
        hashes[-1] = empty
    ends = np.flatnonzero(np.frombuffer(data, np.uint8) == 10) + 1  # the line feeds
    if is_open:
        ends = np.append(ends, len(data))
    lengths = np.diff(ends, prepend=0).astype("<u4")
    return lengths.tobytes() + b"".join(hashes)


def line_of(length: int, hash_: int) -> bytes:
    """Returns the column `lines` for a range that is one line."""
    return length.to_bytes(4, "little") + hash_.to_bytes(8, "little")


def checksum(file: int, first: int, end: int, read_ms: int, lines: bytes) -> int:
    """Returns the checksum (CRC-32C) of a note."""
    crc: int = google_crc32c.extend(
        google_crc32c.value(repr((file, first, end, read_ms)).encode()), lines
    )
    return crc


def columns(first: int, lines: bytes) -> tuple[Any, Any, Any]:
    """Returns, for each line of a note, the position of its first byte, its length and its hash, as
    arrays of NumPy. first: the position of the first byte of the note's range."""
    count = len(lines) // LINE_BYTES
    lengths = np.frombuffer(lines, "<u4", count).astype(np.int64)
    hashes = np.frombuffer(lines, "<u8", count, count * 4)
    return first + np.cumsum(lengths) - lengths, lengths, hashes


# --- reading ----------------------------------------------------------------------------------


class Notes:
    """Reads a directory of notes, even while the agent writes to it."""

    def __init__(self, directory: Path, is_at: IsAt | None = None) -> None:
        """is_at: a function that returns whether a path leads to the file with this device and
        inode."""
        self._path = directory / DATABASE
        self._is_at = is_at or _is_at

    def from_ms(self) -> int:
        """Returns since when all lines that the agent has read are noted. Raises UsageError if
        there are no notes, StateRefused if the notes are damaged or have another format, and
        SkidwayError if they cannot be read."""
        with self._opened() as connection:
            return self._from_ms(connection)

    def read(
        self, since_ms: int, now_ms: int, room: int = LINES_MAX, whole_ms: int | None = None
    ) -> Counted:
        """Returns the noted lines that may belong to records since `since_ms`. whole_ms: all
        records of lines that were written since this time are compared; None if there is no such
        time. Raises UsageError if there are more than `room` lines, and the errors of `from_ms`.
        """
        with self._opened() as connection:
            counted = Counted(self._from_ms(connection), _until_ms(connection))
            statement = "SELECT file, after_ms FROM noted_files ORDER BY serial"
            files = {
                file: FileLines("", after_ms=after_ms or None)
                for file, after_ms in connection.execute(statement)
            }
            self._read_paths(connection, files)
            _mark_gone(connection, files, self._is_at)
            uncertain = self._read_unnoted(connection, counted)
            found = self._ranges(connection, since_ms - LAG_MS)
            newest_ms = 0
            for file, read_ms, begins, lengths, hashes in found:
                if read_ms < newest_ms:  # the clock was set back: the notes' times may be wrong
                    for each in files.values():
                        each.whole_from = END
                newest_ms = read_ms
                is_compared = hashes != NOT_COMPARED
                room -= int(np.count_nonzero(is_compared))
                if room < 0:
                    raise UsageError(
                        f"--counted: more than {LINES_MAX:,} lines; name a shorter time (--since)."
                    )
                lines = files[file]
                if read_ms < now_ms - LAG_MS:
                    lines.old_end = int(begins[-1] + lengths[-1])
                if whole_ms is not None and read_ms > whole_ms + LAG_MS:
                    lines.whole_from = min(lines.whole_from, int(begins[0]))
                lines.begins.frombytes(begins[is_compared].astype(np.int64).tobytes())
                lines.lengths.frombytes(lengths[is_compared].astype(np.int64).tobytes())
                lines.hashes.frombytes(hashes[is_compared].astype(np.uint64).tobytes())
        _leave_out_repeats(files, uncertain)
        counted.files = [each for each in files.values() if each.begins]
        return counted

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        """Opens the database in one transaction, so that all queries see the same notes."""
        if not self._path.exists():
            raise UsageError(f"--counted: {self._path.parent} has no notes of skidway agent count.")
        try:
            with closing(open_to_read(self._path, 5)) as connection:
                connection.execute("BEGIN")
                self._check(connection)
                yield connection
        except sqlite3.Error as error:
            if getattr(error, "sqlite_errorcode", 0) & 0xFF in _ENVIRONMENT:
                raise SkidwayError(f"the notes {self._path} cannot be read: {error}") from error
            raise self._damaged(str(error)) from error

    def _check(self, connection: sqlite3.Connection) -> None:
        found = dict(connection.execute("SELECT key, value FROM meta").fetchall())
        if FORMAT_KEY not in found:
            raise UsageError(f"--counted: the agent has noted nothing in {self._path.parent} yet.")
        if found[FORMAT_KEY] != FORMAT:
            raise StateRefused(
                f"the notes {self._path} have format {found[FORMAT_KEY]}, this program knows "
                f"{FORMAT}; use the program that wrote them"
            )

    @staticmethod
    def _from_ms(connection: sqlite3.Connection) -> int:
        statement = "SELECT value FROM meta WHERE key = ?"
        return int(connection.execute(statement, (COUNTED_FROM,)).fetchone()[0])

    @staticmethod
    def _read_paths(connection: sqlite3.Connection, files: dict[int, FileLines]) -> None:
        for file, path in connection.execute("SELECT file, path FROM noted_paths ORDER BY id"):
            if file in files:
                lines = files[file]
                lines.path = os.fsdecode(path)
                lines.names = (*lines.names, lines.path)

    @staticmethod
    def _read_unnoted(
        connection: sqlite3.Connection, counted: Counted
    ) -> dict[int, list[tuple[int, int]]]:
        """Adds to `counted` the bytes whose lines are not noted, and the bytes whose lines may be
        noted twice. Returns, by file, the bytes whose lines may be noted twice."""
        uncertain: dict[int, list[tuple[int, int]]] = {}
        statement = 'SELECT file, path, first, "end", is_uncertain, reason FROM unnoted ORDER BY id'
        for file, path, first, end, is_uncertain, reason in connection.execute(statement):
            found = Unnoted(path, first, end, reason)
            if is_uncertain:
                uncertain.setdefault(file, []).append((first, end))
                counted.uncertain.append(found)
            else:
                counted.unnoted.append(found)
        return uncertain

    def _ranges(
        self, connection: sqlite3.Connection, from_ms: int
    ) -> Iterator[tuple[int, int, Any, Any, Any]]:
        statement = (
            'SELECT file, first, "end", read_ms, lines, crc FROM notes WHERE read_ms >= ?'
            " ORDER BY id"
        )
        for file, first, end, read_ms, lines, crc in connection.execute(statement, (from_ms,)):
            if checksum(file, first, end, read_ms, lines) != crc:
                raise self._damaged(f"the note of file {file} at byte {first} has another checksum")
            yield file, read_ms, *columns(first, lines)

    def _damaged(self, what: str) -> StateRefused:
        return StateRefused(
            f"the notes {self._path} cannot be used: {what}; begin new notes in another directory"
        )


def _until_ms(connection: sqlite3.Connection) -> int:
    """Returns the time of the last look at which the agent could read all files that it found; 0 if
    there was no such look."""
    statement = "SELECT coalesce(max(sealed_until), 0) FROM topics"
    return int(connection.execute(statement).fetchone()[0])


def _mark_gone(connection: sqlite3.Connection, files: Mapping[int, FileLines], is_at: IsAt) -> None:
    """Sets `is_gone` for each file. A file is gone if the agent found that it has no path any more,
    if its inode belongs to another file now, or if none of its paths leads to its inode."""
    rows = connection.execute("SELECT device, inode, file, location FROM files ORDER BY serial")
    newest = {(device, inode): (file, location) for device, inode, file, location in rows}
    keys = {file: key for key, (file, location) in newest.items() if location}
    for file, lines in files.items():
        key = keys.get(file)
        lines.is_gone = key is None or not any(is_at(path, *key) for path in lines.paths)


def _is_at(path: str, device: int, inode: int) -> bool:
    """Whether the path leads, or may lead, to the file with this device and inode. SQLite cannot
    store integers from 2^63 on. If the number of a device or inode is that large, the agent's state
    has the number minus 2^64."""
    try:
        status = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True  # for example, this user has no access to the directory
    return not ((status.st_dev - device) % (1 << 64) or (status.st_ino - inode) % (1 << 64))


def _leave_out_repeats(
    files: Mapping[int, FileLines], uncertain: Mapping[int, Sequence[tuple[int, int]]]
) -> None:
    """Removes lines that are noted twice. uncertain: by file, bytes that the agent may already have
    read as bytes of an earlier file (for example, before the file was compressed). A line in these
    bytes is a repeat if an earlier file has the same text at the same byte.
    """
    earlier = list[Any]()
    for file, lines in files.items():
        begins, hashes = np.array(lines.begins, np.int64), np.array(lines.hashes, np.uint64)
        if file in uncertain and earlier and len(begins):
            is_repeat = np.isin(keys_of(hashes, begins), np.concatenate(earlier))
            spans = uncertain[file]
            is_repeat &= np.any([(begins >= x) & (begins < end) for x, end in spans], axis=0)
            lengths = np.array(lines.lengths, np.int64)[~is_repeat]
            lines.begins = array("q", begins[~is_repeat].tobytes())
            lines.lengths = array("q", lengths.tobytes())
            lines.hashes = array("Q", hashes[~is_repeat].tobytes())
        if uncertain:
            earlier.append(keys_of(hashes, begins))
