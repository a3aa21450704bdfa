"""Remembers the files without a file id: empty files, and files that are too old to be read. The
agent makes this list anew each time that it goes through the directories of its sources (this is a
look).

Such a file may be at a meant path (a path that a pattern matches), or may be an empty rotated file
to which its program may still write. The agent's state stores these files. A program may write to
such a file, and rotate it, while no agent runs. Then only the state shows that the rotated file was
empty or ignored at the meant path before, and that its bytes are therefore new.
"""

from __future__ import annotations

from collections.abc import Iterable

from skidway.agent.files.host import Host
from skidway.agent.values.found import Found, UnbegunFile


class Unbegun:
    """Owns the files without a file id, as the last look found them."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._files: dict[str, UnbegunFile] = {}
        self._gone: set[str] = set()
        self._new: dict[str, UnbegunFile] = {}

    def load(self, files: Iterable[UnbegunFile]) -> None:
        """Takes over the files that had no file id before the agent started."""
        self._files = {
            each.found.path: each._replace(found=self._now(each.found)) for each in files
        }

    def _now(self, found: Found) -> Found:
        """Returns `found` with the present number of its device, because a restart of the machine
        may give the devices other numbers.
        """
        there = self._host.look(found.path)
        if there is None or (there.key.inode, there.born_ns) != (found.key.inode, found.born_ns):
            return found
        return found._replace(key=there.key)

    def all(self) -> list[UnbegunFile]:
        """Returns all files that had no file id at the last look."""
        return list(self._files.values())

    def was_written(self, found: Found) -> bool:
        """Whether a file has changed since the last look, which found it without a file id at a
        path that a pattern matches. If so, a program has written to the file. Rotation may then
        have copied and truncated the file, so that only the copy has the written bytes.
        """
        before = self._files.get(found.path)
        if before is None or before.base is not None:
            return False
        is_same = (before.found.key, before.found.born_ns) == (found.key, found.born_ns)
        return is_same and before.found.changed_ns != found.changed_ns

    def end_look(self, files: Iterable[UnbegunFile]) -> None:
        """Replaces the list by the files without a file id that this look found."""
        before, self._files = self._files, {each.found.path: each for each in files}
        for path in before.keys() - self._files.keys():
            self._gone.add(path)
            self._new.pop(path, None)
        for path, each in self._files.items():
            if before.get(path) != each:
                self._gone.discard(path)
                self._new[path] = each

    def take_changed(self) -> tuple[list[str], list[UnbegunFile]] | None:
        """Returns what has changed in this list since the last call: the paths whose files have
        left it, and the files that are new or have changed. Returns None if nothing has changed.
        """
        if not self._gone and not self._new:
            return None
        taken = sorted(self._gone), list(self._new.values())
        self._gone, self._new = set(), {}
        return taken
