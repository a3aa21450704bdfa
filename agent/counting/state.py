"""The database of `skidway agent count`: the agent's tables for files, and the tables of notes."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import ClassVar

from skidway.agent.counting.segments import Segment, stored_bytes
from skidway.agent.counting.settings import SOURCE
from skidway.agent.files.patterns import Pattern
from skidway.agent.state.changes import Changes
from skidway.agent.state.database import DATABASE as AGENT_DATABASE
from skidway.agent.state.database import StateDatabase, open_as
from skidway.agent.state.tables import TABLES
from skidway.agent.values import identity
from skidway.agent.values.tracked import TrackedFile
from skidway.audit.comparison import notes
from skidway.dataclass import dataclass
from skidway.errors import StateRefused, UsageError
from skidway.files import LOCK_FILE

_NOBODYS = (LOCK_FILE, "lost+found")
_TOO_MANY = "id <= (SELECT max(id) FROM unnoted) - ?"
_WHOLE_SINCE = f"""
UPDATE meta SET value = max(value, coalesce(
    (SELECT max(noted_ms) + 1 FROM unnoted WHERE {_TOO_MANY}), 0)) WHERE key = ?
"""  # noqa: S608 - our own text
"""The SQL statement that sets the time since which the notes are complete. The table `unnoted`
lists byte ranges without a note. If the table has too many rows, the oldest rows are deleted. After
that, the notes count as complete only for the time after the deleted rows.
"""


@dataclass(frozen=True, slots=True)
class Note:
    """The lines of the bytes [first, end) of a file. lines: the lengths of these lines and the
    hashes of their texts, encoded by `notes.lines_of`."""

    file: int
    first: int
    end: int
    read_ms: int
    lines: bytes

    @property
    def count(self) -> int:
        """How many lines the note has."""
        return len(self.lines) // notes.LINE_BYTES


class CountState(StateDatabase):
    """Owns the connection to the database, as its base class does for the agent."""

    file_name: ClassVar[str] = notes.DATABASE
    tables: ClassVar[str] = TABLES + notes.TABLES
    what_now: ClassVar[str] = (
        "move the directory away: new notes begin with the files that are still there"
    )

    def segments(self) -> list[Segment]:
        """Returns the segments of the notes."""
        rows = self._rows(
            "SELECT segment, min(read_ms), max(read_ms), sum(bytes) FROM notes GROUP BY segment"
        )
        return [Segment(*row) for row in rows]

    def divided(self) -> set[int]:
        """Returns the files whose last noted line has no line end yet."""
        return {file for (file,) in self._rows("SELECT file FROM noted_files WHERE is_divided")}

    def looked_ms(self) -> int:
        """Returns the time (ms) of the last look at which the agent could read all files that it
        found; 0 if there was no such look."""
        topic = self.topics().get(SOURCE)
        return 0 if topic is None or topic.sealed_until is None else topic.sealed_until


def open_count(directory: Path) -> CountState:
    """Opens the database in a directory that the caller has locked; makes it if there is none.
    Raises StateRefused if the database is damaged, of another format or of another machine, and
    SkidwayError if the file system refuses the access or the database cannot be made.
    """
    state = open_as(CountState, directory)
    if state.machine != identity.machine_id():
        state.close()
        raise StateRefused(
            f"the notes in {directory} were made on another machine; name another directory"
        )
    return state


def check_directory(directory: Path, patterns: Iterable[Pattern]) -> None:
    """Raises UsageError if the path is no directory, if the directory has files of another program,
    or if a pattern matches the database of the notes itself."""
    if (directory / AGENT_DATABASE).exists():
        raise UsageError(
            f"--into: {directory} has the state of an agent; name a directory of its own."
        )
    if directory.exists() and not directory.is_dir():
        raise UsageError(f"--into: {directory} is no directory.")
    is_ours = os.path.lexists(directory / notes.DATABASE)
    found = directory.iterdir() if directory.exists() else ()
    if not is_ours and any(_is_of_others(x.name) for x in found):
        raise UsageError(f"--into: {directory} has other files; name an empty directory.")
    folders = (os.path.abspath(directory), os.path.realpath(directory))
    own = [f"{folder}/{notes.DATABASE}{end}" for folder in folders for end in ("", "-wal", "-shm")]
    for pattern in patterns:
        root = os.path.realpath(pattern.root)
        real = Pattern(root.rstrip("/") + pattern.text[len(pattern.root.rstrip("/")) :])
        if any(pattern.means(path) or real.means(path) for path in own):
            raise UsageError(
                f"--into: {pattern.text} also matches the notes in {directory}; name another"
                " directory."
            )


def _is_of_others(name: str) -> bool:
    """Whether a file with this name shows that another program uses the directory. The names in
    _NOBODYS (such as `lost+found`) do not show this. The database's name with `.new` does not show
    this either: if the agent is killed while it makes the database, the beginning of the database
    is left under this name."""
    return name not in _NOBODYS and not name.startswith(f"{notes.DATABASE}.new")


class CountChanges(Changes):
    """The SQL statements of one transaction: the statements about files, which the agent also has,
    and the statements about notes."""

    def begin_count(self, now_ms: int) -> None:
        """Stores when `skidway agent count` first started with this directory."""
        self.put_since(SOURCE, now_ms)
        self.put_meta(notes.FORMAT_KEY, notes.FORMAT)
        self.put_meta(notes.COUNTED_FROM, now_ms)

    def put_set_back(self, now_ms: int) -> None:
        """Called if the clock may have been set back to `now_ms`. New lines may then be written at
        earlier times than the state expects. So the time since which the notes are complete becomes
        at most `now_ms`. For each file, the state has a time after which all lines of the file were
        written. If this time is later than `now_ms`, the state forgets it.
        """
        statement = "UPDATE meta SET value = min(value, ?) WHERE key = ?"
        self._do(statement, (now_ms, notes.COUNTED_FROM))
        self._do("UPDATE noted_files SET after_ms = 0 WHERE after_ms > ?", (now_ms,))

    def put_looked_at(self, now_ms: int) -> None:
        """Notes the time of a look at which the agent could read all files that it found."""
        self.put_topic(SOURCE, "", now_ms)

    def put_noted_file(self, tracked: TrackedFile, after_ms: int, *, is_divided: bool) -> None:
        """Adds a file whose lines will be noted. after_ms: all its lines were written after this
        time; 0 if unknown.
        """
        row = (tracked.file, tracked.birth.serial, after_ms, int(is_divided))
        self._do("INSERT OR IGNORE INTO noted_files VALUES (?, ?, ?, ?)", row)

    def put_divided(self, file: int, *, is_divided: bool) -> None:
        """Notes whether the last noted line of a file has no line end yet."""
        statement = "UPDATE noted_files SET is_divided = ? WHERE file = ?"
        self._do(statement, (int(is_divided), file))

    def put_paths(self, files: Iterable[TrackedFile]) -> None:
        """Adds the present paths of files to the paths that they had."""
        rows = [
            (each.file, os.fsencode(path))
            for each in files
            for path in dict.fromkeys((each.birth.path, each.meant, each.location))
            if path
        ]
        self._do("INSERT OR IGNORE INTO noted_paths (file, path) VALUES (?, ?)", *rows)

    def put_note(self, note: Note, segment: int) -> None:
        """Stores a note as a part of a segment."""
        crc = notes.checksum(note.file, note.first, note.end, note.read_ms, note.lines)
        row = (
            segment, stored_bytes(note.lines), note.file, note.first, note.end, note.read_ms,
            note.lines, crc,
        )  # fmt: skip
        self._do(
            'INSERT INTO notes (segment, bytes, file, first, "end", read_ms, lines, crc)'
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            row,
        )

    def put_unnoted(
        self, file: int | None, unnoted: notes.Unnoted, now_ms: int, *, is_uncertain: bool = False
    ) -> None:
        """Adds a byte range that is not noted, or that may be noted twice, with the reason."""
        row = (
            file, unnoted.path, unnoted.first, unnoted.end, int(is_uncertain), unnoted.reason,
            now_ms,
        )  # fmt: skip
        self._do(
            'INSERT INTO unnoted (file, path, first, "end", is_uncertain, reason, noted_ms)'
            " VALUES (?, ?, ?, ?, ?, ?, ?)",
            row,
        )
        self._do(_WHOLE_SINCE, (notes.UNNOTED_MAX, notes.COUNTED_FROM))
        self._do(f"DELETE FROM unnoted WHERE {_TOO_MANY}", (notes.UNNOTED_MAX,))  # noqa: S608 - ours

    def drop(self, segments: Iterable[Segment], now_ms: int) -> None:
        """Deletes the notes of these segments, which come in order of age, the oldest first. Also
        deletes the rows about byte ranges without a note that are no newer than these notes, and
        the rows about files that have no notes left and are no longer in the table `files`. Stores
        the time since which the notes are complete.
        """
        newest_ms = None
        for each in segments:
            newest_ms = each.newest_ms
            self._do("DELETE FROM notes WHERE segment = ?", (each.number,))
        if newest_ms is None:
            return
        since_ms = min(newest_ms + 1, now_ms)
        self._do(
            "UPDATE meta SET value = max(value, ?) WHERE key = ?", (since_ms, notes.COUNTED_FROM)
        )
        self._do("DELETE FROM unnoted WHERE noted_ms <= ? AND NOT is_uncertain", (newest_ms,))
        self._do(
            "DELETE FROM noted_files WHERE file NOT IN (SELECT file FROM notes)"
            " AND file NOT IN (SELECT file FROM files)",
            (),
        )
        for table in ("noted_paths", "unnoted"):
            self._do(
                f"DELETE FROM {table} WHERE file NOT IN (SELECT file FROM noted_files)",  # noqa: S608
                (),
            )
