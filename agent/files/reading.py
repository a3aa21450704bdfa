"""Makes readings of tracked files, and treats all files fairly. A reading is an intent with its
bytes. A turn is one pass of the agent's loop.

A turn reads the files that may have new bytes one after the other, at most READ_BYTES and
READ_LINES of each, until the turn has TURN_BYTES or TURN_LINES. The next turn begins with the files
that this turn did not reach, so a busy file does not delay the other files; and topics take turns
(module `ready`). If there is room for more bytes in the turn, the agent reads again from the files
that have more. If a topic has no room (`values.room`), its files are held back until it has room
again; files of other topics do not wait for them.

Except within a long line, a read begins a little before the read position. If these bytes before
the read position differ from those that were read there last time, the file was rewritten, or was
truncated and has grown again. Such a file gets a new file id.

A reading ends with the last whole record. The record after it may be unfinished, so the agent reads
it only in two cases. First, the file has not changed for `idle.flush.ms` (`timeout.ms` for a source
with `multiline`). Second, the record is overdue: UNFINISHED_S after the agent saw its first byte,
the program still writes to it (a progress bar, for example, may go on for hours). If the agent
waited longer, this one record would hold back the seals of its topic. If a line does not end within
READ_BYTES, the agent reads on in blocks of READ_BYTES, called pieces, to find the line's end. Only
the line's first bytes stay in memory.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from skidway.agent.files import holes
from skidway.agent.files.decompressed import Decompressed
from skidway.agent.files.endings import CHANGED
from skidway.agent.files.handles import Handles, Moved
from skidway.agent.files.host import Handle, Status
from skidway.agent.files.pod_labels import PodLabels
from skidway.agent.files.ready import Ready
from skidway.agent.files.sources import TailedSource
from skidway.agent.files.tracking import Tracker
from skidway.agent.files.unpacking import Unpacking
from skidway.agent.parsing.framing import (
    READ_BYTES,
    READ_LINES,
    Framer,
    LineFramer,
    nul_bytes,
)
from skidway.agent.values.identity import (
    FINGERPRINT_BYTES,
    GUARD_BYTES,
    Mark,
    doubt,
    doubt_beginning,
    fingerprint_of,
)
from skidway.agent.values.intents import Intent, Reading, crc_of
from skidway.agent.values.room import Room
from skidway.agent.values.tracked import FileState, Flight, LongLine, TrackedFile
from skidway.dataclass import dataclass

TURN_BYTES = 2 << 20
"""In one turn, the agent makes intents for at most this many bytes of all files together. The last
reading of the turn may exceed this limit.
"""

TURN_LINES = 2 * READ_LINES
"""In one turn, the agent makes intents for about this many lines of all files together."""

TURN_FILES = 1000
"""One turn of the agent's loop tries to read at most this many files."""

LONG_LINE_BYTES_MAX = 1 << 30
"""If a line is longer than this, the agent cuts the line after this many bytes, because the length
in a record's origin has only 32 bits.
"""

UNFINISHED_S = 300.0
"""If a record is still unfinished this many seconds after the agent saw its first byte, the agent
reads what is there. (If a file must stay unchanged for longer than this before its last record
counts as whole, that longer time applies.)
"""

HOLE_PIECES = 4
"""In one turn, the agent scans at most this many pieces of a hole (a run of NUL bytes), each of
READ_BYTES."""

CLOSE_EVERY_S = 0.5
"""Seconds between two searches for files that are idle and can be closed."""

ACTIVE_S = 2.0
"""For this many seconds after the agent has read bytes of a file, every turn tries to read the file
again, even without an event."""


@dataclass(frozen=True, slots=True)
class Taken:
    """A reading, and its flight. A flight is an intent that is being sent. is_new: whether the
    reading's intent is not in the state yet.
    """

    tracked: TrackedFile
    reading: Reading
    flight: Flight
    is_new: bool = True


class FileReader:
    """Reads files. Owns the list of the files that the next turns try to read, and the files that
    are held back because their topic has no room."""

    def __init__(
        self,
        tracker: Tracker,
        handles: Handles,
        labels: PodLabels,
        *,
        idle_flush_s: float,
        close_rotated_s: float,
        close_inactive_s: float | None = None,
        unfinished_s: float = math.inf,
        may_read: Callable[[TrackedFile], bool],
    ) -> None:
        """unfinished_s: how long a record may be unfinished while its file grows."""
        self._tracker = tracker
        self._handles = handles
        self._labels = labels
        self._idle_flush_s = idle_flush_s
        self._close_rotated_s = close_rotated_s
        self._close_inactive_s = close_inactive_s
        self._unfinished_s = unfinished_s
        self._close_at = 0.0
        self._may_read = may_read
        self._unpacking = Unpacking(handles)
        self._ready = Ready()
        self._active: dict[int, float] = {}  # by file id: until when turns try to read the file
        self._due: dict[int, float] = {}  # by file id: when to read the last line or end the id
        self._held_back: dict[str, dict[int, TrackedFile]] = {}  # by topic
        tracker.when_grown(self.wake)

    def take_intervals(self, *, idle_flush_s: float, close_rotated_s: float) -> None:
        """Uses the intervals of the reloaded settings from now on, and makes the next turn try to
        read the files that wait for the end of an interval.
        """
        self._idle_flush_s, self._close_rotated_s = idle_flush_s, close_rotated_s
        for file in list(self._due):
            self._wake_file(file)

    def wake(self, tracked: TrackedFile) -> None:
        """Makes the next turn try to read a file, because the file may have changed."""
        self._ready.add(tracked)

    @property
    def has_ready(self) -> bool:
        """Whether there are files that the next turn must try to read."""
        return bool(self._ready)

    @property
    def is_quiet(self) -> bool:
        """Whether there are no files that a turn must try to read, now or later."""
        return not (self._ready or self._active or self._due or self._held_back)

    @property
    def is_active(self) -> bool:
        """Whether files were read during the last ACTIVE_S seconds."""
        return bool(self._active)

    @property
    def held_back(self) -> set[str]:
        """The topics with files that must be read, but are held back because their topic had no
        room."""
        return set(self._held_back)

    def go_on(self, room: Room) -> None:
        """Makes the next turn try to read the files that were held back and whose topic has
        room."""
        for topic in [each for each in self._held_back if room.has(each)]:
            for tracked in self._held_back.pop(topic).values():
                self.wake(tracked)

    def look_again(self, now: float) -> None:
        """Makes the next turn try to read three kinds of files: files that were read lately, files
        whose last line must be read now, and files whose id must be ended now. Closes idle files.
        """
        if self._close_inactive_s is not None and now >= self._close_at:
            self._close_at = now + CLOSE_EVERY_S
            self._handles.close_idle(now - self._close_inactive_s, self._is_read)
        for file, until in list(self._active.items()):
            self._wake_file(file)
            if now >= until:
                del self._active[file]
        for file, due in list(self._due.items()):
            if now >= due:
                del self._due[file]
                self._wake_file(file)

    def _is_read(self, file: int) -> bool:
        """Whether all known bytes of a file are read, and no intent of the file is under way."""
        tracked = self._tracker.files.get(file)
        return tracked is None or (
            tracked.read_position >= tracked.size
            and not tracked.flights
            and not tracked.is_replaying
        )

    def take(self, now: float, read_ms: int, sequence: int, room: Room) -> list[Taken]:
        """Makes this turn's readings. Their intents get the numbers from `sequence` + 1 on. Holds
        back the files of topics without room."""
        taken: list[Taken] = []
        left, lines_left = TURN_BYTES, TURN_LINES
        later: list[TrackedFile] = []
        for _ in range(TURN_FILES):
            if left <= 0 or lines_left <= 0 or not self._ready:
                break
            tracked = self._ready.pop()
            if not _has_new_bytes(tracked):
                continue
            topic = tracked.birth.topic
            if not room.has(topic):
                self._held_back.setdefault(topic, {})[tracked.file] = tracked
                continue
            one = None
            if self._may_read(tracked) and self._unpacking.may_read(tracked, now):
                one = self._read_one(tracked, now, read_ms, sequence + len(taken) + 1)
            else:
                later.append(tracked)
            if one is not None:
                left -= len(one.reading.data)
                lines_left -= self._source(tracked).framer.lines.weight(one.reading.data)
                room.take(topic, len(one.reading.data))
                taken.append(one)
            elif self._ready.discard(tracked):
                later.append(tracked)  # this turn found nothing to send in the file
        for tracked in later:
            self.wake(tracked)
        return taken

    # --- one file -----------------------------------------------------------------------------

    def _read_one(
        self,
        tracked: TrackedFile,
        now: float,
        read_ms: int,
        sequence: int,
    ) -> Taken | None:
        try:
            handle = self._handles.get(tracked)
            if not tracked.verified and not self._verify(tracked, handle, now):
                return None
            found = self._bytes_of(tracked, handle, now)
        except Moved:
            return None  # the next look finds out where the file is now
        except OSError as error:
            self._handles.drop(tracked.file)
            self._tracker.cannot_read(tracked, error)
            return None
        if found is None:
            return None
        data, end, crc, prefix_crc, tail = found
        source = self._source(tracked)
        manner = source.manner_of(tracked, handle)
        if source.labels is not None:
            self._labels.note(tracked, source.labels, now)
        intent = Intent(
            sequence, tracked.file, tracked.read_position, end, crc, read_ms, manner.recipe
        )  # fmt: skip
        first = None if tracked.read_position else _first_record(data, manner.framer)
        flight = Flight(intent, tracked.read_on(prefix_crc, tail, end, first))
        self._tracker.launch(tracked, flight)
        self._active[tracked.file] = now + ACTIVE_S
        return Taken(tracked, tracked.reading(intent, data), flight)

    def _verify(self, tracked: TrackedFile, handle: Handle, now: float) -> bool:
        """Before more of a file is read, checks that it is the file that was read before. If the
        file may be another file, ends the file id and returns False.
        """
        status = handle.status()
        point = tracked.last_point
        reason = doubt(
            handle.read, status.size, tracked.read_position, tracked.birth.fingerprint, point.guard
        )
        if reason is None and tracked.is_unwatched:
            reason = doubt_beginning(handle.read, point.marks)
        if reason is not None:
            self._tracker.replace(tracked, reason, now)
            return False
        tracked.is_unwatched = False
        before = min(GUARD_BYTES, tracked.read_position)
        tracked.tail = handle.read(before, tracked.read_position - before)
        tracked.verified = True
        return True

    def _bytes_of(
        self, tracked: TrackedFile, handle: Handle, now: float
    ) -> tuple[bytes, int, int, int, bytes] | None:
        """Returns five values of the next reading: its bytes, its end position, the CRC of its
        bytes, the CRC of all bytes of the file before the end position, and the tail (the last
        bytes before the end position). Returns None if there is no reading.
        """
        if tracked.long_line is not None:
            return self._go_through(tracked, handle, tracked.long_line, now)
        body = self._read_behind_tail(tracked, handle, now)
        if body is None:
            return None
        framer = self._source(tracked).manner_of(tracked, handle).framer
        body = body[: framer.lines.first_lines_end(body)]
        end = framer.whole_records_end(body)
        if end == 0 and body and tracked.unfinished_at is None:
            tracked.unfinished_at = now
        if end == 0 and len(body) == READ_BYTES:
            is_hole = nul_bytes(body) == len(body)
            used = body if is_hole else body[: framer.lines.size_before_nuls(body)]
            crc, prefix = crc_of(used), crc_of(used, tracked.read_crc)
            tracked.long_line = LongLine(len(used), crc, prefix, used[-GUARD_BYTES:], is_hole)
            if isinstance(handle, Decompressed):
                handle.keep(body, tracked.read_position)  # `_go_through` reads them once more
            self.wake(tracked)
            return None
        if end > 0:
            self.wake(tracked)
        elif self._stood_still(tracked, now):
            end = len(body)
        elif self._is_overdue(tracked, now):
            end = _overdue_end(body, framer.lines)
        if end == 0:
            self._wait(tracked, bool(body), now)
            return None
        data = body[:end]
        holes.remember(tracked, handle, framer.lines.holes(data))
        tail = ((tracked.tail or b"") + data)[-GUARD_BYTES:] if end < GUARD_BYTES else data
        position = tracked.read_position + end
        return data, position, crc_of(data), crc_of(data, tracked.read_crc), tail

    def _read_behind_tail(self, tracked: TrackedFile, handle: Handle, now: float) -> bytes | None:
        """Returns the next bytes; None if the file's first bytes, or the bytes before the read
        position, have changed since they were read, or if the file was cut."""
        tail = tracked.tail or b""
        data = handle.read(len(tail) + READ_BYTES, tracked.read_position - len(tail))
        status = handle.status()
        is_alike = data[: len(tail)] == tail if tail else _begins_as_announced(tracked, data)
        # The bytes before the read position are the same, but the file may have been truncated and
        # written anew.
        if is_alike and tail and len(data) > len(tail):
            is_alike = _begins_still(tracked, handle)
        if not is_alike and status.size >= tracked.size:
            self._tracker.replace(tracked, CHANGED, now)
            return None
        return data[len(tail) :] if self._note(tracked, status, now) else None

    def _note(self, tracked: TrackedFile, status: Status, now: float) -> bool:
        """Notes the file's size and time of change. Returns False if the file has become shorter.
        A write sets the time of change before the size. So if the time of change is new but the
        file has not grown, the next look decides whether the file was rewritten.
        """
        if status.size < tracked.size:
            reason = f"it was cut to {status.size} bytes, {tracked.size} were there"
            self._tracker.replace(tracked, reason, now)
            return False
        if status.size > tracked.size:
            tracked.grown_at = now
        if status.size > tracked.size or tracked.changed_ns is None:
            tracked.size, tracked.changed_ns = status.size, status.changed_ns
        return True

    def _go_through(
        self, tracked: TrackedFile, handle: Handle, line: LongLine, now: float
    ) -> tuple[bytes, int, int, int, bytes] | None:
        """Scans the next READ_BYTES of a line that is longer than READ_BYTES, or the next
        HOLE_PIECES times READ_BYTES of a hole (a run of NUL bytes) that is longer than READ_BYTES.
        Returns what `_bytes_of` returns; None if the end of the line or hole is not found yet."""
        lines = self._source(tracked).manner_of(tracked, handle).framer.lines
        for _ in range(HOLE_PIECES if line.is_hole else 1):
            at = tracked.read_position + line.scanned
            piece = handle.read(READ_BYTES, at)
            if not self._note(tracked, handle.status(), now):
                return None
            end = _end_in(piece, lines, is_hole=line.is_hole)
            used = piece[: _scanned(piece, lines, is_hole=line.is_hole) if end is None else end]
            line = _extended(line, used)
            tracked.long_line = line
            if used:
                tracked.grown_at = now
            if end is not None or not used or line.scanned >= LONG_LINE_BYTES_MAX:
                break
        ended = end is not None or line.scanned >= LONG_LINE_BYTES_MAX
        if len(piece) < READ_BYTES:  # the bytes that the file has now are all scanned
            ended |= self._is_overdue(tracked, now)
        if not ended and (used or not self._stood_still(tracked, now)):
            self._wait(tracked, True, now)
            if used:
                self.wake(tracked)
            return None
        if end is None and not (used or line.is_hole):
            # The NULs at the end of the bytes just read begin no hole, so they belong to the line.
            line = _extended(line, piece[: len(piece) - len(piece) % lines.unit])
        head = handle.read(min(READ_BYTES, line.scanned), tracked.read_position)
        if line.is_hole:
            holes.remember(tracked, handle, [(0, line.scanned)])
        tracked.long_line = None
        self.wake(tracked)
        end = tracked.read_position + line.scanned
        return head, end, line.crc, line.prefix_crc, line.tail

    # --- waiting ------------------------------------------------------------------------------

    def _stood_still(self, tracked: TrackedFile, now: float) -> bool:
        return now - tracked.grown_at >= self._flush_s(tracked)

    def _is_overdue(self, tracked: TrackedFile, now: float) -> bool:
        """Whether the record at the read position has been unfinished for so long that the agent
        reads what is there, although the file still grows.
        """
        if tracked.unfinished_at is None:
            return False
        longest_s = max(self._unfinished_s, self._flush_s(tracked))
        return now - tracked.unfinished_at >= longest_s

    def _wait(self, tracked: TrackedFile, has_partial_line: bool, now: float) -> None:
        """Called when no bytes of the file can be read now. Notes the time at which the agent must
        read the file's last line or end the file id, if the file has not changed by then. If the
        file id must end now, ends it.
        """
        if has_partial_line:
            self._due[tracked.file] = tracked.grown_at + self._flush_s(tracked)
        elif tracked.rotated and tracked.size <= tracked.read_position:
            due = max(tracked.grown_at, tracked.rotated_at) + self._close_rotated_s
            if now < due:
                self._due[tracked.file] = due
            elif self._tracker.is_hidden(tracked, now) or not self._tracker.finish(tracked, now):
                self._due[tracked.file] = now + self._close_rotated_s

    def _flush_s(self, tracked: TrackedFile) -> float:
        """Returns how long the file must stay unchanged before the agent treats its last record as
        complete.
        """
        flush_s = self._source(tracked).flush_s
        return self._idle_flush_s if flush_s is None else flush_s

    def _source(self, tracked: TrackedFile) -> TailedSource:
        assert tracked.source is not None  # take() has checked it
        return self._tracker.sources[tracked.source]

    def _wake_file(self, file: int) -> None:
        tracked = self._tracker.files.get(file)
        if tracked is not None:
            self.wake(tracked)


def _overdue_end(body: bytes, lines: LineFramer) -> int:
    """Returns how many bytes of an unfinished record to read while its file still grows: its whole
    lines or, if its first line is unfinished, a part of this line.
    """
    return lines.whole_records_end(body) or lines.part_end(body)


def _has_new_bytes(tracked: TrackedFile) -> bool:
    """Whether the next bytes of the file may get a new intent. If they already have an intent that
    is to be sent again, a later look wakes the file."""
    is_open = tracked.state is FileState.OPEN and tracked.source is not None
    return is_open and not tracked.is_replaying


def _end_in(piece: bytes, lines: LineFramer, *, is_hole: bool) -> int | None:
    """Returns the position in `piece` at which a long line, or a hole (a run of NUL bytes), ends;
    None if it continues after the piece.
    """
    if not is_hole:
        return lines.end_inside(piece)
    end = nul_bytes(piece) // lines.unit * lines.unit
    return end if len(piece) - end >= lines.unit else None


def _scanned(piece: bytes, lines: LineFramer, *, is_hole: bool) -> int:
    """Returns how many bytes of a piece certainly belong to a long line, or to a hole (a run of NUL
    bytes), that continues after the piece. If a piece of a line ends with NULs, these NULs do not
    count, because a hole may begin there. The next piece begins with these NULs.
    """
    return len(piece) - len(piece) % lines.unit if is_hole else lines.size_before_nuls(piece)


def _first_record(data: bytes, framer: Framer) -> Mark | None:
    """Returns a mark (a position, and the CRC of all bytes before it) at the end of a file's first
    record; None if the first FINGERPRINT_BYTES of `data` have only one record. data: the file's
    first bytes.
    """
    head = data[:FINGERPRINT_BYTES]
    ends = framer.frame(head, np.array([len(head)])).end
    return Mark(int(ends[0]), crc_of(head[: ends[0]])) if len(ends) > 1 else None


def _extended(line: LongLine, used: bytes) -> LongLine:
    return LongLine(
        line.scanned + len(used),
        crc_of(used, line.crc),
        crc_of(used, line.prefix_crc),
        (line.tail + used)[-GUARD_BYTES:],
        line.is_hole,
    )


def _begins_still(tracked: TrackedFile, handle: Handle) -> bool:
    """Whether the file's first bytes are still those that were read. Does not check a compressed
    file, because nobody writes to such a file.
    """
    if isinstance(handle, Decompressed):
        return True
    print_ = tracked.birth.fingerprint
    return fingerprint_of(handle.read, print_.length) == print_


def _begins_as_announced(tracked: TrackedFile, data: bytes) -> bool:
    """Whether the bytes that were just read begin with the bytes that the file had when its file id
    was made. If the bytes that were read are not the first bytes of the file, there is nothing to
    compare, and the answer is yes."""
    print_ = tracked.birth.fingerprint
    if tracked.read_position:
        return True
    return fingerprint_of(lambda count, at: data[at : at + count], print_.length) == print_
