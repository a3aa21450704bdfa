"""Decides whether the file that is at a path now is a known file, or begins like a known file."""

from __future__ import annotations

import os

from skidway.agent.files.host import Handle, Host
from skidway.agent.files.same_file import Answer, Evidence, same_file
from skidway.agent.values import identity
from skidway.agent.values.found import FileKey, Found
from skidway.agent.values.tracked import TrackedFile


def open_at(host: Host, path: str, key: FileKey) -> Handle | None:
    """Opens the file at a path. Returns None if the file there does not have this key (device,
    inode). Raises OSError."""
    try:
        handle = host.open(path)
    except FileNotFoundError:
        return None
    if handle.status().key != key:
        handle.close()
        return None
    return handle


def compare(
    host: Host, found: Found, old: TrackedFile, *, is_held: bool, same_place: bool
) -> Answer:
    """Whether the found file is the known file (see `Answer`). Reads the found file's bytes only if
    the answer depends on them. Raises OSError if these bytes cannot be read.
    """
    evidence = Evidence(
        (old.birth.key, found.key),
        (old.birth.born_ns, found.born_ns),
        is_held,
        old.is_deleted,
        same_place,
        None,
    )
    answer = same_file(evidence)
    if is_held or None not in evidence.births or answer is Answer.OTHER:
        return answer
    return same_file(evidence._replace(same_bytes=has_bytes_of(host, found.real_path, old)))


def has_bytes_of(host: Host, path: str, old: TrackedFile) -> bool:
    """Whether the file at `path` has the bytes that the agent has read of `old`. If the agent has
    read no bytes of `old`, returns whether the file at `path` begins with the bytes with which
    `old` began when it was found.

    Raises OSError: FileNotFoundError if there is no file at `path`.
    """
    point, print_ = old.last_point, old.birth.fingerprint
    handle = host.open(path)
    try:
        size = handle.status().size
        return identity.doubt(handle.read, size, point.position, print_, point.guard) is None
    finally:
        handle.close()


def beginning_of(host: Host, found: Found, old: TrackedFile) -> Answer:
    """Whether the found file is a beginning of the known file `old`: all of its bytes are the first
    bytes of `old`.

    Compares the found file's first bytes with the fingerprint of `old`. If `old` is still at its
    path, also compares the found file's last bytes with the bytes at the same positions of `old`.
    If not, the found file may have other last bytes, unless it was last written before `old` was.
    If the found file is shorter than the bytes of the fingerprint, compares all its bytes with
    those of `old`; then the answer is OTHER if `old` is not at its path. Raises OSError.
    """
    print_ = old.birth.fingerprint
    is_short = found.size < print_.length
    copy = host.open(found.real_path)
    try:
        if not is_short and identity.fingerprint_of(copy.read, print_.length) != print_:
            return Answer.OTHER
        at = 0 if is_short else max(found.size - identity.GUARD_BYTES, 0)
        bytes_ = copy.read(found.size - at, at)
    finally:
        copy.close()
    there = _bytes_there(host, old, len(bytes_), at)
    if there is not None:
        return Answer.SAME if there == bytes_ else Answer.OTHER
    if is_short:
        return Answer.OTHER
    is_older = old.changed_ns is not None and found.changed_ns <= old.changed_ns
    return Answer.SAME if is_older and not old.is_emptied else Answer.UNKNOWN


def _bytes_there(host: Host, old: TrackedFile, count: int, at: int) -> bytes | None:
    """Returns `count` bytes of the known file from the position `at` on; None if it is not at its
    path, or has other first bytes now. Raises OSError."""
    original = open_at(host, old.location, old.birth.key)
    if original is None:
        return None
    print_ = old.birth.fingerprint
    try:
        if identity.fingerprint_of(original.read, print_.length) != print_:
            return None
        return original.read(count, at)
    finally:
        original.close()


def begins_like(host: Host, path: str, old: TrackedFile) -> bool:
    """Whether the file at `path` has the bytes that the agent has read of `old` (see
    `has_bytes_of`). Raises no OSError. Returns True if nobody can know the answer, and False if
    there is no file at `path`.
    """
    try:
        return has_bytes_of(host, path, old)
    except FileNotFoundError:
        return False
    except OSError:
        return True


def renumbered(host: Host, old: TrackedFile) -> FileKey | None:
    """Returns the known file's new key, if the file is still in its directory, and only the device
    number of its file system has changed.

    The kernel gives numbers to disks in the order in which it finds them, and gives some file
    systems a new number at each mount. So a restart of the machine may change the device number in
    the key of every file. If no bytes of the file were read, only an equal time of birth proves
    that the found file is the known file.
    """
    known = old.birth.key
    found = None if old.is_deleted else _with_inode_of(host, old)
    if found is None or found.key == known:
        return None
    births = (old.birth.born_ns, found.born_ns)
    if not old.last_point.guard.length:
        return found.key if births[0] is not None and births[0] == births[1] else None
    try:
        same_bytes = has_bytes_of(host, found.real_path, old)
    except OSError:
        return None
    evidence = Evidence((known, found.key), births, False, old.is_deleted, True, same_bytes)
    return found.key if same_file(evidence) is Answer.SAME else None


def _with_inode_of(host: Host, old: TrackedFile) -> Found | None:
    """Returns the file that has the known file's inode; None if there is none. This file is at the
    known file's path; or it is elsewhere in the same directory, and has the same time of birth as
    the known file.
    """
    inode, found = old.birth.key.inode, host.look(old.location)
    if found is not None and found.key.inode == inode:
        return found
    directory = os.path.dirname(old.location)
    device = host.device_of(directory)
    if old.birth.born_ns is None or device in (None, old.birth.key.device):
        return None
    try:
        path = host.find(directory, FileKey(device, inode))
    except OSError:
        return None
    found = None if path is None else host.look(path)
    return found if found is not None and found.born_ns == old.birth.born_ns else None
