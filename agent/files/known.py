"""Keeps all known files, and finds them by id, by inode, and by the path at which they were
written. In a look, the agent goes once through the directories of all sources, to find new, renamed
and deleted log files.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace

from skidway.agent.files.copies import Copies
from skidway.agent.files.directories import Directories
from skidway.agent.files.handles import Handles
from skidway.agent.files.host import Host, Status, shown
from skidway.agent.files.likeness import begins_like
from skidway.agent.values.found import FileKey, Found
from skidway.agent.values.tracked import TrackedFile


# The class has many methods, because many questions about known files are answered from the same
# dictionaries.
class KnownFiles:
    """Owns every TrackedFile. replaced: by path, the file id that a new file id has replaced there
    since the last look. `replaced` has only file ids whose file the agent did not have open.
    """

    def __init__(self, host: Host, handles: Handles, directories: Directories) -> None:
        self._host = host
        self._handles = handles
        self._directories = directories
        self._by_key: dict[FileKey, TrackedFile] = {}
        self._changed: dict[int, TrackedFile] = {}
        self._moved_to: dict[tuple[FileKey, int | None], FileKey] = {}  # new keys, by old ones
        self._serial = 0
        self.files: dict[int, TrackedFile] = {}
        self.copies = Copies(host)
        self.replaced: dict[str, TrackedFile] = {}
        self.on_growth: Callable[[TrackedFile], None] = lambda _tracked: None

    # --- the known files ----------------------------------------------------------------------

    def add(self, tracked: TrackedFile) -> None:
        """Adds a new file id, or a file id from the state. If several file ids belong to one inode,
        the newest must be added last.
        """
        self._serial = max(self._serial, tracked.birth.serial)
        self.files[tracked.file] = self._by_key[tracked.birth.key] = tracked
        self._moved_to.pop((tracked.birth.key, None), None)  # this file id has the inode now
        self.copies.remember(tracked)

    def next_serial(self) -> int:
        """Returns the number of the next file id."""
        return self._serial + 1

    def note(self, tracked: TrackedFile) -> None:
        """Notes that facts about a file have changed, so that the next `take_changed` returns the
        file."""
        self._changed[tracked.file] = tracked

    def take_changed(self) -> list[TrackedFile]:
        """Returns the files that were passed to `note` since the last call, and are still known."""
        changed, self._changed = self._changed, {}
        return [tracked for tracked in changed.values() if tracked.file in self.files]

    def at(self, key: FileKey) -> TrackedFile | None:
        """Returns the newest file id of an inode."""
        return self._by_key.get(key)

    def is_newest(self, tracked: TrackedFile) -> bool:
        """Whether no later file id has the same key (device, inode)."""
        return self._by_key.get(tracked.birth.key) is tracked

    def detach(self, tracked: TrackedFile) -> None:
        """Makes `at` no longer return this file id, because another file has its inode now."""
        if self.is_newest(tracked):
            del self._by_key[tracked.birth.key]

    def renumber(self, tracked: TrackedFile, key: FileKey) -> None:
        """Gives a file id a new key (device, inode), because the device number of its file system
        has changed."""
        self.detach(tracked)
        tracked.birth = replace(tracked.birth, key=key)
        self._by_key[key] = tracked
        self.note(tracked)

    def forget(self, tracked: TrackedFile) -> None:
        """Removes a closed file id whose file is gone, or whose inode has a later file id."""
        self.detach(tracked)
        for old in [old for old, key in self._moved_to.items() if key == tracked.birth.key]:
            del self._moved_to[old]
        del self.files[tracked.file]
        self.copies.forget(tracked)

    def grew(self, tracked: TrackedFile, size: int, changed_ns: int, now: float) -> None:
        """Notes a file's size and time of change. If the time has changed but the file has not
        grown, the agent must check the file's bytes before it reads on.
        """
        if size <= tracked.size and changed_ns != tracked.changed_ns:
            tracked.verified = False
        if size != tracked.size or changed_ns != tracked.changed_ns or not tracked.grown_at:
            tracked.grown_at = now
        tracked.size, tracked.changed_ns = max(size, tracked.size), changed_ns
        self.on_growth(tracked)

    # --- where known files are ----------------------------------------------------------------

    def status_if_held(self, tracked: TrackedFile) -> Status | None:
        """Returns the file's status; None if the agent does not have the file open, or cannot read
        its status."""
        handle = self._handles.held(tracked.file)
        if handle is None:
            return None
        try:
            return handle.status()
        except OSError:
            self._handles.drop(tracked.file)
            return None

    def find(self, tracked: TrackedFile, *, is_held: bool) -> str | None:
        """Returns the path where the file is; None if the file is gone. If the agent does not have
        the file open, this method reads the file's directory once more before it returns None.
        Raises OSError if nobody can know whether the file is gone.
        """
        directory = os.path.dirname(tracked.location)
        path = self._directories.find(directory, tracked.birth.key)
        if path is None:
            path = self.where(tracked.birth.key, tracked.birth.born_ns) or None
        if path is None and not is_held:
            path = self._host.find(directory, tracked.birth.key)
        found = None if path is None else self._host.look(path)
        if found is not None and _is_reborn(tracked, found):
            return None
        return path

    def is_there(self, tracked: TrackedFile) -> bool:
        """Whether the file still exists at any path; True if nobody can know."""
        try:
            return self.find(tracked, is_held=False) is not None
        except OSError:
            return True

    def gone(self, base: str) -> list[TrackedFile]:
        """Returns the known files that were written at the path `base` and are found nowhere now.
        Considers only the newest files of this path."""
        return [each for each in self.copies.born_at(shown(base)) if not self.lies_at(each)]

    def move(self, tracked: TrackedFile, found: Found) -> None:
        """Notes that from now on the agent reads the known file's bytes in the file `found`, for
        example its compressed form."""
        old = tracked.birth.key
        if self._by_key.get(old) is tracked:
            del self._by_key[old]
        self._moved_to[old, tracked.birth.born_ns] = found.key
        serial = tracked.birth.serial
        if found.key in self._by_key:  # from now on, this id is the newest of the inode
            serial = self._serial = self.next_serial()
        tracked.birth = replace(tracked.birth, key=found.key, born_ns=found.born_ns, serial=serial)
        tracked.location, tracked.verified = found.real_path, False
        tracked.changed_ns, tracked.is_emptied = found.changed_ns, False
        self._by_key[found.key] = tracked
        self._handles.drop(tracked.file)
        self.note(tracked)

    def lies_at(self, tracked: TrackedFile) -> str:
        """Returns the path of the file according to this look's listings of directories; "" if
        unknown."""
        if not self.is_newest(tracked) or tracked.is_deleted:
            return ""
        try:
            path = self._directories.find(os.path.dirname(tracked.location), tracked.birth.key)
        except OSError:
            path = None  # another step lists the directory as unreadable
        found = None if path is None else self._host.look(path)
        if found is None or _is_reborn(tracked, found):
            return self.where(tracked.birth.key, tracked.birth.born_ns)
        return found.real_path

    # --- called by history (history.Known) ----------------------------------------------------

    def knows(self, found: Found) -> bool:
        """Whether the found file is a known file, and not a new file with a deleted file's inode,
        or a copy that was written over a known file."""
        tracked = self._by_key.get(found.key)
        if tracked is None or tracked.is_deleted or self.copies.is_overwritten(found):
            return False
        return tracked.birth.born_ns == found.born_ns

    def where(self, key: FileKey, born_ns: int | None) -> str:
        """Returns the path at which the known file with this key and time of birth is now, in any
        directory; "" if unknown.

        A compressed file is also found by the key and time of birth that it had before its
        compression.
        """
        is_moved = (key, born_ns) in self._moved_to
        key = self._moved_to.get((key, born_ns), key)
        tracked = self._by_key.get(key)
        if tracked is None or tracked.is_deleted:
            return ""
        births = (born_ns, tracked.birth.born_ns)
        if not is_moved and None not in births and births[0] != births[1]:
            return ""  # another file has the known file's inode
        handle = self._handles.held(tracked.file)
        path = tracked.location if handle is None else handle.where()
        found = self._host.look(path) if path else None
        if found is None or (found.key, found.born_ns) != (key, tracked.birth.born_ns):
            return ""
        return path

    def rotated_from(self, base: str) -> list[str]:
        """Returns the present paths of the newest known files that were written at the path `base`
        and have been renamed since.
        """
        places = {self.lies_at(each) for each in self.copies.born_at(shown(base))}
        return sorted(places - {"", base})

    def was_found_elsewhere(self, found: Found) -> bool:
        """Whether `found` is a known file that was first found at another path than now."""
        tracked = self._by_key.get(found.key)
        return tracked is not None and tracked.birth.path != shown(found.path)

    def first_born(self, base: str) -> int | None:
        """Returns the time of birth of the oldest known file that was written at the path `base`
        and still exists; None if there is no such file, or if its time of birth is unknown.
        """
        there = [each for each in self.copies.born_at(shown(base)) if self.lies_at(each)]
        return there[0].birth.born_ns if there else None

    def is_another(self, found: Found, beside: Sequence[str]) -> bool:
        """Whether the found file is a new file that got a known file's inode. If the file is not
        new, it is the known file, perhaps after a truncation. beside: the paths of the files beside
        it that may be copies.

        The kernel gives a deleted file's inode to the next file, but not while a process has the
        deleted file open. A truncated file looks like that next file, because neither has the bytes
        that the agent read. But if a copy of the old bytes is beside the path, the file was
        truncated.
        """
        old = self.replaced.get(found.path)
        if old is None:
            old = self._by_key.get(found.key)
            if old is None or self._handles.held(old.file) is not None:
                return False
            if begins_like(self._host, found.path, old):
                return False
        return bool(old.position) and not any(begins_like(self._host, path, old) for path in beside)

    def changed_times(self, directory: str) -> set[int]:
        """Returns, for each known file in a directory, the newest time of change (ns) that the
        agent has seen.
        """
        times = set()
        for tracked in self.files.values():
            if os.path.dirname(tracked.location or tracked.birth.path) == directory:
                status = self.status_if_held(tracked)
                if status is not None:
                    times.add(status.changed_ns)
                elif tracked.changed_ns is not None:
                    times.add(tracked.changed_ns)
        return times

    def is_copy(self, found: Found, base: str) -> bool:
        """Whether a found file is a copy of a file that the agent has read, or is reading at the
        path `base`.
        """
        return not self.knows(found) and self.copies.is_left_alone(found, base)

    def is_rest(self, found: Found, base: str) -> bool:
        """Whether a found file is a copy of the file at the path `base`, and has bytes that were
        truncated there before the agent read them."""
        return not self.knows(found) and self.copies.is_rest(found, base)

    def began_as_copy(self, tracked: TrackedFile) -> bool:
        """Whether the first of the file's ids continued, or perhaps doubled, another file's id."""
        before = self.files.get(tracked.birth.predecessor or 0)
        while before is not None and before.birth.key == tracked.birth.key:
            before = self.files.get(before.birth.predecessor or 0)
        return before is not None

    def has_copy(self, original: TrackedFile) -> bool:
        """Whether the agent has found a copy of the original before. If so, another copy may
        contain bytes of the original that were written after the first copy was made.
        """
        return any(
            each.birth.predecessor == original.file and each.birth.key != original.birth.key
            for each in self.files.values()
        )


def _is_reborn(tracked: TrackedFile, found: Found) -> bool:
    births = (tracked.birth.born_ns, found.born_ns)
    return None not in births and births[0] != births[1]
