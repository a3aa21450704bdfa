"""ZooKeeper, as far as our programs need it: a session, its state, and versioned nodes.

States: after SUSPENDED stop acting as a leader or owner (the session may be lost already, without
our knowing); after LOST you are none: ephemeral nodes are gone; CONNECTED again after SUSPENDED
means that nothing was lost. Callbacks run on kazoo's threads and must only hand the value over to
the loop that owns the state.

Every wait is bounded: what ZooKeeper does not answer in `session_timeout_s` raises Unreachable.
"""

from __future__ import annotations

import contextlib
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
    OperationTimeoutError,
    SessionExpiredError,
)
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.protocol.states import KazooState
from kazoo.retry import KazooRetry, RetryFailedError

from skidway import log
from skidway.errors import ConfigurationRefused, Unreachable

CONNECT_TIMEOUT_S = 15.0
RECONNECT_DELAY_MAX_S = 2.0

_log = log.get(__name__)


class State(Enum):
    """What may be believed about our session."""

    CONNECTED = "connected"
    SUSPENDED = "suspended"
    LOST = "lost"


class Versioned(NamedTuple):
    """A node's content with the version that a conditional write needs."""

    data: bytes
    version: int


class Coordinator:
    """A session with ZooKeeper. The chroot of the connect string ("host:2181/dc1") is created.

    `client` is kazoo's, for recipes and watches. Raises ConfigurationRefused for a connect string
    that is none, Unreachable if nobody answers within `connect_timeout_s`.
    """

    def __init__(
        self,
        connect: str,
        *,
        session_timeout_s: float = 10.0,
        connect_timeout_s: float = CONNECT_TIMEOUT_S,
    ) -> None:
        self.connect = connect
        self._addresses = check_connect(connect)
        self._session_timeout_s = session_timeout_s
        self.client = _client(connect, session_timeout_s)
        self._start(connect_timeout_s)

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
    def state(self) -> State:
        """The state as kazoo last knew it."""
        return State(str(self.client.state).lower())

    def on_state(self, callback: Callable[[State], None]) -> None:
        """Calls back with each change from now on, on a thread of kazoo's."""

        def listener(state: str) -> None:
            callback(State(state.lower()))

        self.client.add_listener(listener)

    def create_if_absent(self, path: str, data: bytes = b"", *, ephemeral: bool = False) -> bool:
        """Creates a node and its parents; False if it is there already.

        False may also mean that our own creation's answer was lost: where that matters, look at the
        content.
        """
        with self._bounded(path):
            try:
                self.client.retry(
                    self.client.create, path, data, ephemeral=ephemeral, makepath=True
                )
            except NodeExistsError:
                return False
            return True

    def get(self, path: str) -> Versioned | None:
        """Content and version of a node, or None if there is none."""
        with self._bounded(path):
            try:
                data, stat = self.client.retry(self.client.get, path)
            except NoNodeError:
                return None
            return Versioned(data, stat.version)

    def set_versioned(self, path: str, data: bytes, version: int) -> bool:
        """Writes only over the version that was read; False if somebody else was faster.

        False may also mean that our own write's answer was lost: read again and compare.
        """
        with self._bounded(path):
            try:
                self.client.retry(self.client.set, path, data, version=version)
            except (BadVersionError, NoNodeError):
                return False
            return True

    def children(self, path: str) -> list[str]:
        """Names of a node's children, sorted; none if the node is missing."""
        with self._bounded(path):
            try:
                return sorted(self.client.retry(self.client.get_children, path))
            except NoNodeError:
                return []

    def delete(self, path: str, *, version: int = -1) -> bool:
        """Deletes a node; False if it is gone, has children or another version."""
        with self._bounded(path):
            try:
                self.client.retry(self.client.delete, path, version=version)
            except (NoNodeError, BadVersionError):
                return False
            return True

    def close(self) -> None:
        """Ends the session, so that ephemeral nodes go at once; harmless when closed already."""
        self.client.stop()
        self.client.close()

    def _start(self, timeout_s: float) -> None:
        try:
            self.client.start(timeout=timeout_s)
            self.client.ensure_path("/")
        except (KazooTimeoutError, ConnectionClosedError, RetryFailedError) as error:
            self.close()
            raise Unreachable(
                f"ZooKeeper at {self._addresses} did not answer within {timeout_s:g} s; "
                "is it running, and is zookeeper.connect right?"
            ) from error
        _log.info("zookeeper_connected", connect=self.connect)

    @contextlib.contextmanager
    def _bounded(self, path: str) -> Iterator[None]:
        try:
            yield
        except (
            ConnectionLoss,
            ConnectionClosedError,
            OperationTimeoutError,
            RetryFailedError,
            SessionExpiredError,
            KazooTimeoutError,
        ) as error:
            raise Unreachable(
                f"ZooKeeper at {self._addresses} did not answer a request for {path} "
                f"within {self._session_timeout_s:g} s"
            ) from error


def check_connect(connect: str) -> str:
    """The addresses of a connect string, without its chroot. Raises ConfigurationRefused."""
    addresses, slash, chroot = connect.partition("/")
    for address in addresses.split(","):
        host, _, port = address.strip().rpartition(":")
        if not host or not port.isdigit() or not 0 < int(port) < 65536:
            raise ConfigurationRefused(
                f"zookeeper.connect: {connect!r} is not host:port[,host:port...][/chroot]"
            )
    if slash and (not chroot or "//" in connect or connect.endswith("/")):
        raise ConfigurationRefused(
            f"zookeeper.connect: {connect!r} has no good chroot behind the /"
        )
    return addresses


def _client(connect: str, session_timeout_s: float) -> Any:
    return KazooClient(
        hosts=connect,
        timeout=session_timeout_s,
        connection_retry=KazooRetry(
            max_tries=-1, delay=0.1, backoff=2, max_delay=RECONNECT_DELAY_MAX_S
        ),
        command_retry=KazooRetry(
            max_tries=-1, delay=0.1, backoff=2, max_delay=1.0, deadline=session_timeout_s
        ),
    )


__all__ = ["Coordinator", "KazooException", "KazooState", "State", "Versioned", "check_connect"]
