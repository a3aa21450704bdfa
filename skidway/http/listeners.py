"""Defines the addresses to which clients connect, and opens their sockets, with TLS or without."""

from __future__ import annotations

import socket
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal
from urllib.parse import urlsplit

from skidway import ports
from skidway.errors import ConfigurationRefused

BACKLOG: Final = 512

ClientCertificates = Literal["NONE", "REQUESTED", "REQUIRED"]
_VERIFY: Final = {
    "NONE": ssl.CERT_NONE,
    "REQUESTED": ssl.CERT_OPTIONAL,
    "REQUIRED": ssl.CERT_REQUIRED,
}


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


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """The paths of the PEM files for TLS. If `key` is None, the private key is in the certificate's
    file."""

    certificate: Path
    key: Path | None = None
    ca: Path | None = None
    clients: ClientCertificates = "NONE"

    def context(self) -> ssl.SSLContext:
        """Returns a TLS context for the server, for TLS 1.2 or newer. Raises
        `ConfigurationRefused`."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        if self.clients != "NONE" and self.ca is None:
            raise ConfigurationRefused(
                f"ssl.client.authentication is {self.clients}: ssl.ca.location is missing."
            )
        try:
            if self.ca is not None:
                context.load_verify_locations(self.ca)
        except (OSError, ssl.SSLError) as error:
            raise _unusable("ssl.ca.location", self.ca, error) from error
        context.verify_mode = _VERIFY[self.clients]
        self.load(context)
        return context

    def load(self, context: ssl.SSLContext) -> None:
        """Loads the certificate and the key into the TLS context. Connections that begin later use
        them. Raises `ConfigurationRefused`."""
        try:
            context.load_cert_chain(self.certificate, self.key, password=_refuse_password)
        except (OSError, ssl.SSLError) as error:
            files = " and ".join(str(each) for each in (self.certificate, self.key) if each)
            raise _unusable("ssl.certificate.location", files, error) from error

    def stamp(self) -> tuple[tuple[int, int, int], ...]:
        """Returns a value that changes when the file of the certificate or of the key is replaced.
        Raises OSError."""
        stats = [each.stat() for each in (self.certificate, self.key) if each is not None]
        return tuple((each.st_ino, each.st_size, each.st_mtime_ns) for each in stats)


def _unusable(key: str, what: object, error: OSError) -> ConfigurationRefused:
    return ConfigurationRefused(f"{key}: {what} cannot be used: {error.strerror or error}.")


def _refuse_password() -> str:
    """Raises an error. OpenSSL calls this function if the private key is encrypted; without this
    function, OpenSSL would ask for a password on the terminal."""
    raise ConfigurationRefused("ssl.key.location: the key is encrypted; give one that is not.")
