"""Finds and reads this machine's files with the calls of its operating system."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

from skidway.agent.files.access import Access, access_of
from skidway.agent.files.birth_times import born_at, born_of
from skidway.agent.files.decompressed import (
    Bounds,
    Decompressed,
    begins_compressed,
    is_decompressed,
)
from skidway.agent.files.host import Handle, Scan, Status, shown
from skidway.agent.files.patterns import Pattern
from skidway.agent.files.plain_sizes import Content, PlainSizes, not_yet
from skidway.agent.values.found import (
    DAMAGED,
    INTEGER_MAX,
    NOBODY,
    UNMEASURED,
    FileKey,
    Found,
    stored,
)
from skidway.ways import End, Link, Passed, way

if TYPE_CHECKING:
    from skidway.agent.settings import AgentSettings

_FLAGS: Final = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
_MAGIC_BYTES: Final = 8


class OpenFile:
    """An open file. Every read passes its position to the kernel, and the descriptor's own offset
    is not used.
    """

    __slots__ = ("descriptor",)

    def __init__(self, path: str, access: Access) -> None:
        with way(path) as found:
            if not stat.S_ISREG(found.end.status.st_mode):
                raise OSError(errno.EINVAL, "it is no regular file")
            refused = access.refusal(path, found.end)
            if refused is not None:
                raise OSError(errno.EPERM, refused[1])
            # the file on which the rules were tried, whatever is at the path by now
            self.descriptor = os.open(f"/proc/self/fd/{found.descriptor}", _FLAGS)

    def read(self, count: int, position: int) -> bytes:
        """Returns at most `count` bytes of the file, from a position on."""
        return os.pread(self.descriptor, count, position)

    def status(self) -> Status:
        """Returns the present status of the file."""
        found = os.fstat(self.descriptor)
        changed_ns, born_ns = stored(found.st_mtime_ns), born_of(self.descriptor)
        return Status(_key(found), found.st_size, found.st_nlink, changed_ns, born_ns)

    def where(self) -> str:
        """Returns the path at which the file is now, according to the kernel; "" if the file has no
        name any more.
        """
        try:
            path = os.readlink(f"/proc/self/fd/{self.descriptor}")
        except OSError:
            return ""
        if path.endswith(" (deleted)") and not _is_at(path, os.fstat(self.descriptor)):
            return ""
        return path

    def close(self) -> None:
        """Closes the descriptor."""
        os.close(self.descriptor)


LEADS_NOWHERE: Final = "it is a link that leads nowhere: remove it, or leave it out with exclude"
LEADS_ROUND: Final = "it is a link in a circle: remove it, or leave it out with exclude"
PATH_MAX: Final = 4_096
"""The agent reads no file whose path has more characters as people see it. A path in UTF-8 never
has; in other paths, a byte is four characters, and agent and audit keep each path several times."""
TOO_LONG: Final = f"of a path in it, people would see more than {PATH_MAX:,} characters"
_SEEN_MAX: Final = 100_000
_FIND_TRIES: Final = 10

_Resolved = dict[str, End]
"""What is at the path of each directory that a scan has come to."""


class OperatingSystem:
    """Implements `Host` for this machine. Owns the description (`Found`) of the file that it last
    saw at each path, and the time at which that file's inode last changed. As long as nothing
    changes, each search returns the same descriptions. This saves time and memory if the agent
    watches, for example, 20,000 quiet files.
    """

    def __init__(self, access: Access | None = None, bounds: Bounds | None = None) -> None:
        self._access = access or Access()
        self._bounds = bounds or Bounds()
        self._seen: dict[str, Found] = {}
        # by path: when the inode last changed (ns), if this differs from the file's `changed_ns`
        self._inode_changed: dict[str, int] = {}
        self._plain_sizes = PlainSizes(self._bounds, self._descriptor_of)

    def open(self, path: str) -> Handle:
        """Opens a regular file for reading."""
        file = OpenFile(path, self._access)
        if not is_decompressed(path):
            return file
        try:
            size = self._plain_size(file, path)
        except OSError:
            file.close()
            raise
        if size is None:
            return file
        return Decompressed(file, path, file.descriptor, size, self._bounds)

    def scan(self, patterns: Sequence[Pattern]) -> Scan:
        """Returns the files to which the patterns lead, and the paths that cannot be read."""
        scan = Scan()
        seen: set[str] = set()
        resolved: _Resolved = {}

        def may_enter(path: str) -> bool:
            return self._may_enter(path, scan)

        for pattern in patterns:
            for path, is_link in pattern.walk(scan.unreadable, may_enter):
                if path in seen:
                    continue
                seen.add(path)
                found = self._found(path, is_link, resolved, scan)
                if found is not None:
                    scan.found.append(found)
        return scan

    def look(self, path: str) -> Found | None:
        """Returns the regular file at a path; None if there is none, or if it cannot be
        examined."""
        return self._found(path, os.path.islink(path), {}, Scan())

    def lender(self, path: str) -> int | None:
        """See Host."""
        at = ""
        for name in path.split("/")[1:]:
            at = f"{at}/{name}"
            try:
                status = os.lstat(at)
            except OSError:
                return NOBODY
            if stat.S_ISLNK(status.st_mode) and self._access.is_users(Link(at, status.st_uid)):
                return status.st_uid
        return None

    def find(self, directory: str, key: FileKey) -> str | None:
        """Returns the path in `directory` at which the file with this key is; None if there is
        none. If an entry is renamed during the search, searches again. Raises OSError if the
        directory cannot be listed, or if entries are renamed in every search."""
        for _ in range(_FIND_TRIES):
            try:
                with os.scandir(directory) as entries:
                    paths = list(_with_inode(entries, key.inode))
            except (FileNotFoundError, NotADirectoryError):
                return None
            has_gone = False
            for path in paths:
                try:
                    if _key(os.stat(path)) == key:
                        return path
                except FileNotFoundError:
                    has_gone = not os.path.islink(path)
            if not paths:
                return None
        if has_gone:
            raise BlockingIOError(errno.EAGAIN, "it is being renamed", directory)
        return None  # another file system is mounted over the entry with this inode number

    def list(self, directory: str) -> list[tuple[str, int]]:
        """Returns the name and inode of each entry of the directory, without a call of stat for
        each entry."""
        with os.scandir(directory) as entries:
            return [(entry.name, _signed(entry.inode())) for entry in entries]

    def changed(self, directory: str) -> int:
        """Returns the directory's time of modification. Raises OSError if the agent may not search
        the directory.
        """
        return os.stat(os.path.join(directory, ".")).st_mtime_ns

    def resolve(self, directory: str) -> str:
        """Returns the directory's real path, after all links are followed. If the directory does
        not exist, or cannot be examined, follows the links on the way to it."""
        names: list[str] = []
        while True:
            try:
                with way(directory) as found:
                    return os.path.join(found.end.real_path, *reversed(names))
            except OSError:
                directory, name = os.path.split(directory.rstrip("/"))
                names.append(name)

    def device_of(self, directory: str) -> int | None:
        """Returns the device of the directory, or of the nearest parent directory that exists."""
        for above in [directory, *map(str, PurePosixPath(directory).parents)]:
            try:
                return _key(os.stat(above)).device
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError:
                return None
        return None

    def _found(self, path: str, is_link: bool, resolved: _Resolved, scan: Scan) -> Found | None:
        """Returns the file at a path. resolved: a cache (see `_Resolved`)."""
        for _ in range(_FIND_TRIES):
            try:
                end = _end(path, is_link, resolved)
                status = end.status
                if not stat.S_ISREG(status.st_mode):
                    _add_other(path, status.st_mode, scan)
                    return None
            except FileNotFoundError:
                if is_link and os.path.islink(path):
                    _add_dead(path, LEADS_NOWHERE, scan)
                return None  # the link is broken, or the file was deleted meanwhile
            except OSError as error:
                if error.errno == errno.ELOOP:
                    _add_dead(path, LEADS_ROUND, scan)
                else:
                    scan.unreadable.append((path, error.strerror or str(error)))
                return None
            refused = _too_long(path, end) or self._access.refusal(path, end)
            if refused is not None:
                if refused not in scan.refused[-1:]:
                    scan.refused.append(refused)
                return None
            try:
                return self._described(path, end)
            except FileNotFoundError:
                continue  # by now, another file is at the path, or no file
        scan.unreadable.append((path, "it is being renamed"))
        return None

    def _may_enter(self, path: str, scan: Scan) -> bool:
        """Whether a search goes into the directory to which a link leads."""
        try:
            with way(path) as found:
                directory = found.end._replace(real_path=f"{found.end.real_path}/")
                refused = self._access.refusal(path, directory)
        except OSError:
            return True  # the search itself reports what is wrong
        if refused is not None:
            scan.refused.append(refused)
        return refused is None

    def _described(self, path: str, end: End) -> Found:
        """Returns the description of a file. If the file's time of birth is not known yet, looks it
        up at the path, and raises FileNotFoundError if the file is no longer there.
        """
        real_path, status, before = end.real_path, end.status, self._seen.get(path)
        key, size = _key(status), self._size(real_path, status)
        changed_ns = stored(status.st_mtime_ns)
        whose = status.st_uid, any(map(self._access.is_users, end.links))
        if before is not None and before.key == key:
            key = before.key
            # If the inode belongs to a new file by now, the inode has another time of change than
            # at the last search.
            if self._inode_changed.get(path, before.changed_ns) == status.st_ctime_ns:
                found = Found(path, key, size, changed_ns, before.born_ns, real_path, *whose)
                return before if found == before else self._note(found, status)
        born_ns = born_at(path, status.st_ino)
        return self._note(Found(path, key, size, changed_ns, born_ns, real_path, *whose), status)

    def _note(self, found: Found, status: os.stat_result) -> Found:
        if len(self._seen) >= _SEEN_MAX:
            self._seen.clear()
            self._inode_changed.clear()
        self._seen[found.path] = found
        if status.st_ctime_ns == found.changed_ns:
            self._inode_changed.pop(found.path, None)
        else:
            self._inode_changed[found.path] = status.st_ctime_ns
        return found

    def _descriptor_of(self, path: str) -> int:
        return OpenFile(path, self._access).descriptor

    def _plain_size(self, file: OpenFile, path: str) -> int | None:
        """Returns the plain size of a compressed file; None if the file is not compressed, although
        its name ends like that of a compressed file."""
        status = os.fstat(file.descriptor)
        if not begins_compressed(path, file.read(_MAGIC_BYTES, 0)):
            self._plain_sizes.learn(Content.of(status), status.st_size)
            return None
        size = self._plain_sizes.known(Content.of(status))
        if size is None:
            self._plain_sizes.ask(path, Content.of(status))
            raise not_yet()
        if isinstance(size, OSError):
            raise size
        return size

    def _size(self, path: str, status: os.stat_result) -> int:
        if not status.st_size or not is_decompressed(path):
            return status.st_size
        size = self._plain_sizes.known(Content.of(status))
        if size is None:
            return UNMEASURED
        return DAMAGED if isinstance(size, OSError) else size


def host_of(settings: AgentSettings) -> OperatingSystem:
    """Returns this machine as an agent with these settings sees it."""
    bounds = Bounds(settings.decompression_memory_bytes, settings.decompression_ratio_max)
    return OperatingSystem(access_of(settings.links, settings.state_dir), bounds)


def _add_dead(path: str, reason: str, scan: Scan) -> None:
    """Notes a link that leads to no file."""
    scan.unreadable.append((path, reason))
    scan.dead.append(path)


def _add_other(path: str, mode: int, scan: Scan) -> None:
    """Notes a path that leads to no regular file."""
    if stat.S_ISDIR(mode):
        scan.directories.append(path)
    else:
        kind = "FIFO" if stat.S_ISFIFO(mode) else "socket" if stat.S_ISSOCK(mode) else "device"
        scan.special.append((path, kind))


def _too_long(path: str, end: End) -> tuple[str, str] | None:
    """Returns the lowest directory of a path that is not too long, and the reason; None if neither
    the path nor the one to which it leads is too long."""
    for each in (path, end.real_path):
        if 4 * len(each) > PATH_MAX and len(shown(each)) > PATH_MAX:
            while len(shown(path)) > PATH_MAX:
                path = os.path.dirname(path)
            return path, TOO_LONG
    return None


def _is_at(path: str, status: os.stat_result) -> bool:
    """Whether the file really is at a path that the kernel returned. The kernel appends
    ` (deleted)` to the path of a deleted file, but the name of an existing file may end in the same
    way.
    """
    try:
        return os.path.samestat(os.stat(path), status)
    except OSError:
        return False


def _with_inode(entries: Iterator[os.DirEntry[str]], inode: int) -> Iterator[str]:
    for entry in entries:
        if _signed(entry.inode()) == inode:
            yield entry.path


def _end(path: str, is_link: bool, resolved: _Resolved) -> End:
    """Returns what is at the end of a path. (If the directory is exchanged meanwhile, the file does
    not belong to the real path. Whoever opens the real path compares the file's key.)"""
    status = None if is_link else os.lstat(path)
    if status is None or stat.S_ISLNK(status.st_mode):
        with way(path) as found:
            return found.end
    directory, _, name = path.rpartition("/")
    above = resolved.get(directory)
    if above is None:
        with way(directory) as found:
            above = resolved[directory] = found.end
    real = above.real_path
    real_path = path if real == directory else os.path.join(real, name)
    return End(real_path, status, above.links, (*above.directories, Passed(real, above.status)))


@lru_cache(64)
def _shared(device: int) -> int:
    """Returns one object for equal numbers: to save memory, all files of a device share the
    integer."""
    return device


def _key(status: os.stat_result) -> FileKey:
    device, inode = status.st_dev, status.st_ino
    if device <= INTEGER_MAX and inode <= INTEGER_MAX:
        return FileKey(_shared(device), inode)
    return FileKey(_signed(device), _signed(inode))


def _signed(number: int) -> int:
    return number - (1 << 64) if number >> 63 else number
