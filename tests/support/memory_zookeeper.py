"""A ZooKeeper in memory, and clients for it. A test can delay a client, and can make it lose its
connection or its session.

This ZooKeeper does what a real ZooKeeper promises. Transactions are atomic, and ephemeral nodes
disappear with their session. `expire` ends the sessions whose clients have sent no request for
longer than the session timeout. Watches fire once. Each request of a client calls the client's
`hook`, a function of the test. What the hook does happens while the client waits for the answer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

from kazoo.exceptions import BadVersionError, NodeExistsError, NoNodeError, RolledBackError

from skidway.coordination import SessionState, Versioned
from skidway.errors import Unreachable
from support.clock import ManualClock


@dataclass
class Event:
    path: str | None


@dataclass
class Node:
    data: bytes
    owner: int | None
    version: int = 0


class Fate(Enum):
    """What happens to a client's request."""

    ANSWERED = "answered"
    ANSWER_LOST = "done, and the answer lost"
    LOST = "lost before it was done"
    ASKED_AGAIN = "done, the answer lost, and asked again"


class MemoryZooKeeper:
    """The state of the ZooKeeper servers: nodes, sessions and watches."""

    def __init__(self, clock: ManualClock, session_timeout_s: float) -> None:
        self.clock = clock
        self.session_timeout_s = session_timeout_s
        self.nodes: dict[str, Node] = {}
        self.heard_at: dict[int, float] = {}
        self.watches: dict[tuple[str, str], list[tuple[int, Callable[[Any], None]]]] = {}
        self.sessions = 0
        self.refused_writes = 0

    def open(self) -> int:
        self.sessions += 1
        self.heard_at[self.sessions] = self.clock.monotonic()
        return self.sessions

    def expire(self) -> None:
        """Ends all sessions whose timeout has passed."""
        now = self.clock.monotonic()
        for session, heard_at in list(self.heard_at.items()):
            if now - heard_at > self.session_timeout_s:
                self.end(session)

    def end(self, session: int) -> None:
        self.heard_at.pop(session, None)
        for path in [path for path, node in self.nodes.items() if node.owner == session]:
            self.remove(path)
        for watches in self.watches.values():
            watches[:] = [each for each in watches if each[0] != session]

    def children(self, path: str) -> list[str]:
        start = path.rstrip("/") + "/"
        below = (each.removeprefix(start) for each in self.nodes if each.startswith(start))
        return sorted(name for name in below if "/" not in name)

    def make(self, path: str, data: bytes, owner: int | None) -> None:
        self.nodes[path] = Node(data, owner)
        self._fire("node", path)
        self._fire("children", path.rpartition("/")[0])

    def write(self, path: str, data: bytes) -> None:
        node = self.nodes[path]
        node.data, node.version = data, node.version + 1
        self._fire("node", path)

    def remove(self, path: str) -> None:
        del self.nodes[path]
        self._fire("node", path)
        self._fire("children", path.rpartition("/")[0])

    def watch(self, kind: str, path: str, session: int, tell: Callable[[Any], None] | None) -> None:
        if tell is not None:
            found = self.watches.setdefault((kind, path), [])
            if (session, tell) not in found:
                found.append((session, tell))

    def forget_watches(self, session: int) -> None:
        """Removes all watches of a session whose connection is lost, and notifies their
        callbacks."""
        for watches in self.watches.values():
            for each in [each for each in watches if each[0] == session]:
                watches.remove(each)
                each[1](Event(None))

    def transact(self, session: int, operations: list[tuple[Any, ...]]) -> list[Any]:
        for index, operation in enumerate(operations):
            error = self._refusal(operation, operations[:index])
            if error is not None:
                self.refused_writes += 1
                results: list[Any] = [RolledBackError() for _ in operations]
                results[index] = error
                return results
        for kind, path, *rest in operations:
            if kind == "create":
                self.make(path, rest[0], session if rest[1] else None)
            elif kind == "set":
                self.write(path, rest[0])
            elif kind == "delete":
                self.remove(path)
        return [None for _ in operations]

    def _refusal(
        self, operation: tuple[Any, ...], before: list[tuple[Any, ...]]
    ) -> Exception | None:
        kind, path = operation[:2]
        made = any(each[0] == "create" and each[1] == path for each in before)
        exists = path in self.nodes or made
        if kind == "create":
            if exists:
                return NodeExistsError()
            parent = path.rpartition("/")[0]
            return NoNodeError() if parent and parent not in self.nodes else None
        if not exists:
            return NoNodeError()
        wanted = operation[3] if kind in ("check", "set") else -1
        wrong = wanted != -1 and wanted != self.nodes[path].version
        return BadVersionError() if wrong else None

    def _fire(self, kind: str, path: str) -> None:
        for _, tell in self.watches.pop((kind, path), []):
            tell(Event(path))


class Operations:
    """A transaction with the same methods as kazoo's transaction."""

    def __init__(self) -> None:
        self.operations: list[tuple[Any, ...]] = []

    def check(self, path: str, version: int) -> None:
        self.operations.append(("check", path, None, version))

    def create(self, path: str, data: bytes, ephemeral: bool = False) -> None:
        self.operations.append(("create", path, data, ephemeral))

    def set_data(self, path: str, data: bytes, version: int = -1) -> None:
        self.operations.append(("set", path, data, version))

    def delete(self, path: str) -> None:
        self.operations.append(("delete", path))


class MemoryCoordinator:
    """A client of the ZooKeeper in memory. It has the methods of `Coordinator` that a consumer
    uses."""

    def __init__(
        self,
        server: MemoryZooKeeper,
        fate: Callable[[], Fate] = lambda: Fate.ANSWERED,
        hook: Callable[[], None] = lambda: None,
    ) -> None:
        self.server = server
        self.fate = fate
        self.hook = hook
        self.session = server.open()
        self.state = SessionState.CONNECTED
        self._callbacks: list[Callable[[SessionState], None]] = []

    def on_state(self, callback: Callable[[SessionState], None]) -> None:
        self._callbacks.append(callback)

    def break_off(self) -> None:
        """Breaks the connection. The session may stay alive on the servers."""
        if self.state is SessionState.CONNECTED:
            self._become(SessionState.SUSPENDED)
            self.server.forget_watches(self.session)

    def connect_again(self) -> None:
        """Restores the connection. If the session has ended in the meantime, this call tells the
        client so."""
        if self.state is not SessionState.CONNECTED:
            self._notice_end()
            if self.session in self.server.heard_at:
                self.server.heard_at[self.session] = self.server.clock.monotonic()
            self._become(SessionState.CONNECTED)

    @property
    def session_id(self) -> int:
        return self.session

    def restart(self) -> None:
        self._become(SessionState.LOST)
        self.server.end(self.session)
        self.session = self.server.open()
        self._become(SessionState.CONNECTED)

    def ping(self) -> None:
        """Keeps the session alive, like the pings that kazoo's own thread sends."""
        if self.state is SessionState.CONNECTED and self.session in self.server.heard_at:
            self.server.heard_at[self.session] = self.server.clock.monotonic()

    def create_if_absent(self, path: str, data: bytes = b"", *, ephemeral: bool = False) -> bool:
        return bool(self._request(lambda: self._make(path, data, ephemeral)))

    def get(self, path: str, *, watch: Callable[[Any], None] | None = None) -> Versioned | None:
        def request() -> Versioned | None:
            node = self.server.nodes.get(path)
            if node is None:
                return None
            self.server.watch("node", path, self.session, watch)
            return Versioned(node.data, node.version)

        found: Versioned | None = self._request(request)
        return found

    def children(self, path: str, *, watch: Callable[[Any], None] | None = None) -> list[str]:
        def request() -> list[str]:
            self.server.watch("children", path, self.session, watch)
            return self.server.children(path)

        return list(self._request(request))

    def watch_node(self, path: str, watch: Callable[[Any], None]) -> bool:
        def request() -> bool:
            self.server.watch("node", path, self.session, watch)
            return path in self.server.nodes

        return bool(self._request(request))

    def ask(self, path: str, tell: Callable[[bool | None], None]) -> None:
        try:
            found = self._request(lambda: path in self.server.nodes)
        except Unreachable:
            tell(None)
        else:
            tell(bool(found))

    def transact(self, path: str, build: Callable[[Any], None]) -> list[Any]:
        operations = Operations()
        build(operations)
        return list(
            self._request(
                lambda: self.server.transact(self.session, operations.operations), once=True
            )
        )

    def set_versioned(self, path: str, data: bytes, version: int) -> bool:
        def request() -> bool:
            node = self.server.nodes.get(path)
            if node is None or node.version != version:
                return False
            self.server.write(path, data)
            return True

        return bool(self._request(request))

    def delete(self, path: str, *, version: int = -1) -> bool:
        def request() -> bool:
            there = path in self.server.nodes
            if there:
                self.server.remove(path)
            return there

        return bool(self._request(request))

    def close(self) -> None:
        self.state = SessionState.LOST
        self.server.end(self.session)

    def _make(self, path: str, data: bytes, ephemeral: bool) -> bool:
        parent = path.rpartition("/")[0]
        if parent and parent not in self.server.nodes:
            self._make(parent, b"", False)
        if path in self.server.nodes:
            return False
        self.server.make(path, data, self.session if ephemeral else None)
        return True

    def _request(self, do: Callable[[], Any], *, once: bool = False) -> Any:
        self.hook()
        if self.state is not SessionState.CONNECTED:
            raise Unreachable("no connection")
        self._notice_end()
        fate = self.fate()
        if fate is Fate.LOST:
            raise Unreachable("not answered, not done")
        self.server.heard_at[self.session] = self.server.clock.monotonic()
        found = do()
        if fate is Fate.ANSWERED:
            return found
        self.break_off()
        self.hook()
        if once or fate is Fate.ANSWER_LOST:
            raise Unreachable("not answered, but done")
        # Like a real client, this client connects again and repeats the request, even if the old
        # session has ended and the client has a new one.
        self.connect_again()
        return do()

    def _notice_end(self) -> None:
        if self.session not in self.server.heard_at:
            self._become(SessionState.LOST)
            self.session = self.server.open()
            self._become(SessionState.CONNECTED)

    def _become(self, state: SessionState) -> None:
        self.state = state
        for callback in self._callbacks:
            callback(state)
