"""Tells the service manager a program's state: sd_notify(3), without its library.

systemd names a datagram socket in NOTIFY_SOCKET for units of `Type=notify`. Nobody listens when a
program is started by hand: then nothing is sent. Nothing here raises or waits for long: a program
must not fail because of its service manager.
"""

from __future__ import annotations

import os
import socket

from skidway import log

ENVIRONMENT = "NOTIFY_SOCKET"
PATIENCE_S = 1.0
"""How long a full queue of the manager may hold a program up."""

_log = log.get(__name__)


def ready(status: str) -> None:
    """The program can do its work; units ordered behind it start now. Harmless when repeated."""
    _notify("READY=1", _line(status))


def stopping() -> None:
    """The program was asked to end, and is ending."""
    _notify("STOPPING=1", _line("stopping"))


def _line(status: str) -> str:
    return f"STATUS={' '.join(status.split())}"


def _notify(*assignments: str) -> None:
    address = os.environ.get(ENVIRONMENT)
    if not address:
        return
    # Linux: a leading @ stands for the zero byte that begins the name of an abstract socket.
    name = f"\0{address[1:]}" if address.startswith("@") else address
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as manager:
            manager.settimeout(PATIENCE_S)
            manager.sendto("\n".join(assignments).encode(), name)
    except OSError as error:
        _log.warning("service_manager_not_told", socket=address, reason=str(error))
