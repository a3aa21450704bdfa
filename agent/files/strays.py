"""Decides which files are generations (rotated files of a log), if their names are not the names
that known rotation programs give. Does no I/O.

If a known file now has a name that no known rotation program gives, the file's program has its own
way of rotating. In this case a new file counts as a generation if its name contains the name of the
log, or differs from the known file's name only in digits. For other new files, nobody can say
whether they are generations.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Final

from skidway.agent.files.sources import TailedSource, means, shape

_UNFINISHED: Final = (".swp", ".swx", ".tmp", ".part", ".lck", ".lock", ".pid", ".filepart")
"""Endings of the names of files that editors and programs leave beside a log for a while. Such
files are never generations.
"""


def is_stray(path: str, base: str, source: TailedSource) -> bool:
    """Whether the file at a path may be a generation of `base`, judged only by its path."""
    name = os.path.basename(path)
    if path == base or name.endswith(_UNFINISHED) or means(source, path):
        return False
    return not any(pattern.excludes(path) for pattern in source.patterns)


def shares_name(name: str, path: str, known: Iterable[str]) -> bool:
    """Whether a file name contains the file name of `path` (as `old-app.log` contains `app.log`),
    or differs only in digits from one of the names in `known`.
    """
    return os.path.basename(path) in name or shape(name) in map(shape, known)
