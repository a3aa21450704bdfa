"""Patterns of paths: *, ? and [...] match within a name, and ** matches any number of directories.

As in a shell, a name that begins with a dot matches only a pattern that begins with a dot. The
search follows links. If `**` comes to a link that leads back to a directory above it, the search
does not walk this directory again. The search reports directories that cannot be read, because they
may contain files that nobody counts.
"""

from __future__ import annotations

import errno
import fnmatch
import os
import re
import stat
from collections.abc import Iterator, Sequence

from skidway.dataclass import dataclass

Unreadable = list[tuple[str, str]]

_MAGIC = re.compile(r"[*?\[]")
DEPTH_MAX = 64
"""`**` matches at most this many levels of directories."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """A pattern of absolute paths. exclude: patterns of paths that are left out although this
    pattern matches them."""

    text: str
    exclude: tuple[str, ...] = ()

    @property
    def root(self) -> str:
        """The directory above the first name with a wildcard; without a wildcard, the directory of
        the file. The agent watches this directory for events.
        """
        parts = self.text.split("/")
        fixed = next((i for i, part in enumerate(parts) if _MAGIC.search(part)), len(parts) - 1)
        return "/".join(parts[:fixed]) or "/"

    @property
    def is_deep(self) -> bool:
        """Whether the pattern can match files in directories below `root`, and not only in `root`
        itself."""
        parts = self.text.split("/")
        return parts[-1] == "**" or any(_MAGIC.search(part) for part in parts[:-1])

    def means(self, path: str) -> bool:
        """Whether the pattern matches a path; the path need not exist."""
        parts = [part for part in self.text.split("/") if part]
        names = [name for name in path.split("/") if name]
        return _means(parts, names) and not self.excludes(path)

    def excludes(self, path: str) -> bool:
        """Whether a pattern of `exclude` matches a path, so that the path is left out."""
        return any(fnmatch.fnmatchcase(path, each) for each in self.exclude)

    def walk(self, unreadable: Unreadable) -> Iterator[tuple[str, bool]]:
        """Yields each existing path that matches, and whether the path is a link. The paths of each
        directory are sorted.
        """
        root = self.root
        rest = tuple(part for part in self.text[len(root) :].split("/") if part)
        closed: Unreadable = []
        for path, is_link in _walk(root, rest, closed, ()):
            if not self.exclude or not self.excludes(path):
                yield path, is_link
        unreadable += [each for each in closed if not self._excludes_all(each[0])]

    def _excludes_all(self, path: str) -> bool:
        """Whether the pattern excludes a path and every path below it."""
        return self.excludes(path) or self.excludes(os.path.join(path, "\n"))


def _means(parts: Sequence[str], names: Sequence[str]) -> bool:
    if not parts:
        return not names
    if parts[0] == "**":
        if _means(parts[1:] or ("*",), names):
            return True
        return bool(names) and not names[0].startswith(".") and _means(parts, names[1:])
    if not names or not fnmatch.fnmatchcase(names[0], parts[0]):
        return False
    if names[0].startswith(".") and not parts[0].startswith("."):
        return False
    return _means(parts[1:], names[1:])


def _walk(
    base: str, parts: Sequence[str], unreadable: Unreadable, above: tuple[tuple[int, int], ...]
) -> Iterator[tuple[str, bool]]:
    part, rest = parts[0], parts[1:]
    if part == "**":
        yield from _walk_deep(base, rest, unreadable, above)
    elif not _MAGIC.search(part):
        path = os.path.join(base, part)
        if rest:
            yield from _walk(path, rest, unreadable, above)
        else:
            yield from _at(path, unreadable)
    else:
        for entry in _entries(base, unreadable, part):
            if not rest:
                yield entry.path, entry.is_symlink()
            elif _is_directory(entry, unreadable):
                yield from _walk(entry.path, rest, unreadable, above)


def _at(path: str, unreadable: Unreadable) -> Iterator[tuple[str, bool]]:
    """Yields the path, which has no wildcard, and whether it is a link; nothing if it does not
    exist."""
    try:
        yield path, stat.S_ISLNK(os.lstat(path).st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        unreadable.append((path, error.strerror or str(error)))


def _walk_deep(
    base: str, rest: Sequence[str], unreadable: Unreadable, above: tuple[tuple[int, int], ...]
) -> Iterator[tuple[str, bool]]:
    """Walks the directory `base` and every directory below it, except links that point back to a
    directory above.
    """
    try:
        status = os.stat(base)
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        unreadable.append((base, error.strerror or str(error)))
        return
    key = (status.st_dev, status.st_ino)
    if key in above:
        return
    if len(above) >= DEPTH_MAX:
        unreadable.append((base, f"it lies more than {DEPTH_MAX} directories deep"))
        return
    yield from _walk(base, rest or ("*",), unreadable, above)
    for entry in _entries(base, unreadable):
        if _is_directory(entry, unreadable):
            yield from _walk_deep(entry.path, rest, unreadable, (*above, key))


def _is_directory(entry: os.DirEntry[str], unreadable: Unreadable) -> bool:
    try:
        return entry.is_dir()
    except OSError as error:
        if error.errno != errno.ELOOP:  # a circle of links points to no file
            unreadable.append((entry.path, error.strerror or str(error)))
        return False


def _entries(directory: str, unreadable: Unreadable, part: str = "*") -> list[os.DirEntry[str]]:
    """Returns, sorted by name, those entries of a directory whose names match `part`, the part of a
    pattern between two slashes."""
    match = re.compile(fnmatch.translate(part)).match
    hidden = part.startswith(".")
    try:
        with os.scandir(directory) as entries:
            found = [e for e in entries if (hidden or e.name[0] != ".") and match(e.name)]
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        unreadable.append((directory, error.strerror or str(error)))
        return []
    found.sort(key=lambda entry: entry.name)
    return found
