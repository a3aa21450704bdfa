"""The JVM of the server, as a child process of this program."""

from __future__ import annotations

import ctypes
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable

from skidway import log
from skidway.errors import SkidwayError
from skidway.service import Shutdown

STOP_WITHIN_S = 20.0
ANSWERS_YET_EVERY_S = 0.1
PR_SET_PDEATHSIG = 1

_log = log.get(__name__)


class Server:
    """The JVM as a child process in a session of its own, so that Ctrl-C does not reach it."""

    def __init__(self, command: list[str]) -> None:
        ended, alive = os.pipe2(os.O_CLOEXEC)
        # The JVM inherits `alive`, and this process closes it. Then only the JVM has this end of
        # the pipe open, so `ended` becomes readable when the JVM is gone.
        self._ended = ended
        libc = ctypes.CDLL(None)
        ours = os.getpid()

        def die_with_parent() -> None:
            libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != ours:  # the parent died before the prctl
                os._exit(1)

        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
                preexec_fn=die_with_parent,
                pass_fds=(alive,),
            )
        except OSError as error:
            os.close(ended)
            raise SkidwayError(f"cannot start {command[0]}: {error.strerror}") from error
        finally:
            os.close(alive)

    @property
    def pid(self) -> int:
        """The JVM's process id."""
        return self._process.pid

    def wait(self, shutdown: Shutdown, look: Callable[[], float | None]) -> int:
        """Waits until shutdown is requested or the JVM has ended. Returns 0 if shutdown is
        requested. If the JVM has ended, returns the JVM's status, but 1 instead of 0, and 128 + n
        after signal n.

        `look` is called after `ANSWERS_YET_EVERY_S`, and then after as many seconds as it
        returns, until it returns None.
        """
        poll = select.poll()
        poll.register(shutdown.fileno(), select.POLLIN)
        poll.register(self._ended, select.POLLIN)
        pause_ms: float | None = ANSWERS_YET_EVERY_S * 1000
        while not poll.poll(pause_ms):
            pause_s = look()
            pause_ms = None if pause_s is None else pause_s * 1000
        if shutdown.requested:
            return 0
        status = self._process.wait()
        how = f"status {status}" if status >= 0 else f"signal {-status}"
        _log.error("zookeeper_ended", how=how)
        sys.stderr.write(f"skidway zookeeper: the server ended with {how}; its log says why\n")
        return status if status > 0 else 128 - status if status < 0 else 1

    def stop(self) -> None:
        """Sends SIGTERM, so that ZooKeeper closes its log. If the JVM does not end in time, sends
        SIGKILL."""
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(STOP_WITHIN_S)
            except subprocess.TimeoutExpired:
                _log.warning("zookeeper_killed", waited_s=STOP_WITHIN_S)
                self._process.kill()
                self._process.wait()
        os.close(self._ended)
