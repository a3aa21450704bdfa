"""Recognises copies of logs that logrotate (`copytruncate`) or people have made. The names of such
copies look like the names of rotated files.

An original is a file that was first found at the log's path. If a file has the name of a rotated
file, the agent compares it with each original. The file is a copy of an original if it contains the
bytes that the agent has read of the original. If the file is shorter than these bytes, the agent
compares only the file's first and last bytes. In two cases the agent does not read a copy: the
agent still reads the original at the log's path, or the copy has no more bytes than the agent has
read of the original. If the original was truncated before all of it was read, the agent reads the
rest from the copy.

A copy may be written over an older file that the agent knows: `cp app.log app.log.1` keeps the
inode of app.log.1. Nothing that the agent knows about the older file holds for the copy then, so
the agent treats the copy as a new file.
"""

from __future__ import annotations

from collections.abc import Sequence

from skidway.agent.files.decompressed import is_decompressed
from skidway.agent.files.generations import copied_from
from skidway.agent.files.host import Handle, Host, shown
from skidway.agent.files.likeness import beginning_of
from skidway.agent.files.same_file import Answer, copied
from skidway.agent.values import identity
from skidway.agent.values.found import FileKey, Found
from skidway.agent.values.tracked import TrackedFile

ORIGINALS_MAX = 16
"""A copy is compared with at most this many of the files that were first found at a path."""

_Content = tuple[int | None, int, int]
"""Values that change when a file's content changes: time of birth (ns), size, time of change (ns).
"""


class Copies:
    """Owns three tables: the file ids that began at each path or are there now; the copies that the
    agent need not read, because it has delivered, or declared lost, all their bytes when it read
    their originals; and the known files over which a copy was written.
    """

    def __init__(self, host: Host) -> None:
        self._host = host
        self._born_at: dict[str, TrackedFile | tuple[TrackedFile, ...]] = {}  # mostly one file
        self._left_alone: dict[FileKey, _Content] = {}
        self._overwritten: dict[FileKey, _Content] = {}

    def remember(self, tracked: TrackedFile) -> None:
        """Adds a new file id or, when the agent starts, a file id from the state."""
        self._overwritten.pop(tracked.birth.key, None)
        self._add(tracked, origins(tracked))

    def move(self, tracked: TrackedFile, meant: str) -> None:
        """Notes the path at which a pattern finds the file now. From then on, the file may be
        compressed or copied there.
        """
        before = origins(tracked)
        tracked.meant = meant
        after = origins(tracked)
        self._remove(tracked, before - after)
        self._add(tracked, after - before)

    def forget(self, tracked: TrackedFile) -> None:
        """Removes a file id that the agent forgets."""
        self._overwritten.pop(tracked.birth.key, None)
        self._remove(tracked, origins(tracked))

    def _add(self, tracked: TrackedFile, paths: set[str]) -> None:
        for path in paths:
            files = sorted((*self.born_at(path), tracked), key=lambda each: each.birth.serial)
            self._keep(path, tuple(files[-ORIGINALS_MAX:]))

    def _remove(self, tracked: TrackedFile, paths: set[str]) -> None:
        for path in paths:
            self._keep(path, tuple(each for each in self.born_at(path) if each is not tracked))

    def _keep(self, path: str, files: tuple[TrackedFile, ...]) -> None:
        if files:
            self._born_at[path] = files if len(files) > 1 else files[0]
        else:
            self._born_at.pop(path, None)

    def forget_gone(self, there: set[FileKey]) -> None:
        """Forgets the copies that are gone: those that are not among the files in `there`."""
        self._left_alone = {key: x for key, x in self._left_alone.items() if key in there}

    def born_at(self, path: str) -> Sequence[TrackedFile]:
        """Returns the newest file ids (at most ORIGINALS_MAX) that began at a path, the oldest
        first."""
        found = self._born_at.get(path, ())
        return found if isinstance(found, tuple) else (found,)

    def is_overwritten(self, found: Found) -> bool:
        """Whether a copy was written over the file, so that its file ids say nothing about it."""
        content = self._overwritten.get(found.key)
        return content is not None and content[0] == found.born_ns

    def note_overwritten(self, found: Found, bases: Sequence[str]) -> bool:
        """Whether a known file that has other bytes now is a copy of a log at one of the paths
        `bases`. If so, notes this until a new file id begins for the file.

        `cp app.log app.log.1` keeps the inode of an older app.log.1, and with it the time of birth.
        So for such a file, the time of change counts as its time of birth.
        """
        self._overwritten[found.key] = _content_of(found)
        if any(self.original_of(found, base)[0] is not None for base in bases):
            return True
        del self._overwritten[found.key]
        return False

    def is_left_alone(self, found: Found, base: str) -> bool:
        """Whether a file is a copy of an original (a file first found at `base`), and the agent
        reads all bytes of the copy from the original.
        """
        if self._is_known(found):
            return True
        original, answer = self.original_of(found, base)
        if original is None or answer is not Answer.SAME:
            return False
        if found.size > self._bytes_there(original, base):
            return False
        # Until the agent has delivered all these bytes, a truncation may remove some of them from
        # the original. Then only the copy has them. So each look compares the copy again.
        if found.size <= original.position:
            self._left_alone[found.key] = _content_of(found)
        return True

    def _bytes_there(self, original: TrackedFile, base: str) -> int:
        """Returns how many bytes the original has: if its file id has ended, the number of bytes
        that were read; if not, the size of the file that is at the path now.
        """
        if original.length is not None:
            return original.length
        there = self._host.look(base)
        return 0 if there is None else there.size

    def is_rest(self, found: Found, base: str) -> bool:
        """Whether a file is a copy that contains unread bytes that a truncation removed from the
        original at the path.
        """
        if self._is_known(found):
            return False
        original, _ = self.original_of(found, base)
        if original is None or original.length is None:
            return False
        return found.size > original.length

    def original_of(self, found: Found, base: str) -> tuple[TrackedFile | None, Answer]:
        """Returns the file of which `found` may be a copy, and whether `found` has that file's
        bytes. The returned file was first found at `base`.
        """
        originals = self.born_at(shown(base)) if found.size else ()
        if not originals:
            return None, Answer.OTHER
        there = self._host.look(base)
        try:
            handle = self._host.open(found.real_path)
        except OSError:
            return None, Answer.OTHER  # `Births` tries again, and lists the file as unreadable
        try:
            return self._compare(handle, found, originals, there)
        except OSError:
            return None, Answer.OTHER
        finally:
            handle.close()

    def _compare(
        self, handle: Handle, found: Found, originals: Sequence[TrackedFile], there: Found | None
    ) -> tuple[TrackedFile | None, Answer]:
        born_ns = self._overwritten[found.key][2] if self.is_overwritten(found) else found.born_ns
        for each in reversed(originals):
            if each.birth.key == found.key:
                continue
            answer = copied(
                births=(each.birth.born_ns, born_ns),
                is_in_place=there is not None and _is_at(there, each),
                count=max(each.promised, each.birth.fingerprint.length),
                read=each.promised,
            )
            if answer is Answer.OTHER and _may_be_compressed(found, born_ns, each):
                answer = Answer.UNKNOWN
            if answer is Answer.SAME and each.is_unproven and not _is_short(each):
                answer = Answer.UNKNOWN
            alike = Answer.OTHER if answer is Answer.OTHER else self._begins(handle, found, each)
            if alike is not Answer.OTHER:
                return each, answer if alike is Answer.SAME else alike
        return None, Answer.OTHER

    def _begins(self, handle: Handle, found: Found, original: TrackedFile) -> Answer:
        """Whether the found file begins with the bytes that were read of the original or, if it is
        shorter, is a beginning of them."""
        if found.size < max(original.promised, original.birth.fingerprint.length):
            return beginning_of(self._host, found, original)
        point, print_ = original.last_point, original.birth.fingerprint
        if original.is_unproven:
            is_alike = identity.fingerprint_of(handle.read, print_.length) == print_
        else:
            doubt = identity.doubt(handle.read, found.size, point.position, print_, point.guard)
            is_alike = doubt is None
        return Answer.SAME if is_alike else Answer.OTHER

    def _is_known(self, found: Found) -> bool:
        return self._left_alone.get(found.key) == _content_of(found)


def origins(tracked: TrackedFile) -> set[str]:
    """Returns, as text, the path at which a file was first found, the path at which a pattern finds
    it, and the paths of all logs of which the files at these two paths may be copies.
    """
    paths = {tracked.birth.path, shown(tracked.meant)}
    return paths.union(*map(copied_from, paths))


def _is_at(there: Found, original: TrackedFile) -> bool:
    """Whether a path still has the original, perhaps truncated, and not another file that has got
    the original's inode."""
    birth = original.birth
    return (there.key, there.born_ns) == (birth.key, birth.born_ns)


def _is_short(original: TrackedFile) -> bool:
    """Whether so few bytes of the original were read that the fingerprint (a hash of the file's
    first bytes) covers all of them."""
    return original.promised <= original.birth.fingerprint.length


def _may_be_compressed(found: Found, born_ns: int | None, original: TrackedFile) -> bool:
    births = (original.birth.born_ns, born_ns)
    is_older = births[0] is not None and births[1] is not None and births[1] < births[0]
    return is_decompressed(found.real_path) and not is_older


def _content_of(found: Found) -> _Content:
    return found.born_ns, found.size, found.changed_ns
