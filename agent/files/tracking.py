"""Makes looks. A look searches through all patterns, compares the host's files with the known file
ids, and finds out which files are new, renamed, rotated, replaced or gone.

    found, unknown key (device, inode)        a new id begins at byte 0
    found, known key, surely the same file    the same id, whatever its path is now
    shorter, or other bytes than were read    the id ends; another begins where the bytes are new
    other topic, or the topic was made again  the id ends; another id begins where it ended
    found nowhere, but the agent has it open  read to its end, then closed
    found nowhere, and not open               its unread bytes are declared lost, with unknown end
    closed, and grew                          another id begins where the closed id ended
    ended, found empty, and written again     another id begins at byte 0
    known inode, but another file (same_file) the id ends; another begins at byte 0
    known inode, perhaps another file         the id ends; another begins at byte 0, and the bytes
                                              that may be delivered twice are declared
    known, but a copy was written over it     as a new file (module copies)
    after a start, on another device, but     the same id: the disks have new numbers
    with the same name, inode and bytes
    unknown, under a name that rotation gave  a new id (module rotations)

A file id is closed when all its bytes are accounted for and the file's final length was announced
to the audit. The agent declares each loss once, with its reason, when it notices the loss. The
agent never skips bytes silently.
"""

from __future__ import annotations

import errno
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set

from skidway.agent.files.births import Births
from skidway.agent.files.compression import is_hopeless, may_hold
from skidway.agent.files.directories import Directories
from skidway.agent.files.endings import VANISHED, Endings, cut_reason
from skidway.agent.files.first_looks import FirstLooks
from skidway.agent.files.handles import Handles
from skidway.agent.files.host import Host, Status
from skidway.agent.files.host_files import HostFiles
from skidway.agent.files.known import KnownFiles
from skidway.agent.files.likeness import renumbered
from skidway.agent.files.look import Moment
from skidway.agent.files.matches import Matches
from skidway.agent.files.mounts import UNMOUNTED, Mounts
from skidway.agent.files.news import News
from skidway.agent.files.recognition import Recognition
from skidway.agent.files.rotations import Rotations
from skidway.agent.files.sighting import Sighting
from skidway.agent.files.sources import TailedSource, index_of, is_meant, source_of
from skidway.agent.files.unbegun import Unbegun
from skidway.agent.files.unopened import Unopened
from skidway.agent.files.unreadable import Unreadable
from skidway.agent.values.found import FileKey, Found, UnbegunFile, UnopenedFile
from skidway.agent.values.set_apart import Unseen
from skidway.agent.values.tracked import FileState, Flight, TrackedFile

FORGET_AFTER_S = 3600.0
"""The seconds between two searches for closed files that are gone from the host. The agent forgets
these files.
"""

HIDDEN_S = 86_400.0
"""For this many seconds, a file that no look can find stays open, if it still has a name somewhere.
So does a file that was read to its end, but of which some bytes cannot be read again. A closed file
that is gone is remembered for the same time, because it may have been moved away and may come
back."""

DISOWNED = "no source means it any more, and it was not read to its end"

LEDGER_MS = 7 * 86_400_000
"""If bytes of a file were lost and the file is gone, the agent still remembers the file for this
many milliseconds after the last announcement of its id. So operators can find out what was lost.
"""


# The class has many methods: those that other modules call, and the steps of a look. Code that
# needs no state of a look is in the modules that this module imports.
class Tracker:
    """Looks for the host's files, and lets `Recognition` decide what each file is. No method sleeps
    or uses the network. All I/O goes through `Host`.
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
        self._unbegun = Unbegun(host)
        self.first_looks = FirstLooks()
        self.matches = Matches()
        files = HostFiles(self._known, self._unopened, self._unreadable, self.news)
        self._mounts = Mounts(host)
        self._endings = Endings(handles, self._known, self.news)
        births = Births(host, handles, files, host_name)
        self._recognition = recognition = Recognition(
            host, handles, self.sources, files, births, self._endings
        )
        self.ignored = recognition.ignored
        self._rotations = Rotations(host, self._directories, self._known, recognition.adopt)
        self._now_ms = 0  # the time of this look
        self._linked: dict[str, str] = {}  # this look's links: by real path, the link's path
        self.linked_directories: frozenset[str] = frozenset()
        """The real directories of the files to which links lead. The operating system reports
        events of these files only if the agent watches these directories.
        """
        self._forget_at = 0.0
        self._missed: dict[int, float] = {}  # by file id: when a closed file was first found gone
        self.flying: dict[int, TrackedFile] = {}  # the files that have flights (bytes under way)

        # says for a file id whether some of its bytes were lost
        self.has_lost: Callable[[int], bool] = lambda _file: False

    # --- facts for others ----------------------------------------------------------------------

    @property
    def files(self) -> dict[int, TrackedFile]:
        """By file id: every known file."""
        return self._known.files

    @property
    def ended(self) -> dict[int, TrackedFile]:
        """The file ids that have ended and are not closed yet, because some of their bytes are not
        accounted for, or because the file's final length is not announced yet."""
        return self._endings.ended

    @property
    def unopened(self) -> list[UnopenedFile]:
        """The files that could not be opened yet."""
        return self._unopened.all()

    @property
    def unreadable(self) -> dict[str, dict[str, str]]:
        """For each topic, by path: why the path could not be listed or read."""
        return self._unreadable.by_topic

    @property
    def passing(self) -> Set[tuple[str, str]]:
        """The (topic, path) pairs of `unreadable` that are no errors, because a later look will
        probably find out more about the path."""
        return self._unreadable.passing

    @property
    def beside(self) -> dict[str, dict[str, str]]:
        """For each topic, by path: why the agent reads nothing there, although this holds no
        seal."""
        return self._unreadable.beside

    @property
    def doubts(self) -> Counter[str]:
        """For each topic, how often the agent found that bytes may be unread, or that a file no
        longer has the bytes that were read (see `News`)."""
        return self.news.doubts

    def when_grown(self, call: Callable[[TrackedFile], None]) -> None:
        """Sets the function that is called for each file that may have new bytes."""
        self._known.on_growth = call

    def load(
        self,
        files: Iterable[TrackedFile],
        promised: Mapping[int, int],
        since: Mapping[str, int],
        unopened: Iterable[UnopenedFile] = (),
        unbegun: Iterable[UnbegunFile] = (),
    ) -> None:
        """Takes over the files that the agent's state contains.

        promised: by file id, the position at which the file's last intent ends. since: by topic,
        the time (ms) up to which the agent has seen all files on the host.
        """
        self._unopened.load(unopened)
        self._unbegun.load(unbegun)
        for tracked in files:
            tracked.promised = max(promised.get(tracked.file, 0), tracked.read_position)
            tracked.size = max(tracked.promised, tracked.size)
            if tracked.promised > tracked.position:
                tracked.changed_ns = None  # the state may have a time from before the last read
            tracked.source = source_of(tracked, self.sources)
            self._known.add(tracked)
            self._renumber(tracked)
        self._mounts.load(self.files.values())
        self._unreadable.load(tracked.meant for tracked in self.files.values() if tracked.meant)
        self._endings.load(since)
        self._rotations.load(*self._known_places(), since)
        self._rotations.wait_again(each for each in self._unbegun.all() if each.base is not None)

    def _renumber(self, tracked: TrackedFile) -> None:
        if (key := renumbered(self._host, tracked)) is not None:
            self._known.renumber(tracked, key)

    def take_sources(self, sources: Sequence[TailedSource]) -> None:
        """Replaces the sources when the agent reloads its settings. The next look then ends two
        kinds of file ids: ids of files whose paths no pattern matches any more, and ids of files
        that now belong to another topic. (The first look after a start with these sources would end
        the same ids.)
        """
        self.sources[:] = sources
        for tracked in self.files.values():
            tracked.source = source_of(tracked, self.sources)
            tracked.long_line = None  # the new framing may find another end of the line
        self._rotations.take_sources(self.sources)

    def note(self, tracked: TrackedFile) -> None:
        """Notes that facts about a file have changed, so that the state gets the new facts."""
        self._known.note(tracked)

    def take_changed(self) -> list[TrackedFile]:
        """Returns the files that were passed to `note` since the last call."""
        return self._known.take_changed()

    def take_unopened(self) -> list[UnopenedFile] | None:
        """Returns the files that could not be opened yet; None if they are the same as at the last
        call."""
        return self._unopened.take_changed()

    def take_unbegun(self) -> tuple[list[str], list[UnbegunFile]] | None:
        """Returns what has changed in the list of files without a file id since the last call (see
        `Unbegun.take_changed`)."""
        return self._unbegun.take_changed()

    def launch(self, tracked: TrackedFile, flight: Flight) -> None:
        """Adds a flight (an intent under way). The flight's bytes are being sent, or they are lost
        or uncertain. In both cases, the checkpoint passes the flight only after the file's earlier
        flights.
        """
        tracked.flights += (flight,)
        self.flying[tracked.file] = tracked

    def has_later_id(self, tracked: TrackedFile) -> bool:
        """Whether the file of an id has a later id. If another file has got the inode of the id,
        the answer is no."""
        later = self._known.at(tracked.birth.key)
        if later is None or later is tracked:
            return False
        return later.birth.born_ns == tracked.birth.born_ns

    def is_hidden(self, tracked: TrackedFile, now: float) -> bool:
        """Whether a file has a name on the host, but no look can find the file: it may have been
        moved or linked to another directory, or another file system may be mounted over its
        directory. Only the open file shows whether it grows. After HIDDEN_S, the answer is no.
        """
        status = self._known.status_if_held(tracked)
        if status is None or not status.links or now - tracked.rotated_at >= HIDDEN_S:
            return False
        try:
            return self._known.find(tracked, is_held=True) is None
        except OSError:
            return True  # nobody can know

    def finish(self, tracked: TrackedFile, now: float) -> bool:
        """Ends the id of a file that was read to its end and is not expected to grow. If lines were
        written in place of NUL bytes that were read already, begins a new id for them.

        If the bytes that were NUL cannot be read, nobody can know whether lines were written there.
        Then the method does neither and returns False; after HIDDEN_S, it ends the id nevertheless.
        """
        try:
            is_replaced = self._recognition.replace_if_filled(tracked, now)
        except OSError:
            if now - tracked.rotated_at < HIDDEN_S:
                return False
            is_replaced = False
        if not is_replaced:
            self._endings.end(tracked)
        return True

    def replace(self, tracked: TrackedFile, reason: str, now: float) -> None:
        """Ends a file id, because its file is no longer the file that was read (see
        `Recognition.replace`).
        """
        self._recognition.replace(tracked, reason, now)

    def cannot_read(self, tracked: TrackedFile, error: OSError) -> None:
        """Lists a file as unreadable, because its bytes could not be read. Until the bytes can be
        read, the agent does not seal the file's topic.
        """
        self._unreadable.add(tracked.birth.topic, tracked.meant or tracked.location, error)

    def find_again(self, tracked: TrackedFile) -> bool:
        """Whether a file still exists elsewhere. Called if the file is not at the path where the
        last look found it.

        Notes the new path. Raises OSError if nobody can know whether the file still exists.
        """
        if self._mounts.is_away(tracked):
            raise OSError(errno.ENODEV, UNMOUNTED)
        path = self._known.find(tracked, is_held=False)
        if path is None and (not self._now_ms or self._may_be_compressed(tracked)):
            raise OSError(errno.EAGAIN, "it may have been compressed")
        if path is not None:
            self._recognition.moved(tracked, path)
        return path is not None

    # --- a look -------------------------------------------------------------------------------

    def reconcile(self, now: float, now_ms: int) -> None:
        """Makes a look through all patterns. Such looks find every change, even if the operating
        system reports no event; events only make the agent notice a change earlier.
        """
        self._now_ms = now_ms
        self._recognition.begin_look(now, now_ms)
        self._directories.forget()
        self._unreadable.begin_look()
        self._endings.begin_look(now, now_ms)
        self._look_for_mounts(now)
        self.ignored.begin_look()
        self.matches.begin_look()
        self.first_looks.begin_look(self.sources, self.files.values(), now_ms)
        lay, keys = self._scan(now)
        self._recognition.mark_changed(
            each for each in lay.values() if self._unbegun.was_written(each)
        )
        self._look_for_generations(lay, now, now_ms)
        self._unbegun.end_look(self._without_id())
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
            self._forget(keys, now)
            self._forget_at = now + FORGET_AFTER_S
        self._directories.forget()  # the listings take memory, and become outdated

    def look(self, path: str, now: float, now_ms: int) -> bool:
        """Looks at one path. Returns True if the path now leads to another file, or to no file. In
        this case the agent should look through all patterns.
        """
        self._recognition.note_clock(now, now_ms)
        path = self._linked.get(path, path)
        for index, source in enumerate(self.sources):
            if any(pattern.means(path) for pattern in source.patterns):
                found = self._host.look(path)
                if found is not None:
                    self.matches.found(source)
                    self._recognition.see(self._sighting(found, index, now))
                return self._rotations.leads_elsewhere(path, found)
        return False

    def _look_for_mounts(self, now: float) -> None:
        for tracked in self._mounts.arrived(now):
            self._renumber(tracked)
        for topic, directory in self._mounts.missing():
            self._unreadable.add(topic, directory, UNMOUNTED)

    def _scan(self, now: float) -> tuple[dict[str, Found], set[FileKey]]:
        """Returns the files to which the patterns lead, by path, and the keys of these files."""
        keys: set[FileKey] = set()
        lay: dict[str, Found] = {}
        linked: dict[str, str] = {}
        for index, source in enumerate(self.sources):
            scan = self._host.scan(source.patterns)
            self._unreadable.add_scan(source.topic, scan)
            if scan.found:
                self.matches.found(source)
            for found in scan.found:
                lay.setdefault(found.path, found)
                if found.is_linked:
                    linked[found.real_path] = found.path
                if found.key not in keys:
                    keys.add(found.key)
                    if not self._recognition.is_at_rest(found, index):
                        self._recognition.see(self._sighting(found, index, now))
        self.first_looks.end_look(self.sources)
        self.matches.end_look(
            self.sources, lambda: {each.source for each in self.files.values()}, self._now_ms
        )
        self._linked = linked
        self.linked_directories = frozenset(os.path.dirname(path) for path in linked)
        return lay, keys

    def _sighting(self, found: Found, index: int, now: float) -> Sighting:
        source = self.sources[index]
        is_first = self.first_looks.is_first(source, found)
        is_missed = not is_first and self.first_looks.is_missed(source.topic, found)
        return Sighting(found, index, source, now, is_first=is_first, is_missed=is_missed)

    def _look_for_generations(self, lay: Mapping[str, Found], now: float, now_ms: int) -> None:
        """Looks for files that the agent did not know before, and that were rotated since the last
        look.
        """
        moment = Moment(self.sources, *self._recognition.take_changed_paths(), now, now_ms)
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

    def _see_generation(self, sighting: Sighting) -> None:
        """Decides about a generation (a rotated file), to which no pattern leads. If the file is
        empty, each later look checks it again.
        """
        found, base = sighting.found, sighting.meant
        self._recognition.see_generation(sighting)
        if not found.size and not self._known.knows(found):
            self._rotations.wait_for(found, sighting.number, base, sighting.now)

    def _without_id(self) -> Iterator[UnbegunFile]:
        """Yields the files that have no file id and could be opened: empty files, and files that
        are too old."""
        for each in self._rotations.places():
            if not self._known.knows(each.found) and not self._unopened.has(each.found.key):
                yield each

    def _known_places(self) -> tuple[list[Found], list[tuple[str, str, Found]]]:
        """Returns the files at paths that patterns match, and the known files that were rotated
        from such paths. Each rotated file comes with its path before the rotation, and with the
        directory in which the agent looks for rotated files of that path.
        """
        lay: list[Found] = []
        rotated: list[tuple[str, str, Found]] = []
        for tracked in sorted(self.files.values(), key=_by_birth):
            birth, path, place = tracked.birth, tracked.meant, tracked.location
            if not place or not is_meant(path, self.sources):
                continue
            found = Found(path, birth.key, tracked.size, -1, birth.born_ns, place)
            origin = self._place_of(path)
            if origin != path or os.path.dirname(place) != os.path.dirname(path):
                found = self._lent(found)
            if place != origin:
                is_linked = origin == path and os.path.dirname(place) != os.path.dirname(path)
                directory = os.path.dirname(place if is_linked else origin)
                rotated.append((path, directory, found))
            elif tracked.state is FileState.OPEN or self._is_in_place(tracked):
                lay.append(found)
        for found, base in self._unbegun.all():
            if base is None and is_meant(found.path, self.sources):
                lay.append(self._lent(found) if found.is_linked else found)
        return lay, rotated

    def _lent(self, found: Found) -> Found:
        """Returns a file of an earlier process. Nobody knows by now whose links led to it, so a
        link that is there now counts."""
        there = self._host.look(found.real_path)
        if there is not None and there.key == found.key:
            return found._replace(owner=there.owner, is_lent=True)
        lender = self._host.lender(found.path)
        if lender is None:
            return found
        there = self._host.look(found.path)
        return found._replace(owner=lender if there is None else there.owner, is_lent=True)

    def _is_in_place(self, tracked: TrackedFile) -> bool:
        """Whether a known file whose id has ended, such as a log that rotation has emptied, is
        still at the path that a pattern matches."""
        found = self._host.look(tracked.meant)
        return found is not None and self._known.at(found.key) is tracked

    def _place_of(self, path: str) -> str:
        """Returns the real path to which a path leads. path: a path that a pattern matches."""
        found = self._host.look(path)
        if found is not None:
            return found.real_path
        above, name = os.path.split(path)
        return os.path.join(self._host.resolve(above), name)

    def _look_at_unopened(self, file: UnopenedFile, now: float) -> None:
        """Looks for an unopened file to which no pattern leads now, because it was rotated or is
        gone.
        """
        index = index_of(file.meant, self.sources)
        if index is None:
            self._disown_unopened(file)
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

    def _disown_unopened(self, file: UnopenedFile) -> None:
        """Declares the loss of an unopened file if no source's pattern matches its path any more.
        If all of its bytes would have been skipped, nothing is lost.
        """
        if file.skip is not None and file.skip == file.found.size:
            self._unopened.remove(file.found.key)
        else:
            self._give_up(file, DISOWNED)

    def _give_up(self, file: UnopenedFile, reason: str) -> None:
        self._unopened.remove(file.found.key)
        if file.may_begin:
            self.news.miss(Unseen(file.topic, file.topic_id, file.found.path, reason))

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
            self._recognition.moved(tracked, path)
        if tracked.is_replaying:
            found = None if path is None else self._host.look(path)
            tracked.size = max(tracked.size, 0 if found is None else found.size)
            return  # first, the bytes that an earlier process promised must be checked
        if path is None and status is None:
            if not self._may_be_compressed(tracked):
                self._endings.vanish(tracked, VANISHED)
        elif tracked.source is None:
            self._disown(tracked, path)
        else:
            self._recognition.set_rotated(tracked, True)
            self._watch_rotated(tracked, status, path, now)

    def _may_be_compressed(self, tracked: TrackedFile) -> bool:
        """Whether the file may be in a compressed file that could not be opened yet."""
        return any(may_hold(each, tracked) for each in self._unopened.all())

    def _watch_rotated(
        self, tracked: TrackedFile, status: Status | None, path: str | None, now: float
    ) -> None:
        """Notes the growth of a file to which no pattern leads. `status` is the open file's status.
        If the file is not open, the method finds the size at `path`.
        """
        if status is None and path is not None:
            found = self._host.look(path)
            if found is None or found.key != tracked.birth.key:
                return
            if found.size < 0:
                self._known.on_growth(tracked)  # `FileReader` measures the size
                return
            status = Status(found.key, found.size, 1, found.changed_ns, found.born_ns)
        if self._recognition.see_filled(tracked, now):
            return
        if status is None or (status.size, status.changed_ns) == (tracked.size, tracked.changed_ns):
            if tracked.size > tracked.promised or not tracked.verified:
                self._known.on_growth(tracked)  # `FileReader` tries again to read the file
        elif status.size < tracked.size:
            self._recognition.replace(tracked, cut_reason(tracked, status.size), now)
        else:
            found = None if path is None else self._host.look(path)
            if found is not None:
                bases = [tracked.meant]
                self._recognition.doubt_growth(tracked, tracked, tracked.size, found, bases)
            self._known.grew(tracked, status.size, status.changed_ns, now)

    def _disown(self, tracked: TrackedFile, path: str | None) -> None:
        """Ends the id of a file that still exists. Called if no source's pattern matches the file's
        path any more. If some bytes of the file may have no intent, declares them lost.
        """
        found = None if path is None else self._host.look(path)
        if found is not None:
            tracked.size = max(tracked.size, found.size)
        if found is not None and found.size <= tracked.promised:
            self._endings.end(tracked)
        else:
            self._endings.lose(tracked, DISOWNED)

    def _look_at_ended(self, tracked: TrackedFile, now: float) -> None:
        """Looks at a file whose id has ended, because it may have grown or been rewritten."""
        if tracked.source is None:
            return
        there = self._host.look(tracked.location)
        if there is None or there.key != tracked.birth.key:
            try:
                path = self._known.find(tracked, is_held=True)
            except OSError:
                return  # nobody can know whether the file has changed
            if path is None:
                return
            self._recognition.moved(tracked, path)
            there = self._host.look(path)
        if there is not None and there.key == tracked.birth.key:
            source = self.sources[tracked.source]
            self._recognition.see(Sighting(there, tracked.source, source, now, tracked.meant))

    def _forget(self, found: set[FileKey], now: float) -> None:
        """Forgets closed file ids whose files have been gone from the host for HIDDEN_S, or were
        seen to be deleted, or whose inodes have later file ids. Keeps ids with lost bytes until
        LEDGER_MS after their last announcement. At the first look, forgets at once the ids of files
        that are gone if their last announcement is longer ago than LEDGER_MS. Without this rule, an
        agent that is started every day would never forget them."""
        self._known.copies.forget_gone(found)
        is_first = not self._forget_at
        missed, self._missed = self._missed, {}
        for tracked in list(self.files.values()):
            if not self._endings.may_forget(tracked) or self._unreadable.hides(tracked.location):
                continue
            is_newest, since = self._known.is_newest(tracked), missed.get(tracked.file)
            if is_newest and tracked.birth.key in found:
                continue
            is_due = since is not None and now - since >= HIDDEN_S
            if is_newest and (since is None or is_due) and self._is_there(tracked, now):
                continue
            if since is None:
                self.news.gone.append(tracked)
            is_young = 0 <= self._now_ms - tracked.announced_ms < LEDGER_MS
            may_return = is_newest and not is_due and not tracked.is_deleted
            if is_first and not is_young:
                may_return = False
            if may_return or (is_young and self.has_lost(tracked.file)):
                self._missed[tracked.file] = now if since is None else since
                continue
            self._known.forget(tracked)
            self.news.forgotten.append(tracked)

    def _is_there(self, tracked: TrackedFile, now: float) -> bool:
        """Whether a closed file to which no pattern leads still exists, or may still exist in
        another form or in a file system that is not mounted. Looks at the file if it exists."""
        if self._known.is_there(tracked):
            self._look_at_ended(tracked, now)
            return True
        return self._may_be_compressed(tracked) or self._mounts.may_come_back(tracked, now)


def _by_birth(tracked: TrackedFile) -> tuple[int, int]:
    return tracked.birth.born_ns or 0, tracked.birth.serial


def _by_age(generation_: tuple[Found, int, str]) -> int:
    """Returns the sort key of a generation: its time of birth or, if that is unknown, its time of
    change. So an original comes before its copies."""
    found = generation_[0]
    return found.changed_ns if found.born_ns is None else found.born_ns
