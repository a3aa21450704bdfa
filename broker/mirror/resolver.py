"""Names of source brokers to addresses, without the loop waiting for a name server.

A name server that does not answer blocks whoever asks for many seconds; on the broker's loop that
would be all its clients. So names are looked up on threads, at most one for each name at a time;
what was found is used once, for the dial that wanted it. Addresses in numbers need no looking up.
"""

from __future__ import annotations

import ipaddress
import socket
import threading
from collections.abc import Callable, Sequence

from skidway.broker.log.flusher import Post
from skidway.kafka.client.network import AddressInfo, resolve

Found = Sequence[AddressInfo] | OSError


class Resolver:
    """Owned by the loop."""

    def __init__(self, post: Post, found: Callable[[], None]) -> None:
        """found: called on the loop when something was looked up."""
        self._post = post
        self._found = found
        self._pending: set[tuple[str, int]] = set()
        self._known: dict[tuple[str, int], Found] = {}
        self._closed = False

    def look_up(self, host: str, port: int) -> Sequence[AddressInfo] | None:
        """The addresses; None while they are being looked up. Raises OSError."""
        if _is_number(host):
            return socket.getaddrinfo(
                host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST
            )
        key = host, port
        known = self._known.pop(key, None)
        if isinstance(known, OSError):
            raise known
        if known is None and key not in self._pending:
            self._pending.add(key)
            threading.Thread(target=self._work, args=key, name="resolver", daemon=True).start()
        return known

    def close(self) -> None:
        """What is still being looked up has nobody to go to."""
        self._closed = True

    def _work(self, host: str, port: int) -> None:
        outcome: Found
        try:
            outcome = resolve(host, port)
        except OSError as error:
            outcome = error
        except UnicodeError:
            outcome = OSError(f"{host!r} is no name of a host")
        if not self._closed:
            self._post(lambda: self._done((host, port), outcome))

    def _done(self, key: tuple[str, int], outcome: Found) -> None:
        self._pending.discard(key)
        self._known[key] = outcome
        self._found()


def _is_number(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
