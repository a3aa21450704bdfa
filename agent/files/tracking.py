"""From what was found on the host to file ids: new, renamed, rotated, replaced, gone.

    found, unknown key                        a new id from byte 0
    found, known key, nothing doubtful        the same id, whatever its path is now
    shorter, or other bytes than were read    the id ends; another begins where the bytes are new
    other topic (settings, made again)        the id ends; another one begins where it ended
    found nowhere, but held open              read to its end, then closed
    found nowhere, not held open              what it had unread is declared lost, its end unseen
    closed, and grew                          another id begins at the final length
    its inode after it was deleted            another id begins at byte 0, whatever the bytes
    on another device after a start, else     the same id: the machine numbers its disks anew
    alike by name, inode and bytes
    under a name that rotation gave, unknown  a new id (see rotations)

A loss is declared once, when it is noticed, with its reason; nothing is ever skipped in silence.
"""

from __future__ import annotations

import errno
import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from agent import identity
from agent.files.directories import Directories
from agent.files.handles import Handles, Moved
from agent.files.host import FileKey, Found, Handle, Host, Status
from agent.files.kin import is_meant, kin_of, source_of
from agent.files.likeness import begins_like, open_at, renumbered
from agent.files.rotations import Rotations, Unseen
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

WATCH_ENDED_S = 86_400.0
"""How long a finished file that no pattern leads to is looked at in every look."""


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
    unseen: list[Unseen] = field(default_factory=list)
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
        self._directories = Directories(host)
        self._rotations = Rotations(
            host, self._directories, self._is_known, self._is_another, self._changed_times
        )
        self._replaced: dict[str, TrackedFile] = {}  # in this look, not held open: path: the old
        self._reborn: set[str] = set()
        self._forget_at = 0.0
        self._serial = 0
        self.files: dict[int, TrackedFile] = {}
        self.unreadable: dict[str, dict[str, str]] = {}  # topic: path: reason
        self.news = News()
        self.doubts: Counter[str] = Counter()  # topic: how often its files were not what was read
        self._changed: dict[int, TrackedFile] = {}
        self.flying: dict[int, TrackedFile] = {}  # with flights
        self.ended: dict[int, TrackedFile] = {}  # not closed yet
        self._ended_lately: dict[int, float] = {}  # until when they are looked at
        self._now = 0.0  # of the last look
        self.on_growth: Callable[[TrackedFile], None] = lambda _tracked: None

    def load(
        self,
        files: Iterable[TrackedFile],
        promised: Mapping[int, int],
        since: Mapping[str, int],
    ) -> None:
        """Takes over the durable files.

        promised: where the last intent of each ends; since: by topic, until when (ms) nothing
        can have lain on the host that is not among them.
        """
        for tracked in files:
            self._serial = max(self._serial, tracked.birth.serial)
            tracked.promised = max(promised.get(tracked.file, 0), tracked.read_position)
            tracked.size = max(tracked.promised, tracked.size)
            tracked.source = source_of(tracked.birth, self.sources)
            if (key := renumbered(self._host, tracked)) is not None:
                tracked.birth = replace(tracked.birth, key=key)
                self.note(tracked)
            self.files[tracked.file] = tracked
            if tracked.state is FileState.ENDED:
                self.ended[tracked.file] = tracked
            self._by_key[tracked.birth.key] = tracked  # in the order of their birth
        self._rotations.load(*self._known_places(), since)

    def _known_places(self) -> tuple[list[Found], list[tuple[str, Found]]]:
        """Files at meant paths, and files at names of rotation with the paths they came from."""
        lay: list[Found] = []
        rotated: list[tuple[str, Found]] = []
        for tracked in self.files.values():
            found = Found(tracked.location, tracked.birth.key, tracked.size, -1)
            if is_meant(tracked.location, self.sources):
                if tracked.state is FileState.OPEN:
                    lay.append(found)
            elif kin := kin_of(tracked.location, self.sources):
                rotated.append((kin.base, found))
        return lay, rotated

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

    def reconcile(self, now: float, now_ms: int) -> None:
        """Looks through all patterns: what makes tailing correct."""
        self._directories.forget()
        if not self._now:
            closed = (each for each in self.files.values() if each.state is not FileState.OPEN)
            self._ended_lately = {each.file: now + WATCH_ENDED_S for each in closed}
        self._now = now
        found_keys: set[FileKey] = set()
        lay: dict[str, Found] = {}
        unreadable: dict[str, dict[str, str]] = {}
        for index, source in enumerate(self.sources):
            scan = self._host.scan(source.patterns)
            for path, reason in scan.unreadable:
                unreadable.setdefault(source.topic, {})[path] = reason
            self.unreadable = unreadable
            for found in scan.found:
                lay.setdefault(found.path, found)
                if found.key not in found_keys:
                    found_keys.add(found.key)
                    self._see(found, index, now)
        self._look_for_generations(lay, now, now_ms)
        for tracked in list(self.files.values()):
            if tracked.state is FileState.OPEN and tracked.birth.key not in found_keys:
                self._miss(tracked, now)
        self._look_at_ended(found_keys, now)
        if now >= self._forget_at:
            self._forget_at = now + FORGET_AFTER_S
            self._forget(found_keys, now)

    def look(self, path: str, now: float) -> bool:
        """Looks at one path; whether everything should be looked through: a file left it."""
        for index, source in enumerate(self.sources):
            if any(pattern.means(path) for pattern in source.patterns):
                found = self._host.look(path)
                if found is not None:
                    self._see(found, index, now)
                return self._rotations.leads_elsewhere(path, found)
        return False

    def _look_for_generations(self, lay: Mapping[str, Found], now: float, now_ms: int) -> None:
        """What was rotated away since the last look, before anybody knew it."""
        visible = lay
        if hidden := [path for reasons in self.unreadable.values() for path in reasons]:
            visible = {**self._rotations.below(hidden), **lay}
        reborn, self._reborn = self._reborn, set()
        findings = self._rotations.look(visible, reborn, self.sources, now, now_ms)
        self._replaced.clear()
        for found, index in findings.generations:
            self._see(found, index, now)
        for topic, path, reason in findings.unreadable:
            self.unreadable.setdefault(topic, {})[path] = reason
        for unseen in findings.unseen:
            self.doubts[unseen.topic] += 1
            self.news.unseen.append(unseen)

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
        born_at = tracked.birth.path
        self._set_rotated(tracked, found.path != born_at and shown(found.path) != born_at)
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
            self._reborn.add(found.path)
            self._give_birth(found, index, handle, Mark(0, 0), (), tracked, now)
            return
        point = tracked.last_point
        doubt = identity.doubt(
            handle.read, found.size, tracked.length, tracked.birth.fingerprint, point.guard
        )
        tracked.changed_ns = found.changed_ns
        if doubt is not None:
            self._reborn.add(found.path)
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
        if self._handles.held(tracked.file) is None:
            self._replaced[tracked.location] = tracked
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
        may_be_old = proven.same_beginning or old.is_unproven
        if new is not None and may_be_old and mark.position < end:
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
        status = self._status_if_held(tracked)
        try:
            path = self._find(tracked, is_held=status is not None)
        except OSError as error:
            self.cannot_read(tracked, error)
            return
        if path is not None and path != tracked.location:
            tracked.location = path
            self.note(tracked)
        if tracked.is_replaying:
            found = None if path is None else self._host.look(path)
            tracked.size = max(tracked.size, 0 if found is None else found.size)
            return  # what was promised is looked at first
        if path is None and status is None:
            self._lose(tracked, "it vanished while it was not held open")
        elif not self._is_rotated(tracked, path):
            self._disown(tracked, path)
        else:
            self._set_rotated(tracked, True)
            self._watch_rotated(tracked, status, path, now)

    def _find(self, tracked: TrackedFile, *, is_held: bool) -> str | None:
        """Where it lies; before it is given up, its directory is read once more."""
        directory = os.path.dirname(tracked.location)
        path = self._directories.find(directory, tracked.birth.key)
        if path is None and not is_held:
            path = self._host.find(directory, tracked.birth.key)
        return path

    def _is_rotated(self, tracked: TrackedFile, path: str | None) -> bool:
        """Whether its source means it, though no pattern leads to where it lies."""
        if tracked.source is None:
            return False
        if path is None or shown(path) != tracked.birth.path:
            return True
        return kin_of(path, self.sources) is not None

    def _is_hidden(self, location: str) -> bool:
        """Whether it lies in a directory that could not be looked into."""
        return any(
            location.startswith(path.rstrip("/") + "/")
            for reasons in self.unreadable.values()
            for path in reasons
        )

    def _set_rotated(self, tracked: TrackedFile, is_rotated: bool) -> None:
        """The reader has to look at it once more: from now on its closure may become due."""
        if is_rotated and not tracked.rotated:
            self.on_growth(tracked)
        tracked.rotated = is_rotated

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
        self._ended_lately[tracked.file] = self._now + WATCH_ENDED_S
        status = self._status_if_held(tracked)
        if status is not None and not status.links:
            tracked.location = ""  # the kernel may give its inode to any file now
        self.note(tracked)
        self._handles.drop(tracked.file)

    def finish(self, tracked: TrackedFile) -> None:
        """It was read to its end and nothing more is expected of it."""
        self._end(tracked)

    def _look_at_ended(self, found: set[FileKey], now: float) -> None:
        """Files that were finished lately, where no pattern leads to them: they may grow still."""
        for file, until in list(self._ended_lately.items()):
            tracked = self.files.get(file)
            if tracked is None or tracked.is_deleted or now >= until:
                del self._ended_lately[file]
            elif tracked.birth.key not in found and self._is_newest(tracked):
                self._look_at_one_ended(tracked, now)

    def _look_at_one_ended(self, tracked: TrackedFile, now: float) -> None:
        if tracked.source is None:
            return
        there = self._host.look(tracked.location)
        if there is None or there.key != tracked.birth.key:
            try:
                path = self._find(tracked, is_held=True)
            except OSError:
                return  # nobody knows
            if path is None:
                return
            tracked.location = path
            self.note(tracked)
            there = self._host.look(path)
        if there is not None and there.key == tracked.birth.key and there.size != tracked.length:
            self._see_ended(tracked, there, tracked.source, now)

    def _forget(self, found: set[FileKey], now: float) -> None:
        """Closed file ids whose bytes are gone from the host."""
        for tracked in list(self.files.values()):
            if tracked.state is not FileState.CLOSED:
                continue
            if self._is_newest(tracked):
                if tracked.birth.key in found:
                    continue
                if self._is_there(tracked):
                    self._look_at_one_ended(tracked, now)
                    continue
                del self._by_key[tracked.birth.key]
            del self.files[tracked.file]
            self.news.forgotten.append(tracked.file)

    def _is_newest(self, tracked: TrackedFile) -> bool:
        """Whether no other file id has its key by now."""
        return self._by_key.get(tracked.birth.key) is tracked

    def find_again(self, tracked: TrackedFile) -> bool:
        """Whether it lies somewhere, though it is not where it was at the last look.

        Notes where. OSError: nobody knows.
        """
        path = self._find(tracked, is_held=False)
        if path is not None and path != tracked.location:
            tracked.location = path
            self.note(tracked)
        return path is not None

    def _is_there(self, tracked: TrackedFile) -> bool:
        try:
            return self._find(tracked, is_held=False) is not None
        except OSError:
            return True  # nobody knows

    # --- small things -------------------------------------------------------------------------

    def _open(self, found: Found, index: int) -> Handle | None:
        """The file that was found, also if it was renamed since; None if it cannot be had.

        Then it is named, so that nothing is sealed before the patterns were looked through again.
        """
        try:
            handle = open_at(self._host, found.path, found.key)
            if handle is None:  # rotated between the scan and now
                path = self._host.find(os.path.dirname(found.path), found.key)
                handle = None if path is None else open_at(self._host, path, found.key)
            if handle is None:
                raise FileNotFoundError(errno.ENOENT, "it went away while it was looked at")
        except OSError as error:
            self._cannot_read(index, found.path, error)
            return None
        return handle

    def _cannot_read(self, index: int, path: str, error: OSError) -> None:
        reasons = self.unreadable.setdefault(self.sources[index].topic, {})
        reasons[path] = error.strerror or str(error)

    def cannot_read(self, tracked: TrackedFile, error: OSError) -> None:
        """Names a file whose bytes could not be had; it holds back its topic's seal."""
        reasons = self.unreadable.setdefault(tracked.birth.topic, {})
        reasons[tracked.location] = error.strerror or str(error)

    def _is_known(self, key: FileKey) -> bool:
        tracked = self._by_key.get(key)
        return tracked is not None and not tracked.is_deleted

    def _is_another(self, found: Found, beside: Sequence[str]) -> bool:
        """Whether another file lies there under the inode of a deleted one: no truncation.

        The kernel gives a deleted file's inode to the next one. A file that is held open cannot be
        deleted so; a truncated one differs too, but then a copy of it may lie beside it.
        """
        old = self._replaced.get(found.path)
        if old is None:
            old = self._by_key.get(found.key)
            if old is None or self._handles.held(old.file) is not None:
                return False
            if begins_like(self._host, found.path, old):
                return False
        return bool(old.position) and not any(begins_like(self._host, path, old) for path in beside)

    def _changed_times(self, directory: str) -> set[int]:
        """When the known files of a directory changed last, as far as anybody looked."""
        times = set()
        for tracked in self.files.values():
            if os.path.dirname(tracked.location or tracked.birth.path) == directory:
                status = self._status_if_held(tracked)
                if status is not None:
                    times.add(status.changed_ns)
                elif tracked.changed_ns is not None:
                    times.add(tracked.changed_ns)
        return times

    def _topic(self, index: int) -> tuple[str, str]:
        return self.sources[index].topic, self.sources[index].topic_id


def shown(path: str) -> str:
    """A path as text for people: bytes that are no UTF-8 are escaped."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")
