"""Writes and reads notes about log files without announcement (an agent's message with the file's
host and path). Each note says since when a file's announcement has been missing. There is one small
note file for each log file.

    <root>/_skidway/<topic>/waiting/<agent>-<file>      milliseconds since the epoch, as text

The first run that misses an announcement writes the note. Later runs leave the note as it is. But
if the note's time is in the future, because a clock was wrong, a run writes the note again. When
the announcement has come, a run removes the note. A note only decides how long the loader waits
before it loads a file's records without their announcement. So notes are not part of the commit.
"""

from __future__ import annotations

import re
from collections.abc import Container
from typing import Final

from skidway.audit.counts.marks import FileKey
from skidway.loader.state import layout
from skidway.loader.store import Store

_NAME: Final = re.compile(r"(\d+)-(\d+)")


class WaitingNotes:
    """The notes about the log files of one topic whose announcement is missing."""

    def __init__(self, store: Store, topic: str) -> None:
        self._store, self._topic = store, topic
        self._folder = f"{layout.state(topic)}/waiting"

    def over(self, now_ms: int, wait_ms: int) -> frozenset[FileKey]:
        """Returns the log files whose announcement has been missing for `wait_ms` milliseconds or
        longer."""
        return frozenset(
            key for key in self._keys() if now_ms - self._since(key, now_ms) >= wait_ms
        )

    def begin(self, key: FileKey, now_ms: int) -> None:
        """If the log file has no note yet, writes a note that says that the file's announcement has
        been missing since `now_ms`. If the file's note has a time in the future, because a clock
        was wrong, replaces the note; otherwise the loader would wait too long."""
        path = layout.waiting(self._topic, *key)
        if self._since(key, now_ms) > now_ms:
            self._store.delete(path)
        self._store.create_if_absent(path, str(now_ms).encode(), self._folder)

    def clear(self, announced: Container[FileKey]) -> None:
        """Removes the notes of the files in `announced`."""
        for key in self._keys():
            if key in announced:
                self._store.delete(layout.waiting(self._topic, *key))

    def _keys(self) -> list[FileKey]:
        found = [_NAME.fullmatch(name) for name in self._store.names(self._folder)]
        return [(int(match[1]), int(match[2])) for match in found if match]

    def _since(self, key: FileKey, now_ms: int) -> int:
        text = self._store.read(layout.waiting(self._topic, *key)) or b""
        return int(text) if text.isdigit() else now_ms
