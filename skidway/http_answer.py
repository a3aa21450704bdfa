"""Limits how long a whole HTTP answer takes, head and body.

The timeout of a socket limits each read. A server that sends a byte now and then would hold its
client as long as it likes.
"""

from __future__ import annotations

import http.client
import io
import socket
import time
from typing import Any


class HttpAnswer(http.client.HTTPResponse):
    """An answer that arrives within the timeout of its socket, counted from the moment at which its
    client begins to read it. Otherwise reading raises TimeoutError."""

    def __init__(self, sock: socket.socket, *args: Any, **named: Any) -> None:
        super().__init__(sock, *args, **named)
        timeout_s = sock.gettimeout()
        if timeout_s is not None:
            self.fp.close()
            self.fp = io.BufferedReader(_InTime(sock, timeout_s))


class _InTime(io.RawIOBase):
    """Reads a socket. The socket stays open until this is closed, even if its owner closes it."""

    def __init__(self, sock: socket.socket, timeout_s: float) -> None:
        self._socket = sock
        self._raw = sock.makefile("rb", buffering=0)
        self._timeout_s = timeout_s
        self._end_at = time.monotonic() + timeout_s

    def readable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._raw.fileno()

    def readinto(self, buffer: Any) -> int | None:
        left_s = self._end_at - time.monotonic()
        try:
            if left_s > 0:
                self._socket.settimeout(left_s)
                return self._raw.readinto(buffer)
        except TimeoutError:
            pass
        raise TimeoutError(f"the answer did not end within {self._timeout_s:g} s")

    def close(self) -> None:
        self._raw.close()
        super().close()
