"""Finds the files that a pattern of paths matches. Module `path_texts` says what patterns mean.

The search follows links, but it lists each directory only once for each part of the pattern: under
its path without links, or else under the path of the first link that leads to it. So links cannot
make a search longer than the number of directories and links. The search reports directories that
cannot be read, because they may contain files that nobody counts.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field

from skidway.agent.values.path_texts import expanded, matcher, name_matcher
from skidway.dataclass import dataclass

Unreadable = list[tuple[str, str]]
Parts = tuple[str, ...]

_MAGIC = re.compile(r"[*?\[]")
DEPTH_MAX = 64
"""`**` matches at most this many levels of directories."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """A pattern of absolute paths, without braces. exclude: patterns of paths that are left out
    although this pattern matches them."""

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
        return matcher(self.text).fullmatch(path) is not None and not self.excludes(path)

    def excludes(self, path: str) -> bool:
        """Whether a pattern of `exclude` matches a path, so that the path is left out."""
        return any(matcher(each).fullmatch(path) for each in self.exclude)

    def walk(
        self, unreadable: Unreadable, may_enter: Callable[[str], bool] = lambda _path: True
    ) -> Iterator[tuple[str, bool]]:
        """Yields each existing path that matches, and whether the path is a link. The paths of each
        directory are sorted; of several paths of a listed directory, only one counts. may_enter:
        whether to search in the directory to which a link leads.
        """
        root = self.root
        rest = tuple(part for part in self.text[len(root) :].split("/") if part)
        closed: Unreadable = []
        for path, is_link in _search(root, rest, Search(closed, may_enter)):
            if not self.exclude or not self.excludes(path):
                yield path, is_link
        unreadable += [each for each in closed if not self._excludes_all(each[0])]

    def _excludes_all(self, path: str) -> bool:
        """Whether `exclude` matches every path below an unreadable path (or this path itself) that
        the pattern could match. The name of a line end, which no program chooses, stands for any
        name.
        """
        parts = self.text.split("/")
        if not self.exclude or any(part.startswith(".") for part in parts):
            return False
        if "**" in parts:
            return all(self.excludes(path + "/\n" * depth) for depth in range(1, DEPTH_MAX))
        rest = parts[path.count("/") + 1 :]
        below = ["\n" if _MAGIC.search(part) else part for part in rest]
        return self.excludes("/".join([path.rstrip("/"), *below]))


def patterns_of(paths: Sequence[str], exclude: Sequence[str] = ()) -> tuple[Pattern, ...]:
    """Returns the patterns of the settings `paths` and `exclude`."""
    left_out = tuple(each for text in exclude for each in expanded(text))
    return tuple(Pattern(each, left_out) for text in paths for each in expanded(text))


@dataclass(frozen=True, slots=True)
class Search:
    """One search. unreadable: the directories that cannot be read. may_enter: see `Pattern.walk`.
    entered: each directory, with the rest of the pattern that was searched for there. links: the
    links that wait until everything before them is searched, each with the rest of the pattern, and
    how deep it lies."""

    unreadable: Unreadable
    may_enter: Callable[[str], bool]
    entered: set[tuple[int, int, Parts]] = field(default_factory=set)
    links: deque[tuple[str, Parts, int]] = field(default_factory=deque)


def _search(root: str, parts: Parts, search: Search) -> Iterator[tuple[str, bool]]:
    yield from _walk(root, parts, search, 0)
    while search.links:
        path, rest, depth = search.links.popleft()
        if _is_new(path, rest, search) and search.may_enter(path):
            yield from _walk(path, rest, search, depth)


def _walk(base: str, parts: Parts, search: Search, depth: int) -> Iterator[tuple[str, bool]]:
    part, rest = parts[0], parts[1:]
    if not _MAGIC.search(part):
        path = os.path.join(base, part)
        if rest:
            yield from _walk(path, rest, search, depth)
        else:
            yield from _at(path, search.unreadable)
    elif not _enter(base, parts, search):
        return
    elif part == "**":
        yield from _walk_deep(base, parts, search, depth)
    else:
        for entry in _entries(base, search.unreadable, part):
            if not rest:
                yield entry.path, entry.is_symlink()
            elif _is_directory(entry, rest, search, depth):
                yield from _walk(entry.path, rest, search, depth)


def _at(path: str, unreadable: Unreadable) -> Iterator[tuple[str, bool]]:
    """Yields the path, which has no wildcard, and whether it is a link; nothing if it does not
    exist."""
    try:
        yield path, stat.S_ISLNK(os.lstat(path).st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        unreadable.append((path, error.strerror or str(error)))


def _walk_deep(base: str, parts: Parts, search: Search, depth: int) -> Iterator[tuple[str, bool]]:
    """Walks the directory `base` and every directory below it."""
    if depth >= DEPTH_MAX:
        search.unreadable.append((base, f"it lies more than {DEPTH_MAX} directories deep"))
        return
    yield from _walk(base, parts[1:] or ("*",), search, depth)
    for entry in _entries(base, search.unreadable):
        if _is_directory(entry, parts, search, depth + 1):
            yield from _walk(entry.path, parts, search, depth + 1)


def _enter(directory: str, parts: Parts, search: Search) -> bool:
    """Whether a directory exists, and was not searched for these parts yet; from now on, it was."""
    key = _key(directory, parts, search)
    if key is None or key in search.entered:
        return False
    search.entered.add(key)
    return True


def _is_new(link: str, parts: Parts, search: Search) -> bool:
    """Whether the directory to which a link leads was not searched for these parts yet."""
    key = _key(link, parts, search)
    return key is not None and key not in search.entered


def _key(directory: str, parts: Parts, search: Search) -> tuple[int, int, Parts] | None:
    try:
        status = os.stat(directory)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        search.unreadable.append((directory, error.strerror or str(error)))
        return None
    return status.st_dev, status.st_ino, parts


def _is_directory(entry: os.DirEntry[str], rest: Parts, search: Search, depth: int) -> bool:
    """Whether an entry is a directory. A link to a directory is searched later."""
    try:
        if not entry.is_dir():
            return False
    except OSError as error:
        if error.errno != errno.ELOOP:  # a circle of links points to no file
            search.unreadable.append((entry.path, error.strerror or str(error)))
        return False
    if entry.is_symlink():
        search.links.append((entry.path, rest, depth))
        return False
    return True


def _entries(directory: str, unreadable: Unreadable, part: str = "*") -> list[os.DirEntry[str]]:
    """Returns, sorted by name, those entries of a directory whose names match `part`, the part of a
    pattern between two slashes."""
    matches = name_matcher(part).fullmatch
    try:
        with os.scandir(directory) as entries:
            found = [entry for entry in entries if matches(entry.name)]
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        unreadable.append((directory, error.strerror or str(error)))
        return []
    found.sort(key=lambda entry: entry.name)
    return found
