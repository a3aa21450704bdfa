"""The connections whose TLS handshake is not complete.

A handshake takes up to a millisecond of computing, and after a restart all clients come at the same
time. So threads compute, and the loop only receives and sends::

    loop     receive -> queue            -> flush; receive again, admit the connection, or close it
    threads             queue -> advance -> post to the loop

While a thread works for a connection, the loop does not watch it. So each connection is in the
queue at most once, and the queue is as short as `max.connections.unauthenticated`. A handshake must
be complete in `DEADLINE_S`.

OpenSSL needs much memory for a handshake, and needs it from the first byte. So a handshake begins
only if there is room in `MEMORY_BYTES`. Until then its bytes stay in the kernel. Where a client, or
its beginning, finds no room, an address that holds far more than its own gives way.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from collections.abc import Callable
from functools import partial
from queue import SimpleQueue
from typing import Final, Protocol

from skidway import log
from skidway.broker.network.frame_memory import FrameMemory
from skidway.broker.network.listener import Listener
from skidway.broker.network.listener_tls import Identity
from skidway.holders import Holders
from skidway.rare_lines import RareLines
from skidway.security.principals import NoRule
from skidway.security.tls_socket import TlsSocket

THREADS: Final = 2
DEADLINE_S: Final = 10.0
HOG_RATIO: Final = 4
"""An address with this many times as many handshakes as the newcomer's address gives way."""
MEMORY_BYTES: Final = 32 << 20
HANDSHAKE_BYTES: Final = 50_000
"""What OpenSSL needs for a handshake of which a part has arrived (measured: 52 KB, of which 10 KB
before the first byte)."""
RECEIVE_BYTES: Final = 1 << 14
"""Before a client is known, this many bytes of it are taken at once."""

_PLAIN: Final = ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "HTTPS_PROXY_REQUEST")
_EXPIRED, _REVOKED = 10, 23
"""OpenSSL's X509_V_ERR_CERT_HAS_EXPIRED and X509_V_ERR_CERT_REVOKED."""
_CROWDED: Final = "crowded", "others wait, and its address has the most handshakes"
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

    def submit(self, job: Callable[[], None]) -> None: ...

    def close(self) -> None: ...


class Threads:
    """The threads that compute. They start with the first job."""

    def __init__(self) -> None:
        self._jobs: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []

    def submit(self, job: Callable[[], None]) -> None:
        """Runs a job, which must not raise an exception."""
        if not self._threads:
            self._threads = [
                threading.Thread(target=self._work, name=f"handshakes-{number}", daemon=True)
                for number in range(THREADS)
            ]
            for each in self._threads:
                each.start()
        self._jobs.put(job)

    def close(self) -> None:
        """Ends the threads when all jobs are done."""
        for _ in self._threads:
            self._jobs.put(None)
        for each in self._threads:
            each.join()

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            job()


class Handshake:
    """A connection before its handshake is complete. tls: None before the handshake has begun."""

    __slots__ = ("address", "began", "ended", "is_computed", "listener", "peer", "sock", "tls")

    def __init__(self, sock: socket.socket, peer: str, listener: Listener, began: float) -> None:
        self.sock, self.peer, self.listener, self.began = sock, peer, listener, began
        self.address = peer.rpartition(":")[0]
        self.tls: TlsSocket | None = None
        self.is_computed = False
        """Whether a thread works for it; nobody else may use its TLS then."""
        self.ended = False


class Handshakes:
    """Owns these connections. Only the loop's thread uses it.

    admit: takes over a connection whose handshake is complete.
    """

    def __init__(
        self,
        loop: Loop,
        workers: Workers,
        limit: int,
        monotonic: Callable[[], float],
        admit: Callable[[Handshake, TlsSocket, Identity], None],
    ) -> None:
        self.completed = 0
        self.failed: dict[str, int] = {}
        """How many have failed, by reason."""
        self._loop, self._workers, self._limit, self._admit = loop, workers, limit, admit
        self._held: Holders[Handshake] = Holders(limit)
        self._memory: FrameMemory[Handshake] = FrameMemory(MEMORY_BYTES)
        self._lines = RareLines("handshake_failed", monotonic)
        self._all: dict[Handshake, None] = {}
        """In the order of their beginning."""

    def __len__(self) -> int:
        return len(self._all)

    def of_address(self, address: str) -> int:
        """Returns the number of handshakes with clients of an address."""
        return self._held.of_address(address)

    def make_room(self, address: str) -> bool:
        """Returns whether a client of this address may begin a handshake."""
        if len(self._all) < self._limit:
            return True
        if self._held.most() < HOG_RATIO * (self._held.of_address(address) + 1):
            return False
        first = self._held.first()
        assert first is not None
        self._fail(first, *_CROWDED)
        return True

    def begin(self, sock: socket.socket, peer: str, listener: Listener) -> None:
        """Takes over a new connection. There must be room."""
        handshake = Handshake(sock, peer, listener, self._loop.now)
        self._all[handshake] = None
        self._held.hold(handshake, handshake.address, 1)
        self._watch(handshake)

    def drop_late(self) -> None:
        """Closes the connections whose deadline has passed."""
        for each in list(self._all):
            if each.began > self._loop.now - DEADLINE_S:
                return
            self._fail(each, "late", f"it was not complete after {DEADLINE_S:g} s")

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
            self._fail(handshake, "disconnected", "the client has disconnected")
            return
        self._loop.unwatch(tls.fileno())
        handshake.is_computed = True
        self._workers.submit(partial(self._compute, handshake, tls))

    def _let_begin(self, handshake: Handshake) -> None:
        """Begins a handshake, or lets it wait for memory."""
        if self._memory.may_receive(handshake):
            self._begin(handshake)
            return
        self._loop.unwatch(handshake.sock.fileno())
        gives_way = self._memory.wait(handshake, handshake.address)
        if gives_way is not None:
            self._fail(gives_way, *_CROWDED)

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
        try:
            tls.flush()
        except OSError:
            outcome = outcome or ConnectionResetError()
        if outcome is None:
            self._watch(handshake)
        elif isinstance(outcome, Exception):
            self._fail(handshake, *_why(outcome))
        elif handshake.listener.tls and outcome.serial in handshake.listener.tls.revoked:
            self._fail(handshake, "revoked", "its certificate is revoked")
        else:
            self.completed += 1
            # There is nothing to answer. Without this, the acknowledgement comes after 40 ms, and a
            # client with Nagle's algorithm (librdkafka) sends its first request then.
            with contextlib.suppress(OSError):
                handshake.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
            self._forget(handshake)
            self._admit(handshake, tls, outcome)

    def _fail(self, handshake: Handshake, kind: str, reason: str) -> None:
        self.failed[kind] = self.failed.get(kind, 0) + 1
        address, listener = handshake.address, handshake.listener.name
        self._lines.tell((address, kind), address=address, listener=listener, reason=reason)
        if not handshake.is_computed:
            self._loop.unwatch(handshake.sock.fileno())
            if handshake.tls is not None:
                with contextlib.suppress(OSError):
                    handshake.tls.flush()  # the alert that tells the client
        handshake.sock.close()
        self._forget(handshake)

    def _forget(self, handshake: Handshake) -> None:
        handshake.ended = True
        del self._all[handshake]
        self._held.release(handshake)
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
        return "untrusted", f"its certificate is not trusted: {error.verify_message}"
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
