"""What the agent asks of the operating system about log files.

`Host` is a protocol because there is a second one: the model tests run the real agent on a file
system that rotates, truncates and loses power at random.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Protocol

from agent.files.birth_times import born_at, born_of
from agent.files.patterns import Pattern

_LIMIT: Final = 1 << 63


class FileKey(NamedTuple):
    """Where a file's bytes are, whatever it is called. Numbers above 2^63 wrap to negative ones."""

    device: int
    inode: int


class Status(NamedTuple):
    """A file now; links 0: it has lost its last name. changed_ns: when its content last changed.

    born_ns: when its inode was made; None where the file system does not say so.
    """

    key: FileKey
    size: int
    links: int
    changed_ns: int
    born_ns: int | None


class Found(NamedTuple):
    """A file that a path leads to.

    real_path: where it lies, which is another place where the path is one of a link. changed_ns,
    born_ns: as of `Status`.
    """

    path: str
    key: FileKey
    size: int
    changed_ns: int
    born_ns: int | None
    real_path: str

    @property
    def is_linked(self) -> bool:
        """Whether a link leads to it."""
        return self.path != self.real_path


@dataclass(slots=True)
class Scan:
    """found: by pattern. unreadable: (path, reason) of what could not be looked into; dead: links
    that lead nowhere, which are among them."""

    found: list[Found] = field(default_factory=list)
    unreadable: list[tuple[str, str]] = field(default_factory=list)
    dead: list[str] = field(default_factory=list)


class Handle(Protocol):
    """An open file. Every method may raise OSError."""

    def read(self, count: int, position: int) -> bytes:
        """At most `count` bytes at a position; fewer at the file's end."""
        ...

    def status(self) -> Status:
        """The file now."""
        ...

    def where(self) -> str:
        """Where it lies now, after any number of renames; "" if nobody knows."""
        ...

    def close(self) -> None:
        """Gives the descriptor back."""
        ...


class Host(Protocol):
    """A machine with files."""

    def open(self, path: str) -> Handle:
        """Opens a regular file for reading. Raises OSError."""
        ...

    def scan(self, patterns: Sequence[Pattern]) -> Scan:
        """Every regular file that a pattern leads to, once per path."""
        ...

    def look(self, path: str) -> Found | None:
        """The regular file at a path; None if there is none, or it cannot be asked."""
        ...

    def find(self, directory: str, key: FileKey) -> str | None:
        """The path of a file among the names of a directory; None if it is not there.

        Raises OSError where that cannot be known.
        """
        ...

    def list(self, directory: str) -> list[tuple[str, int]]:
        """(name, inode) of each entry of a directory. Raises OSError."""
        ...

    def changed(self, directory: str) -> int:
        """When a name last came to a directory or left it, ns. Raises OSError."""
        ...

    def resolve(self, directory: str) -> str:
        """The directory itself, whatever links lead to it. Raises OSError."""
        ...


class OpenFile:
    """A descriptor; reads are positional, so there is no cursor to lose."""

    __slots__ = ("_descriptor",)

    def __init__(self, path: str) -> None:
        self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
        if not stat.S_ISREG(os.fstat(self._descriptor).st_mode):
            os.close(self._descriptor)
            raise OSError(22, "it is no regular file")

    def read(self, count: int, position: int) -> bytes:
        """At most `count` bytes at a position."""
        return os.pread(self._descriptor, count, position)

    def status(self) -> Status:
        """The file now."""
        found = os.fstat(self._descriptor)
        born_ns = born_of(self._descriptor)
        return Status(_key(found), found.st_size, found.st_nlink, found.st_mtime_ns, born_ns)

    def where(self) -> str:
        """Where it lies now, by the kernel's word; "" if it has no name any more."""
        try:
            path = os.readlink(f"/proc/self/fd/{self._descriptor}")
        except OSError:
            return ""
        return "" if path.endswith(" (deleted)") else path

    def close(self) -> None:
        """Gives the descriptor back."""
        os.close(self._descriptor)


_BIRTHS_MAX: Final = 100_000


class OperatingSystem:
    """This machine. Owns the times of birth that it was told, as long as nothing changes."""

    def __init__(self) -> None:
        self._births: dict[FileKey, tuple[int, int | None]] = {}

    def open(self, path: str) -> Handle:
        """Opens a regular file for reading."""
        return OpenFile(path)

    def scan(self, patterns: Sequence[Pattern]) -> Scan:
        """Walks the directories of every pattern."""
        scan = Scan()
        seen: set[str] = set()
        resolved: dict[str, str] = {}
        for pattern in patterns:
            for path, is_link in pattern.walk(scan.unreadable):
                if path in seen:
                    continue
                seen.add(path)
                found = self._found(path, is_link, resolved, scan)
                if found is not None:
                    scan.found.append(found)
        return scan

    def look(self, path: str) -> Found | None:
        """The regular file at a path."""
        return self._found(path, os.path.islink(path), {}, Scan())

    def find(self, directory: str, key: FileKey) -> str | None:
        """Looks for the inode among the directory's entries."""
        try:
            with os.scandir(directory) as entries:
                for path in _with_inode(entries, key.inode):
                    if _key(os.stat(path)) == key:
                        return path
        except (FileNotFoundError, NotADirectoryError):
            return None
        return None

    def list(self, directory: str) -> list[tuple[str, int]]:
        """Reads the directory; no file is asked."""
        with os.scandir(directory) as entries:
            return [(entry.name, _signed(entry.inode())) for entry in entries]

    def changed(self, directory: str) -> int:
        """The directory's time of modification."""
        return os.stat(directory).st_mtime_ns

    def resolve(self, directory: str) -> str:
        """Follows every link."""
        return os.path.realpath(directory)

    def _found(
        self, path: str, is_link: bool, resolved: dict[str, str], scan: Scan
    ) -> Found | None:
        """resolved: directories, by the names under which they were found."""
        try:
            status = os.stat(path)
            if not stat.S_ISREG(status.st_mode):
                return None
            real_path = _real_path(path, is_link, resolved)
        except FileNotFoundError:
            if is_link and os.path.islink(path):
                scan.unreadable.append((path, "it is a link that leads nowhere"))
                scan.dead.append(path)
            return None  # or it went away in between
        except OSError as error:
            scan.unreadable.append((path, error.strerror or str(error)))
            return None
        key = _key(status)
        born_ns = self._born_ns(path, key, status)
        return Found(path, key, status.st_size, status.st_mtime_ns, born_ns, real_path)

    def _born_ns(self, path: str, key: FileKey, status: os.stat_result) -> int | None:
        """Asked again when the inode has changed: a new file's inode has."""
        known = self._births.get(key)
        if known is not None and known[0] == status.st_ctime_ns:
            return known[1]
        if len(self._births) >= _BIRTHS_MAX:
            self._births.clear()
        born_ns = born_at(path, status.st_ino)
        self._births[key] = status.st_ctime_ns, born_ns
        return born_ns


def shown(path: str) -> str:
    """A path as text for people: bytes that are no UTF-8 are escaped."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def _with_inode(entries: Iterator[os.DirEntry[str]], inode: int) -> Iterator[str]:
    for entry in entries:
        if _signed(entry.inode()) == inode:
            yield entry.path


def _real_path(path: str, is_link: bool, resolved: dict[str, str]) -> str:
    if is_link:
        return os.path.realpath(path, strict=True)
    directory, _, name = path.rpartition("/")
    real = resolved.get(directory)
    if real is None:
        real = resolved[directory] = os.path.realpath(directory or "/", strict=True)
    return path if real == directory else os.path.join(real, name)


def _key(status: os.stat_result) -> FileKey:
    device, inode = status.st_dev, status.st_ino
    if device < _LIMIT and inode < _LIMIT:
        return FileKey(device, inode)
    return FileKey(_signed(device), _signed(inode))


def _signed(number: int) -> int:
    return number - (1 << 64) if number >> 63 else number
