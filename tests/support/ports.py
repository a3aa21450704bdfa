"""TCP ports of loopback for programs under test, none of them given out twice.

They lie below the ports that the kernel gives to outgoing connections, so that a program that was
killed finds its port again. Workers of one run, and runs beside each other, reserve them by the
block: an abstract socket's name, which is the machine's and goes with the process that has it.
"""

from __future__ import annotations

import random
import socket
from collections.abc import Iterator

FIRST, BEHIND, BLOCK = 10_000, 32_000, 50


class PortsUsedUp(AssertionError):
    """Every block is reserved by some run."""


class Ports:
    """What this process has reserved."""

    def __init__(self) -> None:
        self._claims: list[int] = []
        self._left: Iterator[int] = iter(())

    def take(self) -> int:
        """One that nothing listens on; PortsUsedUp when there is none."""
        while True:
            for port in self._left:
                if _is_free(port):
                    return port
            self._left = iter(self._reserve())

    def _reserve(self) -> range:
        blocks = list(range(FIRST, BEHIND, BLOCK))
        random.SystemRandom().shuffle(blocks)
        for first in blocks:
            claim = socket.socket(socket.AF_UNIX)
            try:
                claim.bind(f"\0skidway-test-ports-{first}")
            except OSError:
                claim.close()
                continue
            self._claims.append(claim.detach())  # held until the process ends
            return range(first, first + BLOCK)
        raise PortsUsedUp(f"all ports from {FIRST} to {BEHIND - 1} are reserved")


def _is_free(port: int) -> bool:
    try:
        with socket.create_server(("127.0.0.1", port)):
            return True
    except OSError:
        return False
