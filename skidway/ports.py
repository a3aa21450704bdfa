"""Who has a TCP port: so that "address already in use" can say by whom.

Linux's /proc tells: the table of sockets gives the inode of what listens on the port, and the
process that has this inode open is the one. Other users' processes cannot be looked into; then only
the user is known.
"""

from __future__ import annotations

import errno
import os
import pwd
import socket
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from skidway.errors import SkidwayError

LISTENING = "0A"
PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class Listener:
    """A listening socket of the machine."""

    port: int
    uid: int
    inode: int


def refuse_used(host: str, port: int, key: str) -> None:
    """Raises SkidwayError, naming the holder, if nobody could listen on the address now."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise cannot_listen(host, port, key, error) from error


def cannot_listen(host: str, port: int, key: str, error: OSError) -> SkidwayError:
    """The sentence for a failed bind: the address, by whom it is used, and what to do."""
    reason = (error.strerror or str(error)).partition(" (while")[0].lower()  # by create_server
    if error.errno != errno.EADDRINUSE:
        return SkidwayError(f"cannot listen on {host}:{port}: {reason}; set {key} to another")
    by = holder(port)
    used_by = f" by {by}" if by else ""
    return SkidwayError(
        f"cannot listen on {host}:{port}: {reason}{used_by}; set {key} to a free one"
    )


def holder(port: int) -> str | None:
    """Who listens on a port, in words; None if nobody does."""
    mine = [listener for listener in listeners(_tables()) if listener.port == port]
    if not mine:
        return None
    for pid, name in _processes():
        if _has_open(pid, {listener.inode for listener in mine}):
            return f"process {pid} ({name})"
    return f"a process of user {_user(mine[0].uid)}"


def listeners(lines: Iterable[str]) -> Iterator[Listener]:
    """The listening sockets in the lines of /proc/net/tcp and tcp6."""
    for line in lines:
        fields = line.split()
        if len(fields) > 9 and fields[3] == LISTENING:
            port = int(fields[1].rpartition(":")[2], 16)
            yield Listener(port, int(fields[7]), int(fields[9]))


def _tables() -> Iterator[str]:
    for name in ("tcp", "tcp6"):
        path = PROC / "net" / name
        if path.exists():
            yield from path.read_text().splitlines()[1:]


def _processes() -> Iterator[tuple[int, str]]:
    for entry in PROC.iterdir():
        if entry.name.isdigit():
            try:
                yield int(entry.name), (entry / "comm").read_text().strip()
            except OSError:
                continue  # it ended meanwhile


def _has_open(pid: int, inodes: set[int]) -> bool:
    names = {f"socket:[{inode}]" for inode in inodes}
    try:
        return any(os.readlink(entry) in names for entry in (PROC / str(pid) / "fd").iterdir())
    except OSError:
        return False  # ended, or another user's


def _user(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
