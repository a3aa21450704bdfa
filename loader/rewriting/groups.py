"""Divides files into groups. A load rewrites each group as one file.

A compaction puts the small files of an hour into groups of at most `target` bytes. When the columns
change, each file of an older schema is a group of its own.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from skidway.loader.state.live_file import LiveFile

SMALL: Final = 0.5
"""A file is small if it has fewer bytes than this fraction of `target` (the size up to which a
compaction joins files)."""


@dataclass(frozen=True, slots=True)
class Group:
    """Files of one hour that become one file. folder: the directory of the hour."""

    folder: str
    files: tuple[LiveFile, ...]


def to_compact(files: Iterable[LiveFile], target: int) -> list[Group]:
    """Returns groups of at least two small files of the same hour and schema. A small file that
    would be alone in its group stays as it is."""
    small = (each for each in files if each.file.length < SMALL * target)
    return [group for group in _groups(small, target) if len(group.files) > 1]


def to_convert(files: Iterable[LiveFile], ids: Collection[int]) -> list[Group]:
    """Returns a group for each file that follows one of these schemas. Each group has only one
    file. So if one file cannot be rewritten, the load still rewrites the other files."""
    old = sorted((each for each in files if each.schema_id in ids), key=_order)
    return [Group(_folder(each), (each,)) for each in old]


def _groups(files: Iterable[LiveFile], target: int) -> Iterator[Group]:
    """Yields groups of files. A group has files of one hour and one schema, in the order of their
    paths, and at most `target` bytes."""
    waiting: list[LiveFile] = []
    size = 0
    for each in sorted(files, key=_order):
        size += each.file.length
        if waiting and (_key(each) != _key(waiting[0]) or size > target):
            yield Group(_folder(waiting[0]), tuple(waiting))
            waiting, size = [], each.file.length
        waiting.append(each)
    if waiting:
        yield Group(_folder(waiting[0]), tuple(waiting))


def _order(each: LiveFile) -> tuple[str, int, int, str]:
    """Returns the sort key of a file. Sorting puts the files of the same hour and schema side by
    side, with the files of older loads first."""
    return (*_key(each), each.load, each.file.path)


def _key(each: LiveFile) -> tuple[str, int]:
    return _folder(each), -1 if each.schema_id is None else each.schema_id


def _folder(each: LiveFile) -> str:
    return os.path.dirname(each.file.path)
