"""Lists directories. In a look, the agent goes once through the directories of all sources. It
keeps the listing of a directory until the look ends, so that it need not list the directory
again."""

from __future__ import annotations

import os

from skidway.agent.files.host import Host
from skidway.agent.values.found import FileKey


class Directories:
    """The directories that a look has listed so far."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._names: dict[str, list[tuple[str, int]]] = {}
        self._by_inode: dict[str, dict[int, str]] = {}
        self._resolved: dict[str, str] = {}

    def forget(self) -> None:
        """Forgets all listings. Each look begins with this call, because files may have moved."""
        self._names.clear()
        self._by_inode.clear()
        self._resolved.clear()

    def resolve(self, directory: str) -> str:
        """Returns the real path of a directory, with all links followed."""
        found = self._resolved.get(directory)
        if found is None:
            found = self._resolved[directory] = self._host.resolve(directory)
        return found

    def names(self, directory: str) -> list[tuple[str, int]]:
        """Returns (name, inode) of each entry of a directory. Raises OSError: FileNotFoundError if
        there is no such directory.
        """
        found = self._names.get(directory)
        if found is None:
            found = self._names[directory] = self._host.list(directory)
        return found

    def name_of(self, directory: str, inode: int) -> str | None:
        """Returns a name that an inode has in a directory; None if it has no name there, or if
        there is no such directory. Raises OSError if the directory cannot be listed."""
        by_inode = self._by_inode.get(directory)
        if by_inode is None:
            try:
                names = self.names(directory)
            except (FileNotFoundError, NotADirectoryError):
                names = []
            by_inode = self._by_inode[directory] = {inode: name for name, inode in names}
        return by_inode.get(inode)

    def find(self, directory: str, key: FileKey) -> str | None:
        """Returns the path of a file in a directory; None if the directory does not contain the
        file. A file that has come since the directory was listed may not be found. Raises OSError
        if the directory cannot be listed.
        """
        name = self.name_of(directory, key.inode)
        if name is None:
            return None
        path = os.path.join(directory, name)
        found = self._host.look(path)
        if found is not None and found.key == key:
            return path
        # the file was renamed since the listing, or has several names
        return self._host.find(directory, key)
