"""Which source a path belongs to: one that means it, or the path that it was rotated from. Pure."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from agent.files.generations import generation
from agent.files.tracked import Birth, TailedSource


class Member(NamedTuple):
    """A name in a directory that is a generation's. base: the path that it was rotated from."""

    inode: int
    base: str
    source: int
    plain: str | None


def is_meant(path: str, sources: Sequence[TailedSource]) -> bool:
    """Whether any source means a path."""
    return any(means(source, path) for source in sources)


def source_of(birth: Birth, sources: Sequence[TailedSource]) -> int | None:
    """The source that means a file which no pattern leads to, by the name it was born with."""
    for index, source in enumerate(sources):
        if source.topic == birth.topic and means(source, birth.path):
            return index
    kin = kin_of(birth.path, sources)
    if kin is not None and sources[kin.source].topic == birth.topic:
        return kin.source
    return None


def kin_of(path: str, sources: Sequence[TailedSource]) -> Member | None:
    """The source whose meant path this one was rotated from; None for meant and excluded ones."""
    directory, name = os.path.split(path)
    said = generation(name)
    if said is None or any(means(source, path) for source in sources):
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
    """Of the generations in a directory, and of meant paths that lead elsewhere by now."""
    topics = {sources[each.source].topic for each in members.values()}
    return topics | {each.topic for each in sources for path in left if means(each, path)}


def means(source: TailedSource, path: str) -> bool:
    """Whether a source means a path."""
    return any(pattern.means(path) for pattern in source.patterns)
