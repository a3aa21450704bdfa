"""Kazoo's client, with what it lacks: every wait for an answer is bounded, TLS trusts only the
authorities of the configuration and reads replaced files again, and what ZooKeeper refuses has a
sentence that names the setting."""

from __future__ import annotations

import logging
import socket
import ssl
import threading
import time
from collections.abc import Callable
from typing import Any, Final

from kazoo.client import KazooClient
from kazoo.exceptions import (
    AuthFailedError,
    ConnectionClosedError,
    ConnectionLoss,
    NoAuthError,
    OperationTimeoutError,
    SessionClosedRequireSaslError,
    SessionExpiredError,
)
from kazoo.handlers.threading import AsyncResult, KazooTimeoutError, SequentialThreadingHandler
from kazoo.retry import KazooRetry, RetryFailedError

from skidway import log
from skidway.coordination.security import AUTH, SCHEME, ZooKeeperSecurity, acl_of
from skidway.errors import Unreachable

RECONNECT_DELAY_MAX_S = 2.0
CLOSE_WITHIN_S = 5.0
TELL_AGAIN_AFTER_S: Final = 600.0
UNANSWERED = (
    ConnectionClosedError,
    ConnectionLoss,
    KazooTimeoutError,
    OperationTimeoutError,
    RetryFailedError,
    SessionExpiredError,
)
_REFUSED: Final = (AuthFailedError, NoAuthError, SessionClosedRequireSaslError)
_TLS: Final = "zookeeper.ssl.client.enable"
_NO_TLS: Final = (
    f"it closed the connection in the handshake of TLS; it may not speak TLS on this port ({_TLS})"
)
_CLOSED: Final = "it closed the connection before it answered: it does not serve yet"
_CLOSED_PLAIN: Final = f"{_CLOSED}, or speaks TLS on this port ({_TLS})"

_log = log.get(__name__)
_kazoo_log = logging.getLogger("kazoo.client.skidway")
_kazoo_log.addFilter(lambda record: record.levelno > logging.DEBUG)  # kazoo's has passwords
_kazoo_log.addHandler(logging.NullHandler())  # without a log, only the error at the end is shown


class AccessRefused(Unreachable):
    """ZooKeeper answers, but does not let this client in, or not at the node."""


class Access:
    """How one client gets into ZooKeeper, and why it does not.

    problem: why ZooKeeper does not let the client in, in one sentence; empty if it does, or is only
    away. refusal: why it refused the last request that it answered; empty if it did not. is_told:
    whether problems are written to the log; False while somebody waits for the first connection,
    who gets the problem as an error.
    """

    def __init__(self, addresses: str, security: ZooKeeperSecurity) -> None:
        """Raises ConfigurationRefused if a file of `security` cannot be used."""
        self.problem = self.refusal = ""
        self.is_told = False
        users = security.users()
        self.acl = acl_of(users)
        self.identities = [(SCHEME, f"{user}:{password}") for user, password in users]
        self.is_tls = security.is_tls
        self._addresses, self._security = addresses, security
        self._contexts = security.contexts()
        self._is_unanswered = self._was_answered = False
        self._told: tuple[str, float] = ("", 0.0)

    def open(self, address: tuple[str, int], host: str, within_s: float) -> socket.socket:
        """Returns a new connection to a server. host: the name that its certificate must have.
        Raises OSError. Called on kazoo's thread, before each session and each reconnection."""
        if self._is_unanswered and not self._was_answered:
            self._note(_CLOSED if self.is_tls else _CLOSED_PLAIN)
        sock = socket.create_connection(address, within_s)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._contexts is not None:
            context = self._contexts.get()
            context.sslsocket_class = _TlsSocket
            try:
                tls = context.wrap_socket(sock, server_hostname=host)
            except OSError as error:
                sock.close()
                self._failed(error, _NO_TLS)
                raise
            assert isinstance(tls, _TlsSocket)
            tls.failed, sock = self._lost, tls
        self._is_unanswered = True
        return sock

    def answered(self) -> None:
        """Called when the server has begun or continued a session."""
        self._is_unanswered, self._was_answered = False, True

    def served(self) -> None:
        """Called when the server has done what a request asked."""
        self.problem = self.refusal = ""

    def refused(self, error: Exception) -> AccessRefused:
        """Returns the error for a request that the server has refused."""
        if isinstance(error, AuthFailedError):
            self.refuse_users()
            return AccessRefused(self.problem)
        if isinstance(error, NoAuthError):
            why = f"the node belongs to other users than those of {AUTH}: "
            self.refusal = self._sentence(why + str(self._security.auth or "not set"))
        else:
            why = f"it lets in only clients with a user (enforce.auth), and {AUTH} is not set"
            self.refusal = self._sentence(why)
        return AccessRefused(self.refusal)

    def refuse_users(self) -> None:
        """Called when the server has refused the users."""
        self._note(f"it takes no users with passwords ({AUTH}: {self._security.auth})")

    def _lost(self, error: OSError) -> None:
        """Called when a connection with TLS failed. After the first answer, the server just went
        away."""
        if self._is_unanswered:
            self._failed(error, _CLOSED)
            self._is_unanswered = False

    def _failed(self, error: OSError, closed: str) -> None:
        """Notes why TLS failed. closed: what to say if the server just closed the connection."""
        from skidway.security.tls_reasons import setting_of_client, tls_reason

        if isinstance(error, TimeoutError):
            return
        if isinstance(error, ssl.SSLEOFError | ConnectionResetError | BrokenPipeError):
            self._note(closed)
            return
        setting = setting_of_client(error, self._security.ca, self._security.certificate)
        self._note(tls_reason(error) + (setting and f" (zookeeper.{setting})"))

    def _note(self, why: str) -> None:
        """Remembers a problem, and writes it to the log if it is not there yet."""
        self.problem = self._sentence(why)
        told, at_s = self._told
        now_s = time.monotonic()
        if self.is_told and (told != self.problem or now_s - at_s >= TELL_AGAIN_AFTER_S):
            self._told = self.problem, now_s
            _log.warning("zookeeper_refused", reason=self.problem)

    def _sentence(self, why: str) -> str:
        return f"ZooKeeper at {self._addresses} (zookeeper.connect): {why}"


def make(connect: str, session_timeout_s: float, access: Access) -> Any:
    """Returns kazoo's client, which is not started. Every node that it creates has the ACL of
    `access`."""
    client = KazooClient(
        hosts=connect,
        timeout=session_timeout_s,
        handler=_Handler(session_timeout_s, access),
        command_retry=KazooRetry(max_tries=-1, deadline=session_timeout_s),
        connection_retry=KazooRetry(
            max_tries=-1, delay=0.1, backoff=2, max_delay=RECONNECT_DELAY_MAX_S
        ),
        auth_data=access.identities,
        default_acl=access.acl or None,
        use_ssl=access.is_tls,
        logger=_kazoo_log,
    )
    client.add_listener(lambda _state: access.answered() if client.connected else None)
    return client


def end(client: Any) -> bool:
    """Ends the client's session. Returns False if that takes longer than `CLOSE_WITHIN_S`."""
    ending = threading.Thread(target=_stop, args=(client,), name="zookeeper-close", daemon=True)
    ending.start()
    ending.join(CLOSE_WITHIN_S)
    return not ending.is_alive()


def _stop(client: Any) -> None:
    try:
        client.stop()
        client.close()
    except Exception as error:  # noqa: BLE001 (kazoo raises many kinds, even a bare Exception)
        _log.warning("zookeeper_close_failed", why=f"{type(error).__name__} {error}")


class _TlsSocket(ssl.SSLSocket):
    """Tells why it failed. With TLS 1.3, a server refuses the client's certificate only after the
    client's handshake."""

    failed: Callable[[OSError], None]

    def recv(self, buflen: int = 1024, flags: int = 0) -> bytes:
        try:
            return super().recv(buflen, flags)
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            raise
        except OSError as error:
            self.failed(error)
            raise


class _Result(AsyncResult):  # type: ignore[misc]
    """The result of a request. Every wait for the result has a time limit. Without the limit,
    kazoo's own calls would wait without end."""

    def __init__(self, handler: Any, within_s: float, access: Access) -> None:
        super().__init__(handler)
        self._within_s, self._access = within_s, access

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        try:
            found = super().get(block, self._within_s if timeout is None else timeout)
        except _REFUSED as error:
            raise self._access.refused(error) from error
        if isinstance(found, list) and found and isinstance(found[0], Exception):
            for each in found:  # of a transaction, which does not raise them
                if isinstance(each, NoAuthError):
                    raise self._access.refused(each)
        self._access.served()
        return found


class _Handler(SequentialThreadingHandler):  # type: ignore[misc]
    """Runs kazoo's threads, limits every wait for an answer of ZooKeeper, and opens connections."""

    def __init__(self, within_s: float, access: Access) -> None:
        super().__init__()
        self._within_s, self._access = within_s, access

    def async_result(self) -> _Result:
        return _Result(self, self._within_s, self._access)

    def create_connection(
        self, address: tuple[str, int], hostname: str, timeout: float, **_: Any
    ) -> socket.socket:
        return self._access.open(address, hostname, timeout)

    def select(self, reading: Any, writing: Any, failing: Any, timeout: float | None = None) -> Any:
        """Does not wait for a socket that has decrypted an answer already: kazoo would find that
        answer only when the next one comes."""
        kept = [each for each in reading if isinstance(each, ssl.SSLSocket) and each.pending()]
        ready = super().select(reading, writing, failing, 0 if kept else timeout)
        return [*kept, *(each for each in ready[0] if each not in kept)], *ready[1:]
