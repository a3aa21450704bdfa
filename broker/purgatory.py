"""Keeps requests that cannot be answered yet: fetches for which there is too little data, and
produce requests that wait until the high watermark has passed their batches. Such a request is
called an *operation* here. The names "operation" and "purgatory" are Kafka's.

An operation is registered for each partition for which it waits. Code that changes a partition
calls `check`, which asks each operation of that partition whether it can complete. Every operation
ends exactly once, in one of three ways: it completes; or it expires, at its deadline; or it is
abandoned, because it has raised an exception. An abandoned operation's connection is closed. The
exception does not affect the other operations or the caller of `check`.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from skidway import log
from skidway.broker.network.timers import Timer, Timers
from skidway.kafka.types import TopicPartition


class Delayed(Protocol):
    """An operation (a request that waits). Two operations are equal only if they are one object."""

    def try_complete(self, changed: TopicPartition) -> bool:
        """Completes the operation, that is, answers its request, if this is possible. Returns
        whether the operation is complete; if it is, this method is never called again. Only the
        partition `changed` has changed since the last call, so an operation that watches many
        partitions need not look at the others.
        """
        ...

    def expire(self) -> None:
        """Answers the request now, for example with the data that there is, or with an error."""
        ...

    def abandon(self) -> None:
        """Closes the connection of the request, because the request cannot be answered."""
        ...


WATCHED_MAX = 1_000_000
"""An operation (a waiting request) needs an entry for each partition for which it waits. All
operations together may have at most this many entries, which need about 200 MB of memory. The limit
on the number of connections does not limit this memory, because an operation remains after its
connection is closed.
"""
_log = log.get(__name__)


class Purgatory:
    """All waiting operations. Only the loop uses it."""

    def __init__(self, timers: Timers) -> None:
        self.failed = 0
        self._timers = timers
        self._watched: dict[TopicPartition, dict[Delayed, None]] = {}
        self._waiting: dict[Delayed, tuple[Collection[TopicPartition], Timer]] = {}
        self._watched_count = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def has_room(self, partitions: int) -> bool:
        """Returns whether one more request may wait for this many partitions. If not, the request
        must be answered at once.
        """
        return self._watched_count + partitions <= WATCHED_MAX

    def watch(
        self, operation: Delayed, partitions: Collection[TopicPartition], deadline: float
    ) -> None:
        """Keeps a waiting operation until it completes, or until it expires at `deadline`
        (monotonic seconds).
        """
        timer = self._timers.call_at(deadline, lambda: self._expire(operation))
        self._waiting[operation] = (partitions, timer)
        self._watched_count += len(partitions)
        for partition in partitions:
            self._watched.setdefault(partition, {})[operation] = None

    def waits_for(self, partition: TopicPartition) -> bool:
        """Returns whether any request waits for a change of this partition."""
        return partition in self._watched

    def check(self, partition: TopicPartition) -> None:
        """Asks each request that waits for this partition whether it can complete now."""
        for operation in tuple(self._watched.get(partition, ())):
            if operation in self._waiting:
                self._try(operation, partition)

    def forget(self, operation: Delayed) -> None:
        """Removes an operation from the waiting operations, without answering its request. Does
        nothing if the operation does not wait any more."""
        found = self._waiting.pop(operation, None)
        if found is None:
            return
        partitions, timer = found
        self._timers.cancel(timer)
        self._watched_count -= len(partitions)
        for partition in partitions:
            watched = self._watched.get(partition)
            if watched is not None:
                watched.pop(operation, None)
                if not watched:
                    del self._watched[partition]

    def expire_all(self) -> None:
        """Called when the broker stops. Answers all waiting requests as if their deadlines had
        come."""
        for operation in tuple(self._waiting):
            self._expire(operation)

    def _try(self, operation: Delayed, changed: TopicPartition) -> None:
        try:
            complete = operation.try_complete(changed)
        except Exception as error:  # noqa: BLE001 - a bug in one operation must not stop others
            self._abandon(operation, error)
        else:
            if complete:
                self.forget(operation)

    def _expire(self, operation: Delayed) -> None:
        if operation in self._waiting:
            self.forget(operation)
            try:
                operation.expire()
            except Exception as error:  # noqa: BLE001 - as above
                self._abandon(operation, error)

    def _abandon(self, operation: Delayed, error: Exception) -> None:
        self.failed += 1
        _log.error("parked_request_failed", exc=error)
        self.forget(operation)
        operation.abandon()
