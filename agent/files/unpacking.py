"""Lets one compressed file at a time be decompressed, because each may need a window of 128 MiB.
One thread reads all files, so several at a time would not be read sooner."""

from __future__ import annotations

from typing import Final

from skidway.agent.files.decompressed import Decompressed, is_decompressed
from skidway.agent.files.handles import Handles
from skidway.agent.values.tracked import TrackedFile

REST_S: Final = 10.0
"""If a file has not been read for this long, for example because its topic has no room, it gives
way to another file, and is later decompressed from its beginning again."""


class Unpacking:
    """Owns the number of the compressed file that was read last, and when (s)."""

    def __init__(self, handles: Handles) -> None:
        self._handles = handles
        self._file = 0
        self._read_at = 0.0

    def may_read(self, tracked: TrackedFile, now: float) -> bool:
        """Whether a file may be read now. If not, another turn should ask again."""
        if not is_decompressed(tracked.location):
            return True
        other = None if tracked.file == self._file else self._handles.held(self._file)
        if isinstance(other, Decompressed) and other.is_live:
            if now - self._read_at < REST_S:
                return False
            other.rest()
        self._file, self._read_at = tracked.file, now
        return True
