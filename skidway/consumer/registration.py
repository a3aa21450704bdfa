"""Owns the ZooKeeper session that all streams of a consumer share, and the bells that wake them.

Of the consumer's modules, kazoo's threads call only this one. For each stream that an event
concerns, kazoo's threads add a note with the reason, and wake the stream through its bell. Streams
on several threads read the registration's name, and the time until which the consumer can rely on
the registration (the lease). A lock protects these values. A second lock lets only one thread at a
time register the consumer. Each session gets a new registration name. So no node of an old session
can be mistaken for a node of the new session (see `registry`).
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
    """The reasons why a stream is woken. `changed` says whether the group or the cluster has
    changed. `vacated` are the partitions whose owner node has changed.
    """

    changed: bool
    vacated: frozenset[TopicPartition]


class Bell:
    """Wakes one stream. `rings` is True from a call of `ring` until the next call of `take`, and is
    cheap to read. The file descriptor `fd` is readable while `rings` is True."""

    def __init__(self) -> None:
        self.fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self.rings = False
        self._lock = threading.Lock()
        self._changed = False
        self._vacated: set[TopicPartition] = set()
        self._closed = False

    def ring(self, *, changed: bool = False, vacated: TopicPartition | None = None) -> None:
        """Adds a reason to the notes, and wakes the stream. Any thread may call this method."""
        with self._lock:
            self._changed |= changed
            if vacated is not None:
                self._vacated.add(vacated)
            if not (self.rings or self._closed):
                self.rings = True
                os.eventfd_write(self.fd, 1)

    def take(self) -> Notes:
        """Returns the notes that were added since the last call."""
        with self._lock:
            if self.rings:
                os.eventfd_read(self.fd)
            found = Notes(self._changed, frozenset(self._vacated))
            self.rings, self._changed = False, False
            self._vacated.clear()
            return found

    def close(self) -> None:
        """Closes the bell, which then no longer wakes the stream."""
        with self._lock:
            if not self._closed:
                self._closed = True
                os.close(self.fd)

    def on_change(self, _: Any) -> None:
        """A watch calls this method when members, brokers or topics have changed."""
        self.ring(changed=True)

    def on_owner(self, event: Any) -> None:
        """A watch calls this method when the owner node of a partition has changed. The watch also
        calls this method if the connection to ZooKeeper was lost; the event then has no path.
        """
        vacated = nodes.partition_of(event.path) if event.path else None
        self.ring(changed=vacated is None, vacated=vacated)


class Registration:
    """Knows the name under which the consumer is registered in ZooKeeper, and until when the
    consumer can rely on this registration."""

    def __init__(
        self,
        coordinator: Coordinator,
        group: str,
        *,
        session_timeout_s: float,
        clock: Clock,
    ) -> None:
        """The new registration owns the coordinator: the registration's `close` closes the
        coordinator."""
        self.clock = clock
        self.group = group
        self.guard: Guard | None = None
        self._streams: Mapping[str, int] = {}
        self._bells: tuple[Bell, ...] = ()
        self._lease = Lease(session_timeout_s)
        # Protects `guard` and `_lease`. No thread holds this lock during I/O.
        self._lock = threading.Lock()
        self._registering = threading.Lock()
        self._asked = False
        # The names of attempts to register that had no clear answer. The consumer may be registered
        # under each of these names.
        self._attempted: list[str] = []
        self._session_id = self._tainted = 0
        self._closing = False
        self._coordinator = coordinator
        self._coordinator.on_state(self._on_state)

    def begin(self, streams: Mapping[str, int], bells: tuple[Bell, ...]) -> None:
        """Sets the streams that `ensure` registers, and the bells that wake these streams from now
        on."""
        self._streams, self._bells = dict(streams), bells

    def registry(self) -> GroupRegistry:
        """Returns an object through which one stream reads and writes the group's nodes."""
        return GroupRegistry(self._coordinator, self.group, self.clock)

    @property
    def name(self) -> str | None:
        """The name under which this consumer is registered; None if it is not registered."""
        guard = self.guard
        return None if guard is None else guard.name

    @property
    def is_connected(self) -> bool:
        """Whether ZooKeeper is connected now."""
        return self._coordinator.state is SessionState.CONNECTED

    @property
    def until(self) -> float:
        """The time (monotonic seconds) until which records may be handed out without asking
        ZooKeeper.
        """
        return self._lease.until

    @property
    def renew_at(self) -> float:
        """The time (monotonic seconds) at which to call `renew`."""
        return self._lease.renew_at

    def ensure(self) -> Guard | None:
        """Returns the `Guard` with which the consumer's streams make transactions under its
        registration. If the consumer is not registered, registers it first. Returns None if the
        consumer cannot be registered yet: ZooKeeper is not connected, a new session has to begin
        first, or the registration is closed. Raises Unreachable if ZooKeeper does not answer, and
        GroupCoordinated if stock Kafka clients are members of the group.
        """
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
        """Registers the consumer under a new name. If the consumer lost an earlier registration in
        the present session, owner nodes of that registration may still exist, and other members
        wait until these nodes are gone. In this case, this method registers nothing and returns
        None: it only ends the session, so that ZooKeeper removes the nodes.

        If an earlier attempt to register had no answer, the name of that attempt may exist in
        ZooKeeper. This method removes that name before it tries a new name.
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
            # A new session began during the call of `register`. The registration may belong to the
            # old session, and then ZooKeeper removes it with that session. So the consumer does not
            # count as registered.
            return None
        self._attempted.remove(name)
        with self._lock:
            self._lease.proven(asked_at)
            self._session_id, self.guard = session_id, guard
        return guard

    def confirm(self) -> bool:
        """Asks ZooKeeper whether the registration exists, waits for the answer, and returns the
        answer. Raises Unreachable if ZooKeeper does not answer.
        """
        name, asked_at = self.name, self.clock.monotonic()
        if name is None:
            return False
        if not self.registry().is_registered(name):
            self.lost(name)
            return False
        self._proven(name, asked_at)
        return True

    def renew(self) -> None:
        """Asks ZooKeeper whether the registration exists, without waiting for the answer. Does
        nothing if an earlier call of `renew` has no answer yet.
        """
        name, asked_at = self.name, self.clock.monotonic()
        if name is None or self._asked or not self.is_connected:
            return
        self._asked = True
        path = f"{group_nodes.ids_path(self.group)}/{name}"
        self._coordinator.ask(path, lambda found: self._on_answer(name, asked_at, found))

    def lost(self, name: str) -> None:
        """Notes that the registration `name` is gone: every stream stops at once. The next `ensure`
        makes a new registration.
        """
        with self._lock:
            if self.name != name:
                return
            self._lease.end()
            self.guard = None
            # The owner nodes of the lost registration exist until this session ends.
            self._tainted = self._session_id
        _log.warning("consumer_registration_lost", group=self.group, consumer=name)
        self._ring()

    def close(self) -> None:
        """Ends the session; ZooKeeper then removes the consumer's registration and owner nodes at
        once."""
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

    # methods that run on kazoo's threads

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
