"""A stand-in for the service manager (systemd): it receives the messages that programs send to
NOTIFY_SOCKET."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class ServiceManager:
    """Receives messages in the order in which they were sent. Each message is a dictionary of its
    `NAME=value` assignments."""

    def __init__(self, address: str) -> None:
        """address: the path of the socket, or `@` and a name for an abstract socket, which has no
        file."""
        self.address = address
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
        self._socket.bind(f"\0{address[1:]}" if address.startswith("@") else address)

    @property
    def environment(self) -> dict[str, str]:
        """The environment variables that the service manager sets for the programs that it starts
        (here NOTIFY_SOCKET)."""
        return {"NOTIFY_SOCKET": self.address}

    def next(self, within_s: float = 120.0) -> dict[str, str]:
        """Waits for the next message and returns it. Raises TimeoutError if none arrives in
        time."""
        self._socket.settimeout(within_s)
        text = self._socket.recv(4096).decode()
        return dict(line.split("=", 1) for line in text.split("\n"))

    def wait_for(self, name: str, within_s: float = 120.0) -> dict[str, str]:
        """Reads messages until one of them assigns a value to `name`, and returns this message."""
        deadline = time.monotonic() + within_s
        while True:
            message = self.next(max(deadline - time.monotonic(), 0.001))
            if name in message:
                return message

    def waiting(self) -> list[dict[str, str]]:
        """All messages that have arrived and were not read yet."""
        found = []
        while True:
            try:
                found.append(self.next(0.001))
            except TimeoutError:
                return found

    def close(self) -> None:
        """Stops listening."""
        self._socket.close()


@contextmanager
def service_manager(folder: Path) -> Iterator[ServiceManager]:
    """Runs a service manager, with its socket in the folder, during the `with` block."""
    manager = ServiceManager(str(folder / "notify"))
    try:
        yield manager
    finally:
        manager.close()
