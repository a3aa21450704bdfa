"""A group's nodes in ZooKeeper. Every claim, commit or release is a transaction that also writes
the registration.

The methods only carry out requests; other modules decide what to do. If ZooKeeper did not answer, a
method may be called again. A method that asks ZooKeeper raises Unreachable if ZooKeeper does not
answer. `claim`, `disclaim`, `release` and `commit` raise `Fenced` if the member's registration is
gone.
"""

from __future__ import annotations

import socket
import uuid
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, NamedTuple

from kazoo.exceptions import NodeExistsError, NoNodeError, RolledBackError

from skidway.clock import Clock
from skidway.consumer import nodes
from skidway.consumer.assignment import Readers
from skidway.consumer.guard import Guard
from skidway.coordination import Coordinator, SessionState, Watch
from skidway.errors import SkidwayError, Unreachable
from skidway.kafka import group_nodes
from skidway.kafka.types import TopicPartition

WRITTEN_AT_ONCE = 100
"""The highest number of offsets that one transaction writes. By default, ZooKeeper accepts no
request of more than 1 MB."""
_ATTEMPTS_MAX = 4


class Fenced(SkidwayError):
    """Raised if this member's registration is gone, or if the member commits the offset of a
    partition whose owner node is gone. The write did not happen, and other members may own this
    member's partitions.
    """


class GroupCoordinated(SkidwayError):
    """The group's members are stock Kafka clients, which coordinate through a broker by Kafka's
    protocol.

    At any time all members of a group are of one kind: stock clients, or Skidway's consumers,
    which coordinate through ZooKeeper. Both kinds use the same committed offsets.
    """


class _Write(NamedTuple):
    path: str
    add: Callable[[Any], None]


class _Refusal(NamedTuple):
    path: str
    error: Exception


class GroupRegistry:
    """Reads and writes the nodes of one group."""

    def __init__(self, coordinator: Coordinator, group: str, clock: Clock) -> None:
        self._coordinator = coordinator
        self._group = nodes.check_group(group)
        self._clock = clock
        self._ids = group_nodes.ids_path(group)
        self._known: dict[str, Mapping[str, frozenset[str]]] = {}
        self._with_offset: set[TopicPartition] = set()

    def new_name(self) -> str:
        """Returns a new random name for a consumer."""
        now_ms = self._clock.time_ms()
        return f"{self._group}_{socket.gethostname()}-{now_ms}-{uuid.uuid4().hex[:8]}"

    def register(self, guard: Guard) -> None:
        """Registers a consumer. Raises GroupCoordinated if members of the group coordinate through
        a broker.

        One transaction checks the broker's record of the group, creates the registration, and
        writes to the parent node of the registrations. When a broker stores members of the group,
        the broker checks that this parent node is unchanged. So if a consumer registers while a
        broker stores members, only one of these two writes succeeds.
        """
        path, data = f"{self._ids}/{guard.name}", guard.document(0)
        for _ in range(_ATTEMPTS_MAX):
            writes = [
                *self._without_coordinated_members(),
                _Write(self._ids, lambda do: do.set_data(self._ids, b"")),
                _create(path, data, ephemeral=True),
            ]
            refusal = _refusal(writes, self._coordinator.transact(path, _all(writes)))
            if refusal is None:
                return
            if refusal.path == self._ids:
                self._coordinator.create_if_absent(self._ids)
            elif refusal.path == path:
                raise refusal.error
        raise Unreachable(f"group {self._group} changes too often to be joined")

    def _without_coordinated_members(self) -> list[_Write]:
        """Returns operations that make a transaction fail if a broker coordinates members of the
        group when the transaction runs. Raises GroupCoordinated if a broker already has members."""
        path = group_nodes.record_path(self._group)
        found = self._coordinator.get(path)
        if found is None:  # the creation fails if a broker has created the node meanwhile
            self._coordinator.create_if_absent(self._ids)
            return [_create(path, b""), _Write(path, lambda do: do.delete(path))]
        if nodes.coordinated_members(found.data):
            raise GroupCoordinated(
                f"group {self._group} has members that coordinate through a broker: "
                "choose another name, or stop them first"
            )
        return [_check(path, found.version)]

    def unregister(self, consumer: str) -> None:
        """Removes a consumer's registration. The other members' watches report the removal at
        once."""
        self._coordinator.delete(f"{self._ids}/{consumer}")

    def is_registered(self, consumer: str) -> bool:
        """Returns whether ZooKeeper still has the consumer's registration."""
        return self._coordinator.get(f"{self._ids}/{consumer}") is not None

    def readers(self, watch: Watch | None = None) -> Readers:
        """Returns every reader of the group with its topics. Reads each registration only once,
        because a registration's topics never change."""
        present = self._coordinator.children(self._ids, watch=watch)
        self._known = {name: self._known[name] for name in present if name in self._known}
        for name in present:
            if name not in self._known:
                found = self._coordinator.get(f"{self._ids}/{name}")
                if found is not None:
                    self._known[name] = nodes.read_registration(name, found.data)
        return {name: topics for each in self._known.values() for name, topics in each.items()}

    def watch_cluster(self, topics: Sequence[str], watch: Watch) -> None:
        """Watches the list of brokers, and the topics' partitions if ZooKeeper has them."""
        self._coordinator.children(nodes.BROKER_IDS, watch=watch)
        for topic in topics:
            self._coordinator.watch_node(f"{nodes.BROKER_TOPICS}/{topic}", watch)

    def claim(self, guard: Guard, reader: str, tp: TopicPartition, watch: Watch) -> bool:
        """Creates the partition's owner node in ZooKeeper, and returns True. If another reader owns
        the partition, watches its owner node and returns False."""
        path = nodes.owner_path(self._group, tp)
        for _ in range(_ATTEMPTS_MAX):
            refusal = self._transact(guard, [_create(path, reader.encode(), ephemeral=True)])
            if refusal is None:
                return True
            if isinstance(refusal.error, NoNodeError):
                self._make_parent(path)
            elif not isinstance(refusal.error, NodeExistsError):
                raise refusal.error
            found = self._coordinator.get(path, watch=watch)
            if found is not None:
                # The node names this reader if an earlier attempt created it, and the answer to
                # that attempt was lost.
                return found.data == reader.encode()
        return False

    def disclaim(self, guard: Guard, reader: str, tp: TopicPartition) -> None:
        """Removes the partition's owner node from ZooKeeper if it names this reader, because a
        claim without an answer may have created the node."""
        # ZooKeeper processes the requests of a session in order. So after this empty transaction,
        # no earlier claim can take effect.
        self._transact(guard, [])
        found = self._coordinator.get(nodes.owner_path(self._group, tp))
        if found is not None and found.data == reader.encode():
            self.release(guard, tp, None)

    def release(self, guard: Guard, tp: TopicPartition, offset: int | None) -> None:
        """Commits an offset (None: commits nothing) and removes the partition's owner node from
        ZooKeeper.

        If there is no answer, call this method again; the release happens only once. If others have
        removed the owner node, nothing is written.
        """
        path = nodes.owner_path(self._group, tp)
        offsets = {} if offset is None else {tp: offset}
        self._write(guard, offsets, [_Write(path, lambda do: do.delete(path))], ("release", tp))

    def commit(self, guard: Guard, offsets: Mapping[TopicPartition, int]) -> None:
        """Commits offsets of owned partitions, at most `WRITTEN_AT_ONCE` in one transaction. Raises
        Fenced if the owner node of one of these partitions is gone."""
        tps = list(offsets)
        for start in range(0, len(tps), WRITTEN_AT_ONCE):
            part = {tp: offsets[tp] for tp in tps[start : start + WRITTEN_AT_ONCE]}
            if not self._write(guard, part, [], None):
                raise Fenced(f"a partition of group {self._group} is not ours any more")

    def offset(self, tp: TopicPartition) -> int | None:
        """Returns the group's committed offset in a partition, or None if no offset is
        committed."""
        found = self._coordinator.get(group_nodes.offset_path(self._group, tp))
        if found is None:
            return None
        self._with_offset.add(tp)
        return nodes.read_offset(found.data)

    def began_with(self, topic: str, partitions: int) -> int | None:
        """Returns how many partitions the topic had when the group first read it. If the group
        reads the topic for the first time, records `partitions` and returns it.

        Returns None if the group has offsets of the topic but did not record that number.
        """
        path = f"{group_nodes.offsets_path(self._group)}/{topic}"
        self._coordinator.create_if_absent(path, nodes.beginning_document(partitions))
        found = self._coordinator.get(path)
        return None if found is None else nodes.read_beginning(found.data)

    def _write(
        self,
        guard: Guard,
        offsets: Mapping[TopicPartition, int],
        more: list[_Write],
        what: Hashable,
    ) -> bool:
        """Writes offsets of owned partitions, and does the operations `more`, in one transaction.
        If an owner node is gone, writes nothing and returns False.
        """
        paths = {group_nodes.offset_path(self._group, tp): tp for tp in offsets}
        for _ in range(_ATTEMPTS_MAX + len(offsets)):
            writes = []
            for path, tp in paths.items():
                writes.append(_check(nodes.owner_path(self._group, tp)))
                data = nodes.offset_document(offsets[tp])
                known = tp in self._with_offset
                writes.append(_set(path, data) if known else _create(path, data))
            refusal = self._transact(guard, [*writes, *more], what)
            if refusal is None:
                self._with_offset.update(offsets)
                return True
            if refusal.path not in paths:
                return False
            self._learn(refusal, paths[refusal.path])
        return False

    def _learn(self, refusal: _Refusal, tp: TopicPartition) -> None:
        """Learns why ZooKeeper refused to write a partition's offset node, so that the next attempt
        succeeds: remembers that the node exists or does not exist, or creates its parent node.
        """
        if isinstance(refusal.error, NodeExistsError):
            self._with_offset.add(tp)
        elif not isinstance(refusal.error, NoNodeError):
            raise refusal.error
        elif tp in self._with_offset:
            self._with_offset.discard(tp)
        else:
            self._make_parent(refusal.path)

    def _make_parent(self, path: str) -> None:
        self._coordinator.create_if_absent(path.rpartition("/")[0])

    def _transact(
        self, guard: Guard, writes: list[_Write], what: Hashable = None
    ) -> _Refusal | None:
        """Does all writes in one transaction. If ZooKeeper refuses one of the writes, writes
        nothing and returns the refusal. Raises Fenced if the registration is gone.

        `what` is the intended change. If an earlier transaction for this change turns out to have
        succeeded, nothing is written again.
        """
        path = f"{self._ids}/{guard.name}"
        with guard.lock:
            for _ in range(_ATTEMPTS_MAX):
                if guard.was_done(what):
                    return None
                refusal = self._attempt(guard, path, writes, what)
                if refusal is None or refusal.path != path:
                    return refusal
                found = self._coordinator.get(path)
                if found is None:
                    break
                guard.found(found.data, found.version)
        raise Fenced(f"{guard.name} is not registered any more")

    def _attempt(
        self, guard: Guard, path: str, writes: list[_Write], what: Hashable
    ) -> _Refusal | None:
        # The streams of a consumer execute this method one after the other. So if this method
        # waited for a connection, all streams would have to wait.
        if self._coordinator.state is not SessionState.CONNECTED:
            raise Unreachable("ZooKeeper does not answer at present")
        token = guard.next_token()
        data, version = guard.document(token), guard.version
        everything = [_Write(path, lambda do: do.set_data(path, data, version)), *writes]
        try:
            results = self._coordinator.transact(path, _all(everything))
        except Unreachable:
            guard.unanswered(token, what)
            raise
        refusal = _refusal(everything, results)
        if refusal is None:
            guard.succeeded()
        return refusal


def _all(writes: Sequence[_Write]) -> Callable[[Any], None]:
    def build(transaction: Any) -> None:
        for write in writes:
            write.add(transaction)

    return build


def _refusal(writes: Sequence[_Write], results: Sequence[Any]) -> _Refusal | None:
    for write, result in zip(writes, results, strict=True):
        if isinstance(result, Exception) and not isinstance(result, RolledBackError):
            return _Refusal(write.path, result)
    return None


def _check(path: str, version: int = -1) -> _Write:
    return _Write(path, lambda do: do.check(path, version))


def _create(path: str, data: bytes, *, ephemeral: bool = False) -> _Write:
    return _Write(path, lambda do: do.create(path, data, ephemeral=ephemeral))


def _set(path: str, data: bytes) -> _Write:
    return _Write(path, lambda do: do.set_data(path, data))
