"""Decides which notes (database rows with the lengths and hashes of lines) are deleted because they
are too old or too many. Notes are deleted segment by segment. A segment consists of notes that were
made one after the other. This module does no I/O."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

PARTS: Final = 64
"""A segment is full when its notes have 1/PARTS of the bytes that all notes together may have, or
when its oldest note has reached 1/PARTS of a note's greatest age.
"""

PAGE_BYTES: Final = 4096
ROW_BYTES: Final = 96


class Segment(NamedTuple):
    """Notes that were made one after the other, and are deleted together. first_ms, newest_ms: when
    the oldest and the newest of these notes were made."""

    number: int
    first_ms: int
    newest_ms: int
    size_bytes: int


def stored_bytes(lines: bytes) -> int:
    """Returns about how many bytes a note with these `lines` takes in the database. SQLite stores a
    long value on separate pages, so a long value counts with the size of whole pages."""
    size = len(lines)
    return ROW_BYTES + (size if size < PAGE_BYTES // 4 else -(-size // PAGE_BYTES) * PAGE_BYTES)


class Segments:
    """Owns the list of the segments (groups of successive notes), the oldest first."""

    def __init__(self, segments: Iterable[Segment], keep_bytes: int, keep_ms: int) -> None:
        self._segments = sorted(segments)
        self._keep_bytes, self._keep_ms = keep_bytes, keep_ms

    def add(self, size_bytes: int, now_ms: int) -> int:
        """Adds a note. Returns the number of its segment."""
        last = self._segments[-1] if self._segments else None
        if last is None or self._is_full(last, now_ms):
            number = 1 if last is None else last.number + 1
            self._segments.append(Segment(number, now_ms, now_ms, size_bytes))
            return number
        newest_ms = max(last.newest_ms, now_ms)
        self._segments[-1] = last._replace(
            newest_ms=newest_ms, size_bytes=last.size_bytes + size_bytes
        )
        return last.number

    def drop(self, now_ms: int) -> list[Segment]:
        """Removes the oldest segments, as long as they are too old or all notes together have too
        many bytes. Returns the removed segments. The newest segment always stays, so that its
        number is not used again.
        """
        kept = sum(each.size_bytes for each in self._segments)
        dropped: list[Segment] = []
        while len(self._segments) > 1 and (
            kept > self._keep_bytes or now_ms - self._segments[0].newest_ms > self._keep_ms
        ):
            dropped.append(self._segments.pop(0))
            kept -= dropped[-1].size_bytes
        return dropped

    def _is_full(self, last: Segment, now_ms: int) -> bool:
        return (
            last.size_bytes >= self._keep_bytes // PARTS
            or now_ms - last.first_ms >= self._keep_ms // PARTS
        )
