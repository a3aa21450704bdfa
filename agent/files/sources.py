"""Finds the source of a path: the source whose patterns match this path, or match the path that the
file had before rotation. A generation is a rotated file. This module does no I/O.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import Final, NamedTuple

from skidway.agent.files.generations import generation
from skidway.agent.files.host import Handle
from skidway.agent.files.patterns import Pattern
from skidway.agent.parsing.byte_order import UTF_16BE, order_of
from skidway.agent.parsing.framing import Framer, LineFramer
from skidway.agent.values.labels import LabelSource
from skidway.agent.values.tracked import TrackedFile
from skidway.dataclass import dataclass

_DIGITS: Final = re.compile(r"\d+")


class Manner(NamedTuple):
    """How the bytes of a file are read: the fingerprint of their recipe (a hash of the settings
    that decide which records are made), and the framer, which divides the bytes into records.
    """

    recipe: bytes
    framer: Framer


@dataclass(frozen=True, slots=True)
class TailedSource:
    """A source, the topic to which its lines go, and the recipe (settings) by which records are
    made of the bytes that are read from now on.

    framer: divides the bytes into records. flush_s: how long a file must stay unchanged before the
    agent treats its last record as complete; None for the agent's `idle.flush.ms`. big_endian: how
    the agent reads a file that begins with a big-endian byte order mark; None if byte order marks
    do not matter. starts_at_end: whether the agent skips the bytes that files have when the agent
    first looks at their pattern. ignore_older_ms: files whose last change is longer ago than this
    (ms) are not read; None if all files are read. labels: where the labels of pods come from; None
    if the records need no labels. deleted_after_ms: how long after the creation of a file the host
    deletes the file; None if this is unknown. optional: whether its files may be missing.
    """

    topic: str
    topic_id: str
    patterns: tuple[Pattern, ...]
    recipe: bytes
    framer: Framer = field(default_factory=LineFramer)
    flush_s: float | None = None
    big_endian: Manner | None = None
    starts_at_end: bool = False
    ignore_older_ms: int | None = None
    labels: LabelSource | None = None
    deleted_after_ms: int | None = None
    optional: bool = False

    def manner_of(self, tracked: TrackedFile, handle: Handle) -> Manner:
        """Returns how a file is read. With `encoding: utf-16`, the file's first two bytes decide
        the byte order. Raises OSError.
        """
        if self.big_endian is not None and tracked.is_big_endian is None:
            head = handle.read(2, 0)
            if len(head) == 2:  # a shorter file may have only a part of the byte order mark
                tracked.is_big_endian = order_of(head) == UTF_16BE
        return self.manner(is_big_endian=bool(tracked.is_big_endian))

    def manner(self, *, is_big_endian: bool) -> Manner:
        """Returns how a file is read. is_big_endian: whether the file begins with a big-endian byte
        order mark.
        """
        usual = Manner(self.recipe, self.framer)
        return self.big_endian if self.big_endian is not None and is_big_endian else usual


class Member(NamedTuple):
    """A generation (a rotated file) in a directory, as far as its name describes it. base: the
    path, matched by a pattern, from which the file was rotated. plain: the file's name before it
    was compressed; None if it is not compressed.
    """

    inode: int
    base: str
    source: int
    plain: str | None


@dataclass(frozen=True, slots=True)
class Views:
    """The paths under which patterns of the configuration reach a directory and its files, directly
    or through links.

    directories: the paths under which patterns reach the directory. links: for the name of a file
    in the directory, the path of the link that leads to the file. If the name is `app.log.1`,
    `links` has the link's path under `app.log`, too, because rotation may have renamed the file.
    numbered: by the `shape` of a file's name (the name without its numbers), the path of the link
    that leads to the file. Successive logs such as kubelet's `0.log` and `1.log` have the same
    shape.
    """

    directories: list[str] = field(default_factory=list)
    links: dict[str, str] = field(default_factory=dict)
    numbered: dict[str, str] = field(default_factory=dict)

    def add_link(self, path: str, real_path: str) -> None:
        """Adds a link that leads, or led, to a file in the directory."""
        name = os.path.basename(real_path)
        said = generation(name)
        for base in (name, *(said.bases if said is not None else ())):
            self.links.setdefault(base, path)
        if os.path.dirname(path) != os.path.dirname(real_path) and shape(name) != name:
            self.numbered.setdefault(shape(name), path)

    def add_directory(self, directory: str) -> None:
        """Adds to `directories` a path under which a pattern reaches the directory, for example
        through a link."""
        if directory not in self.directories:
            self.directories.append(directory)

    def member(
        self, directory: str, name: str, inode: int, sources: Sequence[TailedSource]
    ) -> Member | None:
        """Returns which log a file of the directory was rotated from, according to the file's name.
        Returns None if the name is not that of a rotated file, or if a pattern matches or excludes
        the file's path.
        """
        paths = [os.path.join(each, name) for each in self.directories]
        if any(is_meant(path, sources) for path in paths):
            return None
        for path in paths:
            if member := member_of(path, sources):
                return member._replace(inode=inode)
        said = generation(name) if self.links else None
        for base in (name, *(() if said is None else said.bases)):
            link = self.numbered.get(shape(base))
            if base != name:
                link = self.links.get(base, link)
            index = None if link is None else index_of(link, sources)
            if link is None or index is None:
                continue
            beside = os.path.join(os.path.dirname(link), name)
            if not _is_excluded(sources[index], os.path.join(directory, name), beside):
                return Member(inode, link, index, None if said is None else said.plain)
        return None


def shape(name: str) -> str:
    """Returns the shape of a file's name: the name without its numbers. The names of a program's
    successive logs have the same shape."""
    return _DIGITS.sub("#", name)


def is_meant(path: str, sources: Sequence[TailedSource]) -> bool:
    """Whether a pattern of any source matches a path."""
    return index_of(path, sources) is not None


def index_of(path: str, sources: Sequence[TailedSource]) -> int | None:
    """Returns the index of the first source with a pattern that matches the path; None if there is
    none."""
    return next((index for index, each in enumerate(sources) if means(each, path)), None)


def source_of(tracked: TrackedFile, sources: Sequence[TailedSource]) -> int | None:
    """Returns the index of the source that has the file's topic, and a pattern for the file's path;
    None if there is no such source. For a rotated file, the path before the rotation counts.
    """
    for index, source in enumerate(sources):
        if source.topic == tracked.birth.topic and means(source, tracked.meant):
            return index
    return None


def member_of(path: str, sources: Sequence[TailedSource]) -> Member | None:
    """Returns the log from which the file at a path was rotated, and the log's source. Judges only
    by the path. Returns None if the path is not that of a rotated file, or if a pattern matches or
    excludes the path.
    """
    directory, name = os.path.split(path)
    said = generation(name)
    if said is None or is_meant(path, sources):
        return None
    for index, source in enumerate(sources):
        for base in said.bases:
            before = os.path.join(directory, base)
            for pattern in source.patterns:
                if pattern.means(before) and not pattern.excludes(path):
                    return Member(0, before, index, said.plain)
    return None


def topics_of(
    members: Mapping[str, Member], left: Iterable[str], sources: Sequence[TailedSource]
) -> set[str]:
    """Returns the topics of the generations in `members`, and each topic with a pattern for a path
    in `left`. left: the paths that lead to another file than at the last look.
    """
    topics = {sources[each.source].topic for each in members.values()}
    return topics | {each.topic for each in sources for path in left if means(each, path)}


def means(source: TailedSource, path: str) -> bool:
    """Whether a pattern of a source matches a path."""
    return any(pattern.means(path) for pattern in source.patterns)


def _is_excluded(source: TailedSource, *paths: str) -> bool:
    return any(pattern.excludes(path) for pattern in source.patterns for path in paths)
