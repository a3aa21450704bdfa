"""Makes a note of each reading (bytes that were just read from a file). The note says which lines
the bytes have."""

from __future__ import annotations

from typing import Final

from skidway.agent.counting.state import CountChanges, Note
from skidway.agent.files.handles import Handles, Moved
from skidway.agent.files.reading import Taken
from skidway.agent.values.intents import crc_of
from skidway.agent.values.set_apart import SetApart, Unseen
from skidway.agent.values.tracked import TrackedFile
from skidway.audit.comparison.lines import LINE_BYTES_MAX, hash_of
from skidway.audit.comparison.notes import NOT_COMPARED, Unnoted, line_of, lines_of
from skidway.audit.comparison.shapes import without_end
from skidway.audit.topic.messages import Certainty

NO_LINE_END: Final = "this line has no line end"
REST_OF_LINE: Final = "this is the rest of a line that was noted without its line end"
TOO_LONG: Final = f"this line is longer than {LINE_BYTES_MAX >> 20} MiB, or could not be read again"


class Noting:
    """Owns the set of the files whose last noted line has no line end yet."""

    def __init__(self, handles: Handles, divided: set[int]) -> None:
        self._handles = handles
        self._divided = divided

    def begin(self, tracked: TrackedFile, after_ms: int, changes: CountChanges) -> None:
        """Stores a new file, before any of its bytes are read. after_ms: all its lines were written
        after this time; 0 if unknown.
        """
        before = tracked.tail or b""
        is_divided = bool(before) and not before.endswith(b"\n")
        if is_divided:
            self._divided.add(tracked.file)
        changes.put_noted_file(tracked, after_ms, is_divided=is_divided)

    def note(self, taken: Taken, changes: CountChanges) -> Note:
        """Returns the note of a reading. The note marks some lines as not compared: parts of lines,
        and lines that are too long or could not be read again. Adds the byte ranges of these lines
        to `changes`, each with its reason.
        """
        intent, data = taken.reading.intent, taken.reading.data
        was_divided = intent.file in self._divided
        if len(data) == intent.length:
            is_divided = not data.endswith(b"\n")
            lines = lines_of(data, is_divided=was_divided)
            if was_divided:
                end = intent.first + (data.find(b"\n") + 1 or len(data))
                self._leave_out(taken, (intent.first, end), REST_OF_LINE, changes)
            if is_divided:
                first = intent.first + data.rfind(b"\n") + 1
                self._leave_out(taken, (first, intent.end), NO_LINE_END, changes)
        else:
            text = self._long_line(taken)
            is_divided = not text.endswith(b"\n")
            is_compared = intent.length == len(text) and not (is_divided or was_divided)
            hash_ = hash_of(without_end(text)) if is_compared else NOT_COMPARED
            lines = line_of(intent.length, hash_)
            if not is_compared:
                self._leave_out(taken, (intent.first, intent.end), TOO_LONG, changes)
        if is_divided != was_divided:
            (self._divided.add if is_divided else self._divided.discard)(intent.file)
            changes.put_divided(intent.file, is_divided=is_divided)
        return Note(intent.file, intent.first, intent.end, intent.read_ms, lines)

    def forget(self, file: int) -> None:
        """Forgets a file from which no more lines come."""
        self._divided.discard(file)

    def _long_line(self, taken: Taken) -> bytes:
        """Reads the bytes of a line of which the reading has only the head. If the line is longer
        than LINE_BYTES_MAX, reads only its last byte. Returns no bytes if the bytes cannot be read,
        or if the method read a whole line and its bytes have changed.
        """
        intent = taken.reading.intent
        is_too_long = intent.length > LINE_BYTES_MAX
        first = intent.end - 1 if is_too_long else intent.first
        try:
            text = self._handles.get(taken.tracked).read(intent.end - first, first)
        except (OSError, Moved):
            return b""
        return text if is_too_long or crc_of(text) == intent.crc else b""

    @staticmethod
    def _leave_out(
        taken: Taken, bytes_: tuple[int, int], reason: str, changes: CountChanges
    ) -> None:
        unnoted = Unnoted(taken.tracked.birth.path, *bytes_, reason)
        changes.put_unnoted(taken.tracked.file, unnoted, taken.reading.intent.read_ms)


def put_set_apart(apart: SetApart, now_ms: int, changes: CountChanges) -> None:
    """Adds to `changes` a byte range that is in no note because it could not be read, or that may
    be in a second note under another file id.
    """
    tracked = apart.tracked
    unnoted = Unnoted(tracked.birth.path, apart.first, apart.end, apart.reason)
    is_uncertain = apart.certainty is Certainty.UNCERTAIN and apart.end is not None
    changes.put_unnoted(tracked.file, unnoted, now_ms, is_uncertain=is_uncertain)


def put_unseen(unseen: Unseen, now_ms: int, changes: CountChanges) -> None:
    """Adds to `changes` that rotated files were not read, or may not have been read: perhaps no
    note has their lines."""
    changes.put_unnoted(None, Unnoted(unseen.path, 0, None, unseen.reason), now_ms)
