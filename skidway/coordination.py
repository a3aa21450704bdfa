"""The functions of ZooKeeper that the programs need: a session, its state, and nodes with versions.

A session has three states. In SUSPENDED, a program must stop acting as a leader or owner, because
its session may already be lost. In LOST, the program is neither leader nor owner, and its ephemeral
nodes are gone. If CONNECTED follows SUSPENDED, nothing was lost. Callbacks run on kazoo's threads.
A callback may only pass the new state on to the program's own loop.

Every wait is bounded: if ZooKeeper does not answer a request within `session_timeout_s`, the method
raises Unreachable. After Unreachable it is unknown whether the request takes effect, because
ZooKeeper may still receive it once the connection is back. Kazoo's own methods on
`Coordinator.client` have the same limit, but raise the exceptions in `UNANSWERED`. After one of
these exceptions it is also unknown whether the request takes effect. `close` takes at most
`CLOSE_WITHIN_S`.
"""

from __future__ import annotations

import contextlib
import re
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
from skidway.dataclass import dataclass
from skidway.errors import ConfigurationRefused, Unreachable
from skidway.own_process import OwnProcess

CONNECT_TIMEOUT_S = 15.0
_ADDRESS = re.compile(r"(?:[^\s:\[\]]+|\[[0-9A-Fa-f:.]+\]):([0-9]{1,5})")
_NODE = r"(?!\.{1,2}(?:/|$))[^\s/,]+"
_CHROOT = re.compile(rf"{_NODE}(?:/{_NODE})*")
"""One chroot for all addresses, behind the last of them."""
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
"""A function that is called once, with kazoo's event, when the watched node has changed or the
connection was lost. The function runs on one of kazoo's threads, so it may only pass the event on
to the program's own loop."""


class SessionState(Enum):
    """The state of the session with ZooKeeper."""

    CONNECTED = "connected"
    SUSPENDED = "suspended"
    LOST = "lost"


class Versioned(NamedTuple):
    """A node's content, and its version, which a conditional write needs."""

    data: bytes
    version: int


class Coordinator:
    """A session with ZooKeeper. If the chroot of the connect string ("host:2181/dc1") is missing,
    this class creates the chroot.

    `client` is kazoo's client, for recipes and watches. Raises ConfigurationRefused for a malformed
    connect string. Raises Unreachable if ZooKeeper does not answer within `connect_timeout_s`.
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
        self._process = OwnProcess("connection to ZooKeeper")
        if chroot:  # a client with a chroot cannot create the chroot
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
        """The session's state, as kazoo last reported it."""
        return SessionState(str(self.client.state).lower())

    @property
    def session_id(self) -> int:
        """Id of the present session; 0 while there is none."""
        identity = self.client.client_id
        return 0 if identity is None else int(identity[0])

    def restart(self) -> None:
        """Ends the session with its ephemeral nodes, and begins a new session. Does not wait until
        the new session exists.

        Callbacks get LOST when the old session ends, and CONNECTED when the new session exists.
        Raises Unreachable if the old session does not end. The caller then has to call `restart`
        again.
        """
        try:
            self.client.stop()
            self.client.start_async()
        except KazooException as error:
            raise Unreachable(f"ZooKeeper at {self.connect} does not end our session") from error

    def on_state(self, callback: Callable[[SessionState], None]) -> None:
        """Calls `callback` on one of kazoo's threads with the new state, whenever the state
        changes."""

        def listener(state: str) -> None:
            callback(SessionState(state.lower()))

        self.client.add_listener(listener)

    def _log_state(self, state: SessionState) -> None:
        if self._closing:
            return
        write = _log.info if state is SessionState.CONNECTED else _log.warning
        write("zookeeper_state", state=state.value, connect=self.connect)

    def create_if_absent(self, path: str, data: bytes = b"", *, ephemeral: bool = False) -> bool:
        """Creates a node and its parents. Returns False if the node already exists.

        False may also mean that this call sent its request twice: the first request created the
        node, but the answer was lost. To find out whether this call created the node, the caller
        can compare the node's content with `data`.
        """
        create = self.client.create_async
        try:
            self._answer(path, lambda: create(path, data, ephemeral=ephemeral, makepath=True))
        except NodeExistsError:
            return False
        return True

    def get(self, path: str, *, watch: Watch | None = None) -> Versioned | None:
        """Returns the content and the version of a node. If there is no node, returns None and sets
        no watch.
        """
        try:
            data, stat = self._answer(path, lambda: self.client.get_async(path, watch))
        except NoNodeError:
            return None
        return Versioned(data, stat.version)

    def set_versioned(self, path: str, data: bytes, version: int) -> bool:
        """Writes the content only if the node still has the version that the caller has read.
        Returns False if the node has another version or is gone.

        False may also mean that this call sent its request twice: the first request wrote the
        content, but the answer was lost. To find out whether this call wrote the content, the
        caller can read the node again.
        """
        try:
            self._answer(path, lambda: self.client.set_async(path, data, version))
        except (BadVersionError, NoNodeError):
            return False
        return True

    def children(self, path: str, *, watch: Watch | None = None) -> list[str]:
        """Returns the names of a node's children, sorted. If the node is missing, returns an empty
        list and sets no watch.
        """
        try:
            return sorted(self._answer(path, lambda: self.client.get_children_async(path, watch)))
        except NoNodeError:
            return []

    def watch_node(self, path: str, watch: Watch) -> bool:
        """Watches a node for creation, change and deletion. Returns whether the node exists."""
        found = self._answer(path, lambda: self.client.exists_async(path, watch))
        return found is not None

    def ask(self, path: str, tell: Callable[[bool | None], None]) -> None:
        """Asks whether a node exists, without waiting. Calls `tell` with the answer on one of
        kazoo's threads.

        If no answer came, `tell` is called with None.
        """

        def answered(result: Any) -> None:
            tell(None if result.exception is not None else result.value is not None)

        self.client.exists_async(path).rawlink(answered)

    def transact(self, path: str, build: Callable[[Any], None]) -> list[Any]:
        """Does all operations that `build` adds to kazoo's transaction, or none. Error messages
        name `path`.

        Returns the result of each operation. If nothing was done, returns an exception for each
        operation. The request is sent only once. After Unreachable, the operations may or may not
        have been done.
        """
        transaction = self.client.transaction()
        build(transaction)
        try:
            return list(transaction.commit_async().get(timeout=self._session_timeout_s))
        except UNANSWERED as error:
            raise self._unanswered(path) from error

    def delete(self, path: str, *, version: int = -1) -> bool:
        """Deletes a node. Returns False if the node is gone, has children or has another
        version."""
        try:
            self._answer(path, lambda: self.client.delete_async(path, version))
        except (NoNodeError, BadVersionError, NotEmptyError):
            return False
        return True

    def close(self) -> None:
        """Ends the session, so that its ephemeral nodes are removed at once. May be called several
        times.

        If ZooKeeper does not answer, the nodes are removed when the session expires.
        """
        self._process.require()
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
        """Returns ZooKeeper's answer to a request. Repeats the request until ZooKeeper answers;
        after the session timeout, raises Unreachable.

        Without a connection, kazoo queues the request until there is a connection. If kazoo's
        client is closed, this method raises Unreachable at once.
        """
        self._process.require()
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


@dataclass(frozen=True, slots=True)
class ZooKeeperConnection:
    """How a program reaches ZooKeeper: connect is host:port[,host:port...][/chroot]. Raises
    ConfigurationRefused for a malformed text."""

    connect: str
    session_timeout_s: float = 10.0
    connect_timeout_s: float = CONNECT_TIMEOUT_S

    def __post_init__(self) -> None:
        check_connect(self.connect)

    def open(self) -> Coordinator:
        """Returns a new session. Raises Unreachable if ZooKeeper does not answer in time."""
        return Coordinator(
            self.connect,
            session_timeout_s=self.session_timeout_s,
            connect_timeout_s=self.connect_timeout_s,
        )


def check_connect(connect: str) -> tuple[str, str]:
    """Returns the addresses and the chroot ("" or "/...") of a connect string. Raises
    ConfigurationRefused."""
    addresses, slash, chroot = connect.partition("/")
    if not connect.isprintable():
        raise ConfigurationRefused(f"zookeeper.connect: {connect!r} has characters without a sign")
    for address in addresses.split(","):
        found = _ADDRESS.fullmatch(address.strip())
        if found is None or not 0 < int(found[1]) < 65536:
            raise ConfigurationRefused(
                f"zookeeper.connect: {connect!r} is not host:port[,host:port...][/chroot]"
            )
    if slash and not _CHROOT.fullmatch(chroot):
        raise ConfigurationRefused(
            f"zookeeper.connect: {connect!r} has no valid chroot behind the /"
        )
    return addresses, slash + chroot


class _BoundedResult(AsyncResult):  # type: ignore[misc]
    """The result of a request. Every wait for the result has a time limit. Without the limit,
    kazoo's own calls would wait without end."""

    def __init__(self, handler: Any, within_s: float) -> None:
        super().__init__(handler)
        self._within_s = within_s

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        return super().get(block, self._within_s if timeout is None else timeout)


class _BoundedHandler(SequentialThreadingHandler):  # type: ignore[misc]
    """Runs kazoo's threads, and limits every wait for an answer of ZooKeeper."""

    def __init__(self, within_s: float) -> None:
        super().__init__()
        self._within_s = within_s

    def async_result(self) -> _BoundedResult:
        return _BoundedResult(self, self._within_s)


def _end(client: Any) -> bool:
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
