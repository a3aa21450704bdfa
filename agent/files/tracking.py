"""From what was found on the host to file ids: new, renamed, rotated, replaced, gone.

    found, unknown key                        a new id begins at byte 0
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
from collections.abc import Callable, Iterable, Mapping, Sequence, Set

from skidway.agent.files.births import Births
from skidway.agent.files.compression import Compression, is_hopeless, may_hold
from skidway.agent.files.decompressed import is_decompressed
from skidway.agent.files.directories import Directories
from skidway.agent.files.endings import Endings
from skidway.agent.files.generations import generation
from skidway.agent.files.handles import Handles, Moved
from skidway.agent.files.host import Host, Status, shown
from skidway.agent.files.known import KnownFiles
from skidway.agent.files.likeness import begins_like, compare, renumbered
from skidway.agent.files.look import Moment
from skidway.agent.files.mounts import UNMOUNTED, Mounts
from skidway.agent.files.news import News
from skidway.agent.files.rotations import Rotations
from skidway.agent.files.same_file import Answer
from skidway.agent.files.sighting import Sighting
from skidway.agent.files.sources import TailedSource, index_of, is_meant, source_of
from skidway.agent.files.unopened import Unopened
from skidway.agent.files.unreadable import Unreadable
from skidway.agent.values import identity
from skidway.agent.values.found import UNMEASURED, FileKey, Found, UnopenedFile
from skidway.agent.values.set_apart import Unseen
from skidway.agent.values.tracked import FileState, Flight, TrackedFile, Written

VANISHED = "it vanished while it was not held open"
CHANGED = "the bytes before the position are others than were read"

WRITE_S = 10.0
"""How long a write may wait for its disk between setting the file's time and its size."""

FORGET_AFTER_S = 3600.0
"""Seconds between looks for closed files; those that are gone are forgotten."""

LEDGER_MS = 7 * 86_400_000
"""How long after its announcement a file that is gone stays known if it lost something, so that
people can ask what that was.
"""


# 51 methods: one for each thing that a look can find (the table above). They call each other, as a
# file that is found leads to the next, and all of them change the same few sets of one look.
class Tracker:
    """Looks at the host's files, and says what each one is. No method waits; all I/O is short and
    goes through `Host`.
    """

    def __init__(
        self, host: Host, handles: Handles, sources: Sequence[TailedSource], host_name: str
    ) -> None:
        self._host = host
        self._handles = handles
        self.sources = list(sources)
        self.news = News()
        self._unreadable = Unreadable()
        self._directories = Directories(host)
        self._known = KnownFiles(host, handles, self._directories)
        self._unopened = Unopened()
        self._births = Births(
            host, handles, self._known, self._unreadable, self._unopened, self.news, host_name
        )
        self._mounts = Mounts(host)
        self._endings = Endings(handles, self._known, self.news)
        self._compression = Compression(host, self._known, self._births)
        self._rotations = Rotations(host, self._directories, self._known, self._adopt)
        self._now = 0.0  # of this look
        self._now_ms = 0
        self._reborn: set[str] = set()  # since the last look: another file has the inode
        self._truncated: set[str] = set()
        self._linked: dict[str, str] = {}  # in this look: real path: path of the link
        self.linked_directories: frozenset[str] = frozenset()
        """Where files lie that links lead to: only a watch there reports their events."""
        self._forget_at = 0.0
        self.flying: dict[int, TrackedFile] = {}  # with flights
        self.has_lost: Callable[[int], bool] = lambda _file: False  # whether something was lost

    # --- what others see ----------------------------------------------------------------------

    @property
    def files(self) -> dict[int, TrackedFile]:
        """Every file id that is known."""
        return self._known.files

    @property
    def ended(self) -> dict[int, TrackedFile]:
        """The file ids that ended and are not closed yet."""
        return self._endings.ended

    @property
    def unreadable(self) -> dict[str, dict[str, str]]:
        """By topic, then by path: why nobody could look there."""
        return self._unreadable.by_topic

    @property
    def passing(self) -> Set[tuple[str, str]]:
        """Those of them, (topic, path), about which a later look will know more."""
        return self._unreadable.passing

    @property
    def doubts(self) -> Counter[str]:
        """By topic, how often its files were not what was read."""
        return self.news.doubts

    def when_grown(self, call: Callable[[TrackedFile], None]) -> None:
        """Calls this for each file that may have something to read."""
        self._known.on_growth = call

    def load(
        self,
        files: Iterable[TrackedFile],
        promised: Mapping[int, int],
        since: Mapping[str, int],
        unopened: Iterable[UnopenedFile] = (),
    ) -> None:
        """Takes over the durable files.

        promised: where the last intent of each ends; since: by topic, the time (ms) up to which
        these are all files that lay on the host.
        """
        self._unopened.load(unopened)
        for tracked in files:
            tracked.promised = max(promised.get(tracked.file, 0), tracked.read_position)
            tracked.size = max(tracked.promised, tracked.size)
            if tracked.promised > tracked.position:
                tracked.changed_ns = None  # it was noted before these bytes were read
            tracked.source = source_of(tracked, self.sources)
            self._known.add(tracked)
            self._renumber(tracked)
        self._mounts.load(self.files.values())
        self._endings.load(since)
        self._rotations.load(*self._known_places(), since)

    def _renumber(self, tracked: TrackedFile) -> None:
        if (key := renumbered(self._host, tracked)) is not None:
            self._known.renumber(tracked, key)

    def note(self, tracked: TrackedFile) -> None:
        """Notes that the durable part of a file has changed."""
        self._known.note(tracked)

    def take_changed(self) -> list[TrackedFile]:
        """The files noted since the last call."""
        return self._known.take_changed()

    def take_unopened(self) -> list[UnopenedFile] | None:
        """The files that could not be opened yet; None if they are the same as at the last call."""
        return self._unopened.take_changed()

    def launch(self, tracked: TrackedFile, flight: Flight) -> None:
        """Adds a flight: its bytes are on their way, or set apart in their place in the order."""
        tracked.flights.append(flight)
        self.flying[tracked.file] = tracked

    def finish(self, tracked: TrackedFile) -> None:
        """Ends a file that was read to its end and from which nothing more is expected."""
        self._endings.end(tracked)

    def cannot_read(self, tracked: TrackedFile, error: OSError) -> None:
        """Names a file whose bytes could not be read; it holds back its topic's seal."""
        self._unreadable.add(tracked.birth.topic, tracked.meant or tracked.location, error)

    def find_again(self, tracked: TrackedFile) -> bool:
        """Whether it lies somewhere, though it is not where it was at the last look.

        Notes where. Raises OSError if nobody knows.
        """
        if self._mounts.is_away(tracked):
            raise OSError(errno.ENODEV, UNMOUNTED)
        path = self._known.find(tracked, is_held=False)
        if path is None and (not self._now_ms or self._may_be_compressed(tracked)):
            raise OSError(errno.EAGAIN, "it may have been compressed")
        if path is not None:
            self._moved(tracked, path)
        return path is not None

    # --- a look -------------------------------------------------------------------------------

    def reconcile(self, now: float, now_ms: int) -> None:
        """Looks through all patterns: what makes tailing correct."""
        self._now, self._now_ms = now, now_ms
        self._directories.forget()
        self._unreadable.begin_look()
        self._endings.begin_look(now, now_ms)
        self._look_for_mounts(now)
        lay, keys = self._scan(now)
        self._look_for_generations(lay, now, now_ms)
        for unopened in self._unopened.all():
            if self._known.knows(unopened.found):
                self._unopened.remove(unopened.found.key)
            elif unopened.found.key not in keys:
                self._look_at_unopened(unopened, now)
        for tracked in list(self.files.values()):
            is_found = tracked.birth.key in keys and self._known.is_newest(tracked)
            if tracked.state is FileState.OPEN and not is_found:
                self._miss(tracked, now)
        for tracked in self._endings.ended_lately(keys):
            self._look_at_ended(tracked, now)
        if now >= self._forget_at:
            self._forget_at = now + FORGET_AFTER_S
            self._forget(keys, now)

    def look(self, path: str, now: float) -> bool:
        """Looks at one path. True: a file left it, so everything should be looked through."""
        path = self._linked.get(path, path)
        for index, source in enumerate(self.sources):
            if any(pattern.means(path) for pattern in source.patterns):
                found = self._host.look(path)
                if found is not None:
                    self._see(Sighting(found, index, source, now))
                return self._rotations.leads_elsewhere(path, found)
        return False

    def _look_for_mounts(self, now: float) -> None:
        for tracked in self._mounts.arrived(now):
            self._renumber(tracked)
        for topic, directory in self._mounts.missing():
            self._unreadable.add(topic, directory, UNMOUNTED)

    def _scan(self, now: float) -> tuple[dict[str, Found], set[FileKey]]:
        """The files that the patterns lead to, by path, and their keys."""
        keys: set[FileKey] = set()
        lay: dict[str, Found] = {}
        linked: dict[str, str] = {}
        for index, source in enumerate(self.sources):
            scan = self._host.scan(source.patterns)
            self._unreadable.add_scan(source.topic, scan)
            for found in scan.found:
                lay.setdefault(found.path, found)
                if found.is_linked:
                    linked[found.real_path] = found.path
                if found.key not in keys:
                    keys.add(found.key)
                    self._see(Sighting(found, index, source, now))
        self._linked = linked
        self.linked_directories = frozenset(os.path.dirname(path) for path in linked)
        return lay, keys

    def _look_for_generations(self, lay: Mapping[str, Found], now: float, now_ms: int) -> None:
        """Looks for what was rotated away since the last look, before anybody knew it."""
        moment = Moment(self.sources, self._reborn, self._truncated, now, now_ms)
        self._reborn, self._truncated = set(), set()
        findings = self._rotations.look(lay, self._unreadable.hidden(), moment)
        self._known.replaced.clear()
        for found, index, base in sorted(findings.generations, key=_by_age):
            self._see_generation(Sighting(found, index, self.sources[index], now, base))
        for topic, path, reason in findings.unreadable:
            self._unreadable.add(topic, path, reason)
        for topic, path, reason in findings.passing:
            self._unreadable.wait(topic, path, reason)
        for unseen in findings.unseen:
            self.news.miss(unseen)

    def _known_places(self) -> tuple[list[Found], list[tuple[str, str, Found]]]:
        """Known files at meant paths; and those that were rotated from there, each with that path
        and a directory.
        """
        lay: list[Found] = []
        rotated: list[tuple[str, str, Found]] = []
        for tracked in sorted(self.files.values(), key=_by_birth):
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

    # --- one file that is there ---------------------------------------------------------------

    def _see(self, sighting: Sighting) -> None:
        found = sighting.found
        self._mind_unopened(sighting)
        tracked = self._known.at(found.key)
        if tracked is None:
            self._see_new(sighting)
            return
        if tracked.state is not FileState.OPEN and _is_unchanged(tracked, found):
            return
        if found.size < 0 and self._known.knows(found):
            self._find_out_size(tracked, sighting)
            return
        answer = self._compare(tracked, sighting)
        if answer is None:
            return
        if tracked.state is not FileState.OPEN and not found.size:
            if tracked.changed_ns != found.changed_ns:  # written and cut again since
                tracked.changed_ns = found.changed_ns
                self._truncated.add(found.path)
        elif answer is not Answer.SAME:
            self._see_another(tracked, sighting, answer)
        else:
            self._see_same(tracked, sighting)

    def _find_out_size(self, tracked: TrackedFile, sighting: Sighting) -> None:
        """Opens a compressed file that a known file lies in: that has its plain size measured."""
        if tracked.state is FileState.OPEN:
            self._known.on_growth(tracked)
        elif (handle := self._births.open(sighting)) is not None:
            handle.close()

    def _see_new(self, sighting: Sighting, old: TrackedFile | None = None) -> None:
        """Begins a new file unless it is a copy. old: the file that had its inode before."""
        new = self._whole(sighting) if sighting.found.size else None
        if new is not None and not any(self._see_copy(new, base) for base in new.bases):
            self._births.begin(new, old)

    def _see_same(self, tracked: TrackedFile, sighting: Sighting) -> None:
        found, source = sighting.found, sighting.source
        if tracked.is_replaying:
            # Promised bytes are looked at first: they prove more than the marks do yet.
            tracked.location, tracked.source = found.real_path, sighting.number
            tracked.size = max(tracked.size, found.size)
        elif tracked.state is not FileState.OPEN:
            self._see_ended(tracked, sighting)
        elif (tracked.birth.topic, tracked.birth.topic_id) != (source.topic, source.topic_id):
            self._endings.end(tracked)
            self._see_ended(tracked, sighting)
        else:
            self._see_open(tracked, sighting)

    def _see_generation(self, sighting: Sighting) -> None:
        """Sees a file that no pattern leads to; it may be a copy."""
        found, base = sighting.found, sighting.meant
        old = self._known.at(found.key)
        is_told = old is None or None not in (found.born_ns, old.birth.born_ns)
        if is_told or self._known.knows(found) or not self._see_copy(sighting, base):
            self._see(sighting)
        if not found.size and not self._known.knows(found):
            self._rotations.wait_for(found, sighting.number, base, sighting.now)

    def _whole(self, sighting: Sighting) -> Sighting | None:
        """A new file, if compressed with its plain size; None: it is not new, or not yet."""
        found = sighting.found
        if not is_decompressed(found.real_path):
            return sighting
        handle = None
        if not self._compression.is_going_on(found.real_path):
            handle = self._births.open(sighting)
        if handle is None:
            return None
        whole = sighting._replace(found=found._replace(size=handle.status().size))
        handle.close()
        if self._compression.adopt(whole, self._now_ms) is Answer.SAME:
            self._see(whole)
            return None
        if not whole.may_begin:
            self._unopened.remove(found.key)
            return None
        return whole

    def _adopt(self, found: Found, index: int, base: str, may_begin: bool) -> Answer:
        sighting = Sighting(found, index, self.sources[index], self._now, base, may_begin)
        return self._compression.adopt(sighting, self._now_ms)

    def _see_copy(self, sighting: Sighting, base: str) -> bool:
        """Whether it is a copy; of it only what the original had unread is read."""
        found = sighting.found
        if self._known.is_copy(found, base):
            return True
        original, answer = self._known.copies.original_of(found, base)
        if original is None:
            return False
        if original.length is None and self._is_put_off(sighting, original):
            return True
        is_ended = original.length is not None
        if answer is Answer.SAME and is_ended and not self._known.has_copy(original):
            return self._births.go_on(sighting, original) is not None
        return self._births.begin(sighting, original, may_double=found.size) is not None

    def _is_put_off(self, sighting: Sighting, original: TrackedFile) -> bool:
        """Whether a copy has to wait: it has more bytes than its original has now, so that one was
        cut. The cut must be seen first: what was read of the original says where the copy's unread
        bytes begin.
        """
        found, source = sighting.found, sighting.source
        is_undecided = original.is_replaying or original.is_unproven
        if self._unopened.has(found.key) and not is_undecided:
            return False
        reason = "it is a copy of a file that is being looked at"
        self._unreadable.wait(source.topic, found.path, reason)
        base, may_begin = sighting.base, sighting.may_begin
        self._unopened.add(UnopenedFile(source.topic, source.topic_id, base, found, may_begin))
        return True

    def _look_at_unopened(self, file: UnopenedFile, now: float) -> None:
        """Looks for an unopened file that no pattern leads to: it was rotated, or is gone."""
        index = index_of(file.meant, self.sources)
        if index is None:
            self._unopened.remove(file.found.key)
            return
        if self._unreadable.hides(file.found.real_path):
            return
        try:
            path = self._host.find(os.path.dirname(file.found.real_path), file.found.key)
        except OSError as error:
            self._unreadable.add(file.topic, file.found.path, error)
            return
        found = None if path is None else self._host.look(path)
        if path is not None and (found is None or found.key != file.found.key):
            self._unreadable.wait(file.topic, file.found.path, "it is being renamed")
        elif found is None or found.born_ns != file.found.born_ns:
            self._give_up(file, "it went away before it could be read")
        elif is_hopeless(found, self._now_ms):
            self._give_up(file, "it cannot be decompressed")
        else:
            source = self.sources[index]
            self._see_generation(Sighting(found, index, source, now, file.meant, file.may_begin))

    def _give_up(self, file: UnopenedFile, reason: str) -> None:
        self._unopened.remove(file.found.key)
        if file.may_begin:
            self.news.miss(Unseen(file.topic, file.topic_id, file.found.path, reason))

    def _mind_unopened(self, sighting: Sighting) -> None:
        """Declares bytes that were cut off before anybody could read them."""
        found, source = sighting.found, sighting.source
        if self._unopened.was_cut(found):
            self._truncated.add(found.path)
            reason = f"it was cut to {found.size} bytes before it could be read"
            self.news.miss(Unseen(source.topic, source.topic_id, found.path, reason))

    def _compare(self, tracked: TrackedFile, sighting: Sighting) -> Answer | None:
        """Whether the file with its inode is the known one; None if it cannot be read now."""
        found = sighting.found
        same_place = tracked.location == found.real_path or _is_generation(tracked, sighting)
        is_held = self._handles.held(tracked.file) is not None
        as_before = (tracked.size, tracked.changed_ns) == (found.size, found.changed_ns)
        is_known = tracked.is_seen and as_before and tracked.location == found.real_path
        if is_known and found.born_ns == tracked.birth.born_ns and not tracked.is_deleted:
            return Answer.SAME
        try:
            answer = compare(self._host, found, tracked, is_held=is_held, same_place=same_place)
        except OSError as error:
            self._unreadable.add(sighting.source.topic, found.path, error)
            return None
        if answer is Answer.UNKNOWN and not begins_like(self._host, found.real_path, tracked):
            return Answer.SAME  # rewritten, or another one: its marks tell which bytes are new
        return answer

    def _see_another(self, old: TrackedFile, sighting: Sighting, answer: Answer) -> None:
        """Another file has its inode now, or nobody knows: that file is read from its start."""
        found = sighting.found
        self._reborn.add(found.path)
        if answer is Answer.OTHER:
            self._known.detach(old)  # it may lie elsewhere, compressed
            self._see_new(sighting, old)
            return
        if old.state is FileState.OPEN and not old.is_replaying:
            self._endings.vanish(old, VANISHED)
        if found.size:
            self._births.begin(sighting, old, may_double=min(found.size, old.length or 0))

    def _see_open(self, tracked: TrackedFile, sighting: Sighting) -> None:
        found, now = sighting.found, sighting.now
        is_first, tracked.source, tracked.is_seen = not tracked.is_seen, sighting.number, True
        if (tracked.location, tracked.meant) != (found.real_path, sighting.meant):
            tracked.location, tracked.meant = found.real_path, sighting.meant
            self.note(tracked)
        born_at = tracked.birth.path
        self._set_rotated(tracked, found.path != born_at and shown(found.path) != born_at)
        is_changed = found.size != tracked.size or tracked.changed_ns != found.changed_ns
        tracked.is_unwatched |= is_first and is_changed
        if found.size < tracked.size:
            self.replace(tracked, _cut(tracked, found.size), now)
        elif is_changed and not self._has_its_bytes(tracked, found):
            self.replace(tracked, CHANGED, now)
        elif self._is_being_written(tracked, sighting, tracked.size):
            tracked.verified = False
            self._known.on_growth(tracked)
        elif is_first or is_changed or found.size > tracked.read_position:
            self._known.grew(tracked, found.size, found.changed_ns, now)

    def _has_its_bytes(self, tracked: TrackedFile, found: Found) -> bool:
        """Whether it has the known bytes; a file that is held open is checked when it is read."""
        if self._handles.held(tracked.file) is not None:
            return True
        return begins_like(self._host, found.real_path, tracked)

    def _see_ended(self, tracked: TrackedFile, sighting: Sighting) -> None:
        """The same file lies where a finished id was: the same bytes, more, or others."""
        assert tracked.length is not None
        found = sighting.found
        handle = self._births.open(sighting)
        if handle is None:
            return
        print_, guard = tracked.birth.fingerprint, tracked.last_point.guard
        doubt = identity.doubt(handle.read, found.size, tracked.length, print_, guard)
        if doubt is None and self._is_being_written(tracked, sighting, tracked.length):
            handle.close()
            return
        tracked.changed_ns = found.changed_ns
        if doubt is not None:
            self._note_rewritten(found, sighting)
            self._births.succeed(sighting, tracked, handle)
        elif found.size > tracked.length:
            self._births.go_on(sighting, tracked, handle)
        else:
            handle.close()

    def _is_being_written(self, tracked: TrackedFile, sighting: Sighting, size: int) -> bool:
        """Whether it was written to since the last look, and has not grown (yet).

        A write sets the time before the size. If the size stays, the file may have been cut and the
        same bytes written again, as by a job that says the same at each run: that is declared.
        """
        found, before = sighting.found, tracked.changed_ns
        is_same = found.size == size == tracked.promised and found.born_ns == tracked.birth.born_ns
        if not size or not is_same or before is None or found.changed_ns <= before:
            if tracked.written is not None:
                tracked.written = None
                self._unreadable.go_on(sighting.source.topic, found.path)
            return False
        source, written = sighting.source, tracked.written
        if written is None or written.changed_ns != before:
            written = tracked.written = Written(before, sighting.now)
        if sighting.now - written.since < WRITE_S:
            self._unreadable.wait(source.topic, found.path, "it was written to, and has not grown")
            return True
        reason = "it was written to and has not grown: the same bytes may have been written again"
        self.news.miss(Unseen(source.topic, source.topic_id, found.path, reason))
        tracked.written, tracked.changed_ns = None, found.changed_ns
        self.note(tracked)
        return False

    def _note_rewritten(self, found: Found, sighting: Sighting) -> None:
        """A finished file has other bytes: it was cut, or, if no birth is known, is another."""
        if found.born_ns is None:
            self._reborn.add(found.path)
            return
        self._truncated.add(found.path)
        source = sighting.source
        reason = "it was cut after it was read: what was written before the cut may be unread"
        self.news.miss(Unseen(source.topic, source.topic_id, found.path, reason))

    def replace(self, tracked: TrackedFile, reason: str, now: float) -> None:
        """Ends the id of a file that is another one now: what it had unread is lost, its end
        unseen.
        """
        if self._handles.held(tracked.file) is None:
            self._known.replaced[tracked.meant or tracked.location] = tracked
        if not tracked.rotated:
            self._truncated.add(tracked.meant)
        self._endings.lose(tracked, reason)
        index = tracked.source
        try:
            status = self._handles.get(tracked).status()
        except (Moved, OSError):
            return
        finally:
            self._handles.drop(tracked.file)
        if index is None or not status.size:
            return
        found, base = self._host.look(tracked.meant), None
        if found is None or found.key != tracked.birth.key:
            found, base = self._host.look(tracked.location), tracked.meant
        if found is None or found.key != tracked.birth.key:
            return  # the next look finds out where it went
        sighting = Sighting(found, index, self.sources[index], now, base)
        handle = self._births.open(sighting)
        if handle is not None:
            self._births.succeed(sighting, tracked, handle)

    # --- one file to which no pattern leads ---------------------------------------------------

    def _miss(self, tracked: TrackedFile, now: float) -> None:
        if any(self._unreadable.hides(path) for path in (tracked.meant, tracked.location)):
            return
        status = self._known.status_if_held(tracked)
        try:
            path = self._known.find(tracked, is_held=status is not None)
        except OSError as error:
            self.cannot_read(tracked, error)
            return
        if path is not None:
            self._moved(tracked, path)
        if tracked.is_replaying:
            found = None if path is None else self._host.look(path)
            tracked.size = max(tracked.size, 0 if found is None else found.size)
            return  # what was promised is looked at first
        if path is None and status is None:
            if not self._may_be_compressed(tracked):
                self._endings.vanish(tracked, VANISHED)
        elif tracked.source is None:
            self._disown(tracked, path)
        else:
            self._set_rotated(tracked, True)
            self._watch_rotated(tracked, status, path, now)

    def _may_be_compressed(self, tracked: TrackedFile) -> bool:
        """Whether it may be in a compressed file that could not be opened yet."""
        return any(may_hold(each, tracked) for each in self._unopened.all())

    def _moved(self, tracked: TrackedFile, path: str) -> None:
        if path != tracked.location:
            tracked.location = path
            self.note(tracked)

    def _set_rotated(self, tracked: TrackedFile, is_rotated: bool) -> None:
        """Notes whether it is rotated; the reader looks once more: its closure may become due."""
        if is_rotated and not tracked.rotated:
            self._known.on_growth(tracked)
        tracked.rotated = is_rotated

    def _watch_rotated(
        self, tracked: TrackedFile, status: Status | None, path: str | None, now: float
    ) -> None:
        """Notes the growth of a file that only its handle or its directory knows."""
        if status is None and path is not None:
            found = self._host.look(path)
            if found is None or found.key != tracked.birth.key:
                return
            if found.size < 0:
                self._known.on_growth(tracked)  # opening it has its size measured
                return
            status = Status(found.key, found.size, 1, found.changed_ns, found.born_ns)
        if status is None or (status.size, status.changed_ns) == (tracked.size, tracked.changed_ns):
            if tracked.size > tracked.promised or not tracked.verified:
                self._known.on_growth(tracked)  # what could not be read is tried again
        elif status.size < tracked.size:
            self.replace(tracked, _cut(tracked, status.size), now)
        else:
            self._known.grew(tracked, status.size, status.changed_ns, now)

    def _disown(self, tracked: TrackedFile, path: str | None) -> None:
        """Ends a file that is there, but that no source means any more."""
        found = None if path is None else self._host.look(path)
        if found is not None:
            tracked.size = max(tracked.size, found.size)
        if found is not None and found.size <= tracked.promised:
            self._endings.end(tracked)
        else:
            reason = "no source means it any more, and it was not read to its end"
            self._endings.lose(tracked, reason)

    def _look_at_ended(self, tracked: TrackedFile, now: float) -> None:
        """Looks at a finished file, which may still grow."""
        if tracked.source is None:
            return
        there = self._host.look(tracked.location)
        if there is None or there.key != tracked.birth.key:
            try:
                path = self._known.find(tracked, is_held=True)
            except OSError:
                return  # nobody knows
            if path is None:
                return
            self._moved(tracked, path)
            there = self._host.look(path)
        if there is not None and there.key == tracked.birth.key and there.size != tracked.length:
            source = self.sources[tracked.source]
            self._see(Sighting(there, tracked.source, source, now, tracked.meant))

    def _forget(self, found: set[FileKey], now: float) -> None:
        """Forgets closed file ids whose bytes are gone from the host."""
        self._known.copies.forget_gone(found)
        for tracked in list(self.files.values()):
            if not self._endings.may_forget(tracked) or self._unreadable.hides(tracked.location):
                continue
            is_young = 0 <= self._now_ms - tracked.announced_ms < LEDGER_MS
            if is_young and self.has_lost(tracked.file):
                continue
            if self._known.is_newest(tracked):
                if tracked.birth.key in found:
                    continue
                if self._known.is_there(tracked):
                    self._look_at_ended(tracked, now)
                    continue
                if self._may_be_compressed(tracked) or self._mounts.may_come_back(tracked, now):
                    continue
            self._known.forget(tracked)
            self.news.forgotten.append(tracked.file)


def _is_unchanged(tracked: TrackedFile, found: Found) -> bool:
    """Whether a finished file is as it was left."""
    return (
        found.size in (tracked.length, UNMEASURED)
        and found.changed_ns == tracked.changed_ns
        and found.born_ns == tracked.birth.born_ns
        and not tracked.is_deleted
    )


def _is_generation(tracked: TrackedFile, sighting: Sighting) -> bool:
    """Whether the found path is a name that rotation may have given the file."""
    if sighting.base is not None:
        return sighting.base == tracked.meant
    above, name = os.path.split(tracked.meant)
    now_above, now_name = os.path.split(sighting.found.path)
    said, before = generation(now_name), generation(name)
    if said is None or above != now_above:
        return False
    bases = {name, *(() if before is None else before.bases)}.intersection(said.bases)
    # `run2.log` is another run, no generation of `run.log`
    return any(now_name[len(os.path.splitext(base)[0])] in "-_." for base in bases)


def _by_birth(tracked: TrackedFile) -> tuple[int, int]:
    return tracked.birth.born_ns or 0, tracked.birth.serial


def _cut(tracked: TrackedFile, size: int) -> str:
    return f"it was cut to {size} bytes, {tracked.size} were there"


def _by_age(generation_: tuple[Found, int, str]) -> int:
    """Sorts originals before their copies."""
    found = generation_[0]
    return found.changed_ns if found.born_ns is None else found.born_ns
