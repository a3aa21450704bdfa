"""Keeps Python's modules within reach of a process that gives root's rights up.

Python reads many modules only when they are needed, for example one for each encoding. Where only
root may enter a directory on the way to them, for example below /root, that would be too late.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress


@contextmanager
def kept_open() -> Iterator[None]:
    """Opens the directories of sys.path. After the `with` block, which changes the user, the
    process searches modules in what it has open, where it may not use the path any more."""
    opened = {}
    for place in filter(None, sys.path):
        with suppress(OSError):  # an entry that is a file, or missing
            opened[place] = os.open(place, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    yield
    for place, descriptor in opened.items():
        if os.access(place, os.R_OK | os.X_OK):
            os.close(descriptor)
        else:
            _replace(place, f"/proc/self/fd/{descriptor}")


def _replace(place: str, held: str) -> None:
    packages = (vars(module).get("__path__") for module in list(sys.modules.values()))
    for paths in (sys.path, *(each for each in packages if isinstance(each, list))):
        paths[:] = [
            held + each.removeprefix(place) if f"{each}/".startswith(f"{place}/") else each
            for each in paths
        ]
