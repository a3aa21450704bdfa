"""Which files become one file.

To compact, the small files of an hour are put together until a group has `target` bytes. To change
columns, files are grouped in the same way, but every file of an older schema belongs to a group,
even if it stays alone.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from skidway.loader.state.live import LiveFile

SMALL: Final = 0.5
"""A file with fewer bytes than this share of the target is small."""


@dataclass(frozen=True, slots=True)
class Group:
    """Files of one hour that become one file. folder: the directory of the hour."""

    folder: str
    files: tuple[LiveFile, ...]


def to_compact(files: Iterable[LiveFile], target: int) -> list[Group]:
    """Groups of at least two small files of an hour, by folder. Small files that are alone in their
    hour stay as they are."""
    small = (each for each in files if each.file.length < SMALL * target)
    return [group for group in _groups(small, target) if len(group.files) > 1]


def to_convert(
    files: Iterable[LiveFile], target: int, is_old: Callable[[LiveFile], bool]
) -> list[Group]:
    """Groups of the files that are old."""
    return list(_groups(filter(is_old, files), target))


def _groups(files: Iterable[LiveFile], target: int) -> Iterator[Group]:
    """Files of one hour and one schema, in the order of their paths, up to `target` bytes."""
    waiting: list[LiveFile] = []
    for each in sorted(files, key=_order):
        size = sum(other.file.length for other in waiting) + each.file.length
        if waiting and (_key(each) != _key(waiting[0]) or size > target):
            yield Group(_folder(waiting[0]), tuple(waiting))
            waiting = []
        waiting.append(each)
    if waiting:
        yield Group(_folder(waiting[0]), tuple(waiting))


def _order(each: LiveFile) -> tuple[str, int, int, str]:
    """Files of the same hour and schema lie side by side; the older loads come first."""
    return (*_key(each), each.load, each.file.path)


def _key(each: LiveFile) -> tuple[str, int]:
    return _folder(each), each.schema.id if each.schema else -1


def _folder(each: LiveFile) -> str:
    return os.path.dirname(each.file.path)
