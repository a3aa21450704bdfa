"""The log in which a schema registry keeps its schemas, in memory instead of ZooKeeper. Several
registries can share the log. A test can make single requests to the log fail, and can make the
log's answers get lost."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from skidway.errors import Unreachable


@dataclass
class SharedLog:
    """The contents of all entries of a log, in order. All registries of a test share one log."""

    contents: list[bytes] = field(default_factory=list)


class MemoryLog:
    """The connection of one registry to the log.

    The list `lose` says how the next attempts to create an entry fail. Each item applies to one
    attempt, and is "before", "after" or "twice". The functions in `meanwhile` are called just
    before the next entry is created. With them, a test does what another registry might do at this
    moment.

        "before"  the request never arrives
        "after"   the request arrives, and its answer is lost
        "twice"   the entry is created, but the answer says that its number was already taken
    """

    def __init__(self, shared: SharedLog) -> None:
        self.shared = shared
        self.connected = True
        self.lose: list[str] = []
        self.meanwhile: list[Callable[[], object]] = []
        self.visible: int | None = None
        """How many entries of the log this connection can read until the next `sync`, because its
        ZooKeeper server lags behind. None means all entries."""
        self.reached = threading.Event()
        """This event is set when the registry begins to create an entry."""
        self.missing = 0
        """This number is added to what `count` returns, so that the log seems to lack entries that
        it should have."""

    def create(self, number: int, content: bytes) -> bool:
        """See `Log`."""
        self.reached.set()
        while self.meanwhile:
            self.meanwhile.pop(0)()
        fault = self.lose.pop(0) if self.lose else ""
        if fault == "before":
            raise Unreachable("lost")
        free = number == len(self.shared.contents) + 1
        assert free or number <= len(self.shared.contents), "a gap in the log"
        if free:
            self.shared.contents.append(content)
        self.sync()
        if fault == "after":
            raise Unreachable("lost")
        return free and fault != "twice"

    def read(self, first: int, count: int) -> list[bytes]:
        """See `Log`."""
        known = self.shared.contents[: self.visible]
        return known[first - 1 : first - 1 + count]

    def count(self) -> int:
        """See `Log`."""
        return len(self.shared.contents[: self.visible]) + self.missing

    def sync(self) -> None:
        """See `Log`."""
        self.visible = None

    def watch(self, number: int, wake: Callable[[], None]) -> None:
        """See `Log`."""
        if number <= len(self.shared.contents):
            wake()

    def on_session(self, wake: Callable[[], None]) -> None:
        """See `Log`."""
