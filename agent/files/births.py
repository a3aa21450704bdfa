"""Begins file ids: at the first byte of a new file (or after the bytes that `start_at: end` skips),
or after those bytes of a known file that are unchanged. A file gets a new file id whenever it is
found to have other bytes than before, and when it grows after its file id has ended."""

from __future__ import annotations

import errno
import os

from skidway.agent.files.decompressed import is_decompressed
from skidway.agent.files.first_looks import last_record_begin
from skidway.agent.files.handles import Handles
from skidway.agent.files.host import Handle, Host, shown
from skidway.agent.files.host_files import HostFiles
from skidway.agent.files.likeness import open_at
from skidway.agent.files.sighting import Sighting
from skidway.agent.parsing.byte_order import UTF_16BE, order_of
from skidway.agent.values import identity
from skidway.agent.values.found import UnopenedFile
from skidway.agent.values.identity import GUARD_BYTES, Guard, Mark, fingerprint_of, guard_of, prove
from skidway.agent.values.tracked import Birth, Checkpoint, TrackedFile


class Births:
    """Makes file ids. If a file cannot be opened, adds its path to the list of unreadable paths."""

    def __init__(self, host: Host, handles: Handles, files: HostFiles, host_name: str) -> None:
        self._host = host
        self._handles = handles
        self._known = files.known
        self._unreadable = files.unreadable
        self._unopened = files.unopened
        self._news = files.news
        self._host_name = host_name

    def begin(
        self, sighting: Sighting, old: TrackedFile | None = None, *, may_double: int = 0
    ) -> TrackedFile | None:
        """Begins the file id of a new file at its first byte, or after the bytes that the source's
        `start_at: end` skips. Returns None if the file cannot be read.

        old: the known file with the same inode or the same bytes. may_double: how many of the new
        file's first bytes may have been delivered already, as bytes of the old file.
        """
        handle = self.open(sighting)
        if handle is None:
            return None
        try:
            begin = self._beginning(sighting, handle)
        except OSError as error:
            handle.close()
            self._put_off(sighting, error)
            return None
        mark = Mark(begin, 0)
        new = self._begin(sighting, handle, mark, (mark,) if begin else (), old)
        if new is not None and old is not None and may_double > begin:
            self._news.may_double(new, begin, may_double, old)
        return new

    def go_on(
        self, sighting: Sighting, old: TrackedFile, handle: Handle | None = None
    ) -> TrackedFile | None:
        """Begins a new file id for those bytes of a file that come after the end of the file's
        older file id.
        """
        handle = handle or self.open(sighting)
        point = old.last_point
        mark = Mark(old.length or 0, point.prefix_crc)
        return self._begin(sighting, handle, mark, point.marks, old)

    def succeed(self, sighting: Sighting, old: TrackedFile, handle: Handle) -> None:
        """Begins a new file id in place of `old`. The new file id begins after those bytes that
        were certainly read under `old`. The agent reads the later bytes, some of them perhaps for
        the second time.
        """
        size, marks = sighting.found.size, old.last_point.marks
        proven = prove(handle.read, size, old.birth.fingerprint, marks)
        mark = Mark(proven.position, proven.crc)
        kept = tuple(each for each in marks if each.position <= mark.position)
        new = self._begin(sighting, handle, mark, kept, old)
        end = min(size, old.length or 0)
        may_be_old = proven.same_beginning or old.is_unproven
        if new is not None and may_be_old and mark.position < end:
            self._news.may_double(new, mark.position, end, old)

    def open(self, sighting: Sighting) -> Handle | None:
        """Opens the file that was found, even if it was renamed in its directory since. If the
        opening fails, lists the file as unreadable and returns None.

        The agent does not seal the topic of an unreadable file until the next search for files has
        tried again to open the file.
        """
        found = sighting.found
        try:
            handle = open_at(self._host, found.real_path, found.key)
            if handle is None:  # the file was renamed after the scan
                path = self._host.find(os.path.dirname(found.real_path), found.key)
                handle = None if path is None else open_at(self._host, path, found.key)
            if handle is None:
                raise FileNotFoundError(errno.ENOENT, "it went away while it was looked at")
        except OSError as error:
            self._put_off(sighting, error)
            return None
        return handle

    def _put_off(self, sighting: Sighting, error: OSError) -> None:
        found, source = sighting.found, sighting.source
        self._unreadable.add(source.topic, found.path, error)
        self._unopened.add(
            UnopenedFile(
                source.topic, source.topic_id, sighting.base, found, sighting.may_begin,
                sighting.skip,
            )
        )  # fmt: skip

    def _beginning(self, sighting: Sighting, handle: Handle) -> int:
        """Returns the position at which the agent begins to read a new file. If nothing is skipped,
        this is 0. If the file's bytes are skipped (`start_at: end`), it is the beginning of the
        last unfinished line; for a compressed file, it is the file's end.
        """
        found, skip = sighting.found, self._unopened.skip_of(sighting)
        if not skip:
            return 0
        if is_decompressed(found.real_path):
            return found.size
        is_big_endian = order_of(handle.read(2, 0)) == UTF_16BE
        framer = sighting.source.manner(is_big_endian=is_big_endian).framer
        return last_record_begin(handle, min(skip, found.size), framer)

    def _begin(
        self,
        sighting: Sighting,
        handle: Handle | None,
        begin: Mark,
        marks: tuple[Mark, ...],
        predecessor: TrackedFile | None,
    ) -> TrackedFile | None:
        if handle is None:
            return None
        found, source = sighting.found, sighting.source
        try:
            fingerprint = fingerprint_of(handle.read, found.size)
            is_skipped = begin == Mark(found.size, 0) and is_decompressed(found.real_path)
            # The last bytes of a skipped compressed file are not read, because the agent would have
            # to decompress the whole file.
            before = 0 if is_skipped else min(GUARD_BYTES, begin.position)
            tail = handle.read(before, begin.position - before)
        except OSError as error:
            handle.close()
            self._unreadable.add(source.topic, found.path, error)
            return None
        birth = Birth(
            file=identity.new_id(),
            serial=self._known.next_serial(),
            topic=source.topic,
            topic_id=source.topic_id,
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
            meant=sighting.meant,
            read_position=begin.position,
            read_crc=begin.crc,
            promised=begin.position,
            tail=tail,
            verified=True,
            source=sighting.number,
            is_seen=True,
        )
        self._known.add(tracked)
        self._handles.keep(tracked.file, handle)
        self._news.born.append(tracked)
        self._known.note(tracked)
        self._known.grew(tracked, found.size, found.changed_ns, sighting.now)
        return tracked
