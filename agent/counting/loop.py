"""Makes the turns of `skidway agent count`.

    patterns -> files                            (when due)
    files    -> readings -> notes
                ONE TRANSACTION for the notes and the new positions

The patterns say where the loop looks for files. The loop runs in one thread and owns all state. If
the disk is too full for a transaction, the loop reads no further bytes until it has committed this
transaction.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from skidway.agent import events
from skidway.agent.counting.noting import Noting, put_set_apart, put_unseen
from skidway.agent.counting.segments import Segments, stored_bytes
from skidway.agent.counting.settings import SOURCE, CountSettings
from skidway.agent.counting.state import CountChanges, CountState
from skidway.agent.files.handles import Handles
from skidway.agent.files.host import Host
from skidway.agent.files.pod_labels import PodLabels
from skidway.agent.files.reading import FileReader, Taken
from skidway.agent.files.tracking import Tracker
from skidway.agent.loop import beginning
from skidway.agent.loop.schedule import Schedule
from skidway.agent.loop.unreadable_paths import UnreadablePaths
from skidway.agent.parsing.framing import READ_BYTES
from skidway.agent.state.database import StateFull
from skidway.agent.values.room import Room
from skidway.agent.values.tracked import FileState
from skidway.clock import Clock
from skidway.dataclass import dataclass

OPEN_FILES_MAX: Final = 512
LOOK_EVERY_S: Final = 60.0
"""The most seconds between two looks. If there are few files, the looks follow sooner."""

IDLE_FLUSH_S: Final = 3600.0
"""If a file has not changed for this many seconds, its last line is noted even without a line end.
Until then the line may still get its line end, and a shipper waits for the line end, too.
"""

CLOSE_ROTATED_S: Final = 60.0
PACE_S: Final = 0.25
"""While there is little to read, the loop waits at least this many seconds after each turn, so that
one transaction has the notes of many lines.
"""

PATIENCE_S: Final = 1.0
LOOKED_EVERY_S: Final = 60.0
DROP_EVERY_S: Final = 10.0


@dataclass(slots=True)
class Progress:
    """How many lines and bytes were noted since the start."""

    lines: int = 0
    bytes: int = 0


class CountLoop:
    """Owns all state of a counting agent except watches of directories and the clock."""

    def __init__(
        self,
        settings: CountSettings,
        state: CountState,
        host: Host,
        clock: Clock,
        host_name: str,
        open_files_max: int = OPEN_FILES_MAX,
    ) -> None:
        self._state, self._clock = state, clock
        self._changes = CountChanges()
        if SOURCE not in state.since():
            self._changes.begin_count(clock.time_ms())
        self._handles = Handles(host, open_files_max)
        self.tracker = Tracker(host, self._handles, [settings.source()], host_name)
        since = beginning.since(state)
        self.tracker.first_looks.load(state.looked(), since)
        self.tracker.load(state.files(), {}, since, state.unopened(), state.unbegun())
        self._reader = FileReader(
            self.tracker,
            self._handles,
            PodLabels(host),
            idle_flush_s=IDLE_FLUSH_S,
            close_rotated_s=CLOSE_ROTATED_S,
            may_read=lambda tracked: tracked.announced,
        )
        self._noting = Noting(self._handles, state.divided())
        self._segments = Segments(
            state.segments(), settings.keep_bytes, int(settings.keep_s * 1000)
        )
        self._looks = Schedule(LOOK_EVERY_S)
        self._unreadable = UnreadablePaths()
        self._looked_ms = state.looked_ms()  # the beginning of the last look that found all files
        self._looked_at = self._drop_at = 0.0
        self._sequence = 0
        self._now_ms = 1 << 63  # the last turn's time; at first a time later than any other
        self._has_backlog = False
        self.progress = Progress()
        self.full_reason: str | None = None

    def touch(self, paths: Iterable[str], *, everything: bool = False) -> None:
        """Examines, in the next turn, the files at these paths, for which the operating system
        reported changes. everything: whether to look through all patterns, because the changed
        paths are unknown.
        """
        now, now_ms = self._clock.monotonic(), self._clock.time_ms()
        for path in paths:
            everything |= self.tracker.look(path, now, now_ms)
        if everything:
            self._looks.ask(now)

    def turn(self) -> None:
        """Makes one turn. Raises StateRefused if the database is damaged, and SkidwayError if the
        file system refuses the write. A full disk raises no error."""
        if self.full_reason is None:
            self._gather(self._clock.monotonic(), self._clock.time_ms())
        if self._changes and self._write():
            self._changes = CountChanges()

    def pause_s(self) -> float:
        """Returns how many seconds the caller may wait before the next turn, even if files change
        in that time."""
        return 0.0 if self._has_backlog and self.full_reason is None else PACE_S

    def patience_s(self) -> float:
        """Returns how many seconds the caller may wait for a change of a file before the next
        turn."""
        if not self._reader.is_quiet or self.full_reason is not None:
            return 0.0
        return min(max(self._looks.in_s(self._clock.monotonic()), 0.0), PATIENCE_S)

    def close(self) -> None:
        """Closes the log files."""
        self._handles.close()

    # --- a turn -------------------------------------------------------------------------------

    def _gather(self, now: float, now_ms: int) -> None:
        if now_ms < self._now_ms:
            self._changes.put_set_back(now_ms)
        self._now_ms = now_ms
        self._handles.now = now
        after_ms = self._looked_ms
        if self._looks.is_due(now):
            self._look(now, now_ms)
        self._reader.look_again(now)
        taken = self._reader.take(now, now_ms, self._sequence, Room.unlimited())
        self._sequence += len(taken)
        self._has_backlog = sum(len(each.reading.data) for each in taken) >= READ_BYTES // 2
        self._mind_news(after_ms, now_ms)
        for each in taken:
            self._take(each)
        self._close_ended()
        changed = self.tracker.take_changed()
        self._changes.put_files(changed)
        self._changes.put_paths(changed)
        if (unopened := self.tracker.take_unopened()) is not None:
            self._changes.put_unopened(unopened)
        if (unbegun := self.tracker.take_unbegun()) is not None:
            self._changes.put_unbegun(*unbegun)
        if now >= self._drop_at:
            self._drop_at = now + DROP_EVERY_S
            self._changes.drop(self._segments.drop(now_ms), now_ms)
        if self._changes or now >= self._looked_at:
            self._looked_at = now + LOOKED_EVERY_S
            self._changes.put_looked_at(self._looked_ms)

    def _look(self, now: float, now_ms: int) -> None:
        self.tracker.reconcile(now, now_ms)
        for topic, pattern, exclude in self.tracker.first_looks.take_new():
            self._changes.put_looked(topic, pattern, exclude)
        self._unreadable.name(self.tracker)
        self.tracker.ignored.end_look()
        if not self.tracker.unreadable and not self.tracker.unopened:
            self._looked_ms = now_ms
        self._looks.took(now, self._clock.monotonic())

    def _take(self, taken: Taken) -> None:
        """Notes the lines of a reading, and moves the position of the file past the reading."""
        tracked = taken.tracked
        note = self._noting.note(taken, self._changes)
        segment = self._segments.add(stored_bytes(note.lines), note.read_ms)
        self._changes.put_note(note, segment)
        tracked.flights = tracked.flights[1:]
        tracked.checkpoint = taken.flight.after
        tracked.tally.acknowledged += note.end - note.first
        self.tracker.flying.pop(tracked.file, None)
        self.tracker.note(tracked)
        self.progress.lines += note.count
        self.progress.bytes += note.end - note.first

    def _mind_news(self, after_ms: int, now_ms: int) -> None:
        """Adds to the transaction the new files, the byte ranges that could not be read or may be
        noted twice, the files that may never have been read, and the files to forget."""
        news = self.tracker.news.take()
        for tracked in news.born:
            birth = tracked.birth
            events.file_began(birth.path, birth.file, birth.begin, birth.predecessor)
            tracked.announced, tracked.announced_ms = True, now_ms
            self._noting.begin(tracked, after_ms, self._changes)
            self.tracker.note(tracked)
        for apart in news.set_apart:
            events.set_apart(apart)
            put_set_apart(apart, now_ms, self._changes)
        for unseen in news.unseen:
            events.unseen(unseen)
            put_unseen(unseen, now_ms, self._changes)
        self._changes.forget_files(each.file for each in news.forgotten)
        for each in news.forgotten:
            self._noting.forget(each.file)

    def _close_ended(self) -> None:
        for tracked in list(self.tracker.ended.values()):
            tracked.state = FileState.CLOSED
            del self.tracker.ended[tracked.file]
            self.tracker.note(tracked)
            events.file_closed(tracked.birth.path, tracked.file, tracked.length or 0)

    def _write(self) -> bool:
        try:
            self._state.commit(self._changes)
        except StateFull as error:
            self.full_reason = str(error)
            events.state_full(self.full_reason)
            return False
        if self.full_reason is not None:
            self.full_reason = None
            events.state_has_room()
        return True
