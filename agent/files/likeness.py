"""Looks at what lies at a path now: whether it is a file that is known, or begins like one."""

from __future__ import annotations

from agent import identity
from agent.files.host import FileKey, Found, Handle, Host
from agent.files.tracked import TrackedFile


def open_at(host: Host, path: str, key: FileKey) -> Handle | None:
    """What lies at a path, if it is this file. Raises OSError."""
    try:
        handle = host.open(path)
    except FileNotFoundError:
        return None
    if handle.status().key != key:
        handle.close()
        return None
    return handle


def begins_like(host: Host, path: str, old: TrackedFile) -> bool:
    """Whether a file begins with what was read of another; if nobody can know, it does."""
    point, print_ = old.checkpoint, old.birth.fingerprint
    try:
        handle = host.open(path)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    try:
        size = handle.status().size
        return identity.doubt(handle.read, size, point.position, print_, point.guard) is None
    except OSError:
        return True
    finally:
        handle.close()


def renumbered(host: Host, old: TrackedFile) -> FileKey | None:
    """The file's key now, where it lies as it lay and its file system has another device number.

    Disks are numbered as they are found, and some file systems at each mount: a restart of the
    machine may renumber every file. Same name, same inode and the same bytes where they were read
    are the same file; with nothing read of it there is nothing to prove, and nothing to double.
    """
    found = host.look(old.location)
    known = old.birth.key
    if found is None or found.key == known or found.key.inode != known.inode:
        return None
    return found.key if _is_proven(host, found, old) else None


def _is_proven(host: Host, found: Found, old: TrackedFile) -> bool:
    point, print_ = old.last_point, old.birth.fingerprint
    if not point.guard.length:
        return False
    try:
        handle = host.open(found.path)
    except OSError:
        return False
    try:
        status = handle.status()
        doubt = identity.doubt(handle.read, status.size, point.position, print_, point.guard)
    except OSError:
        return False
    finally:
        handle.close()
    return status.key == found.key and doubt is None
