"""Reads the bytes of an intent, and proves that they are the bytes for which the intent was
made."""

from __future__ import annotations

from skidway.agent.files.handles import Handles
from skidway.agent.files.host import Handle
from skidway.agent.parsing.framing import READ_BYTES
from skidway.agent.values.identity import GUARD_BYTES
from skidway.agent.values.intents import Intent, crc_of
from skidway.agent.values.tracked import TrackedFile
from skidway.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Evidence:
    """What was read to prove an intent's bytes. data: the intent's bytes, or the head of an
    over-long line. prefix_crc: the CRC of all bytes of the file before the intent's end. tail: the
    last GUARD_BYTES before the intent's end.
    """

    data: bytes
    prefix_crc: int
    tail: bytes


def proven_bytes(handles: Handles, tracked: TrackedFile, intent: Intent) -> Evidence | None:
    """Returns the intent's bytes; None if they were changed or cut off, or if the intent does not
    begin at the file's read position. Raises Moved if the file cannot be found where the agent last
    saw it, and OSError if the bytes cannot be read right now.
    """
    if intent.first != tracked.read_position:
        return None  # the CRC of the bytes before the intent is unknown
    handle = handles.get(tracked)
    if intent.length > READ_BYTES:
        return _long(handle, intent, tracked.read_crc)
    data = handle.read(intent.length, intent.first)
    if len(data) != intent.length or crc_of(data) != intent.crc:
        return None
    tail = ((tracked.tail or b"") + data[-GUARD_BYTES:])[-GUARD_BYTES:]
    return Evidence(data, crc_of(data, tracked.read_crc), tail)


def _long(handle: Handle, intent: Intent, before: int) -> Evidence | None:
    """Reads an over-long line piece by piece, and keeps only its head. Returns None if bytes of the
    line were changed or cut off. before: the CRC of the bytes before the line."""
    crc, prefix_crc, at = 0, before, intent.first
    head = tail = b""
    while at < intent.end:
        piece = handle.read(min(READ_BYTES, intent.end - at), at)
        if not piece:
            return None
        head = head or piece
        crc, prefix_crc = crc_of(piece, crc), crc_of(piece, prefix_crc)
        tail = (tail + piece)[-GUARD_BYTES:]
        at += len(piece)
    return Evidence(head, prefix_crc, tail) if crc == intent.crc else None
