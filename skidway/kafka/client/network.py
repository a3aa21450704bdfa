"""The sockets of a session: non-blocking, for any loop that waits for their events.

    watcher   says when a descriptor is readable or writable: an epoll loop, or a selector
    network   opens and closes sockets, moves bytes between sockets and connections
    session   decides what the network does; uses no socket

A link is one address on one channel, that is, for one kind of requests (see `session`). Without
TLS, the buffers of a request are sent with sendmsg, without copying them into one buffer, and bytes
are received straight into the memory of the frame to which they belong. With TLS, a handshake comes
first; it takes the thread about a millisecond.
"""

from __future__ import annotations

import contextlib
import errno
import os
import socket
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol, cast

from skidway.errors import ConfigurationRefused
from skidway.kafka.client.session import ClientSession, Link, LinkKey
from skidway.kafka.security import NO_SECURITY, KafkaSecurity

if TYPE_CHECKING:
    from skidway.security.tls_socket import TlsSocket

_RECEIVES_PER_TURN_MAX = 32  # after 32 receives from a socket, other sockets are served
_CLOSED_IN_HANDSHAKE = (
    "the broker closed the connection in the handshake of TLS; it may not speak TLS on this port"
)
_IN_PROGRESS = (errno.EINPROGRESS, errno.EWOULDBLOCK)


class Watcher(Protocol):
    """Tells a network when its descriptors are readable or writable."""

    def watch(self, fd: int, *, read: bool, write: bool) -> None:
        """From now on, reports when a descriptor is readable (`read`) or writable (`write`)."""
        ...

    def unwatch(self, fd: int) -> None:
        """Stops watching a descriptor. The network calls this before it closes the descriptor."""
        ...


AddressInfo = tuple[int, int, int, str, tuple[object, ...]]
"""One result of getaddrinfo: family, type, protocol, canonical name and address."""

Resolve = Callable[[str, int], Sequence[AddressInfo] | None]
"""A function that returns the addresses of a host, or None while the name is being looked up. It
may raise OSError."""


def resolve(host: str, port: int) -> Sequence[AddressInfo]:
    """Looks up the addresses of a host. Waits for the resolver if the host is neither an IP address
    nor in the hosts file."""
    return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)


class _PlainSocket(socket.socket):
    """A socket that has no bytes but those in the kernel (see TlsSocket)."""

    __slots__ = ()
    has_received = has_sealed = False


class _Socket:
    __slots__ = ("is_connected", "is_open", "is_paused", "link", "socket", "watches_write")

    def __init__(self, link: Link, sock: _PlainSocket) -> None:
        self.link = link
        self.socket: _PlainSocket | TlsSocket = sock
        self.is_connected = False
        self.is_open = False  # connected, and the handshake of TLS is complete
        self.is_paused = False  # not watched, because there is no room for its response
        self.watches_write = True


class Network:
    """Owns the sockets. `turn` opens sockets, closes sockets and sends bytes, as the session (the
    module `session`) decides. `ready` handles the watcher's events."""

    def __init__(
        self,
        session: ClientSession,
        watcher: Watcher,
        look_up: Resolve = resolve,
        security: KafkaSecurity = NO_SECURITY,
    ) -> None:
        """Raises ConfigurationRefused if the files of `security` cannot be used."""
        self._session = session
        self._security, self._contexts = security, security.contexts()
        self._watcher = watcher
        self._look_up = look_up
        self._unresolved: list[Link] = []
        self._by_link: dict[LinkKey, _Socket] = {}
        self._by_fd: dict[int, _Socket] = {}
        self._paused: deque[_Socket] = deque()

    def turn(self, now: float) -> None:
        """Closes the sockets of ended connections, opens sockets for the connections that the
        session wants, and sends bytes that are ready."""
        self._session.expire(now)
        self._hang_up()
        waiting, self._unresolved = self._unresolved, []
        for link in [*waiting, *self._session.dials()]:
            if link.dial_deadline is not None and link.key not in self._by_link:
                self._dial(link, now)
        for link in self._session.writers():
            found = self._by_link.get(link.key)
            if found is not None and found.is_open and not found.watches_write:
                self._send(found, now)
        self._hang_up()
        self._go_on()

    @property
    def has_to_send(self) -> bool:
        """Whether a `turn` would send bytes. Returns False if every unsent byte waits for
        room in its socket."""
        for link in self._session.writers():
            found = self._by_link.get(link.key)
            if found is not None and found.is_open and not found.watches_write:
                return True
        return False

    def ready(self, fd: int, readable: bool, writable: bool, now: float) -> bool:
        """Handles an event of a descriptor. Returns False if the descriptor does not belong to this
        network."""
        found = self._by_fd.get(fd)
        if found is None:
            return False
        if writable and not found.is_connected:
            self._connected(found, now)
        elif found.is_connected and not found.is_open:
            self._shake(found, now)
        if writable and found.is_open and found.socket.fileno() >= 0:
            self._send(found, now)
        has_bytes = readable or found.socket.has_received
        if has_bytes and found.is_open and found.socket.fileno() >= 0:
            self._receive(found, now)
        self._hang_up()
        return True

    def close(self) -> None:
        """Closes every socket."""
        self._session.close()
        self._hang_up()
        for found in list(self._by_link.values()):
            self._drop(found)

    def _dial(self, link: Link, now: float) -> None:
        try:
            found_address = self._resolve(link)
            if found_address is None:
                self._unresolved.append(link)
                return
            family, address = found_address
            sock = _PlainSocket(family, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        except OSError as error:
            self._session.failed(link, error.strerror or str(error), now)
            return
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        code = sock.connect_ex(address)
        if code not in (0, *_IN_PROGRESS):
            sock.close()
            self._session.failed(link, os.strerror(code), now)
            return
        found = _Socket(link, sock)
        self._by_link[link.key] = self._by_fd[sock.fileno()] = found
        self._watcher.watch(sock.fileno(), read=True, write=True)

    def _resolve(self, link: Link) -> tuple[int, tuple[object, ...]] | None:
        """Returns one address of the link's host, or None while the name is being looked up. Until
        a connection succeeds, each attempt uses the host's next address. For example, if the host
        has an IPv6 and an IPv4 address, the two take turns."""
        found = self._look_up(*link.key.address)
        if found is None:
            return None
        family, _, _, _, address = found[link.attempts % len(found)]
        link.attempts += 1
        return family, address

    def _connected(self, found: _Socket, now: float) -> None:
        plain = cast("_PlainSocket", found.socket)
        code = plain.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if code:
            self._session.failed(found.link, os.strerror(code), now)
            return
        found.is_connected = True
        found.link.attempts = 0
        if self._contexts is None:
            self._opened(found, now)
            return
        from skidway.security.tls_socket import TlsSocket

        host = found.link.key.address.host
        found.socket = TlsSocket(plain, self._contexts.get(), server_hostname=host)
        self._shake(found, now)

    def _shake(self, found: _Socket, now: float) -> None:
        """Goes on with the handshake of TLS."""
        tls = cast("TlsSocket", found.socket)
        try:
            with contextlib.suppress(BlockingIOError):
                if not tls.receive_sealed():
                    raise ConnectionResetError(_CLOSED_IN_HANDSHAKE)
            is_complete = tls.advance()
            tls.flush()
        except OSError as error:
            with contextlib.suppress(OSError):
                tls.flush()  # the alert that tells the broker why
            self._fail(found, error, now)
            return
        self._watch_write(found, tls.has_sealed)
        if is_complete:
            self._opened(found, now)

    def _opened(self, found: _Socket, now: float) -> None:
        try:
            login = self._security.login()
        except ConfigurationRefused as error:
            self._session.failed(found.link, str(error), now)
            return
        found.is_open = True
        self._session.opened(found.link, now, login)

    def _fail(self, found: _Socket, error: OSError, now: float) -> None:
        if self._contexts is None:
            self._session.failed(found.link, error.strerror or str(error), now)
            return
        from skidway.security.tls_reasons import setting_of_client, tls_reason

        reason = tls_reason(error)
        own = self._security
        place = setting_of_client(error, own.ca, own.certificate, own.crl)
        if place:
            from skidway.kafka.client.refused_connections import count_refused

            count_refused(place)
            reason = f"{reason} ({place})"
        self._session.failed(found.link, reason, now)

    def _send(self, found: _Socket, now: float) -> None:
        """Sends as many bytes as the socket accepts. While the socket's buffer is full, asks the
        watcher to report when the socket has room again.
        """
        connection = found.link.connection
        try:
            while connection is not None and connection.wants_write:
                sent = found.socket.sendmsg(connection.outgoing())
                self._session.sent(found.link, sent)
            if found.socket.has_sealed:
                cast("TlsSocket", found.socket).flush()
        except BlockingIOError:
            self._watch_write(found, True)
        except OSError as error:
            self._fail(found, error, now)
        else:
            self._watch_write(found, found.socket.has_sealed)

    def _watch_write(self, found: _Socket, write: bool) -> None:
        if found.watches_write != write:
            found.watches_write = write
            self._watch(found)

    def _watch(self, found: _Socket) -> None:
        if not found.is_paused:
            self._watcher.watch(found.socket.fileno(), read=True, write=found.watches_write)

    def _receive(self, found: _Socket, now: float) -> None:
        try:
            for _ in range(_RECEIVES_PER_TURN_MAX):
                connection = found.link.connection
                if connection is None:
                    return
                if not self._session.may_receive(found.link):
                    self._pause(found)
                    return
                space = connection.space()
                count = found.socket.recv_into(space)
                self._session.received(found.link, count, now)
                if count < len(space):
                    break
            self._come_back(found)
        except BlockingIOError:
            self._come_back(found)
        except OSError as error:
            self._fail(found, error, now)

    def _pause(self, found: _Socket) -> None:
        """Leaves the rest of a response in the kernel, so that the broker waits."""
        found.is_paused = True
        self._watcher.unwatch(found.socket.fileno())
        self._paused.append(found)

    def _go_on(self) -> None:
        while self._paused and self._session.may_receive(self._paused[0].link):
            found = self._paused.popleft()
            found.is_paused = False
            self._watch(found)
            self._come_back(found)

    def _come_back(self, found: _Socket) -> None:
        """Makes sure that an event comes for the bytes that the socket has received and that the
        watcher cannot see: nearly always, a socket can be written to."""
        if found.socket.has_received:
            self._watch_write(found, True)

    def _hang_up(self) -> None:
        for link in self._session.hangups():
            found = self._by_link.get(link.key)
            if found is not None:
                self._drop(found)

    def _drop(self, found: _Socket) -> None:
        del self._by_link[found.link.key]
        fd = found.socket.fileno()
        del self._by_fd[fd]
        if found.is_paused:
            self._paused.remove(found)
        else:
            self._watcher.unwatch(fd)
        found.socket.close()
