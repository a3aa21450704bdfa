"""The interface through which the agent asks the operating system about log files.

`Host` is a `typing.Protocol` because it has two implementations. One is the operating system. The
other is a simulated file system that rotates, truncates and loses power at random; the model tests
run the real agent on it. To all other modules, a compressed file looks like the plain file that it
contains: its size is the plain size, and reading it gives the plain bytes.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import field
from typing import NamedTuple, Protocol

from skidway.agent.files.patterns import Pattern
from skidway.agent.values.found import FileKey, Found
from skidway.dataclass import dataclass


class Status(NamedTuple):
    """A file's state now. links: how many names the file has; 0 if the file has lost its last name.
    changed_ns: when the file's content last changed.

    born_ns: when the file's inode was made; None if the file system does not report this time.
    """

    key: FileKey
    size: int
    links: int
    changed_ns: int
    born_ns: int | None


@dataclass(slots=True)
class Scan:
    """What a search through all patterns found. unreadable: (path, reason) for each file or
    directory that the agent could not examine. dead: the unreadable paths that are broken links.
    directories, special: what else the patterns match: directories, and (path, kind) for each FIFO,
    socket or device. refused: (path, reason) for each link or file that the agent does not follow
    by rule (module access).
    """

    found: list[Found] = field(default_factory=list)
    unreadable: list[tuple[str, str]] = field(default_factory=list)
    dead: list[str] = field(default_factory=list)
    directories: list[str] = field(default_factory=list)
    special: list[tuple[str, str]] = field(default_factory=list)
    refused: list[tuple[str, str]] = field(default_factory=list)


class Handle(Protocol):
    """An open file. Every method may raise OSError."""

    def read(self, count: int, position: int) -> bytes:
        """Returns the `count` bytes from a position on; fewer at the file's end."""
        ...

    def status(self) -> Status:
        """Returns the file's state now."""
        ...

    def where(self) -> str:
        """Returns the path at which the file is now, after any number of renames; "" if unknown."""
        ...

    def close(self) -> None:
        """Closes the descriptor."""
        ...


class Host(Protocol):
    """The calls to the operating system that the agent needs for log files."""

    def open(self, path: str) -> Handle:
        """Opens a regular file for reading. Raises OSError if the file cannot be opened, or if it
        is compressed and its plain size is not known yet.
        """
        ...

    def scan(self, patterns: Sequence[Pattern]) -> Scan:
        """Finds every regular file to which a pattern leads, directly or through a link, once per
        path."""
        ...

    def look(self, path: str) -> Found | None:
        """Returns the regular file at a path; None if there is no regular file, or if the file's
        status cannot be read.
        """
        ...

    def lender(self, path: str) -> int | None:
        """Returns the first user but root and the agent's whose link is on the way to a path, also
        if the link leads nowhere. Returns None if there is no such link, and NOBODY if nothing is
        at the path, or nobody can know."""
        ...

    def find(self, directory: str, key: FileKey) -> str | None:
        """Returns the path of a file in a directory; None if the directory does not contain the
        file.

        Raises OSError if nobody can know, for example because the directory cannot be read.
        """
        ...

    def list(self, directory: str) -> list[tuple[str, int]]:
        """Returns (name, inode) of each entry of a directory. Raises OSError."""
        ...

    def changed(self, directory: str) -> int:
        """Returns the time (ns) at which a directory last gained or lost a name. Raises OSError,
        for example if the agent has no permission to search the directory.
        """
        ...

    def resolve(self, directory: str) -> str:
        """Returns the real path of a directory, with all links followed, as far as the directory
        exists and can be examined. Raises no error."""
        ...

    def device_of(self, directory: str) -> int | None:
        """Returns the device of a directory. If the directory does not exist, returns the device of
        its nearest parent that exists. Returns None if the device cannot be found out.
        """
        ...


def shown(path: str) -> str:
    """Returns a path as text for people. Bytes that are not UTF-8 are escaped."""
    text = os.fsencode(path).decode("utf-8", "backslashreplace")
    return path if text == path else text  # one object for equal texts saves memory
