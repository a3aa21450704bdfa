"""Notices if a program writes lines in place of NUL bytes that the agent has read already.

A program may make its log longer before it writes the lines: it maps the file into memory, or it
writes from several threads, each to its own position. Until a line is written, the file has NUL
bytes in its place. If the line is not written for some time, the agent rejects these bytes (as a
*hole*), and continues to read after them. A line that is written later changes neither the file's
size nor, if the file is mapped into memory, its time of change. So as long as the file id is open,
every look reads the beginnings of the last holes again.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from skidway.agent.files.decompressed import Decompressed
from skidway.agent.files.host import Handle
from skidway.agent.values.tracked import TrackedFile

HOLES_MAX: Final = 16
"""The agent remembers at most this many holes (runs of NUL bytes) of each file: the holes that it
read last."""

READ_AGAIN_BYTES: Final = 1 << 12
"""A look reads at most this many bytes at the beginning of each hole (run of NUL bytes). Programs
fill a hole from its beginning."""

FILLED: Final = "lines were written in place of NUL bytes that were read already"


def remember(tracked: TrackedFile, handle: Handle, found: Iterable[tuple[int, int]]) -> None:
    """Remembers the holes (runs of NUL bytes) of the file's next reading, except those of a
    compressed file, because nobody writes to such a file. found: where the holes begin and end in
    the reading."""
    if not isinstance(handle, Decompressed):
        at = tracked.read_position
        new = ((at + first, at + end) for first, end in found)
        tracked.holes = (*tracked.holes, *new)[-HOLES_MAX:]


def are_filled(tracked: TrackedFile, handle: Handle) -> bool:
    """Whether one of the file's last holes is no longer a run of NUL bytes. Raises OSError."""
    return any(
        any(handle.read(min(end - first, READ_AGAIN_BYTES), first)) for first, end in tracked.holes
    )
