"""The connections whose TLS handshake is not complete.

A handshake takes up to a millisecond of computing, and after a restart all clients come at the same
time. So threads compute, and the loop only receives and sends::

    loop     receive -> queue            -> flush; receive again, admit the connection, or close it
    threads             queue -> advance -> post to the loop

While a thread works for a connection, the loop does not watch it. So each connection is in the
queue at most once, and the queue is as short as `max.connections.unauthenticated`. A handshake must
be complete in `unauthenticated.DEADLINE_S`.

OpenSSL needs much memory for a handshake, and needs it from the first byte. So a handshake begins
only if there is room in `MEMORY_BYTES`. Until then its bytes stay in the kernel. If there is none,
an address that holds far more than its own gives way, or one whose client is slow (see
`unauthenticated`).
"""

from __future__ import annotations

import contextlib
import itertools
import socket
import ssl
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final, Protocol

from skidway import log
from skidway.broker.access.identity import Identity
from skidway.broker.network.frame_memory import FrameMemory
from skidway.broker.network.listener import Listener
from skidway.broker.network.unauthenticated import Unauthenticated
from skidway.rare_lines import RareLines
from skidway.security.principals import NoRule
from skidway.security.tls_reasons import verify_reason, verify_setting
from skidway.security.tls_socket import TlsSocket

MEMORY_BYTES: Final = 32 << 20
HANDSHAKE_BYTES: Final = 50_000
"""What OpenSSL needs for a handshake of which a part has arrived (measured: 52 KB, of which 10 KB
before the first byte)."""
RECEIVE_BYTES: Final = 1 << 14
"""Before a client is known, this many bytes of it are taken at once."""

_PLAIN: Final = ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "HTTPS_PROXY_REQUEST")
_PROTOCOL_VERSION: Final = b"\x15\x03\x01\x00\x02\x02\x46"
"""A record with a fatal alert (RFC 8446, 6), for a client that speaks without TLS: so it can know
what is wrong. OpenSSL sends such a client nothing."""
_EXPIRED, _REVOKED = 10, 23
"""OpenSSL's X509_V_ERR_CERT_HAS_EXPIRED and X509_V_ERR_CERT_REVOKED."""
_REASON_MAX: Final = 200
"""So many characters of a reason tell one line of the log from another."""
CROWDED: Final = "crowded", "others wait, and its address has many connections or it is slow"
_log = log.get(__name__)


class Loop(Protocol):
    """The part of the loop that handshakes use."""

    now: float

    def watch_both(
        self, descriptor: int, ready: Callable[[bool, bool], None], *, read: bool, write: bool
    ) -> None: ...

    def unwatch(self, descriptor: int) -> None: ...

    def post(self, action: Callable[[], None]) -> None: ...


class Workers(Protocol):
    """Runs jobs in other threads."""

    def submit(self, job: Callable[[], None], address: str) -> None: ...

    def close(self) -> None: ...


class Handshake:
    """A connection before its handshake is complete. tls: None before the handshake has begun."""

    __slots__ = ("address", "ended", "is_computed", "listener", "peer", "sock", "tls")

    def __init__(self, sock: socket.socket, peer: str, listener: Listener) -> None:
        self.sock, self.peer, self.listener = sock, peer, listener
        self.address = peer.rpartition(":")[0]
        self.tls: TlsSocket | None = None
        self.is_computed = False
        """Whether a thread works for it; nobody else may use its TLS then."""
        self.ended = False


class Handshakes:
    """Owns these connections. Only the loop's thread uses it.

    admit: takes over a connection whose handshake is complete. forget: called with one that failed.
    """

    def __init__(
        self,
        loop: Loop,
        workers: Workers,
        monotonic: Callable[[], float],
        unauthenticated: Unauthenticated[Any],
        admit: Callable[[Handshake, TlsSocket, Identity], None],
        forget: Callable[[Handshake], None],
    ) -> None:
        self.completed = 0
        self.failed: dict[str, int] = {}
        """How many have failed, by reason."""
        self._loop, self._workers, self._admit, self._forget = loop, workers, admit, forget
        self._unauthenticated = unauthenticated
        self._memory: FrameMemory[Handshake] = FrameMemory(MEMORY_BYTES)
        self._lines = RareLines("handshake_failed", monotonic)
        self._all: dict[Handshake, None] = {}
        """In the order of their beginning."""

    def __len__(self) -> int:
        return len(self._all)

    def begin(self, sock: socket.socket, peer: str, listener: Listener) -> Handshake:
        """Takes over a new connection."""
        handshake = Handshake(sock, peer, listener)
        self._all[handshake] = None
        self._watch(handshake)
        return handshake

    def waits_for_client(self, handshake: Handshake) -> bool:
        """Whether the next step of a handshake is up to its client."""
        is_waiting = self._memory.is_waiting(handshake, handshake.address)
        return not handshake.is_computed and not is_waiting

    def make_room(self) -> None:
        """If handshakes wait for memory, lets as many give way whose clients are slow."""
        slow = self._slow()
        for each in list(itertools.islice(slow, self._memory.waiting)):
            self.fail(each, *CROWDED)

    def fail(self, handshake: Handshake, kind: str, reason: str) -> None:
        """Closes a connection. kind: the reason for the metric. reason: a sentence for the log."""
        self.failed[kind] = self.failed.get(kind, 0) + 1
        address, listener = handshake.address, handshake.listener.name
        which = (address, listener, reason[:_REASON_MAX])
        self._lines.tell(which, address=address, listener=listener, reason=reason)
        if not handshake.is_computed:
            self._loop.unwatch(handshake.sock.fileno())
            if handshake.tls is not None:
                with contextlib.suppress(OSError):
                    handshake.tls.flush()  # the alert that tells the client
                    if kind == "plain":
                        handshake.sock.send(_PROTOCOL_VERSION)
        handshake.sock.close()
        self._end(handshake)
        self._forget(handshake)

    def close(self) -> None:
        """Closes all connections, and ends the threads."""
        for each in list(self._all):
            each.ended = True
            each.sock.close()
        self._workers.close()

    def _watch(self, handshake: Handshake) -> None:
        tls, ready = handshake.tls, partial(self._ready, handshake)
        write = tls is not None and tls.has_sealed
        self._loop.watch_both(handshake.sock.fileno(), ready, read=True, write=write)

    def _ready(self, handshake: Handshake, readable: bool, writable: bool) -> None:
        tls = handshake.tls
        if tls is None:
            self._let_begin(handshake)
            return
        try:
            if writable and tls.has_sealed and tls.flush():
                self._watch(handshake)
            if not readable:
                return
            if not tls.receive_sealed(RECEIVE_BYTES):
                raise ConnectionResetError
        except BlockingIOError:
            return
        except OSError:
            self.fail(handshake, "disconnected", "the client has disconnected")
            return
        self._loop.unwatch(tls.fileno())
        handshake.is_computed = True
        self._workers.submit(partial(self._compute, handshake, tls), handshake.address)

    def _let_begin(self, handshake: Handshake) -> None:
        """Begins a handshake, or lets it wait for memory."""
        if self._memory.may_receive(handshake):
            self._begin(handshake)
            return
        self._loop.unwatch(handshake.sock.fileno())
        gives_way = self._memory.wait(handshake, handshake.address) or next(self._slow(), None)
        if gives_way is not None:
            self.fail(gives_way, *CROWDED)

    def _slow(self) -> Iterator[Handshake]:
        slow = self._unauthenticated.slow(self._loop.now)
        return (each for each in slow if isinstance(each, Handshake) and each.tls is not None)

    def _begin(self, handshake: Handshake) -> None:
        address, now = handshake.address, self._loop.now
        self._memory.hold(handshake, address, HANDSHAKE_BYTES, now, anew=True)
        assert handshake.listener.tls is not None
        handshake.tls = handshake.listener.tls.accept(handshake.sock)
        self._watch(handshake)

    def _compute(self, handshake: Handshake, tls: TlsSocket) -> None:
        """Runs on another thread."""
        outcome: Identity | Exception | None = None
        try:
            if not handshake.ended and tls.advance():
                assert handshake.listener.tls is not None
                outcome = handshake.listener.tls.identify(tls)
        except Exception as error:  # noqa: BLE001 - `_computed` tells it
            outcome = error
        self._loop.post(partial(self._computed, handshake, tls, outcome))

    def _computed(
        self, handshake: Handshake, tls: TlsSocket, outcome: Identity | Exception | None
    ) -> None:
        handshake.is_computed = False
        if handshake.ended:
            return
        if tls.has_sealed:
            self._unauthenticated.stepped(handshake, self._loop.now)
        try:
            tls.flush()
        except OSError:
            outcome = outcome or ConnectionResetError()
        if outcome is None:
            self._watch(handshake)
        elif isinstance(outcome, Exception):
            self.fail(handshake, *_why(outcome))
        elif handshake.listener.tls and outcome.serial in handshake.listener.tls.revoked:
            self.fail(handshake, "revoked", "its certificate is revoked")
        else:
            self.completed += 1
            # There is nothing to answer. Without this, the acknowledgement comes after 40 ms, and a
            # client with Nagle's algorithm (librdkafka) sends its first request then.
            with contextlib.suppress(OSError):
                handshake.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
            self._end(handshake)
            self._admit(handshake, tls, outcome)

    def _end(self, handshake: Handshake) -> None:
        handshake.ended = True
        del self._all[handshake]
        self._memory.leave(handshake, handshake.address)
        self._memory.release(handshake)
        while (waiting := self._memory.next()) is not None:
            self._begin(waiting)


def _why(error: Exception) -> tuple[str, str]:
    """Returns why a handshake has failed: the reason of the metric, and a sentence."""
    if isinstance(error, ssl.SSLCertVerificationError):
        if error.verify_code == _EXPIRED:
            return "expired", "its certificate has expired"
        if error.verify_code == _REVOKED:
            return "revoked", "its certificate is revoked"
        why = f"{verify_reason(error)} ({verify_setting(error)})"
        return "untrusted", f"its certificate is not trusted: {why}"
    if isinstance(error, ssl.SSLError):
        reason = error.reason or str(error)
        if reason in _PLAIN:
            return "plain", "it speaks without TLS to a listener with TLS"
        if reason == "PEER_DID_NOT_RETURN_A_CERTIFICATE":
            return "no_certificate", "it has shown no certificate"
        if "_ALERT_" in reason:
            return "refused", f"it refuses the broker, mostly its certificate: {reason}"
        return "tls", reason
    if isinstance(error, NoRule):
        return "no_rule", str(error)
    if isinstance(error, OSError):
        return "disconnected", "the client has disconnected"
    _log.error("handshake_bug", exc=error)
    return "failed", type(error).__name__
