"""A listening socket that continues to work if there are more connections than descriptors."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Iterator

from skidway import ports
from skidway.broker.access.logins import Logins
from skidway.broker.network.listener_tls import ListenerTls

BACKLOG = 1024
ACCEPTS_MAX = 64
"""In one turn, the loop accepts at most this many connections of a listener before it does other
work."""

_OUT_OF_DESCRIPTORS = (errno.EMFILE, errno.ENFILE)
_PASSING = (
    errno.ECONNABORTED,
    errno.ECONNRESET,
    errno.EPROTO,
    errno.ENOBUFS,
    errno.ENOMEM,
    errno.EPERM,
    # The errors from here on are network errors of one new connection. accept(2) reports them
    # although the listening socket works.
    errno.ENETDOWN,
    errno.ENETUNREACH,
    errno.EHOSTDOWN,
    errno.EHOSTUNREACH,
    errno.ENONET,
    errno.ENOPROTOOPT,
    errno.EOPNOTSUPP,
    errno.ETIMEDOUT,
)


class Listener:
    """A socket for new connections. The constructor binds the socket, so that an occupied port is
    noticed early. Clients can connect only after `listen`.
    """

    def __init__(
        self,
        name: str,
        host: str,
        port: int,
        tls: ListenerTls | None = None,
        logins: Logins | None = None,
        *,
        send_buffer: int,
        receive_buffer: int,
    ) -> None:
        """Raises SkidwayError if the address cannot be bound. tls: None without TLS. logins: None
        without SASL. A buffer of -1 bytes means a buffer of the kernel's default size.
        """
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.name, self.tls, self.logins = name, tls, logins
        self.socket = socket.socket(family, socket.SOCK_STREAM)
        self._send_buffer = send_buffer
        self._spare = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        self.refused_count = 0
        """How many connections were closed at once because no descriptor was free."""
        try:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if receive_buffer > 0:
                self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
            self.socket.bind((host, port))
        except OSError as error:
            self.close()
            raise ports.cannot_listen(host, port, "listeners", error) from error
        self.socket.setblocking(False)
        self.host, self.port = self.socket.getsockname()[:2]

    def listen(self) -> None:
        """Lets clients connect. Two sockets may bind the same address, but only one of them may
        listen. Raises SkidwayError if another socket is listening already.
        """
        try:
            self.socket.listen(BACKLOG)
        except OSError as error:
            raise ports.cannot_listen(self.host, self.port, "listeners", error) from error

    def accept(self) -> Iterator[tuple[socket.socket, str]]:
        """Accepts the connections that wait, at most ACCEPTS_MAX. Yields each socket with the
        address of its client.
        """
        for _ in range(ACCEPTS_MAX):
            try:
                sock, address = self.socket.accept()
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno in _OUT_OF_DESCRIPTORS:
                    self._turn_away()
                    continue
                if error.errno in _PASSING:
                    continue
                raise
            try:
                self._prepare(sock)
            except OSError:
                sock.close()  # the client has disconnected already
                continue
            host = address[0].removeprefix("::ffff:")  # an IPv4 address on a socket for both
            yield sock, f"{host}:{address[1]}"

    def close(self) -> None:
        """Stops listening."""
        self.socket.close()
        if self._spare >= 0:
            os.close(self._spare)
            self._spare = -1

    def _prepare(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._send_buffer > 0:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, self._send_buffer)

    def _turn_away(self) -> None:
        """Frees the spare descriptor, which this object keeps open for this purpose, accepts one
        connection with it, and closes the connection. Called when no other descriptor is left,
        because a connection that stayed in the socket's queue would wake the loop again and again.
        """
        if self._spare >= 0:
            os.close(self._spare)
            self._spare = -1
        try:
            self.socket.accept()[0].close()
            self.refused_count += 1
        except OSError:
            pass
        try:
            self._spare = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            pass  # another thread has taken the freed descriptor; the next call tries again
