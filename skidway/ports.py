"""TCP ports: reserves them for programs that will listen, and finds the process that listens on a
port.

`Reservation` reserves a port with a socket that is bound but does not listen. If a bind fails with
"Address already in use", this module searches Linux's /proc for the process that listens on the
port. /proc/net/tcp has the inode of the listening socket and its user; the process has an open
descriptor for this inode. The descriptors of another user's process cannot be read. If the process
belongs to another user, only that user is known.
"""

from __future__ import annotations

import errno
import os
import pwd
import socket
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType

from skidway.dataclass import dataclass
from skidway.errors import SkidwayError

LISTENING = "0A"
PROC = Path("/proc")
LOOPBACK = "127.0.0.1"


class Reservation:
    """Loopback ports that this process reserves for programs that it will start. Only one thread at
    a time may use a reservation.

    A port is reserved by a socket that is bound without SO_REUSEADDR, so that two reservations
    never get the same port. The socket then gets SO_REUSEADDR, and never listens. So a program that
    sets the same option before its own bind, as servers do, can listen on the port. If the program
    is killed and started again, it can listen on the port again. The kernel assigns a reserved port
    neither to an outgoing connection nor to a bind to port 0. But any program that sets
    SO_REUSEADDR can bind to the reserved port by its number.

    The sockets are closed on exec. So a port is free once this process has ended and the programs
    that it started have stopped listening.
    """

    def __init__(self) -> None:
        self._kept: dict[int, socket.socket] = {}

    def __enter__(self) -> Reservation:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def take(self, first: int = 0, count: int = 1) -> int:
        """Reserves the lowest free port among the `count` ports from `first` on, and returns it. If
        `first` is 0, the kernel chooses the port.

        Raises SkidwayError when no such port is free.
        """
        for port in range(first, first + count):
            kept = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            try:
                kept.bind((LOOPBACK, port))
            except OSError as error:
                kept.close()
                if error.errno != errno.EADDRINUSE:
                    raise SkidwayError(
                        f"cannot bind to {LOOPBACK}:{port}: {error.strerror}"
                    ) from error
                continue
            kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            found = int(kept.getsockname()[1])
            self._kept[found] = kept
            return found
        tried = f"from {first} to {first + count - 1} " if first else ""
        raise SkidwayError(f"no TCP port {tried}is free on {LOOPBACK}")

    def close(self) -> None:
        """Releases all ports."""
        while self._kept:
            self._kept.popitem()[1].close()


@dataclass(frozen=True, slots=True)
class Listener:
    """A listening socket on this machine."""

    port: int
    uid: int
    inode: int


def refuse_used(host: str, port: int, key: str) -> None:
    """Raises SkidwayError if the address is in use. The error names the process that listens
    there."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise cannot_listen(host, port, key, error) from error


def cannot_listen(host: str, port: int, key: str, error: OSError) -> SkidwayError:
    """Returns the error for a failed bind. The error names the address and the process that uses
    the address, and says what to do."""
    reason = (error.strerror or str(error)).partition(" (while")[0].lower()  # added by Python
    if error.errno != errno.EADDRINUSE:
        return SkidwayError(f"cannot listen on {host}:{port}: {reason}; set {key} to another")
    by = holder(port)
    used_by = f" by {by}" if by else ""
    return SkidwayError(
        f"cannot listen on {host}:{port}: {reason}{used_by}; set {key} to a free one"
    )


def holder(port: int) -> str | None:
    """Returns a text that names the process that listens on a port, or None if no process listens
    on the port."""
    mine = [listener for listener in listeners(_tables()) if listener.port == port]
    if not mine:
        return None
    for pid, name in _processes():
        if _has_open(pid, {listener.inode for listener in mine}):
            return f"process {pid} ({name})"
    return f"a process of user {_user(mine[0].uid)}"


def listeners(lines: Iterable[str]) -> Iterator[Listener]:
    """Yields the listening sockets in the lines of /proc/net/tcp and tcp6."""
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
                continue  # the process has ended meanwhile


def _has_open(pid: int, inodes: set[int]) -> bool:
    names = {f"socket:[{inode}]" for inode in inodes}
    descriptors = PROC / str(pid) / "fd"
    try:
        entries = os.listdir(descriptors)
    except OSError:
        return False  # the process has ended, or belongs to another user
    return any(_target(descriptors / entry) in names for entry in entries)


def _target(entry: Path) -> str:
    try:
        return os.readlink(entry)
    except OSError:
        return ""  # the process has closed this descriptor, or has ended


def _user(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
