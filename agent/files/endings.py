"""Decides when a file id ends: when its file was read to the end, was replaced, or is gone. Also
says how long the agent watches a file after the end of its id. In a look, the agent goes once
through the directories of all sources, to find new, renamed and deleted log files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from skidway.agent.files.handles import Handles
from skidway.agent.files.known import KnownFiles
from skidway.agent.files.news import News
from skidway.agent.values.found import FileKey
from skidway.agent.values.tracked import FileState, TrackedFile

VANISHED: Final = "it vanished while it was not held open"
CHANGED: Final = "the bytes before the position are others than were read"

STILL_S: Final = 60.0
STILL_FACTOR: Final = 10
"""A file may vanish between two looks. The file counts as read to its end only if two conditions
are met. First, at the last look, all bytes of the file had an intent. Second, at that look, the
file had been unchanged for at least STILL_S, and for at least STILL_FACTOR times the time until the
next look, which found the file gone.
"""

CLOCK_SET_S: Final = 5.0
"""The wall clock counts as set by hand or by a program if, between two looks, its advance differs
from that of the monotonic clock by more than this many seconds.
"""

WATCH_ENDED_S: Final = 86_400.0
"""For this many seconds after the end of a file id, every look still checks the file, even if no
pattern leads to the file.
"""


class Endings:
    """Owns the file ids that have ended (the agent reads no more bytes under them), and the times
    of the looks."""

    def __init__(self, handles: Handles, known: KnownFiles, news: News) -> None:
        self._handles = handles
        self._known = known
        self._news = news
        self.ended: dict[int, TrackedFile] = {}  # file ids that have ended, but are not closed
        self._ended_lately: dict[int, float] = {}  # by file id: until when looks check the file
        self._now = 0.0
        self._now_ms = 0
        self._looked_ms: int | None = None  # the time of the previous look
        self._set_ms = 0  # when a look last noticed that the clock was set
        self._since: Mapping[str, int] = {}

    def load(self, since: Mapping[str, int]) -> None:
        """Takes over the known file ids that have ended but are not closed. since: the time (ms) of
        each topic's last seal, which counts as the last look of an earlier process.
        """
        self._since = dict(since)
        for tracked in self._known.files.values():
            if tracked.state is FileState.ENDED:
                self.ended[tracked.file] = tracked

    def begin_look(self, now: float, now_ms: int) -> None:
        """Notes the time at which a look begins. At the first look, treats all file ids that have
        ended as if they had ended just before this look.
        """
        if not self._now:
            closed = (x for x in self._known.files.values() if x.state is not FileState.OPEN)
            self._ended_lately = {each.file: now + WATCH_ENDED_S for each in closed}
        if self._now and abs((now_ms - self._now_ms) / 1000 - (now - self._now)) > CLOCK_SET_S:
            self._set_ms = now_ms
        self._now = now
        self._looked_ms, self._now_ms = self._now_ms or None, now_ms

    def end(self, tracked: TrackedFile) -> None:
        """Ends a file id, so that the agent reads no more of its file."""
        tracked.end()
        self.ended[tracked.file] = tracked
        self._ended_lately[tracked.file] = self._now + WATCH_ENDED_S
        status = self._known.status_if_held(tracked)
        if status is not None and not status.links:
            tracked.location = ""  # the kernel may now give the file's inode to another file
        self._known.note(tracked)
        self._handles.drop(tracked.file)

    def lose(self, tracked: TrackedFile, reason: str) -> None:
        """Ends a file id, and declares that an unknown number of the file's bytes was not read."""
        tracked.tally.lost += max(tracked.size - tracked.promised, 0)
        self._news.lose(tracked, reason)
        self.end(tracked)

    def vanish(self, tracked: TrackedFile, reason: str) -> None:
        """Ends the id of a file that is gone. If the file may have had unread bytes, declares these
        bytes lost.
        """
        if self._stood_still(tracked):
            self.end(tracked)
        else:
            self.lose(tracked, reason)

    def ended_lately(self, found: set[FileKey]) -> Iterator[TrackedFile]:
        """Yields the files whose ids ended lately and to which no pattern leads. A look checks
        these files, because they may still grow. found: the keys of the files to which patterns
        lead.
        """
        for file, until in list(self._ended_lately.items()):
            tracked = self._known.files.get(file)
            if tracked is None or tracked.is_deleted or self._now >= until:
                del self._ended_lately[file]
            elif tracked.birth.key not in found and self._known.is_newest(tracked):
                yield tracked

    def may_forget(self, tracked: TrackedFile) -> bool:
        """Whether `Tracker` may forget the file id, once the file is gone or has a later id. The id
        must be closed. If a later id has the same inode, WATCH_ENDED_S must have passed since the
        end of the id: until then, copies of the file may appear, and the agent must compare them
        with the file."""
        return tracked.state is FileState.CLOSED and (
            self._known.is_newest(tracked) or tracked.file not in self._ended_lately
        )

    def _stood_still(self, tracked: TrackedFile) -> bool:
        """Whether the file had been unchanged for so long that it counts as read to its end (see
        STILL_FACTOR). If at least two other open file ids began at the same path, the answer is no:
        rotation may have deleted other files together with this file. If the clock was set, the
        file counts as unchanged only from then on.
        """
        siblings = self._known.copies.born_at(tracked.birth.path)
        if sum(each.state is FileState.OPEN for each in siblings if each is not tracked) > 1:
            return False
        seen_ms = self._seen_ms(tracked)
        if tracked.size > tracked.promised or tracked.changed_ns is None or seen_ms is None:
            return False
        unseen_s = (self._now_ms - seen_ms) / 1000
        changed_ms = max(tracked.changed_ns / 1_000_000, self._set_ms)
        still_s = (seen_ms - changed_ms) / 1000
        return unseen_s >= 0 and still_s >= max(STILL_S, STILL_FACTOR * unseen_s)

    def _seen_ms(self, tracked: TrackedFile) -> int | None:
        """Returns the time (ms) of the last look that found the file. If no look has found the file
        since the agent started, returns the time of the topic's last seal.
        """
        if tracked.is_seen:
            return self._looked_ms
        return self._since.get(tracked.birth.topic)


def cut_reason(tracked: TrackedFile, size: int) -> str:
    """Returns, in words for people, why the file's id ends: the file is shorter than it was at the
    last look."""
    return f"it was cut to {size} bytes, {tracked.size} were there"
