"""From what was found on the host to file ids: new, renamed, rotated, replaced, gone.

    found, unknown key                        a new id from byte 0
    found, known key, nothing doubtful        the same id, whatever its path is now
    shorter, or other bytes than were read    the id ends; another begins where the bytes are new
    other topic (settings, made again)        the id ends; another one begins where it ended
    found nowhere, but held open              read to its end, then closed
    found nowhere, not held open              what it had unread is declared lost, its end unseen
    closed, and grew                          another id begins at the final length
    its inode after it was deleted            another id begins at byte 0, whatever the bytes

A loss is declared once, when it is noticed, with its reason; nothing is ever skipped in silence.
"""

from __future__ import annotations

import errno
import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from agent import identity
from agent.files.handles import Handles, Moved
from agent.files.host import FileKey, Found, Handle, Host, Status
from agent.files.tracked import (
    Birth,
    Checkpoint,
    FileState,
    Flight,
    TailedSource,
    TrackedFile,
)
from agent.identity import GUARD_BYTES, Guard, Mark, fingerprint_of, guard_of, prove
from audit.messages import Certainty

FORGET_AFTER_S = 3600.0
"""How often closed files are looked for; those that are gone are forgotten."""


@dataclass(frozen=True, slots=True)
class SetApart:
    """Bytes [first, end) of a file that will not be delivered, or not surely once.

    end None: nobody saw where they ended.
    """

    tracked: TrackedFile
    first: int
    end: int | None
    certainty: Certainty
    reason: str


@dataclass(slots=True)
class News:
    """What has changed since it was last taken; the owner writes it down."""

    born: list[TrackedFile] = field(default_factory=list)
    set_apart: list[SetApart] = field(default_factory=list)
    forgotten: list[int] = field(default_factory=list)


class Tracker:
    """Owns every TrackedFile. No method waits; I/O is that of `Host` and short."""

    def __init__(
        self, host: Host, handles: Handles, sources: Sequence[TailedSource], host_name: str
    ) -> None:
        self._host = host
        self._handles = handles
        self.sources = list(sources)
        self._host_name = host_name
        self._by_key: dict[FileKey, TrackedFile] = {}
        self._forget_at = 0.0
        self._serial = 0
        self.files: dict[int, TrackedFile] = {}
        self.unreadable: dict[str, dict[str, str]] = {}  # topic: path: reason
        self.news = News()
        self.doubts: Counter[str] = Counter()  # topic: how often its files were not what was read
        self._changed: dict[int, TrackedFile] = {}
        self.flying: dict[int, TrackedFile] = {}  # with flights
        self.ended: dict[int, TrackedFile] = {}  # not closed yet
        self.on_growth: Callable[[TrackedFile], None] = lambda _tracked: None

    def load(self, files: Iterable[TrackedFile], promised: Mapping[int, int]) -> None:
        """Takes over the durable files; promised: where the last intent of each ends."""
        for tracked in files:
            self._serial = max(self._serial, tracked.birth.serial)
            tracked.promised = max(promised.get(tracked.file, 0), tracked.read_position)
            tracked.size = max(tracked.promised, tracked.size)
            tracked.source = self._source_of(tracked)
            self.files[tracked.file] = tracked
            if tracked.state is FileState.ENDED:
                self.ended[tracked.file] = tracked
            self._by_key[tracked.birth.key] = tracked  # in the order of their birth

    def take_news(self) -> News:
        """What has changed since the last call."""
        news, self.news = self.news, News()
        return news

    def note(self, tracked: TrackedFile) -> None:
        """What is durable of the file has changed."""
        self._changed[tracked.file] = tracked

    def launch(self, tracked: TrackedFile, flight: Flight) -> None:
        """Bytes of the file are on their way, or set apart in their place in the order."""
        tracked.flights.append(flight)
        self.flying[tracked.file] = tracked

    def take_changed(self) -> list[TrackedFile]:
        """The files noted since the last call."""
        changed, self._changed = self._changed, {}
        return [tracked for tracked in changed.values() if tracked.file in self.files]

    def reconcile(self, now: float) -> None:
        """Looks through all patterns: what makes tailing correct."""
        found_keys: set[FileKey] = set()
        unreadable: dict[str, dict[str, str]] = {}
        for index, source in enumerate(self.sources):
            scan = self._host.scan(source.patterns)
            for path, reason in scan.unreadable:
                unreadable.setdefault(source.topic, {})[path] = reason
            self.unreadable = unreadable
            for found in scan.found:
                if found.key not in found_keys:
                    found_keys.add(found.key)
                    self._see(found, index, now)
        for tracked in list(self.files.values()):
            if tracked.state is FileState.OPEN and tracked.birth.key not in found_keys:
                self._miss(tracked, now)
        if now >= self._forget_at:
            self._forget_at = now + FORGET_AFTER_S
            self._forget(found_keys)

    def look(self, path: str, now: float) -> bool:
        """Looks at one path; False if no source means it."""
        for index, source in enumerate(self.sources):
            if any(pattern.means(path) for pattern in source.patterns):
                found = self._host.look(path)
                if found is not None:
                    self._see(found, index, now)
                return True
        return False

    # --- one file -----------------------------------------------------------------------------

    def _see(self, found: Found, index: int, now: float) -> None:
        tracked = self._by_key.get(found.key)
        if tracked is None:
            if found.size:
                self._begin(found, index, now)
        elif tracked.is_replaying and not tracked.is_deleted:
            # What was promised is looked at first: it proves bytes that the marks do not yet.
            tracked.location, tracked.source = found.path, index
            tracked.size = max(tracked.size, found.size)
        elif tracked.state is not FileState.OPEN:
            self._see_ended(tracked, found, index, now)
        elif (tracked.birth.topic, tracked.birth.topic_id) != self._topic(index):
            self._end(tracked)
            self._see_ended(tracked, found, index, now)
        else:
            self._see_open(tracked, found, index, now)

    def _see_open(self, tracked: TrackedFile, found: Found, index: int, now: float) -> None:
        tracked.source = index
        if tracked.location != found.path:
            tracked.location = found.path
            self.note(tracked)
        tracked.rotated = shown(found.path) != tracked.birth.path
        if found.size < tracked.size:
            reason = f"it was cut to {found.size} bytes, {tracked.size} were there"
            self.replace(tracked, reason, now)
        elif found.size > tracked.read_position or tracked.changed_ns != found.changed_ns:
            self.grew(tracked, found.size, found.changed_ns, now)

    def grew(self, tracked: TrackedFile, size: int, changed_ns: int, now: float) -> None:
        """Notes a size and a time of change; a change without growth asks for a closer look."""
        if size <= tracked.size and changed_ns != tracked.changed_ns:
            tracked.verified = False
        if size != tracked.size or changed_ns != tracked.changed_ns:
            tracked.grown_at = now
        tracked.size, tracked.changed_ns = max(size, tracked.size), changed_ns
        self.on_growth(tracked)

    def _see_ended(self, tracked: TrackedFile, found: Found, index: int, now: float) -> None:
        """Something lies where a finished file id was: the same bytes, more, or others."""
        assert tracked.length is not None
        if not found.size:
            return
        same_time = found.changed_ns == tracked.changed_ns
        if found.size == tracked.length and same_time and not tracked.is_deleted:
            return
        handle = self._open(found, index)
        if handle is None:
            return
        if tracked.is_deleted:
            self._give_birth(found, index, handle, Mark(0, 0), (), tracked, now)
            return
        point = tracked.last_point
        doubt = identity.doubt(
            handle.read, found.size, tracked.length, tracked.birth.fingerprint, point.guard
        )
        tracked.changed_ns = found.changed_ns
        if doubt is not None:
            self._succeed(tracked, found, index, handle, now)
        elif found.size > tracked.length:
            mark = Mark(tracked.length, point.prefix_crc)
            self._give_birth(found, index, handle, mark, (*point.marks,), tracked, now)
        else:
            handle.close()

    def _begin(self, found: Found, index: int, now: float) -> None:
        handle = self._open(found, index)
        if handle is not None:
            self._give_birth(found, index, handle, Mark(0, 0), (), None, now)

    def replace(self, tracked: TrackedFile, reason: str, now: float) -> None:
        """The file is another one now: its id ends, what it had unread is lost, its end unseen."""
        self._lose(tracked, reason)
        index = tracked.source
        try:
            handle = self._handles.get(tracked)
            status = handle.status()
        except (Moved, OSError):
            self._handles.drop(tracked.file)
            return
        self._handles.drop(tracked.file)
        if index is None or not status.size:
            return
        found = Found(tracked.location, status.key, status.size, status.changed_ns)
        opened = self._open(found, index)
        if opened is not None:
            self._succeed(tracked, found, index, opened, now)

    def _succeed(
        self,
        old: TrackedFile,
        found: Found,
        index: int,
        handle: Handle,
        now: float,
    ) -> None:
        """A new id from the highest position whose prefix is proven to be what was read."""
        marks = old.last_point.marks
        proven = prove(handle.read, found.size, old.birth.fingerprint, marks)
        mark = Mark(proven.position, proven.crc)
        kept = tuple(each for each in marks if each.position <= mark.position)
        new = self._give_birth(found, index, handle, mark, kept, old, now)
        end = min(found.size, old.length or 0)
        if new is not None and proven.same_beginning and mark.position < end:
            reason = f"these bytes may have been delivered as those of file {old.file} too"
            self.news.set_apart.append(
                SetApart(new, mark.position, end, Certainty.UNCERTAIN, reason)
            )

    def _give_birth(
        self,
        found: Found,
        index: int,
        handle: Handle,
        begin: Mark,
        marks: tuple[Mark, ...],
        predecessor: TrackedFile | None,
        now: float,
    ) -> TrackedFile | None:
        try:
            fingerprint = fingerprint_of(handle.read, found.size)
            before = min(GUARD_BYTES, begin.position)
            tail = handle.read(before, begin.position - before)
        except OSError as error:
            handle.close()
            self._cannot_read(index, found.path, error)
            return None
        birth = Birth(
            file=identity.new_id(),
            serial=self._serial + 1,
            topic=self.sources[index].topic,
            topic_id=self.sources[index].topic_id,
            host=self._host_name,
            path=shown(found.path),
            key=found.key,
            fingerprint=fingerprint,
            begin=begin.position,
            predecessor=None if predecessor is None else predecessor.file,
            predecessor_position=None if predecessor is None else predecessor.length,
        )
        guard = guard_of(tail) if tail else Guard(0, 0)
        tracked = TrackedFile(
            birth=birth,
            checkpoint=Checkpoint(begin.position, begin.crc, guard, marks),
            location=found.path,
            read_position=begin.position,
            read_crc=begin.crc,
            promised=begin.position,
            tail=tail,
            verified=True,
            source=index,
        )
        self._serial += 1
        self.files[tracked.file] = self._by_key[found.key] = tracked
        self._handles.keep(tracked.file, handle)
        self.news.born.append(tracked)
        self.note(tracked)
        self.grew(tracked, found.size, found.changed_ns, now)
        return tracked

    def _miss(self, tracked: TrackedFile, now: float) -> None:
        """No pattern leads to it any more."""
        if self._is_hidden(tracked.location):
            return
        try:
            path = self._host.find(os.path.dirname(tracked.location), tracked.birth.key)
        except OSError as error:
            self.cannot_read(tracked, error)
            return
        if path is not None and path != tracked.location:
            tracked.location = path
            self.note(tracked)
        if tracked.is_replaying:
            return
        status = self._status_if_held(tracked)
        if path is None and status is None:
            self._lose(tracked, "it vanished while it was not held open")
        elif tracked.source is None or (path is not None and shown(path) == tracked.birth.path):
            self._disown(tracked, path)
        else:
            tracked.rotated = True
            self._watch_rotated(tracked, status, path, now)

    def _is_hidden(self, location: str) -> bool:
        """Whether it lies in a directory that could not be looked into."""
        return any(
            location.startswith(path.rstrip("/") + "/")
            for reasons in self.unreadable.values()
            for path in reasons
        )

    def _watch_rotated(
        self, tracked: TrackedFile, status: Status | None, path: str | None, now: float
    ) -> None:
        """Notes the growth of a file that only its handle or its directory knows."""
        if status is None and path is not None:
            found = self._host.look(path)
            if found is None or found.key != tracked.birth.key:
                return
            status = Status(found.key, found.size, 1, found.changed_ns)
        if status is None or (status.size, status.changed_ns) == (tracked.size, tracked.changed_ns):
            return
        if status.size < tracked.size:
            reason = f"it was cut to {status.size} bytes, {tracked.size} were there"
            self.replace(tracked, reason, now)
        else:
            self.grew(tracked, status.size, status.changed_ns, now)

    def _disown(self, tracked: TrackedFile, path: str | None) -> None:
        """It lies where it lay, but no source means it any more."""
        found = None if path is None else self._host.look(path)
        if found is not None:
            tracked.size = max(tracked.size, found.size)
        if found is not None and found.size <= tracked.promised:
            self._end(tracked)
        else:
            self._lose(tracked, "no source means it any more, and it was not read to its end")

    def _status_if_held(self, tracked: TrackedFile) -> Status | None:
        handle = self._handles.held(tracked.file)
        if handle is None:
            return None
        try:
            return handle.status()
        except OSError:
            self._handles.drop(tracked.file)
            return None

    def _lose(self, tracked: TrackedFile, reason: str) -> None:
        """Ends a file id of which an unknown number of bytes was not read."""
        self.doubts[tracked.birth.topic] += 1
        tracked.tally.lost += max(tracked.size - tracked.promised, 0)
        self.news.set_apart.append(
            SetApart(tracked, tracked.promised, None, Certainty.LOST, reason)
        )
        self._end(tracked)

    def _end(self, tracked: TrackedFile) -> None:
        tracked.end()
        self.ended[tracked.file] = tracked
        status = self._status_if_held(tracked)
        if status is not None and not status.links:
            tracked.location = ""  # the kernel may give its inode to any file now
        self.note(tracked)
        self._handles.drop(tracked.file)

    def finish(self, tracked: TrackedFile) -> None:
        """It was read to its end and nothing more is expected of it."""
        self._end(tracked)

    def _forget(self, found: set[FileKey]) -> None:
        """Closed file ids whose bytes are gone from the host."""
        for tracked in list(self.files.values()):
            if tracked.state is not FileState.CLOSED:
                continue
            newest = self._by_key.get(tracked.birth.key)
            if newest is tracked:
                if tracked.birth.key in found:
                    continue
                if self._is_there(tracked):
                    continue
                del self._by_key[tracked.birth.key]
            del self.files[tracked.file]
            self.news.forgotten.append(tracked.file)

    def _is_there(self, tracked: TrackedFile) -> bool:
        try:
            directory = os.path.dirname(tracked.location)
            return self._host.find(directory, tracked.birth.key) is not None
        except OSError:
            return True  # nobody knows

    # --- small things -------------------------------------------------------------------------

    def _open(self, found: Found, index: int) -> Handle | None:
        """The file that was found, also if it was renamed since; None if it cannot be had.

        Then it is named, so that nothing is sealed before the patterns were looked through again.
        """
        try:
            handle = self._open_at(found.path, found.key)
            if handle is None:  # rotated between the scan and now
                path = self._host.find(os.path.dirname(found.path), found.key)
                handle = None if path is None else self._open_at(path, found.key)
            if handle is None:
                raise FileNotFoundError(errno.ENOENT, "it went away while it was looked at")
        except OSError as error:
            self._cannot_read(index, found.path, error)
            return None
        return handle

    def _open_at(self, path: str, key: FileKey) -> Handle | None:
        """What lies at a path, if it is this file. Raises OSError."""
        try:
            handle = self._host.open(path)
        except FileNotFoundError:
            return None
        if handle.status().key != key:
            handle.close()
            return None
        return handle

    def _cannot_read(self, index: int, path: str, error: OSError) -> None:
        reasons = self.unreadable.setdefault(self.sources[index].topic, {})
        reasons[path] = error.strerror or str(error)

    def cannot_read(self, tracked: TrackedFile, error: OSError) -> None:
        """Names a file whose bytes could not be had; it holds back its topic's seal."""
        reasons = self.unreadable.setdefault(tracked.birth.topic, {})
        reasons[tracked.location] = error.strerror or str(error)

    def _topic(self, index: int) -> tuple[str, str]:
        return self.sources[index].topic, self.sources[index].topic_id

    def _source_of(self, tracked: TrackedFile) -> int | None:
        """The source that means a file which no pattern leads to, by the name it was born with."""
        for index, source in enumerate(self.sources):
            same_topic = source.topic == tracked.birth.topic
            if same_topic and any(p.means(tracked.birth.path) for p in source.patterns):
                return index
        return None


def shown(path: str) -> str:
    """A path as text for people: bytes that are no UTF-8 are escaped."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")
