"""ZooKeeper, as far as our programs need it: a session, its state, and versioned nodes.

States: after SUSPENDED stop acting as a leader or owner, because the session may already be lost;
after LOST you are neither, and your ephemeral nodes are gone; CONNECTED after SUSPENDED means that
nothing was lost. Callbacks run on kazoo's threads and must only hand the value over to the loop
that owns the state.

Every wait is bounded: a request that ZooKeeper does not answer in `session_timeout_s` raises
Unreachable. Its outcome is then unknown: it may still be carried out once the connection is back.
The same holds for kazoo's own calls on `client` (they raise what `UNANSWERED` names), and `close`
takes `CLOSE_WITHIN_S` at most, whatever ZooKeeper does.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from enum import Enum
from types import TracebackType
from typing import Any, NamedTuple

from kazoo.client import KazooClient
from kazoo.exceptions import (
    BadVersionError,
    ConnectionClosedError,
    ConnectionLoss,
    KazooException,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    OperationTimeoutError,
    SessionExpiredError,
)
from kazoo.handlers.threading import AsyncResult, KazooTimeoutError, SequentialThreadingHandler
from kazoo.retry import KazooRetry, RetryFailedError

from skidway import log
from skidway.errors import ConfigurationRefused, Unreachable

CONNECT_TIMEOUT_S = 15.0
RECONNECT_DELAY_MAX_S = 2.0
ASK_AGAIN_AFTER_S = 0.1
CLOSE_WITHIN_S = 5.0
UNANSWERED = (
    ConnectionClosedError,
    ConnectionLoss,
    KazooTimeoutError,
    OperationTimeoutError,
    RetryFailedError,
    SessionExpiredError,
)

_log = log.get(__name__)

Watch = Callable[[Any], None]
"""Called once with kazoo's event, on a thread of kazoo's, when the watched node has changed or the
connection was lost. It must only hand the event over."""


class SessionState(Enum):
    """The state of our session."""

    CONNECTED = "connected"
    SUSPENDED = "suspended"
    LOST = "lost"


class Versioned(NamedTuple):
    """A node's content with the version that a conditional write needs."""

    data: bytes
    version: int


class Coordinator:
    """A session with ZooKeeper. The chroot of the connect string ("host:2181/dc1") is created.

    `client` is kazoo's, for recipes and watches. Raises ConfigurationRefused for a malformed
    connect string, Unreachable if nobody answers within `connect_timeout_s`.
    """

    def __init__(
        self,
        connect: str,
        *,
        session_timeout_s: float = 10.0,
        connect_timeout_s: float = CONNECT_TIMEOUT_S,
    ) -> None:
        self.connect = connect
        self._addresses, chroot = check_connect(connect)
        self._session_timeout_s = session_timeout_s
        self._closing = False
        if chroot:  # kazoo cannot create a chroot from inside it
            with self._started(_client(self._addresses, session_timeout_s), connect_timeout_s) as c:
                c.ensure_path(chroot)
                _end(c)
        with self._started(_client(connect, session_timeout_s), connect_timeout_s) as client:
            self.client = client
        self.on_state(self._log_state)
        _log.info("zookeeper_connected", connect=connect)

    def __enter__(self) -> Coordinator:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def state(self) -> SessionState:
        """The state as kazoo last knew it."""
        return SessionState(str(self.client.state).lower())

    @property
    def session_id(self) -> int:
        """The present session; 0 while there is none."""
        identity = self.client.client_id
        return 0 if identity is None else int(identity[0])

    def restart(self) -> None:
        """Ends the session and its ephemeral nodes, and begins another without waiting for it.

        Callbacks get LOST, and CONNECTED once the new session is there. Raises Unreachable if the
        old session does not end; then call it again.
        """
        try:
            self.client.stop()
            self.client.start_async()
        except KazooException as error:
            raise Unreachable(f"ZooKeeper at {self.connect} does not end our session") from error

    def on_state(self, callback: Callable[[SessionState], None]) -> None:
        """Calls `callback` with each change from now on, on a thread of kazoo's."""

        def listener(state: str) -> None:
            callback(SessionState(state.lower()))

        self.client.add_listener(listener)

    def _log_state(self, state: SessionState) -> None:
        if self._closing:
            return
        write = _log.info if state is SessionState.CONNECTED else _log.warning
        write("zookeeper_state", state=state.value, connect=self.connect)

    def create_if_absent(self, path: str, data: bytes = b"", *, ephemeral: bool = False) -> bool:
        """Creates a node and its parents; False if it is there already.

        False may also mean that the answer to our own creation was lost: where that matters, look
        at the content.
        """
        create = self.client.create_async
        try:
            self._answer(path, lambda: create(path, data, ephemeral=ephemeral, makepath=True))
        except NodeExistsError:
            return False
        return True

    def get(self, path: str, *, watch: Watch | None = None) -> Versioned | None:
        """Content and version of a node, or None if there is none; then nothing is watched."""
        try:
            data, stat = self._answer(path, lambda: self.client.get_async(path, watch))
        except NoNodeError:
            return None
        return Versioned(data, stat.version)

    def set_versioned(self, path: str, data: bytes, version: int) -> bool:
        """Writes only over the version that was read; False if somebody else was faster.

        False may also mean that the answer to our own write was lost: read again and compare.
        """
        try:
            self._answer(path, lambda: self.client.set_async(path, data, version))
        except (BadVersionError, NoNodeError):
            return False
        return True

    def children(self, path: str, *, watch: Watch | None = None) -> list[str]:
        """Names of a node's children, sorted; none (and no watch) if the node is missing."""
        try:
            return sorted(self._answer(path, lambda: self.client.get_children_async(path, watch)))
        except NoNodeError:
            return []

    def watch_node(self, path: str, watch: Watch) -> bool:
        """Watches a node for creation, change and deletion. Returns whether it exists."""
        found = self._answer(path, lambda: self.client.exists_async(path, watch))
        return found is not None

    def ask(self, path: str, tell: Callable[[bool | None], None]) -> None:
        """Asks without waiting whether a node exists; calls `tell` on a thread of kazoo's.

        None means that no answer came.
        """

        def answered(result: Any) -> None:
            tell(None if result.exception is not None else result.value is not None)

        self.client.exists_async(path).rawlink(answered)

    def transact(self, path: str, build: Callable[[Any], None]) -> list[Any]:
        """Does all that `build` adds to kazoo's transaction, or nothing; `path` names it in errors.

        Returns the result of each operation; if nothing was done, an exception for each. Sent only
        once: after Unreachable it may have been done.
        """
        transaction = self.client.transaction()
        build(transaction)
        try:
            return list(transaction.commit_async().get(timeout=self._session_timeout_s))
        except UNANSWERED as error:
            raise self._unanswered(path) from error

    def delete(self, path: str, *, version: int = -1) -> bool:
        """Deletes a node; False if it is gone, has children or another version."""
        try:
            self._answer(path, lambda: self.client.delete_async(path, version))
        except (NoNodeError, BadVersionError, NotEmptyError):
            return False
        return True

    def close(self) -> None:
        """Ends the session, so that its ephemeral nodes go at once; harmless when closed already.

        If ZooKeeper does not answer, they go when the session expires.
        """
        self._closing = True
        if not _end(self.client):
            _log.warning("zookeeper_not_closed", connect=self.connect, after_s=CLOSE_WITHIN_S)

    @contextlib.contextmanager
    def _started(self, client: Any, timeout_s: float) -> Iterator[Any]:
        try:
            client.start(timeout=timeout_s)
            yield client
        except UNANSWERED as error:
            _end(client)
            raise Unreachable(
                f"ZooKeeper at {self._addresses} did not answer within {timeout_s:g} s; "
                "is it running, and is zookeeper.connect right?"
            ) from error

    def _answer(self, path: str, request: Callable[[], Any]) -> Any:
        """Asks until answered, at most for the session timeout; kazoo itself would go on waiting.

        Without a connection kazoo queues the request, so this sleeps in get(); only a lost session
        fails at once, until kazoo has made the next one.
        """
        deadline = time.monotonic() + self._session_timeout_s
        while True:
            try:
                return request().get(timeout=max(0.0, deadline - time.monotonic()))
            except UNANSWERED as error:
                left_s = deadline - time.monotonic()
                if left_s <= 0 or isinstance(error, ConnectionClosedError):
                    raise self._unanswered(path) from error
                time.sleep(min(left_s, ASK_AGAIN_AFTER_S))

    def _unanswered(self, path: str) -> Unreachable:
        return Unreachable(
            f"ZooKeeper at {self._addresses} did not answer a request for {path} "
            f"within {self._session_timeout_s:g} s"
        )


def check_connect(connect: str) -> tuple[str, str]:
    """Addresses and chroot ("" or "/...") of a connect string. Raises ConfigurationRefused."""
    addresses, slash, chroot = connect.partition("/")
    for address in addresses.split(","):
        host, _, port = address.strip().rpartition(":")
        if not host or not port.isdigit() or not 0 < int(port) < 65536:
            raise ConfigurationRefused(
                f"zookeeper.connect: {connect!r} is not host:port[,host:port...][/chroot]"
            )
    if slash and (not chroot or "//" in connect or connect.endswith("/")):
        raise ConfigurationRefused(
            f"zookeeper.connect: {connect!r} has no valid chroot behind the /"
        )
    return addresses, slash + chroot


class _BoundedResult(AsyncResult):  # type: ignore[misc]
    """A request's result, with a bound on every wait; kazoo's own calls would wait for ever."""

    def __init__(self, handler: Any, within_s: float) -> None:
        super().__init__(handler)
        self._within_s = within_s

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        """Raises KazooTimeoutError when the result is not there in time."""
        return super().get(block, self._within_s if timeout is None else timeout)


class _BoundedHandler(SequentialThreadingHandler):  # type: ignore[misc]
    """kazoo's threads, with a bound on every wait for an answer."""

    def __init__(self, within_s: float) -> None:
        super().__init__()
        self._within_s = within_s

    def async_result(self) -> _BoundedResult:
        """The result of one request."""
        return _BoundedResult(self, self._within_s)


def _end(client: Any) -> bool:
    """Ends a session; returns whether it ended in time. kazoo waits for ZooKeeper's answer."""
    ending = threading.Thread(target=_stop, args=(client,), name="zookeeper-close", daemon=True)
    ending.start()
    ending.join(CLOSE_WITHIN_S)
    return not ending.is_alive()


def _stop(client: Any) -> None:
    try:
        client.stop()
        client.close()
    except Exception as error:  # noqa: BLE001 (kazoo gives up, with a bare Exception among others)
        _log.warning("zookeeper_close_failed", why=f"{type(error).__name__} {error}")


def _client(connect: str, session_timeout_s: float) -> Any:
    return KazooClient(
        hosts=connect,
        timeout=session_timeout_s,
        handler=_BoundedHandler(session_timeout_s),
        command_retry=KazooRetry(max_tries=-1, deadline=session_timeout_s),
        connection_retry=KazooRetry(
            max_tries=-1, delay=0.1, backoff=2, max_delay=RECONNECT_DELAY_MAX_S
        ),
    )
