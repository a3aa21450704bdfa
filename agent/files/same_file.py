"""Decides from evidence whether the file at a path is a known file. Does no I/O.

An inode's number proves little, because the kernel gives a deleted file's number to the next file.
These are the kinds of evidence, the strongest first:

    another inode, or the known file was seen to lose its last name       other
    both times of birth are known, and differ                             other
    the device has another number: the found file must be where the       same, else other
    known file was, and have the bytes that were read
    the agent had the known file open all the time, so it kept its inode  same
    both times of birth are known, and are equal                          same
    the found file has other bytes than those that were read              unknown
    it is where the known file was, or where rotation puts that file      same
    none of these                                                         unknown

The answer `same` says nothing about the bytes, because the same file may have been truncated or
rewritten. If the answer is `unknown`, the agent skips no bytes: it may read bytes a second time,
and declares that these bytes may be delivered twice.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import NamedTuple

from skidway.agent.values.found import FileKey
from skidway.agent.values.identity import FINGERPRINT_BYTES


class Answer(Enum):
    """Whether a file is a known file, as far as the evidence shows."""

    SAME = "same"
    OTHER = "other"
    UNKNOWN = "unknown"


class Evidence(NamedTuple):
    """keys, births (ns): first the value of the known file, then the value of the found file.
    same_bytes: whether the found file has the bytes that were read of the known file; None if the
    bytes were not compared.
    """

    keys: tuple[FileKey, FileKey]
    births: tuple[int | None, int | None]
    is_held: bool
    was_deleted: bool
    same_place: bool
    same_bytes: bool | None


def same_file(evidence: Evidence) -> Answer:
    """Whether a file is a known file, as far as the evidence shows."""
    known, found = evidence.keys
    if known.inode != found.inode or evidence.was_deleted:
        return Answer.OTHER
    births = evidence.births
    if None not in births and births[0] != births[1]:
        return Answer.OTHER
    if known.device != found.device:
        proven = evidence.same_place and evidence.same_bytes
        return Answer.SAME if proven else Answer.OTHER
    if evidence.is_held or None not in births:
        return Answer.SAME
    if evidence.same_bytes is False or not evidence.same_place:
        return Answer.UNKNOWN
    return Answer.SAME


def compressed(*, is_same_time: bool, is_only: bool, count: int) -> Answer:
    """Whether a compressed file contains a known file that is gone. Called if the first `count`
    plain bytes of the two files are equal. A few equal bytes prove little, because short logs may
    be alike. is_same_time: whether both files have the same time of change, which compression
    programs copy. is_only: whether the known file is the only file that is gone and begins with
    these `count` bytes.
    """
    if is_same_time or (is_only and count >= FINGERPRINT_BYTES):
        return Answer.SAME
    return Answer.UNKNOWN


def copied(
    *, births: tuple[int | None, int | None], is_in_place: bool, count: int, read: int
) -> Answer:
    """Whether a second file is a copy of an original file, if the first `count` bytes of both turn
    out to be equal.

    births: the time of birth of the original, then that of the second file. is_in_place: whether
    the original, whole or truncated, is at the path where it was first found. If the original is in
    place, the second file cannot be a younger log that was renamed from that path by rotation. If
    the original is not in place, the second file may be the next log of a program whose logs are
    alike. If the second file seems older than the original, it is an earlier log, or the clock was
    set back before the copy was made. In both cases the agent reads the second file. If the two
    files share many bytes, the agent declares that these bytes may be delivered twice. read: how
    many bytes of the original were read. If the second file seems older, only these bytes count as
    shared, because programs often write the same first bytes into each log.
    """
    original, other = births
    if original is None or other is None:
        return Answer.UNKNOWN
    is_older = other < original
    if is_in_place and not is_older:
        return Answer.SAME
    shared = read if is_older else count
    return Answer.UNKNOWN if shared >= FINGERPRINT_BYTES else Answer.OTHER


def is_time_of(changed_ns: int, times: Iterable[int]) -> bool:
    """Whether a time of change equals one of the times (ns). Programs that copy a file's time may
    round it down to µs or seconds. So if `changed_ns` is a whole number of µs or seconds, each time
    is rounded down in the same way before the two are compared.
    """
    units = [unit for unit in (1, 1_000, 1_000_000_000) if changed_ns % unit == 0]
    return any(changed_ns == each - each % unit for each in times for unit in units)
