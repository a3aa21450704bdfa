"""Identifies hosts and files.

The agent recognises a file by device and inode, but only the file's bytes prove that it is the file
that was read. So the agent keeps three pieces of evidence about the bytes before its position in
the file:

    fingerprint   SHA-256 of the first bytes (up to FINGERPRINT_BYTES)
    guard         CRC-32C of the last bytes before the position (up to GUARD_BYTES)
    marks         (position, CRC-32C of all bytes before it), denser towards the end; if the agent
                  skipped the file's first bytes, the first mark is (number of skipped bytes, 0),
                  and the CRCs of all later marks begin after the skipped bytes; if not, the first
                  mark is mostly at the end of the first record

If the file may have changed since the agent last read it, for example because it was closed or
moved meanwhile, the agent checks the fingerprint and the guard before it reads on. If the file
changed while no agent ran, the agent also checks one mark near the file's beginning. If one of
these does not match, the file is not the file that was read, or was rewritten. The file then gets a
new id, and the marks show from which position on its bytes are new.
"""

from __future__ import annotations

import hashlib
import secrets
import socket
from collections.abc import Callable
from typing import Final, NamedTuple

from skidway import machine_id as machine_id_file
from skidway.agent.values.intents import crc_of
from skidway.dataclass import dataclass

ID_BITS: Final = 63
FINGERPRINT_BYTES: Final = 1024
GUARD_BYTES: Final = 256
MARKS_MAX: Final = 24
PROOF_BYTES: Final = 1 << 20
"""To check the CRC of all bytes before a position, the agent reads at most this many bytes at a
time."""

_LENGTH_BYTES: Final = 4
HOST_NAMED: Final = "host "
"""With this text begins the id of a machine for which its host name stands."""

Read = Callable[[int, int], bytes]
"""A function of (count, position) that returns at most `count` bytes of the file from the position
on.
"""


def new_id() -> int:
    """Returns a random id, above 0 and below 2^63, because every database stores it as a signed
    number."""
    return secrets.randbits(ID_BITS) or 1


def machine_id() -> str:
    """Returns the machine's id, which never changes, and which no other machine has. If the machine
    has no id, returns `host` and the host name.
    """
    return machine_id_file.read() or f"{HOST_NAMED}{socket.gethostname()}"


class Fingerprint(bytes):
    """SHA-256 of the first `length` bytes. To save memory, it is one immutable object: the agent
    keeps a fingerprint for each file.
    """

    __slots__ = ()

    def __new__(cls, length: int, digest: bytes) -> Fingerprint:
        """digest: the SHA-256."""
        return super().__new__(cls, length.to_bytes(_LENGTH_BYTES, "little") + digest)

    def __repr__(self) -> str:
        return f"Fingerprint({self.length}, {self.digest!r})"

    @property
    def length(self) -> int:
        """From how many bytes of the file the fingerprint was computed."""
        return int.from_bytes(self[:_LENGTH_BYTES], "little")

    @property
    def digest(self) -> bytes:
        """The SHA-256."""
        return self[_LENGTH_BYTES:]


class Guard(NamedTuple):
    """CRC-32C of the last `length` bytes before a position."""

    length: int
    crc: int


class Mark(NamedTuple):
    """CRC-32C of all bytes before a position."""

    position: int
    crc: int


@dataclass(frozen=True, slots=True)
class Proven:
    """Proof that a file's bytes before `position` are the bytes that were read. same_beginning:
    whether the file's first bytes may still be the bytes that were read.
    """

    position: int
    crc: int
    same_beginning: bool


def fingerprint_of(read: Read, length: int) -> Fingerprint:
    """Returns the fingerprint (a hash of the first bytes) of a file that has at least `length`
    bytes."""
    data = read(min(length, FINGERPRINT_BYTES), 0)
    return Fingerprint(len(data), hashlib.sha256(data).digest())


def guard_of(tail: bytes) -> Guard:
    """Returns the guard (checksum of the last bytes) at a position. tail: the last bytes before
    this position."""
    data = tail[-GUARD_BYTES:]
    return Guard(len(data), crc_of(data))


def doubt(
    read: Read, size: int, position: int, fingerprint: Fingerprint, guard: Guard
) -> str | None:
    """Returns the reason why the file cannot be the file that was read up to `position`; None if it
    can be that file.
    """
    if size < position:
        return f"it was cut to {size} bytes, {position} were read"
    if position and not guard.length:
        return "nothing proves what was before the position"
    data = read(fingerprint.length, 0)
    if hashlib.sha256(data).digest() != fingerprint.digest:
        return "its first bytes are others than were read"
    before = read(guard.length, position - guard.length)
    if len(before) != guard.length or crc_of(before) != guard.crc:
        return "the bytes before the position are others than were read"
    return None


def doubt_beginning(read: Read, marks: tuple[Mark, ...]) -> str | None:
    """Returns the reason why the file's first bytes cannot be the bytes that were read; None if
    they can be these bytes. Checks only the CRC of one of the `marks`: the last one whose position
    is at most PROOF_BYTES.
    """
    base = _base(marks)
    near = [mark for mark in marks if base < mark.position <= PROOF_BYTES]
    if near and crc_of(read(near[-1].position - base, base)) != near[-1].crc:
        return f"of its first {near[-1].position} bytes some are others than were read"
    return None


def prove(read: Read, size: int, fingerprint: Fingerprint, marks: tuple[Mark, ...]) -> Proven:
    """Finds the highest position in `marks` before which all bytes of the file are still those that
    were read: their CRC is the one in the mark. The positions of `marks` must rise. Reads no more
    of the file than is needed.
    """
    position = base = _base(marks)
    crc = 0
    proven = Mark(0, 0)
    for mark in marks:
        if mark.position > size:
            break
        if mark.position == base:
            continue  # this mark only says how many bytes were skipped
        while position < mark.position:
            data = read(min(PROOF_BYTES, mark.position - position), position)
            if not data:
                return _proven(read, proven, marks, fingerprint, size)
            crc = crc_of(data, crc)
            position += len(data)
        if crc != mark.crc:
            break
        proven = mark
    return _proven(read, proven, marks, fingerprint, size)


def _base(marks: tuple[Mark, ...]) -> int:
    """Returns the position from which on the CRCs in `marks` were computed. If the agent skipped
    the first bytes of the file, the first mark has the CRC 0, and the result is this mark's
    position. Otherwise the result is 0. The first mark may also have the CRC 0 by chance. In this
    case its position is also a right result: a CRC-32C that continues from 0 equals one that begins
    anew.
    """
    return marks[0].position if marks and not marks[0].crc else 0


def _proven(
    read: Read, mark: Mark, marks: tuple[Mark, ...], fingerprint: Fingerprint, size: int
) -> Proven:
    """Returns the proof that the bytes before the position of `mark` are those that were read. The
    proof also says whether the file's first bytes may still be those that were read.

    If only the bytes before the first mark are the same, they may have been kept when the file was
    cut, or they may be a line with which the program begins each log. So they are not proven.
    """
    if size < fingerprint.length:
        same = size > 0
    else:
        same = hashlib.sha256(read(fingerprint.length, 0)).digest() == fingerprint.digest
    if not same and mark in marks[:1]:
        return Proven(0, 0, True)
    return Proven(mark.position, mark.crc, same or mark.position > 0)


def with_mark(marks: tuple[Mark, ...], mark: Mark) -> tuple[Mark, ...]:
    """Adds a mark (a position, and the CRC of all bytes before it) at the end, and drops the marks
    that are not before it. Thins the earlier marks, so that the gaps between the remaining marks
    double towards the start of the file.

    If there are more than MARKS_MAX marks, the function drops one of them. For each mark except the
    first and the last, it divides the distance between the mark's two neighbours by the distance of
    the mark from the last mark. The mark with the lowest result is dropped.
    """
    if marks and marks[-1].position >= mark.position:
        marks = tuple(each for each in marks if each.position < mark.position)
    marks = (*marks, mark)
    if len(marks) <= MARKS_MAX:
        return marks
    end = mark.position

    def density(index: int) -> float:
        gap = marks[index + 1].position - marks[index - 1].position
        return gap / (end - marks[index].position + 1)

    victim = min(range(1, len(marks) - 1), key=density)
    return marks[:victim] + marks[victim + 1 :]
