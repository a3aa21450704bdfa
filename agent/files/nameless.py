"""Finds the files that a running agent still has open, although they have no name any more."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

from skidway.agent.values.found import FileKey
from skidway.files import LOCK_FILE
from skidway.regular_file import read_regular

_HOLDER: Final = re.compile(r"process (\d+) ")


def sizes(directory: Path) -> dict[FileKey, int]:
    """Returns the size of each file without a name that the agent with the state in `directory` has
    open; nothing if no agent runs with this state, or if this user may not look at its files."""
    found: dict[FileKey, int] = {}
    try:
        holder = _HOLDER.match(read_regular(directory / LOCK_FILE).decode("utf-8", "replace"))
        opened = [] if holder is None else list(Path(f"/proc/{holder[1]}/fd").iterdir())
    except OSError:
        return found
    for link in opened:
        try:
            status = os.stat(link)
        except OSError:  # the agent has just closed the file
            continue
        if not status.st_nlink:
            found[FileKey(status.st_dev, status.st_ino)] = status.st_size
    return found
