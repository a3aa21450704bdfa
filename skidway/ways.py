"""Follows a path link by link, and notes to whom what is on the way belongs.

Each step opens the next name in the directory that the step before opened, and looks at what it
has opened. So nobody can exchange a name between a look at it and its use.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple

from skidway.dataclass import dataclass

LINKS_MAX: Final = 40
"""A path leads through at most this many links, as in the kernel."""

_STEP: Final = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC


class Link(NamedTuple):
    """A link, and the user to whom it belongs."""

    path: str
    owner: int


class Passed(NamedTuple):
    """A directory on the way. path: without links."""

    path: str
    status: os.stat_result


class End(NamedTuple):
    """What is at the end of a path. real_path: the path without links. status: of what is there.
    links, directories: those on the way, in their order; the last directory is the one of what is
    there."""

    real_path: str
    status: os.stat_result
    links: tuple[Link, ...]
    directories: tuple[Passed, ...]


@dataclass(frozen=True, slots=True)
class Way:
    """A path that was followed. descriptor: of what is at its end, opened only as a place (O_PATH).
    user: the first user but root to whom a directory or link on the way, or what is at the end,
    belongs; 0 if all is root's. This user can make the path lead anywhere."""

    descriptor: int
    end: End
    user: int


@contextmanager
def way(path: str) -> Iterator[Way]:
    """Follows an absolute path, for a `with` block. Raises OSError if the path leads nowhere, or if
    this user may not follow it."""
    descriptor = os.open("/", os.O_PATH | os.O_CLOEXEC)
    try:
        names, user = _names(path), 0
        real: list[str] = []
        links: list[Link] = []
        at = os.fstat(descriptor)
        directories: list[Passed] = []
        while names:
            name = names.pop()
            directories.append(Passed("/" + "/".join(real), at))
            below = os.open(name, _STEP, dir_fd=descriptor)
            status = os.fstat(below)
            user = user or status.st_uid
            if not stat.S_ISLNK(status.st_mode):
                os.close(descriptor)
                descriptor = below
                at = status
                real = real[:-1] if name == ".." else [*real, name]
                continue
            try:
                target = os.readlink("", dir_fd=below)
            finally:
                os.close(below)
            links.append(Link("/" + "/".join([*real, name]), status.st_uid))
            if len(links) > LINKS_MAX:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
            names += _names(target)
            if target.startswith("/"):
                os.close(descriptor)
                descriptor = os.open("/", os.O_PATH | os.O_CLOEXEC)
                at = os.fstat(descriptor)
                real = []
        end = End("/" + "/".join(real), at, tuple(links), tuple(directories))
        yield Way(descriptor, end, user)
    finally:
        os.close(descriptor)


def _names(path: str) -> list[str]:
    return [name for name in reversed(path.split("/")) if name not in ("", ".")]
