"""Our session with ZooKeeper, shared by all streams of a consumer, and the bells that wake them.

kazoo's threads come in here and nowhere else: they leave a note and ring a bell. Streams on several
threads ask whether the session may be trusted; one lock orders them. The registration's name is new
for each session, so that nothing written under an old one can be taken for ours (see `registry`).
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from typing import Any, NamedTuple

from skidway import log
from skidway.clock import Clock
from skidway.consumer import nodes
from skidway.consumer.guard import Guard
from skidway.consumer.lease import Lease
from skidway.consumer.registry import GroupRegistry
from skidway.coordination import Coordinator, SessionState
from skidway.kafka import group_nodes
from skidway.kafka.types import TopicPartition

_log = log.get(__name__)


class Notes(NamedTuple):
    """What has happened: the group or the cluster has changed; owner nodes have."""

    changed: bool
    vacated: frozenset[TopicPartition]


class Bell:
    """Wakes one stream. `rings` is cheap to look at; `fd` is readable while it is True."""

    def __init__(self) -> None:
        self.fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self.rings = False
        self._lock = threading.Lock()
        self._changed = False
        self._vacated: set[TopicPartition] = set()
        self._closed = False

    def ring(self, *, changed: bool = False, vacated: TopicPartition | None = None) -> None:
        """Leaves a note, from any thread."""
        with self._lock:
            self._changed |= changed
            if vacated is not None:
                self._vacated.add(vacated)
            if not (self.rings or self._closed):
                self.rings = True
                os.eventfd_write(self.fd, 1)

    def take(self) -> Notes:
        """The notes since the last time."""
        with self._lock:
            if self.rings:
                os.eventfd_read(self.fd)
            found = Notes(self._changed, frozenset(self._vacated))
            self.rings, self._changed = False, False
            self._vacated.clear()
            return found

    def close(self) -> None:
        """Rings no more."""
        with self._lock:
            if not self._closed:
                self._closed = True
                os.close(self.fd)

    def on_change(self, _: Any) -> None:
        """Called by a watch of members, brokers or topics."""
        self.ring(changed=True)

    def on_owner(self, event: Any) -> None:
        """Called by a watch of an owner node; the event has no path if the connection was lost."""
        vacated = nodes.partition_of(event.path) if event.path else None
        self.ring(changed=vacated is None, vacated=vacated)


class Registration:
    """The name under which the consumer takes part, and whether it may be trusted."""

    def __init__(
        self,
        coordinator: Coordinator,
        group: str,
        *,
        session_timeout_s: float,
        clock: Clock,
    ) -> None:
        """Owns the coordinator from now on."""
        self.clock = clock
        self.group = group
        self.guard: Guard | None = None
        self._streams: Mapping[str, int] = {}
        self._bells: tuple[Bell, ...] = ()
        self._lease = Lease(session_timeout_s)
        self._lock = threading.Lock()  # name and lease; nobody waits while holding it
        self._registering = threading.Lock()
        self._asked = False
        self._attempted: list[str] = []  # names that may be registered without our knowing
        self._session_id = self._tainted = 0
        self._closing = False
        self._coordinator = coordinator
        self._coordinator.on_state(self._on_state)

    def begin(self, streams: Mapping[str, int], bells: tuple[Bell, ...]) -> None:
        """From now on `ensure` registers these streams, and these bells are rung."""
        self._streams, self._bells = dict(streams), bells

    def registry(self) -> GroupRegistry:
        """The group's nodes, for one stream."""
        return GroupRegistry(self._coordinator, self.group, self.clock)

    @property
    def name(self) -> str | None:
        """The name that we are registered under."""
        guard = self.guard
        return None if guard is None else guard.name

    @property
    def is_connected(self) -> bool:
        """Whether asking ZooKeeper makes sense now."""
        return self._coordinator.state is SessionState.CONNECTED

    @property
    def until(self) -> float:
        """Until when records may be handed out without asking (monotonic seconds)."""
        return self._lease.until

    @property
    def renew_at(self) -> float:
        """When to `renew`."""
        return self._lease.renew_at

    def ensure(self) -> Guard | None:
        """Our registration; registers if there is none. None while nobody answers."""
        guard = self.guard
        if guard is not None or not self.is_connected:
            return guard
        with self._registering:
            if self.guard is not None or self._closing:
                return self.guard
            guard = self._register()
        if guard is not None:
            _log.info("consumer_registered", group=self.group, consumer=guard.name)
            self._ring()
        return guard

    def _register(self) -> Guard | None:
        """Registers a new name. None if our session must end first: others wait for what it owns.

        A name whose registration was not answered may be there: it is removed before the next try.
        """
        session_id = self._coordinator.session_id
        if session_id and session_id == self._tainted:
            _log.warning("consumer_session_ended", group=self.group)
            self._coordinator.restart()
            return None
        registry = self.registry()
        for name in list(self._attempted):
            registry.unregister(name)
            self._attempted.remove(name)
        asked_at = self.clock.monotonic()
        guard = Guard(registry.new_name(), self._streams, self.clock.time_ms())
        name = guard.name
        self._attempted.append(name)
        registry.register(guard)
        if self._coordinator.session_id != session_id:
            return None  # another session began: it is unknown which one has the name
        self._attempted.remove(name)
        with self._lock:
            self._lease.proven(asked_at)
            self._session_id, self.guard = session_id, guard
        return guard

    def confirm(self) -> bool:
        """Asks ZooKeeper whether we are registered. Unreachable when it does not answer."""
        name, asked_at = self.name, self.clock.monotonic()
        if name is None:
            return False
        if not self.registry().is_registered(name):
            self.lost(name)
            return False
        self._proven(name, asked_at)
        return True

    def renew(self) -> None:
        """Asks without waiting; one question at a time."""
        name, asked_at = self.name, self.clock.monotonic()
        if name is None or self._asked or not self.is_connected:
            return
        self._asked = True
        path = f"{group_nodes.ids_path(self.group)}/{name}"
        self._coordinator.ask(path, lambda found: self._on_answer(name, asked_at, found))

    def lost(self, name: str) -> None:
        """A registration is gone: every stream stops at once, and `ensure` makes a new one."""
        with self._lock:
            if self.name != name:
                return
            self._lease.end()
            self.guard = None
            self._tainted = self._session_id  # if it lives on, nobody else can remove its nodes
        _log.warning("consumer_registration_lost", group=self.group, consumer=name)
        self._ring()

    def close(self) -> None:
        """Ends the session, which removes at once what is still registered or owned."""
        with self._lock:
            self._closing = True
            self.guard = None
            self._lease.end()
        self._coordinator.close()

    def _proven(self, name: str, asked_at: float) -> None:
        with self._lock:
            if self.name == name:
                self._lease.proven(asked_at)

    def _ring(self) -> None:
        for bell in self._bells:
            bell.ring(changed=True)

    # on kazoo's threads

    def _on_answer(self, name: str, asked_at: float, found: bool | None) -> None:
        self._asked = False
        if found:
            self._proven(name, asked_at)
        elif found is not None:
            self.lost(name)

    def _on_state(self, state: SessionState) -> None:
        name = self.name
        if state is SessionState.LOST and name is not None and not self._closing:
            self.lost(name)
        self._ring()
