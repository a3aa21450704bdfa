"""From what was found on the host to file ids: new, renamed, rotated, replaced, gone.

    found, unknown key                        a new id from byte 0
    found, known key, nothing doubtful        the same id, whatever its path is now
    shorter, or other bytes than were read    the id ends; another begins where the bytes are new
    other topic (settings, made again)        the id ends; another one begins where it ended
    found nowhere, but held open              read to its end, then closed
    found nowhere, not held open              what it had unread is declared lost, its end unseen
    closed, and grew                          another id begins at the final length
    its inode, but another file (same_file)   the id ends; another begins at byte 0
    its inode, and nobody knows               the same, and what was read may be doubled: declared
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
from agent.files.copies import Copies, copied_from
from agent.files.directories import Directories
from agent.files.generations import generation
from agent.files.handles import Handles, Moved
from agent.files.host import FileKey, Found, Handle, Host, Status, shown
from agent.files.kin import is_meant, source_of
from agent.files.likeness import (
    begins_like,
    compare,
    open_at,
    renumbered,
)
from agent.files.rotations import Rotations, Unseen
from agent.files.same_file import Answer
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

VANISHED = "it vanished while it was not held open"
CHANGED = "the bytes before the position are others than were read"

STILL_S = 60.0
STILL_FACTOR = 10
"""A file that vanished unseen has lost nothing if all of it was acknowledged, and it had stood
still for so long, and so many times longer than the time in which nobody looked."""

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
        self._unopened: dict[FileKey, Found] = {}  # new ones that could not be read, as last seen
        self._copies = Copies(host)
        self._directories = Directories(host)
        self._rotations = Rotations(host, self._directories, self)
        self._replaced: dict[str, TrackedFile] = {}  # in this look, not held open: path: the old
        self._reborn: set[str] = set()
        self._truncated: set[str] = set()
        self._linked: dict[str, str] = {}  # in this look: real path: path of the link
        self.linked_directories: frozenset[str] = frozenset()
        """Where files lie to which links lead: nothing tells of them but a watch there."""
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
        self._now_ms = 0
        self._looked_ms: int | None = None  # the look before it
        self._since: dict[str, int] = {}
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
            tracked.source = source_of(tracked, self.sources)
            if (key := renumbered(self._host, tracked)) is not None:
                tracked.birth = replace(tracked.birth, key=key)
                self.note(tracked)
            self.files[tracked.file] = tracked
            self._copies.remember(tracked)
            if tracked.state is FileState.ENDED:
                self.ended[tracked.file] = tracked
            self._by_key[tracked.birth.key] = tracked  # in the order of their birth
        self._since = dict(since)
        self._rotations.load(*self._known_places(), since)

    def _known_places(self) -> tuple[list[Found], list[tuple[str, str, Found]]]:
        """Files at meant paths; and those that were rotated from there, with the path, and its
        directory."""
        lay: list[Found] = []
        rotated: list[tuple[str, str, Found]] = []
        for tracked in self.files.values():
            birth, path, place = tracked.birth, tracked.meant, tracked.location
            if not place or not is_meant(path, self.sources):
                continue
            found = Found(path, birth.key, tracked.size, -1, birth.born_ns, place)
            origin = self._place_of(path)
            if place != origin:
                is_linked = origin == path and os.path.dirname(place) != os.path.dirname(path)
                directory = os.path.dirname(place if is_linked else origin)
                rotated.append((path, directory, found))
            elif tracked.state is FileState.OPEN:
                lay.append(found)
        return lay, rotated

    def _place_of(self, path: str) -> str:
        """Where a meant path leads."""
        found = self._host.look(path)
        if found is not None:
            return found.real_path
        above, name = os.path.split(path)
        return os.path.join(self._host.resolve(above), name)

    def take_news(self) -> News:
        """What has changed since the last call."""
        news, self.news = self.news, News()
        news.set_apart = _together(news.set_apart)
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
        self._looked_ms, self._now_ms = self._now_ms or None, now_ms
        found_keys: set[FileKey] = set()
        lay: dict[str, Found] = {}
        linked: dict[str, str] = {}
        dead: set[str] = set()
        unreadable: dict[str, dict[str, str]] = {}
        for index, source in enumerate(self.sources):
            scan = self._host.scan(source.patterns)
            dead.update(scan.dead)
            for path, reason in scan.unreadable:
                unreadable.setdefault(source.topic, {})[path] = reason
            self.unreadable = unreadable
            for found in scan.found:
                lay.setdefault(found.path, found)
                if found.is_linked:
                    linked[found.real_path] = found.path
                if found.key not in found_keys:
                    found_keys.add(found.key)
                    self._see(found, index, now)
        self._linked = linked
        self.linked_directories = frozenset(os.path.dirname(path) for path in linked)
        self._look_for_generations(lay, dead, now, now_ms)
        for tracked in list(self.files.values()):
            is_found = tracked.birth.key in found_keys and self._is_newest(tracked)
            if tracked.state is FileState.OPEN and not is_found:
                self._miss(tracked, now)
        self._look_at_ended(found_keys, now)
        if now >= self._forget_at:
            self._forget_at = now + FORGET_AFTER_S
            self._forget(found_keys, now)

    def look(self, path: str, now: float) -> bool:
        """Looks at one path; whether everything should be looked through: a file left it."""
        path = self._linked.get(path, path)
        for index, source in enumerate(self.sources):
            if any(pattern.means(path) for pattern in source.patterns):
                found = self._host.look(path)
                if found is not None:
                    self._see(found, index, now)
                return self._rotations.leads_elsewhere(path, found)
        return False

    def _look_for_generations(
        self, lay: Mapping[str, Found], dead: set[str], now: float, now_ms: int
    ) -> None:
        """What was rotated away since the last look, before anybody knew it."""
        visible = lay
        if hidden := {path for reasons in self.unreadable.values() for path in reasons} - dead:
            visible = {**self._rotations.below(hidden), **lay}
        reborn, self._reborn = self._reborn, set()
        truncated, self._truncated = self._truncated, set()
        findings = self._rotations.look(visible, reborn, truncated, self.sources, now, now_ms)
        self._replaced.clear()
        for found, index, base in sorted(findings.generations, key=_by_age):
            self._see_generation(found, index, base, now)
        for topic, path, reason in findings.unreadable:
            self.unreadable.setdefault(topic, {})[path] = reason
        for unseen in findings.unseen:
            self.doubts[unseen.topic] += 1
            self.news.unseen.append(unseen)

    # --- one file -----------------------------------------------------------------------------

    def _see(self, found: Found, index: int, now: float, base: str | None = None) -> None:
        """base: the meant path that it was rotated from, if no pattern leads to it."""
        self._mind_unopened(found, index)
        tracked = self._by_key.get(found.key)
        if tracked is None:
            self._see_new(found, index, now, base)
            return
        if tracked.state is not FileState.OPEN and self._is_unchanged(tracked, found):
            return
        answer = self._compare(tracked, found, index, base)
        if answer is None:
            return
        if tracked.state is not FileState.OPEN and not found.size:
            if tracked.changed_ns != found.changed_ns:  # written and cut again since
                tracked.changed_ns = found.changed_ns
                self._truncated.add(found.path)
        elif answer is not Answer.SAME:
            self._see_another(tracked, found, index, answer, now, base)
        else:
            self._see_same(tracked, found, index, now, base)

    def _see_new(self, found: Found, index: int, now: float, base: str | None) -> None:
        if not found.size:
            return
        if base is None and any(
            self._see_copy(found, index, each, now) for each in copied_from(found.path)
        ):
            return
        handle = self._open(found, index)
        if handle is not None:
            self._give_birth(found, index, handle, Mark(0, 0), (), None, now, base)

    def _see_same(
        self, tracked: TrackedFile, found: Found, index: int, now: float, base: str | None
    ) -> None:
        if tracked.is_replaying:
            # What was promised is looked at first: it proves bytes that the marks do not yet.
            tracked.location, tracked.source = found.real_path, index
            tracked.size = max(tracked.size, found.size)
        elif tracked.state is not FileState.OPEN:
            self._see_ended(tracked, found, index, now, base)
        elif (tracked.birth.topic, tracked.birth.topic_id) != self._topic(index):
            self._end(tracked)
            self._see_ended(tracked, found, index, now, base)
        else:
            self._see_open(tracked, found, index, now, base)

    def _see_generation(self, found: Found, index: int, base: str, now: float) -> None:
        """One that no pattern leads to; it may be a copy."""
        if self.knows(found) or not self._see_copy(found, index, base, now):
            self._see(found, index, now, base)
            if not self.knows(found):
                self._rotations.wait_for(found, index, base, now)

    def _see_copy(self, found: Found, index: int, base: str, now: float) -> bool:
        """Whether it is a copy, of which only what the original had unread is read."""
        if self.is_copy(found, base):
            return True
        original, answer = self._copies.original_of(found, base)
        if original is None:
            return False
        length = original.length or 0
        handle = self._open(found, index)
        if handle is None:
            return False
        if answer is Answer.SAME and not self._has_copy(original):
            point = original.last_point
            mark = Mark(length, point.prefix_crc)
            self._give_birth(found, index, handle, mark, point.marks, original, now, base)
            return True
        new = self._give_birth(found, index, handle, Mark(0, 0), (), original, now, base)
        if new is not None:
            self._may_double(new, 0, found.size, original)
        return True

    def is_copy(self, found: Found, base: str) -> bool:
        """Whether it is a copy of a file that is read where it lies, or was read."""
        return not self.knows(found) and self._copies.is_left_alone(found, base)

    def is_rest(self, found: Found, base: str) -> bool:
        """Whether it is a copy that has more of the bytes that were truncated at a path."""
        return not self.knows(found) and self._copies.is_rest(found, base)

    def _has_copy(self, original: TrackedFile) -> bool:
        """Whether a copy of it was found before: this one may be of what came behind it."""
        return any(
            each.birth.predecessor == original.file and each.birth.key != original.birth.key
            for each in self.files.values()
        )

    def _may_double(self, new: TrackedFile, first: int, end: int, old: TrackedFile) -> None:
        reason = f"these bytes may have been delivered as those of file {old.file} too"
        self.news.set_apart.append(SetApart(new, first, end, Certainty.UNCERTAIN, reason))

    def _mind_unopened(self, found: Found, index: int) -> None:
        """Bytes that nobody could read may be gone before they can be."""
        before = self._unopened.get(found.key)
        if before is None or before.born_ns != found.born_ns or found.size >= before.size:
            return
        self._unopened[found.key] = found
        self._truncated.add(found.path)
        topic, topic_id = self._topic(index)
        self.doubts[topic] += 1
        reason = f"it was cut to {found.size} bytes before it could be read"
        self.news.unseen.append(Unseen(topic, topic_id, found.path, reason))

    def _is_unchanged(self, tracked: TrackedFile, found: Found) -> bool:
        """A finished file as it was left."""
        return (
            (found.size, found.changed_ns) == (tracked.length, tracked.changed_ns)
            and found.born_ns == tracked.birth.born_ns
            and not tracked.is_deleted
        )

    def _compare(
        self, tracked: TrackedFile, found: Found, index: int, base: str | None
    ) -> Answer | None:
        """Whether what has its inode is the known file; None where it cannot be read now."""
        same_place = tracked.location == found.real_path or self._is_kin(tracked, found, base)
        is_held = self._handles.held(tracked.file) is not None
        as_before = (tracked.size, tracked.changed_ns) == (found.size, found.changed_ns)
        is_known = tracked.is_seen and as_before and tracked.location == found.real_path
        if is_known and found.born_ns == tracked.birth.born_ns and not tracked.is_deleted:
            return Answer.SAME
        try:
            answer = compare(self._host, found, tracked, is_held=is_held, same_place=same_place)
        except OSError as error:
            self._cannot_read(index, found.path, error)
            return None
        if answer is Answer.UNKNOWN and not begins_like(self._host, found.real_path, tracked):
            return Answer.SAME  # rewritten, or another one: its marks tell which bytes are new
        return answer

    def _is_kin(self, tracked: TrackedFile, found: Found, base: str | None) -> bool:
        """Whether rotation renames a file so."""
        if base is not None:
            return base == tracked.meant
        above, name = os.path.split(tracked.meant)
        now_above, now_name = os.path.split(found.path)
        said, before = generation(now_name), generation(name)
        if said is None or above != now_above:
            return False
        bases = {name, *(() if before is None else before.bases)}.intersection(said.bases)
        # `run2.log` is another run, no generation of `run.log`
        return any(now_name[len(os.path.splitext(base)[0])] in "-_." for base in bases)

    def _see_another(
        self,
        old: TrackedFile,
        found: Found,
        index: int,
        answer: Answer,
        now: float,
        base: str | None,
    ) -> None:
        """Its inode is another file's now, or nobody knows: that one is read from its start."""
        if old.state is FileState.OPEN and not old.is_replaying:
            self._vanish(old, VANISHED)
        self._reborn.add(found.path)
        handle = self._open(found, index) if found.size else None
        if handle is None:
            return
        new = self._give_birth(found, index, handle, Mark(0, 0), (), old, now, base)
        end = min(found.size, old.length or 0)
        if new is not None and answer is Answer.UNKNOWN and end:
            self._may_double(new, 0, end, old)

    def _see_open(
        self, tracked: TrackedFile, found: Found, index: int, now: float, base: str | None
    ) -> None:
        is_first, tracked.source, tracked.is_seen = not tracked.is_seen, index, True
        meant = base or found.path
        if (tracked.location, tracked.meant) != (found.real_path, meant):
            tracked.location, tracked.meant = found.real_path, meant
            self.note(tracked)
        born_at = tracked.birth.path
        self._set_rotated(tracked, found.path != born_at and shown(found.path) != born_at)
        is_changed = found.size != tracked.size or tracked.changed_ns != found.changed_ns
        if found.size < tracked.size:
            reason = f"it was cut to {found.size} bytes, {tracked.size} were there"
            self.replace(tracked, reason, now)
        elif is_changed and not self._has_its_bytes(tracked, found):
            self.replace(tracked, CHANGED, now)
        elif is_first or is_changed or found.size > tracked.read_position:
            self.grew(tracked, found.size, found.changed_ns, now)

    def _has_its_bytes(self, tracked: TrackedFile, found: Found) -> bool:
        """A file that is held open is looked at when it is read."""
        if self._handles.held(tracked.file) is not None:
            return True
        return begins_like(self._host, found.real_path, tracked)

    def grew(self, tracked: TrackedFile, size: int, changed_ns: int, now: float) -> None:
        """Notes a size and a time of change; a change without growth asks for a closer look."""
        if size <= tracked.size and changed_ns != tracked.changed_ns:
            tracked.verified = False
        if size != tracked.size or changed_ns != tracked.changed_ns or not tracked.grown_at:
            tracked.grown_at = now
        tracked.size, tracked.changed_ns = max(size, tracked.size), changed_ns
        self.on_growth(tracked)

    def _see_ended(
        self, tracked: TrackedFile, found: Found, index: int, now: float, base: str | None
    ) -> None:
        """The same file lies where a finished id was: the same bytes, more, or others."""
        assert tracked.length is not None
        handle = self._open(found, index)
        if handle is None:
            return
        point = tracked.last_point
        doubt = identity.doubt(
            handle.read, found.size, tracked.length, tracked.birth.fingerprint, point.guard
        )
        tracked.changed_ns = found.changed_ns
        if doubt is not None:
            self._reborn.add(found.path)
            self._succeed(tracked, found, index, handle, now, base)
        elif found.size > tracked.length:
            mark = Mark(tracked.length, point.prefix_crc)
            self._give_birth(found, index, handle, mark, point.marks, tracked, now, base)
        else:
            handle.close()

    def replace(self, tracked: TrackedFile, reason: str, now: float) -> None:
        """The file is another one now: its id ends, what it had unread is lost, its end unseen."""
        if self._handles.held(tracked.file) is None:
            self._replaced[tracked.meant or tracked.location] = tracked
        if not tracked.rotated:
            self._truncated.add(tracked.meant)
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
        found = self._host.look(tracked.meant)
        base = None
        if found is None or found.key != tracked.birth.key:
            found, base = self._host.look(tracked.location), tracked.meant
        if found is None or found.key != tracked.birth.key:
            return  # the next look finds out where it went
        opened = self._open(found, index)
        if opened is not None:
            self._succeed(tracked, found, index, opened, now, base)

    def _succeed(
        self,
        old: TrackedFile,
        found: Found,
        index: int,
        handle: Handle,
        now: float,
        base: str | None,
    ) -> None:
        """A new id from the highest position whose prefix is proven to be what was read."""
        marks = old.last_point.marks
        proven = prove(handle.read, found.size, old.birth.fingerprint, marks)
        mark = Mark(proven.position, proven.crc)
        kept = tuple(each for each in marks if each.position <= mark.position)
        new = self._give_birth(found, index, handle, mark, kept, old, now, base)
        end = min(found.size, old.length or 0)
        may_be_old = proven.same_beginning or old.is_unproven
        if new is not None and may_be_old and mark.position < end:
            self._may_double(new, mark.position, end, old)

    def _give_birth(
        self,
        found: Found,
        index: int,
        handle: Handle,
        begin: Mark,
        marks: tuple[Mark, ...],
        predecessor: TrackedFile | None,
        now: float,
        base: str | None,
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
            born_ns=found.born_ns,
        )
        guard = guard_of(tail) if tail else Guard(0, 0)
        tracked = TrackedFile(
            birth=birth,
            checkpoint=Checkpoint(begin.position, begin.crc, guard, marks),
            location=found.real_path,
            meant=base or found.path,
            read_position=begin.position,
            read_crc=begin.crc,
            promised=begin.position,
            tail=tail,
            verified=True,
            source=index,
            is_seen=True,
        )
        self._serial += 1
        self.files[tracked.file] = self._by_key[found.key] = tracked
        self._copies.remember(tracked)
        self._handles.keep(tracked.file, handle)
        self.news.born.append(tracked)
        self.note(tracked)
        self.grew(tracked, found.size, found.changed_ns, now)
        return tracked

    def _miss(self, tracked: TrackedFile, now: float) -> None:
        """No pattern leads to it any more."""
        if self._is_hidden(tracked.meant or tracked.location):
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
            self._vanish(tracked, VANISHED)
        elif tracked.source is None:
            self._disown(tracked, path)
        else:
            self._set_rotated(tracked, True)
            self._watch_rotated(tracked, status, path, now)

    def _find(self, tracked: TrackedFile, *, is_held: bool) -> str | None:
        """Where it lies; before it is given up, its directory is read once more."""
        directory = os.path.dirname(tracked.location)
        path = self._directories.find(directory, tracked.birth.key)
        if path is None:
            path = self.where(tracked.birth.key) or None
        if path is None and not is_held:
            path = self._host.find(directory, tracked.birth.key)
        found = None if path is None else self._host.look(path)
        if found is not None and self._is_reborn(tracked, found):
            return None
        return path

    @staticmethod
    def _is_reborn(tracked: TrackedFile, found: Found) -> bool:
        births = (tracked.birth.born_ns, found.born_ns)
        return None not in births and births[0] != births[1]

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
            status = Status(found.key, found.size, 1, found.changed_ns, found.born_ns)
        if status is None or (status.size, status.changed_ns) == (tracked.size, tracked.changed_ns):
            if tracked.size > tracked.promised:
                self.on_growth(tracked)  # what could not be read is tried again
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

    def _vanish(self, tracked: TrackedFile, reason: str) -> None:
        """It is gone: what it had unread is lost, if it can have had anything."""
        if self._stood_still(tracked):
            self._end(tracked)
        else:
            self._lose(tracked, reason)

    def _stood_still(self, tracked: TrackedFile) -> bool:
        """Whether nothing can have come to it that was not seen: it was at rest for too long.

        Where rotation was at work since, others may have gone with it.
        """
        siblings = self._copies.born_at(tracked.birth.path)
        if sum(each.state is FileState.OPEN for each in siblings if each is not tracked) > 1:
            return False
        seen_ms = self._seen_ms(tracked)
        if tracked.size > tracked.promised or tracked.changed_ns is None or seen_ms is None:
            return False
        unseen_s = (self._now_ms - seen_ms) / 1000
        still_s = (seen_ms - tracked.changed_ns / 1_000_000) / 1000
        return unseen_s >= 0 and still_s >= max(STILL_S, STILL_FACTOR * unseen_s)

    def _seen_ms(self, tracked: TrackedFile) -> int | None:
        """When it was looked at last; before the start that was at its topic's last seal."""
        if tracked.is_seen:
            return self._looked_ms
        return self._since.get(tracked.birth.topic)

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
            self._see(there, tracked.source, now, tracked.meant)

    def _forget(self, found: set[FileKey], now: float) -> None:
        """Closed file ids whose bytes are gone from the host."""
        self._copies.forget_gone(found)
        self._unopened = {key: each for key, each in self._unopened.items() if key in found}
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
            elif tracked.file in self._ended_lately:
                continue  # a copy of it may come to light
            del self.files[tracked.file]
            self._copies.forget(tracked)
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
            handle = open_at(self._host, found.real_path, found.key)
            if handle is None:  # rotated between the scan and now
                path = self._host.find(os.path.dirname(found.real_path), found.key)
                handle = None if path is None else open_at(self._host, path, found.key)
            if handle is None:
                raise FileNotFoundError(errno.ENOENT, "it went away while it was looked at")
        except OSError as error:
            self._cannot_read(index, found.path, error)
            self._unopened[found.key] = found
            return None
        self._unopened.pop(found.key, None)
        return handle

    def _cannot_read(self, index: int, path: str, error: OSError) -> None:
        reasons = self.unreadable.setdefault(self.sources[index].topic, {})
        reasons[path] = error.strerror or str(error)

    def cannot_read(self, tracked: TrackedFile, error: OSError) -> None:
        """Names a file whose bytes could not be had; it holds back its topic's seal."""
        reasons = self.unreadable.setdefault(tracked.birth.topic, {})
        reasons[tracked.meant or tracked.location] = error.strerror or str(error)

    def knows(self, found: Found) -> bool:
        """Whether it is a known file that was not deleted."""
        tracked = self._by_key.get(found.key)
        if tracked is None or tracked.is_deleted:
            return False
        return tracked.birth.born_ns == found.born_ns

    def where(self, key: FileKey) -> str:
        """Where a known file lies, though that may be another directory; "" if nobody knows."""
        tracked = self._by_key.get(key)
        if tracked is None or tracked.is_deleted:
            return ""
        handle = self._handles.held(tracked.file)
        path = tracked.location if handle is None else handle.where()
        found = self._host.look(path) if path else None
        if found is None or (found.key, found.born_ns) != (key, tracked.birth.born_ns):
            return ""
        return path

    def rotated_from(self, base: str) -> list[str]:
        """Where the newest known files lie that were written at a path, and lie there no more."""
        places = {self._lies_at(each) for each in self._copies.born_at(shown(base))}
        return sorted(places - {"", base})

    def _lies_at(self, tracked: TrackedFile) -> str:
        """Where it lies by what this look has listed; "" if nobody knows."""
        if not self._is_newest(tracked) or tracked.is_deleted:
            return ""
        try:
            path = self._directories.find(os.path.dirname(tracked.location), tracked.birth.key)
        except OSError:
            path = None  # its directory is named where something there may be unread
        found = None if path is None else self._host.look(path)
        if found is None or self._is_reborn(tracked, found):
            return self.where(tracked.birth.key)
        return found.real_path

    def is_another(self, found: Found, beside: Sequence[str]) -> bool:
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

    def changed_times(self, directory: str) -> set[int]:
        """When the known files of a directory changed last, as far as anybody looked, ns."""
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


def _by_age(generation_: tuple[Found, int, str]) -> int:
    """The original comes before its copy."""
    found = generation_[0]
    return found.changed_ns if found.born_ns is None else found.born_ns


def _together(ranges: Sequence[SetApart]) -> list[SetApart]:
    """Files of a topic that went at the same time for the same reason are one loss."""
    alike: dict[tuple[str, str, str], list[SetApart]] = {}
    found = []
    for each in ranges:
        if each.end is not None or each.certainty is not Certainty.LOST:
            found.append(each)
            continue
        birth = each.tracked.birth
        alike.setdefault((birth.topic, birth.topic_id, each.reason), []).append(each)
    for first, *others in alike.values():
        if others:
            files = "file" if len(others) == 1 else "files"
            reason = f"{first.reason}; {len(others):,} more {files} likewise"
            first = replace(first, reason=reason)
        found.append(first)
    return found
