"""Decides what a file on the host is: a new file, a known file, a copy, another file with a known
inode, or a known file that was rewritten. In a look, the agent goes once through the directories of
all sources, to find new, renamed and deleted log files.

A `Sighting` describes a found file, and says why the file matters. Each look makes sightings
(module `tracking`). `replace` also makes a sighting, if `FileReader` finds that a file's bytes are
not those that were read before. To decide about one file, the agent may have to decide about
another file, too: the known file that a compressed file contains, the original of a copy, or the
successor of a replaced file.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from skidway.agent.files import holes
from skidway.agent.files.births import Births
from skidway.agent.files.compression import Compression
from skidway.agent.files.decompressed import is_decompressed
from skidway.agent.files.endings import CHANGED, VANISHED, Endings, cut_reason
from skidway.agent.files.generations import generation
from skidway.agent.files.handles import Handles, Moved
from skidway.agent.files.host import Handle, Host, shown
from skidway.agent.files.host_files import HostFiles
from skidway.agent.files.ignored import Ignored, is_old
from skidway.agent.files.likeness import begins_like, compare
from skidway.agent.files.same_file import Answer
from skidway.agent.files.set_back import SetBack
from skidway.agent.files.sighting import Sighting
from skidway.agent.files.sources import TailedSource
from skidway.agent.values import identity
from skidway.agent.values.found import UNMEASURED, FileKey, Found, UnopenedFile
from skidway.agent.values.set_apart import Unseen
from skidway.agent.values.tracked import FileState, TrackedFile, Written

WRITE_S = 10.0
"""A write sets the file's time of change before its size. Between these two steps, the write may
have to wait for the disk. This module assumes that the write waits at most this many seconds.
"""


# The class has many methods, because what one file is may depend on what another file is.
class Recognition:
    """Decides what a file on the host is. Also collects two sets of paths for the next look: where
    it has found a truncated file, and where it has found another file with the inode of a known
    file. Owns the list of the copies that wait for the next look.
    """

    def __init__(
        self,
        host: Host,
        handles: Handles,
        sources: list[TailedSource],
        files: HostFiles,
        births: Births,
        endings: Endings,
    ) -> None:
        self.ignored = Ignored()
        self._host = host
        self._handles = handles
        self._sources = sources
        self._known = files.known
        self._unopened = files.unopened
        self._unreadable = files.unreadable
        self._news = files.news
        self._births = births
        self._endings = endings
        self._compression = Compression(host, files.known, births)
        self._set_back = SetBack()
        self._now = 0.0
        self._now_ms = 0
        self._reborn: set[str] = set()  # paths where a new file has a known file's inode
        self._truncated: set[str] = set()  # paths where a file was truncated
        self._looks = 0  # how many looks have begun
        # for each copy that waits: the value of _looks when the copy was put off
        self._put_off: dict[FileKey, int] = {}

    def begin_look(self, now: float, now_ms: int) -> None:
        """Notes the time at which a look begins."""
        self.note_clock(now, now_ms)
        self._now, self._now_ms = now, now_ms
        self._looks += 1
        self._put_off = {key: x for key, x in self._put_off.items() if self._unopened.has(key)}

    def note_clock(self, now: float, now_ms: int) -> None:
        """Notes the times of both clocks, to notice that the wall clock was set back."""
        self._set_back.note(now, now_ms)

    def mark_changed(self, files: Iterable[Found]) -> None:
        """Notes the files that have no file id and were written since the last look. After the
        write, rotation may have copied and truncated such a file. Then only the copy has the
        written bytes.
        """
        self._truncated.update(found.path for found in files)

    def take_changed_paths(self) -> tuple[set[str], set[str]]:
        """Returns two sets of paths. The first set has the paths at which, since the last call, the
        agent found a new file with a known file's inode. The second set has the paths at which it
        found a truncated file, and those that `mark_changed` noted."""
        taken = self._reborn, self._truncated
        self._reborn, self._truncated = set(), set()
        return taken

    def see(self, sighting: Sighting) -> None:
        """Decides about a file that was found at a meant path, or beside it: begins, ends or
        replaces its file id where necessary. A meant path is a path that a pattern matches.
        """
        found = sighting.found
        self._mind_unopened(sighting)
        tracked = self._known.at(found.key)
        if tracked is None or self._known.copies.is_overwritten(found):
            self._see_new(sighting, tracked)
            return
        if tracked.state is not FileState.OPEN and _is_unchanged(tracked, found):
            self._note_place(tracked, sighting)
            return
        if found.size < 0 and self._known.knows(found):
            self._find_out_size(tracked, sighting)
            return
        answer = self._compare(tracked, sighting)
        if answer is None:
            return
        if tracked.state is not FileState.OPEN and not found.size:
            self._note_emptied(tracked)
            if tracked.changed_ns != found.changed_ns:  # the file was written and truncated again
                tracked.changed_ns = found.changed_ns
                self._truncated.add(found.path)
        elif answer is not Answer.SAME:
            self._see_another(tracked, sighting, answer)
        else:
            self._see_same(tracked, sighting)

    def is_at_rest(self, found: Found, number: int) -> bool:
        """Whether `see` would change nothing, because the file has not changed since the last look,
        and the whole file is read. If so, a look does not call `see` for the file, to save time.

        number: the index of the source.
        """
        tracked, source = self._known.at(found.key), self._sources[number]
        return (
            tracked is not None
            and tracked.state is FileState.OPEN
            and tracked.is_seen
            and tracked.verified
            and not tracked.rotated
            and tracked.written is None
            and not tracked.holes
            and found.changed_ns == tracked.changed_ns
            and found.size == tracked.size == tracked.read_position == tracked.promised
            and found.real_path == tracked.location
            and found.path == tracked.meant == tracked.birth.path
            and found.born_ns == tracked.birth.born_ns
            and number == tracked.source
            and (tracked.birth.topic, tracked.birth.topic_id) == (source.topic, source.topic_id)
            and not self._unopened.has(found.key)
        )

    def see_generation(self, sighting: Sighting) -> None:
        """Decides about a generation, that is, a rotated file to which no pattern leads, and begins
        a file id if the file is new. The file may also be a copy.
        """
        found, base = sighting.found, sighting.meant
        old = self._known.at(found.key)
        is_told = old is None or None not in (found.born_ns, old.birth.born_ns)
        if is_told or self._known.knows(found) or not self._see_copy(sighting, base):
            self.see(sighting)

    def adopt(self, found: Found, index: int, base: str, may_begin: bool) -> Answer:
        """Whether a compressed file contains a known file. If so, the agent reads the rest of the
        known file from the compressed file.
        """
        sighting = Sighting(found, index, self._sources[index], self._now, base, may_begin)
        return self._compression.adopt(sighting, self._now_ms)

    def replace(self, tracked: TrackedFile, reason: str, now: float) -> None:
        """Ends a file id because its file no longer has, or may no longer have, the bytes that were
        read. Declares the id's unread bytes lost; their number is unknown. Begins a new id for the
        bytes that are in the file now, unless the file is empty, cannot be found or opened, or
        belongs to no source."""
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
        if not status.size:
            self._note_emptied(tracked)
            return
        if index is None:
            return
        found, base = self._host.look(tracked.meant), None
        if found is None or found.key != tracked.birth.key:
            found, base = self._host.look(tracked.location), tracked.meant
        if found is None or found.key != tracked.birth.key:
            return  # the next look finds out where the file is
        sighting = Sighting(found, index, self._sources[index], now, base)
        if not self._see_overwritten(sighting, tracked):
            handle = self._births.open(sighting)
            if handle is not None:
                self._births.succeed(sighting, tracked, handle)

    def replace_if_filled(self, tracked: TrackedFile, now: float) -> bool:
        """Calls `replace`, and returns True, if lines were written in place of NUL bytes that were
        read already (see module holes). Raises OSError if these bytes cannot be read."""
        if not tracked.holes or tracked.is_replaying:
            return False
        try:
            with self._handles.glance(tracked) as handle:
                if not holes.are_filled(tracked, handle):
                    return False
        except Moved:
            return False
        self.replace(tracked, holes.FILLED, now)
        return True

    def see_filled(self, tracked: TrackedFile, now: float) -> bool:
        """Does the same as `replace_if_filled` in a look. If the bytes cannot be read, returns
        False, because the next look tries again."""
        try:
            return self.replace_if_filled(tracked, now)
        except OSError:
            return False

    def doubt_growth(
        self,
        copy: TrackedFile,
        reader: TrackedFile,
        size: int,
        found: Found,
        bases: Iterable[str],
    ) -> None:
        """If a copy that the agent reads has grown, its log was probably copied over it again. The
        agent reads the copy's new bytes in the log, too, so it declares that they may be delivered
        twice.

        reader: the file id under which the agent reads the new bytes. size: the copy's old size.
        found: the copy as it is now. bases: the paths of the logs of which it may be a copy.
        """
        if found.size <= size or not self._known.began_as_copy(copy):
            return
        for base in bases:
            log, _ = self._known.copies.original_of(found, base)
            end = 0 if log is None else min(found.size, log.length or found.size)
            if log is not None and end > size:
                self._news.may_double(reader, size, end, log)
                return

    def moved(self, tracked: TrackedFile, path: str) -> None:
        """Notes the path at which a file is now."""
        if path != tracked.location:
            tracked.location = path
            self._known.note(tracked)

    def set_rotated(self, tracked: TrackedFile, is_rotated: bool) -> None:
        """Notes whether a file is rotated. If the file was not rotated before, makes `FileReader`
        examine the file, because the agent may have to end the file's id soon.
        """
        if is_rotated and not tracked.rotated:
            tracked.rotated_at = self._now
            self._known.on_growth(tracked)
        tracked.rotated = is_rotated

    def _find_out_size(self, tracked: TrackedFile, sighting: Sighting) -> None:
        """Starts to measure the plain size of a compressed file that contains a known file."""
        if tracked.state is FileState.OPEN:
            self._known.on_growth(tracked)
        elif (handle := self._births.open(sighting)) is not None:
            handle.close()

    def _see_new(self, sighting: Sighting, old: TrackedFile | None = None) -> None:
        """Begins a file id for a new file if the file is no copy. old: the known file that had the
        new file's inode before.
        """
        if not sighting.found.size:
            self._unopened.remove(sighting.found.key)  # nothing is left to be opened
            return
        if self._is_ignored(sighting):
            return
        new = self._whole(sighting)
        if new is not None and not any(self._see_copy(new, base) for base in new.bases):
            self._begin(new, old)

    def _is_ignored(self, sighting: Sighting) -> bool:
        """Whether a new file is too old to be read. These are never too old: a rotated file, a file
        whose bytes `start_at: end` skips, a file that could not be opened at an earlier look, a
        file that changed after the last look, and a compressed file that may contain a known file.
        """
        found, source = sighting.found, sighting.source
        if source.ignore_older_ms is None or sighting.base is not None or sighting.skip is not None:
            return False
        if not self._now_ms:
            return True  # the first look has to decide whether the file is too old
        if not is_old(source, found, self._now_ms) or self._unopened.has(found.key):
            return False
        if sighting.is_missed:
            return False
        if is_decompressed(found.real_path) and any(map(self._known.gone, sighting.bases)):
            return False
        self.ignored.add(source.topic, found)
        return True

    def _begin(
        self, sighting: Sighting, old: TrackedFile | None, *, may_double: int = 0
    ) -> TrackedFile | None:
        """Begins a file id. If the agent skips the bytes of a compressed file, it ends the file id
        at once, because no more bytes will be written to the file.
        """
        new = self._births.begin(sighting, old, may_double=may_double)
        if new is not None and new.birth.begin and is_decompressed(sighting.found.real_path):
            self._endings.end(new)
        return new

    def _see_same(self, tracked: TrackedFile, sighting: Sighting) -> None:
        found, source = sighting.found, sighting.source
        if tracked.is_replaying:
            # The file is not checked here. Before the agent sends the intents of its earlier
            # process, it checks their bytes. This proves more than a comparison with the CRCs in
            # `tracked.marks`.
            tracked.location, tracked.source = found.real_path, sighting.number
            tracked.size = max(tracked.size, found.size)
        elif tracked.state is not FileState.OPEN:
            self._see_ended(tracked, sighting)
        elif (tracked.birth.topic, tracked.birth.topic_id) != (source.topic, source.topic_id):
            self._endings.end(tracked)
            self._see_ended(tracked, sighting)
        else:
            self._see_open(tracked, sighting)

    def _whole(self, sighting: Sighting) -> Sighting | None:
        """Returns the sighting (a found file with its source). If the file is compressed, the
        result has the file's plain size. Returns None if the file is not new, cannot be read yet,
        or may not get a new file id.
        """
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
            self.see(whole)
            return None
        if not whole.may_begin:
            self._unopened.remove(found.key)
            return None
        return whole

    def _see_copy(self, sighting: Sighting, base: str) -> bool:
        """Returns True if the found file is, or may be, a copy of a known file, so that `_see_new`
        has nothing more to do. If the file is certainly a copy, the agent reads only the bytes that
        it had not read of the original. If this is not certain, if the original's file id has not
        ended, or if the agent has found another copy before, the agent reads the whole file, and
        declares that its bytes may be delivered twice.
        """
        found = sighting.found
        if self._known.is_copy(found, base):
            return True
        original, answer = self._known.copies.original_of(found, base)
        if original is None:
            return self._replace_rewritten(base, sighting.now) and self._see_copy(sighting, base)
        if original.length is None and self._is_put_off(sighting, original):
            return True
        is_ended = original.length is not None
        if answer is Answer.SAME and is_ended and not self._known.has_copy(original):
            return self._births.go_on(sighting, original) is not None
        return self._begin(sighting, original, may_double=found.size) is not None

    def _replace_rewritten(self, base: str, now: float) -> bool:
        """If the log at a path was truncated and has grown to its old size again, calls `replace`
        for the log, and returns True. A new file may be a copy of what the log has now.
        """
        there = self._host.look(base)
        log = None if there is None else self._known.at(there.key)
        if there is None or log is None or log.state is not FileState.OPEN or log.is_replaying:
            return False
        if there.size < log.size or (log.verified and log.read_position == there.size):
            return False  # a look will notice that the log was truncated; or nothing has changed
        if not log.read_position or begins_like(self._host, there.real_path, log):
            return False
        self.replace(log, CHANGED, now)
        return True

    def _see_overwritten(self, sighting: Sighting, old: TrackedFile) -> bool:
        """If a copy of a log, or a compressed form of another known file, was written over a known
        file whose id has ended, decides about it as about a new file, and returns True.
        """
        found = sighting.found
        if found.size <= 0:
            return False
        if self._compression.adopt(sighting, self._now_ms) is Answer.SAME:
            self.see(sighting)
            return True
        if not self._known.copies.note_overwritten(found, sighting.bases):
            return False
        old.changed_ns = found.changed_ns  # after a restart, shows that this was declared already
        self._known.note(old)
        self._see_new(sighting, old)
        return True

    def _is_put_off(self, sighting: Sighting, original: TrackedFile) -> bool:
        """If a copy has more bytes than its original has now, the original was truncated. Returns
        whether the copy has to wait, so that the agent notices the truncation first. The agent then
        reads the copy from the position up to which it had read the original.

        Only a look examines the original, too, and events may report the copy several times before
        the next look begins. So a copy waits until then.
        """
        found, source = sighting.found, sighting.source
        since = self._put_off.setdefault(found.key, self._looks)
        is_undecided = original.is_replaying or original.is_unproven
        if since < self._looks and not is_undecided:
            return False
        reason = "it is a copy of a file that is being looked at"
        self._unreadable.wait(source.topic, found.path, reason)
        base, may_begin, skip = sighting.base, sighting.may_begin, sighting.skip
        self._unopened.add(
            UnopenedFile(source.topic, source.topic_id, base, found, may_begin, skip)
        )
        return True

    def _mind_unopened(self, sighting: Sighting) -> None:
        """If the found file could not be opened at earlier looks and is shorter now, declares the
        loss of the bytes that were truncated."""
        found, source = sighting.found, sighting.source
        if self._unopened.was_cut(found):
            self._truncated.add(found.path)
            reason = f"it was cut to {found.size} bytes before it could be read"
            self._news.miss(Unseen(source.topic, source.topic_id, found.path, reason))

    def _compare(self, tracked: TrackedFile, sighting: Sighting) -> Answer | None:
        """Whether a found file is the known file with the same inode; None if the found file cannot
        be read now.
        """
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
            # treated as a rewritten file: the CRCs in `tracked.marks` show which bytes are new
            return Answer.SAME
        return answer

    def _see_another(self, old: TrackedFile, sighting: Sighting, answer: Answer) -> None:
        """Begins a file id for a found file that has the inode of the known file `old`, but is, or
        may be, another file. The agent reads the found file from its first byte.
        """
        found = sighting.found
        self._reborn.add(found.path)
        if answer is Answer.OTHER:
            self._known.detach(old)  # the old file may still exist elsewhere, in compressed form
            self._see_new(sighting, old)
            return
        if old.state is FileState.OPEN and not old.is_replaying:
            self._endings.vanish(old, VANISHED)
        if old.state is not FileState.OPEN and self._see_overwritten(sighting, old):
            return
        if found.size:
            self._begin(sighting, old, may_double=min(found.size, old.length or 0))

    def _see_open(self, tracked: TrackedFile, sighting: Sighting) -> None:
        found, now = sighting.found, sighting.now
        is_first, tracked.source, tracked.is_seen = not tracked.is_seen, sighting.number, True
        self._note_place(tracked, sighting)
        born_at = tracked.birth.path
        self.set_rotated(tracked, found.path != born_at and shown(found.path) != born_at)
        is_changed = found.size != tracked.size or tracked.changed_ns != found.changed_ns
        tracked.is_unwatched |= is_first and is_changed
        if found.size < tracked.size:
            self.replace(tracked, cut_reason(tracked, found.size), now)
        elif is_changed and not self._has_its_bytes(tracked, found):
            self.replace(tracked, CHANGED, now)
        elif self.see_filled(tracked, now):
            return
        elif self._is_being_written(tracked, sighting, tracked.size):
            tracked.verified = False
            self._known.on_growth(tracked)
        elif is_first or is_changed or not tracked.verified or found.size > tracked.read_position:
            self.doubt_growth(tracked, tracked, tracked.size, found, sighting.bases)
            self._known.grew(tracked, found.size, found.changed_ns, now)

    def _note_place(self, tracked: TrackedFile, sighting: Sighting) -> None:
        """Notes the paths at which a look found a known file."""
        if tracked.meant != sighting.meant:
            self._known.copies.move(tracked, sighting.meant)
            self._known.note(tracked)
        self.moved(tracked, sighting.found.real_path)

    def _has_its_bytes(self, tracked: TrackedFile, found: Found) -> bool:
        """Whether the found file has the bytes that were read of the known file. Returns True for a
        file that the agent has open, because the agent checks the bytes when it reads the file.
        """
        if self._handles.held(tracked.file) is not None:
            return True
        return begins_like(self._host, found.real_path, tracked)

    def _see_ended(self, tracked: TrackedFile, sighting: Sighting) -> None:
        """Decides about a file that is still there although its id has ended: whether a new id must
        begin. The file may have the same bytes as before, more bytes, or different bytes.
        """
        assert tracked.length is not None
        found = sighting.found
        handle = self._births.open(sighting)
        if handle is None:
            return
        print_, guard = tracked.birth.fingerprint, tracked.last_point.guard
        doubt = identity.doubt(handle.read, found.size, tracked.length, print_, guard)
        if tracked.is_emptied:
            handle.close()
            self._see_refilled(tracked, sighting, has_other_bytes=doubt is not None)
            return
        # A job may empty its log and write the same bytes again, but never does so with a rotated
        # file.
        is_log = sighting.base is None or tracked.written is not None
        if doubt is None and is_log and self._is_being_written(tracked, sighting, tracked.length):
            handle.close()
        elif doubt is not None:
            self._see_rewritten(tracked, sighting, handle)
        elif found.size > tracked.length:
            tracked.changed_ns = found.changed_ns
            new = self._births.go_on(sighting, tracked, handle)
            if new is not None:
                self.doubt_growth(tracked, new, tracked.length, found, sighting.bases)
        else:
            tracked.changed_ns = found.changed_ns
            handle.close()

    def _see_refilled(
        self, tracked: TrackedFile, sighting: Sighting, *, has_other_bytes: bool
    ) -> None:
        """Decides about a file that was found empty after its id had ended, and has bytes now."""
        found = sighting.found
        is_new = tracked.changed_ns != found.changed_ns
        is_overwritten = self._see_overwritten(sighting, tracked)
        if not has_other_bytes:
            self._truncated.add(found.path)  # bytes may have been written, copied and truncated
        elif is_new or not is_overwritten:
            self._note_rewritten(found, sighting)
        if not is_overwritten:
            self._begin(sighting, tracked)

    def _see_rewritten(self, tracked: TrackedFile, sighting: Sighting, handle: Handle) -> None:
        """Decides about a file that has other bytes than it had when its id ended."""
        is_new = tracked.changed_ns != sighting.found.changed_ns
        tracked.changed_ns = sighting.found.changed_ns
        is_overwritten = self._see_overwritten(sighting, tracked)
        if is_new or not is_overwritten:
            self._note_rewritten(sighting.found, sighting)
        if is_overwritten:
            handle.close()
        else:
            self._births.succeed(sighting, tracked, handle)

    def _note_emptied(self, tracked: TrackedFile) -> None:
        """Notes that a file whose id has ended is empty now. So all bytes that are written to it
        later are new, even if they are the same as before.
        """
        if not tracked.is_emptied:
            tracked.is_emptied = True
            self._known.note(tracked)

    def _is_being_written(self, tracked: TrackedFile, sighting: Sighting, size: int) -> bool:
        """Whether the file was written to since the last look, but has not grown yet.

        A write sets the file's time of change before its size. But a program may also have
        truncated the file and written the same bytes again, for example a job that writes the same
        text at each run. So if the size still has not changed after WRITE_S, the agent declares
        that lines may be unread.
        """
        found, before = sighting.found, tracked.changed_ns
        is_same = found.size == size == tracked.promised and found.born_ns == tracked.birth.born_ns
        is_later = before is not None and (
            found.changed_ns > before or self._set_back.is_later(found.changed_ns, before)
        )
        if not size or not is_same or before is None or not is_later:
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
        self._news.miss(Unseen(source.topic, source.topic_id, found.path, reason))
        tracked.written, tracked.changed_ns = None, found.changed_ns
        self._known.note(tracked)
        return False

    def _note_rewritten(self, found: Found, sighting: Sighting) -> None:
        """Notes that a file whose id has ended has other bytes than before. Either the file was
        truncated or, if its time of birth is unknown, it may be another file with the same inode.
        """
        if found.born_ns is None:
            self._reborn.add(found.path)
            return
        self._truncated.add(found.path)
        source = sighting.source
        reason = "it was cut after it was read: what was written before the cut may be unread"
        self._news.miss(Unseen(source.topic, source.topic_id, found.path, reason))


def _is_unchanged(tracked: TrackedFile, found: Found) -> bool:
    """Whether the found file is unchanged since the agent ended the file id `tracked` of this
    file."""
    return (
        found.size in (tracked.length, UNMEASURED)
        and found.changed_ns == tracked.changed_ns
        and found.born_ns == tracked.birth.born_ns
        and not tracked.is_deleted
        and not tracked.is_emptied
    )


def _is_generation(tracked: TrackedFile, sighting: Sighting) -> bool:
    """Whether rotation may have given the file the name under which the look found it."""
    if sighting.base is not None:
        return sighting.base == tracked.meant
    above, name = os.path.split(tracked.meant)
    now_above, now_name = os.path.split(sighting.found.path)
    said, before = generation(now_name), generation(name)
    if said is None or above != now_above:
        return False
    bases = {name, *(() if before is None else before.bases)}.intersection(said.bases)
    # `run2.log` belongs to another run, so it is no generation of `run.log`
    return any(now_name[len(os.path.splitext(base)[0])] in "-_." for base in bases)
