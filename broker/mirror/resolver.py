"""Resolves the names of source brokers without letting the loop wait for a name server.

If a name server does not answer, a look-up blocks its caller for many seconds. If the loop were the
caller, all clients would have to wait. So threads look up the names. Two threads never look up the
same name at the same time. Each result is used for one connection only; the next connection looks
the name up again. Numeric addresses need no look-up. A source may name thousands of brokers, and
other ones each time: at most `THREADS_MAX` names are looked up at a time, and at most `KNOWN_MAX`
results are kept for connections that have not asked for them yet.
"""

from __future__ import annotations

import ipaddress
import socket
import threading
from collections.abc import Callable, Sequence
from typing import Final

from skidway.broker.log.flusher import Post
from skidway.kafka.client.network import AddressInfo, resolve

Found = Sequence[AddressInfo] | OSError
THREADS_MAX: Final = 16
KNOWN_MAX: Final = 1000


class Resolver:
    """Looks up names in other threads. Only the loop may call its methods."""

    def __init__(self, post: Post, found: Callable[[], None]) -> None:
        """found: a function that is called on the loop when the look-up of a name has ended."""
        self._post = post
        self._found = found
        self._pending: set[tuple[str, int]] = set()
        self._known: dict[tuple[str, int], Found] = {}
        self._closed = False

    def look_up(self, host: str, port: int) -> Sequence[AddressInfo] | None:
        """Returns the addresses of a host; None while a thread looks them up, or all threads look
        up other names. Raises OSError."""
        if _is_number(host):
            return socket.getaddrinfo(
                host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST
            )
        key = host, port
        known = self._known.pop(key, None)
        if isinstance(known, OSError):
            raise known
        if known is None and key not in self._pending and len(self._pending) < THREADS_MAX:
            self._pending.add(key)
            threading.Thread(target=self._work, args=key, name="resolver", daemon=True).start()
        return known

    def close(self) -> None:
        """Called when the broker stops. The results of look-ups that are still running are
        ignored."""
        self._closed = True

    def _work(self, host: str, port: int) -> None:
        outcome: Found
        try:
            outcome = resolve(host, port)
        except OSError as error:
            outcome = error
        if not self._closed:
            self._post(lambda: self._done((host, port), outcome))

    def _done(self, key: tuple[str, int], outcome: Found) -> None:
        self._pending.discard(key)
        self._known[key] = outcome
        if len(self._known) > KNOWN_MAX:
            del self._known[next(iter(self._known))]
        self._found()


def _is_number(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
