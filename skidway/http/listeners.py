"""Defines the addresses to which clients connect, and opens their sockets."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from skidway import ports
from skidway.errors import ConfigurationRefused

BACKLOG: Final = 512


@dataclass(frozen=True, slots=True)
class Listener:
    """An address on which a server listens, with TLS or without."""

    host: str
    port: int
    is_tls: bool

    @classmethod
    def of(cls, text: str) -> Listener:
        """Returns the listener for a text such as http://host:port or https://host:port. Raises
        `ConfigurationRefused` for any other text."""
        parts = urlsplit(text)
        try:
            port = parts.port
        except ValueError:
            port = None
        good = parts.scheme in ("http", "https") and parts.hostname and port is not None
        if not good or parts.path not in ("", "/") or parts.query:
            raise ConfigurationRefused(
                f"listeners: {text!r} is not http://host:port or https://host:port."
            )
        return cls(str(parts.hostname), int(port or 0), parts.scheme == "https")

    def open(self, key: str = "listeners") -> socket.socket:
        """Returns a socket that listens on the address. If another process already uses the port,
        raises an error that names this process, and the setting `key`."""
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        try:
            made = socket.create_server((self.host, self.port), family=family, backlog=BACKLOG)
            # Accepted sockets inherit TCP_NODELAY from this socket. asyncio sets it only on sockets
            # that asyncio made itself. Without TCP_NODELAY, every answer on a connection that stays
            # open waits 40 ms for the client's acknowledgement.
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError as error:
            raise ports.cannot_listen(self.host, self.port, key, error) from error
        return made
