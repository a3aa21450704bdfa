"""Generations under names that rotation is not known to give. Pure.

Where a known file lies under such a name, the program that rotates it has a way of its own. Files
made since whose names hold the path's, or are alike but for digits, are taken for generations; of
others nobody can say.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Final

from skidway.agent.files.sources import TailedSource, means, shape

_UNFINISHED: Final = (".swp", ".swx", ".tmp", ".part", ".lck", ".lock", ".pid", ".filepart")
"""What editors and programs leave beside a log for a while; never a generation."""


def is_stray(path: str, base: str, source: TailedSource) -> bool:
    """Whether what lies at a path may be a generation of another: nothing speaks against it."""
    name = os.path.basename(path)
    if path == base or name.endswith(_UNFINISHED) or means(source, path):
        return False
    return not any(pattern.excludes(path) for pattern in source.patterns)


def shares_name(name: str, path: str, known: Iterable[str]) -> bool:
    """Whether a name holds that of a path, or is that of a known generation with other digits."""
    return os.path.basename(path) in name or shape(name) in map(shape, known)
