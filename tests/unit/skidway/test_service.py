from __future__ import annotations

import json
import logging
import os
import select
import signal
import threading
from collections.abc import Iterator

import pytest

from skidway import service
from skidway.errors import (
    ConfigurationRefused,
    SkidwayError,
    StateRefused,
    Unreachable,
    UsageError,
)
from skidway.service import Shutdown


@pytest.fixture(autouse=True)
def _logging() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


def test_shutdown_is_seen_by_waiters_and_event_loops() -> None:
    """After a call of `request`, a `Shutdown` says that the shutdown is requested. Its waits end,
    and its file descriptor stays readable."""
    shutdown = Shutdown()
    assert not shutdown.requested
    assert not shutdown.wait(0)
    assert select.select([shutdown], [], [], 0)[0] == []
    shutdown.request()
    shutdown.request()
    assert shutdown.requested
    assert shutdown.wait()
    assert shutdown.wait(0)
    assert select.select([shutdown], [], [], 0)[0] == [shutdown]


def test_shutdown_wakes_a_waiting_thread() -> None:
    """A thread that waits without limit returns when another thread requests the shutdown."""
    shutdown = Shutdown()
    woken: list[bool] = []
    thread = threading.Thread(target=lambda: woken.append(shutdown.wait()))
    thread.start()
    shutdown.request()
    thread.join(60)
    assert woken == [True]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_requests_an_orderly_end(number: signal.Signals) -> None:
    """SIGTERM or the first SIGINT requests a shutdown. The program then ends with the exit status
    that its main function (`body`) returns."""

    def body(shutdown: Shutdown) -> int:
        os.kill(os.getpid(), number)
        assert shutdown.wait(60)
        return 0

    before = signal.getsignal(number)
    assert service.run("test", body) == 0
    assert signal.getsignal(number) is before


def test_second_interrupt_ends_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second Ctrl-C ends a program even if its main function (`body`) does not react to the
    first Ctrl-C."""
    ended: list[int] = []
    monkeypatch.setattr(os, "_exit", ended.append)

    def body(shutdown: Shutdown) -> int:
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)
        shutdown.wait(60)
        return 0

    service.run("test", body)
    assert ended == [130]


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (SkidwayError("not complete"), 1),
        (StateRefused("another machine's"), 65),
        (UsageError("no such verb"), 2),
        (Unreachable("nobody there"), 3),
        (ConfigurationRefused("unknown key"), 78),
    ],
)
def test_known_error_is_one_sentence_and_its_status(
    error: SkidwayError, status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """After a known error the program prints one sentence on standard error, without a traceback,
    and ends with the error's exit status."""

    def body(_: Shutdown) -> int:
        raise error

    assert service.run("broker", body) == status
    captured = capsys.readouterr()
    assert captured.err == f"skidway broker: {error}\n"
    assert captured.out == ""


def test_unexpected_error_is_logged_with_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    """An unexpected exception is logged as one error line with its traceback, and the program ends
    with status 70."""

    def body(_: Shutdown) -> int:
        return {}["missing"]

    assert service.run("broker", body) == 70
    line = json.loads(capsys.readouterr().out)
    assert (line["level"], line["event"]) == ("error", "unexpected_failure")
    assert "KeyError" in line["traceback"]


def test_failed_thread_ends_the_program(capsys: pytest.CaptureFixture[str]) -> None:
    """If a thread of a program ends with an exception, the program ends with status 70."""

    def failing() -> None:
        raise RuntimeError("the fsync thread is gone")

    flusher = threading.Thread(target=failing, name="flusher")

    def body(shutdown: Shutdown) -> int:
        flusher.start()
        return 0 if shutdown.wait(60) else 1

    assert service.run("broker", body) == 70
    flusher.join(60)  # the thread may still be sending to the service manager
    line = json.loads(capsys.readouterr().out)
    assert line["thread"] == "flusher"
