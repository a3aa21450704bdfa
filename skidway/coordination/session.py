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

If ZooKeeper answers, but refuses what this client asks, both raise AccessRefused.
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

from kazoo.exceptions import (
    BadVersionError,
    ConnectionClosedError,
    KazooException,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
)
from kazoo.protocol.states import KeeperState

from skidway import log
from skidway.coordination.client import (
    CLOSE_WITHIN_S,
    RECONNECT_DELAY_MAX_S,
    UNANSWERED,
    Access,
    AccessRefused,
    end,
    make,
)
from skidway.coordination.security import OPEN, ZooKeeperSecurity
from skidway.dataclass import dataclass
from skidway.errors import ConfigurationRefused, Unreachable
from skidway.own_process import OwnProcess

CONNECT_TIMEOUT_S = 15.0
_ADDRESS = re.compile(r"(?:[^\s:\[\]]+|\[[0-9A-Fa-f:.]+\]):([0-9]{1,5})")
_NODE = r"(?!\.{1,2}(?:/|$))[^\s/,]+"
_CHROOT = re.compile(rf"{_NODE}(?:/{_NODE})*")
"""One chroot for all addresses, behind the last of them."""
ASK_AGAIN_AFTER_S = 0.1

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

    With a user in `security`, every node that is created belongs to its users, also the chroot.

    `client` is kazoo's client, for recipes and watches. Raises ConfigurationRefused for a malformed
    connect string, or a file of `security` that cannot be used. Raises Unreachable if ZooKeeper
    does not answer within `connect_timeout_s`, or does not let this client in.
    """

    def __init__(
        self,
        connect: str,
        *,
        session_timeout_s: float = 10.0,
        connect_timeout_s: float = CONNECT_TIMEOUT_S,
        security: ZooKeeperSecurity = OPEN,
    ) -> None:
        self.connect = connect
        self._addresses, chroot = check_connect(connect)
        self._session_timeout_s = session_timeout_s
        self._closing = False
        self._process = OwnProcess("connection to ZooKeeper")
        self._access = Access(self._addresses, security)
        if chroot:  # a client with a chroot cannot create the chroot
            with self._started(self._addresses, connect_timeout_s) as client:
                client.ensure_path(chroot)
                end(client)
        with self._started(connect, connect_timeout_s) as client:
            self.client = client
        self._access.is_told = True
        self.on_state(self._log_state)
        self.on_state(self._begin_again)
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
    def problem(self) -> str:
        """Why ZooKeeper does not let this client in, or has refused its last request; empty if it
        serves the client, or only does not answer."""
        return self._access.problem or self._access.refusal

    @property
    def acl(self) -> list[Any]:
        """The ACL of the nodes that this client creates; empty if they are open to everybody."""
        return list(self._access.acl)

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

    def _begin_again(self, state: SessionState) -> None:
        """Begins a new session after ZooKeeper has refused the user. Kazoo would do nothing more
        then, although ZooKeeper may take the user later. Kazoo calls this method on its own thread,
        which must not be made to wait."""
        if state is SessionState.LOST and self.client.client_state == KeeperState.AUTH_FAILED:
            self._access.refuse_users()
            timer = threading.Timer(RECONNECT_DELAY_MAX_S, self._start_again)
            timer.daemon = True
            timer.start()

    def _start_again(self) -> None:
        if not self._closing:
            self.client.start_async()  # not after `stop`, whose request would end the new session
        if self._closing:
            end(self.client)

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
        if not end(self.client):
            _log.warning("zookeeper_not_closed", connect=self.connect, after_s=CLOSE_WITHIN_S)

    @contextlib.contextmanager
    def _started(self, connect: str, timeout_s: float) -> Iterator[Any]:
        client = make(connect, self._session_timeout_s, self._access)
        try:
            client.start(timeout=timeout_s)
            yield client
        except AccessRefused:
            end(client)
            raise
        except UNANSWERED as error:
            end(client)
            raise Unreachable(
                self._access.problem
                or f"ZooKeeper at {self._addresses} did not answer within {timeout_s:g} s; "
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
            except AccessRefused as error:
                raise AccessRefused(f"{error} ({path})") from error
            except UNANSWERED as error:
                left_s = deadline - time.monotonic()
                if left_s <= 0 or isinstance(error, ConnectionClosedError):
                    raise self._unanswered(path) from error
                time.sleep(min(left_s, ASK_AGAIN_AFTER_S))

    def _unanswered(self, path: str) -> Unreachable:
        return Unreachable(
            self._access.problem
            or f"ZooKeeper at {self._addresses} did not answer a request for {path} "
            f"within {self._session_timeout_s:g} s"
        )


@dataclass(frozen=True, slots=True)
class ZooKeeperConnection:
    """How a program reaches ZooKeeper: connect is host:port[,host:port...][/chroot]. Raises
    ConfigurationRefused for a malformed text."""

    connect: str
    session_timeout_s: float = 10.0
    connect_timeout_s: float = CONNECT_TIMEOUT_S
    security: ZooKeeperSecurity = OPEN

    def __post_init__(self) -> None:
        check_connect(self.connect)

    def open(self) -> Coordinator:
        """Returns a new session. Raises Unreachable if ZooKeeper does not answer in time, or does
        not let this client in, and ConfigurationRefused if a file of `security` cannot be used."""
        return Coordinator(
            self.connect,
            session_timeout_s=self.session_timeout_s,
            connect_timeout_s=self.connect_timeout_s,
            security=self.security,
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
