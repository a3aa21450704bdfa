"""Where a program of a test runs, and how a test reaches it: on loopback, or in a network of the
test's own. The command of `Run.inside` (support.hosts) enters such a network.

A test asks whether a program listens, or what a URL answers. For a program in such a network, this
module itself is run inside the network: `python places.py URL` or `python places.py HOST PORT`.
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
    """An address and its network. `enter` is put before a command to run it inside that network."""

    host: str = "127.0.0.1"
    enter: tuple[str, ...] = ()

    def command(self, command: Sequence[str]) -> list[str]:
        """The command line that runs a command at this place."""
        return [*self.enter, *command]

    def accepts(self, port: int) -> bool:
        """Whether a program listens on this port of the address."""
        return self._ask(self.host, str(port)) is not None

    def read(self, url: str) -> str | None:
        """The answer of the URL; None if nothing answers, or if the answer is an error."""
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
    """Given a URL: the answer if its status is 200, else None. Given host and port: an empty text
    if a program listens there, else None."""
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
