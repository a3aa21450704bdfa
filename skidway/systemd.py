"""Tells the service manager (systemd) the state of a program, as sd_notify(3) does, but without
libsystemd.

For units of `Type=notify`, systemd sets NOTIFY_SOCKET to the name of a datagram socket. If a
program is started by hand, the variable is not set, and nothing is sent. No function here raises an
error or waits for long, because a program must not fail because of its service manager.
"""

from __future__ import annotations

import os
import socket

from skidway import log

ENVIRONMENT = "NOTIFY_SOCKET"
PATIENCE_S = 1.0
"""If the service manager's queue is full, a program waits at most this many seconds."""

_log = log.get(__name__)


def ready(status: str) -> None:
    """Tells the service manager that the program can do its work. systemd then starts the units
    that are ordered after the program's unit. May be called several times."""
    _notify("READY=1", _line(status))


def stopping() -> None:
    """Tells the service manager that the program was asked to end, and is ending."""
    _notify("STOPPING=1", _line("stopping"))


def _line(status: str) -> str:
    return f"STATUS={' '.join(status.split())}"


def _notify(*assignments: str) -> None:
    address = os.environ.get(ENVIRONMENT)
    if not address:
        return
    # Linux: a leading @ stands for the zero byte at the start of an abstract socket's name.
    name = f"\0{address[1:]}" if address.startswith("@") else address
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as manager:
            manager.settimeout(PATIENCE_S)
            manager.sendto("\n".join(assignments).encode(errors="backslashreplace"), name)
    except OSError as error:
        _log.warning("service_manager_not_told", socket=address, reason=str(error))
