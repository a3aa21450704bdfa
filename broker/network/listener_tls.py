"""TLS of the broker's listeners: its files, which may be replaced while the broker runs, and who a
client is by its certificate."""

from __future__ import annotations

import socket
import ssl

from skidway.broker.access.identity import NOBODY, Identity
from skidway.errors import ConfigurationRefused
from skidway.security import x509
from skidway.security.contexts import ClientAuth, Contexts, TlsFiles, server_context
from skidway.security.principals import PrincipalRules
from skidway.security.tls_socket import TlsSocket
from skidway.security.x509 import Malformed, SerialOf


class ListenerTls:
    """The certificate of the broker, and which clients it accepts. Only the loop uses it, but for
    `identify`."""

    def __init__(self, files: TlsFiles, clients: ClientAuth, rules: PrincipalRules) -> None:
        """Raises ConfigurationRefused if a file cannot be used."""
        self._files, self._clients, self._rules = files, clients, rules
        self.revoked: frozenset[SerialOf] = frozenset()
        """The certificates that the authorities have revoked. A new object for each new list."""
        self._contexts = Contexts(self._make, files)

    @property
    def problem(self) -> str:
        """Why the files cannot be used now; the last good ones then stay in use."""
        return self._contexts.problem

    def look(self) -> frozenset[SerialOf] | None:
        """Reads the files again if one of them was replaced. Returns the revoked certificates if
        their list was replaced: open connections may have them."""
        before = self.revoked
        self._contexts.get()
        return None if self.revoked is before else self.revoked

    def accept(self, sock: socket.socket) -> TlsSocket:
        """Returns the server's end of a new connection, with the files of the last `look`."""
        return TlsSocket(sock, self._contexts.current, server_side=True)

    def identify(self, tls: TlsSocket) -> Identity:
        """Returns who the client is, after the handshake. Raises NoRule. Threads may call it."""
        der = tls.certificate
        if der is None:
            return NOBODY
        certificate = x509.read_certificate(der)
        return Identity(self._rules.principal(certificate.subject), certificate.serial)

    def _make(self) -> ssl.SSLContext:
        crl, context = self._files.crl, server_context(self._files, self._clients)
        try:
            revoked = x509.revoked(crl.read_bytes()) if crl else frozenset()
        except (OSError, Malformed) as error:  # replaced since OpenSSL has read it
            raise ConfigurationRefused(f"ssl.crl.location: {crl} changed: {error}") from error
        if revoked != self.revoked:
            self.revoked = revoked
        return context
