"""The places where a test's programs listen. A place is either the loopback interface or an address
in a separate network that the test has made. `Run.inside` in support.hosts returns a command line
that runs a command inside such a network.

A test may ask whether a program listens on a port, or may request a URL. If the program runs in a
separate network, only a process in the same network can connect to it. Therefore this module starts
itself in that network, by the command `python places.py URL` or `python places.py HOST PORT`.
"""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass

ASKED_S = 2.0


@dataclass(frozen=True, slots=True)
class Place:
    """An address and the network of this address. If the words of `enter` are put before a command,
    the command runs inside the network."""

    host: str = "127.0.0.1"
    enter: tuple[str, ...] = ()

    def command(self, command: Sequence[str]) -> list[str]:
        """Returns the command line that runs a command at this place."""
        return [*self.enter, *command]

    def accepts(self, port: int) -> bool:
        """Returns whether a program listens on this port of the address."""
        return self._ask(self.host, str(port)) is not None

    def read(self, url: str) -> str | None:
        """Requests the URL. Returns the body of the answer, or None if no answer comes or the
        answer is an error."""
        return self._ask(url)

    def _ask(self, *words: str) -> str | None:
        if not self.enter:
            return ask(*words)
        asked = subprocess.run(
            self.command([sys.executable, "-I", "-S", __file__, *words]),
            capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip
        return asked.stdout if asked.returncode == 0 else None


LOOPBACK = Place()


def ask(*words: str) -> str | None:
    """Requests a URL, or connects to a host and port, depending on the number of arguments. For a
    URL, returns the body of the answer if the status is 200, and otherwise None. For a host and
    port, returns an empty string if a program listens on the port, and otherwise None."""
    with contextlib.suppress(OSError):
        if len(words) == 2:
            socket.create_connection((words[0], int(words[1])), ASKED_S).close()
            return ""
        with urllib.request.urlopen(words[0], timeout=ASKED_S) as answer:
            return str(answer.read().decode()) if answer.status == 200 else None
    return None


if __name__ == "__main__":
    said = ask(*sys.argv[1:])
    if said is None:
        sys.exit(1)
    sys.stdout.write(said)
