"""Runs a long-running program: sets up its logging, handles its signals, returns its exit status.

SIGTERM or SIGINT asks for an orderly end; a SIGINT after that ends the process at once. The body of
the program is a function that gets a `Shutdown`. The `Shutdown` says when the body should end; an
event loop can watch it as a descriptor. The body also tells the service manager (systemd) when the
program is ready. This module tells the service manager when the program is ending. Only this module
turns exceptions of the body into exit statuses. A SkidwayError is printed as one sentence on
standard error. Any other exception, on any thread, is logged as one error with its traceback. If
the exception has ended the body, the exit status is 70. If it has ended another thread, the exit
status is the one that the body then returns, but 70 instead of 0.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from skidway import log, systemd
from skidway.errors import UNEXPECTED_EXIT_CODE, SkidwayError

_log = log.get(__name__)


class Shutdown:
    """Says whether somebody has requested that the program ends. Such a request is never withdrawn.
    Threads and event loops can wait for the request."""

    def __init__(self) -> None:
        self._reader, self._writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._requested = False

    @property
    def requested(self) -> bool:
        """Whether the program should end."""
        return self._requested

    def request(self) -> None:
        """Requests the end. Threads and signal handlers may call this method any number of
        times."""
        if not self._requested:
            self._requested = True
            os.write(self._writer, b"\0")

    def wait(self, timeout_s: float | None = None) -> bool:
        """Sleeps until somebody requests the end of the program, or until `timeout_s` seconds have
        passed. Returns whether the end is requested."""
        poll = select.poll()
        poll.register(self._reader, select.POLLIN)
        poll.poll(None if timeout_s is None else max(0, round(timeout_s * 1000)))
        return self._requested

    def fileno(self) -> int:
        """Returns a descriptor that becomes readable when the end is requested. The caller must not
        read from it."""
        return self._reader

    def __del__(self) -> None:
        os.close(self._reader)
        os.close(self._writer)


def run(program: str, body: Callable[[Shutdown], int], *, level: str = "info") -> int:
    """Runs the body of a program in the foreground. Returns its exit status."""
    log.configure(program, level)
    shutdown = Shutdown()
    failed_threads: list[str] = []
    with _signals(shutdown), _thread_failures(shutdown, failed_threads):
        status = _outermost(program, body, shutdown)
    log.flush()
    return UNEXPECTED_EXIT_CODE if failed_threads and status == 0 else status


def _outermost(program: str, body: Callable[[Shutdown], int], shutdown: Shutdown) -> int:
    try:
        return body(shutdown)
    except SkidwayError as error:
        sys.stderr.write(f"skidway {program}: {error}\n")
        return error.exit_code
    except Exception as error:  # noqa: BLE001 - the outermost loop
        _log.error("unexpected_failure", exc=error)
        return UNEXPECTED_EXIT_CODE


def _end(shutdown: Shutdown) -> None:
    if not shutdown.requested:
        shutdown.request()
        systemd.stopping()


@contextmanager
def _signals(shutdown: Shutdown) -> Iterator[None]:
    def terminate(_number: int, _frame: Any) -> None:
        _end(shutdown)

    def interrupt(number: int, _frame: Any) -> None:
        if shutdown.requested:
            os._exit(128 + number)
        _end(shutdown)

    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread can set signal handlers
        return
    before = {
        signal.SIGTERM: signal.signal(signal.SIGTERM, terminate),
        signal.SIGINT: signal.signal(signal.SIGINT, interrupt),
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _thread_failures(shutdown: Shutdown, failed: list[str]) -> Iterator[None]:
    """If a thread ends with an exception inside the `with` block, requests the end of the program,
    because the program cannot work without that thread. Adds the thread's name to `failed`; `run`
    then returns an error status."""

    def failure(args: threading.ExceptHookArgs) -> None:
        name = args.thread.name if args.thread is not None else "unknown"
        failed.append(name)
        _log.error("unexpected_failure", exc=args.exc_value, thread=name)
        _end(shutdown)

    before = threading.excepthook
    threading.excepthook = failure
    try:
        yield
    finally:
        threading.excepthook = before
