"""Looks at what lies at a path now: whether it is a file that is known, or begins like one."""

from __future__ import annotations

from agent import identity
from agent.files.host import FileKey, Handle, Host
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
