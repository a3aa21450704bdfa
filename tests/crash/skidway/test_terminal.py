"""Root runs a printed command as the user of a program, in the terminal of root's shell."""

from __future__ import annotations

import os
import pty
import shlex
import sys
import time
from contextlib import suppress

import pytest

from skidway.invocation import installed

pytestmark = pytest.mark.root

PUTS = """
import fcntl, os, sys, termios
sys.stdout.write("begun\\n")
for place in (0, 1, 2, "/dev/tty"):
    try:
        terminal = os.open(place, os.O_RDWR) if isinstance(place, str) else place
        for each in b"evil\\n":
            fcntl.ioctl(terminal, termios.TIOCSTI, bytes([each]))
    except OSError:
        pass
"""
"""A program that puts a line into each terminal that it has, as if somebody typed it."""


def on_terminal(script: str, within_s: float = 60.0) -> str:
    """Returns what a shell of root says that runs a script in a terminal."""
    child, terminal = pty.fork()
    if not child:
        os.execvp("bash", ["bash", "--norc", "-c", script])
    said, end = b"", time.monotonic() + within_s
    with suppress(OSError):  # the last process of the terminal has ended
        while time.monotonic() < end and (data := os.read(terminal, 4096)):
            said += data
    os.close(terminal)
    assert os.waitpid(child, 0)[1] == 0
    return said.decode()


@pytest.mark.parametrize("stdin", ["", "</dev/null"])
def test_a_program_puts_nothing_into_root_s_terminal(stdin: str) -> None:
    """What a program writes into its terminal as if somebody typed it, root's shell does not
    read. (Here the program's user is root: others may not run the Python of these tests.)"""
    runner = shlex.split(installed("x").call.replace("skidway-x", "root"))[:-1]
    command = shlex.join([*runner, sys.executable, "-c", PUTS])
    said = on_terminal(f'cd /; {command} {stdin}; read -t 1 -r line; echo "root read <$line>"')
    assert "begun" in said
    assert "root read <>" in said
