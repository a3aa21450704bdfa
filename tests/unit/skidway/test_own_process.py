"""What was made before a fork belongs to the parent alone."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable

import pytest

from skidway.errors import UsageError
from skidway.kafka.client import Client
from skidway.own_process import OwnProcess
from skidway.producer import Producer

NOBODY = "127.0.0.1:1"


def in_a_child(call: Callable[[], object]) -> str:
    """Returns the usage error that the call raises in a forked child; the empty text if none."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            call()
        except UsageError as error:
            os.write(writing, str(error).encode())
        finally:
            os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    with os.fdopen(reading) as said:
        return said.read()


def test_a_fork_does_not_share_an_object() -> None:
    """An object is at home in the process that made it, and only there; the error names it."""
    made = OwnProcess("producer")
    made.require()
    assert made.is_here
    said = in_a_child(made.require)
    assert said == f"this producer belongs to process {os.getpid()}; make one in each process"


@pytest.mark.parametrize("name", ["send", "flush", "close"])
def test_a_producer_raises_at_once_in_a_child(name: str) -> None:
    """Each method of a producer raises at once in a forked child, and the parent can go on."""
    with Producer(NOBODY) as producer:
        calls = {
            "send": lambda: producer.send("t", b"x"),
            "flush": producer.flush,
            "close": producer.close,
        }
        assert "this producer belongs to process" in in_a_child(calls[name])
        producer.flush()


def test_a_client_raises_at_once_in_a_child() -> None:
    """A request of a client raises at once in a forked child. Closing it there leaves the parent's
    connections alone."""
    with Client(NOBODY) as client:
        assert "this client belongs to process" in in_a_child(client.metadata)
        assert in_a_child(client.close) == ""


def test_the_end_of_the_program_says_what_was_not_delivered() -> None:
    """A program that ends without closing its producer says on standard error how much was not
    delivered, and why."""
    script = (
        "from skidway.producer import Producer, directory\n"
        "known = directory.KnownTopic(1, (0,), 1_000, 0.0)\n"
        "directory.Directory.topic = lambda *_, **__: known\n"
        f"producer = Producer({NOBODY!r}, delivery_timeout_ms=50)\n"
        "for number in range(3):\n"
        "    producer.send('t', b'%d' % number)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0
    assert "at the end of this program, 3 sends not acknowledged after 50 ms" in done.stderr
