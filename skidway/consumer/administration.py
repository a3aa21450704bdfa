"""Administers consumer groups without being a member: lists them, shows their progress, and resets
their offsets.

Works on every group in Kafka 0.8's ZooKeeper layout, whichever program created the group.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from skidway.consumer import nodes
from skidway.coordination import Coordinator
from skidway.errors import SkidwayError, UsageError
from skidway.kafka import group_nodes
from skidway.kafka.client import EARLIEST, LATEST, Client
from skidway.kafka.types import TopicPartition

RESETTER = b"skidway-groups-reset"
"""The content of the partitions' owner nodes while `reset` sets offsets. As long as these nodes
exist, members that start during the reset cannot claim the partitions."""


@dataclass(frozen=True, slots=True)
class GroupSummary:
    """A group. `members` is the number of members that are active now. `topics` are the topics that
    `Groups.topics` returns.

    The consumers that are registered in ZooKeeper are members, and so are the members that joined
    the group through Kafka's group protocol.
    """

    group: str
    members: int
    topics: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PartitionStatus:
    """The progress of a group in one partition. `owner` is None if no member owns the partition.
    `committed_offset` is None if the group has committed no offset in the partition. The offsets of
    the log's start and end are None if the partition is not in the cluster."""

    topic: str
    partition: int
    owner: str | None
    committed_offset: int | None
    log_start_offset: int | None
    log_end_offset: int | None

    @property
    def lag(self) -> int | None:
        """Returns the number of offsets that the group can still read: from the committed offset,
        or from the log start if that is higher, up to the log end. None if an offset is unknown."""
        committed, start, end = self.committed_offset, self.log_start_offset, self.log_end_offset
        if committed is None or start is None or end is None:
            return None
        return max(end - max(committed, start), 0)


@dataclass(frozen=True, slots=True)
class Change:
    """The new committed offset of a partition. In a dry run, the new offset is only planned and not
    stored. `before` is the offset that was committed before, or None if there was none."""

    topic: str
    partition: int
    before: int | None
    after: int


class Groups:
    """The groups of a cluster. A method raises Unreachable if it needs an answer from ZooKeeper or
    from a broker, and gets none."""

    def __init__(self, coordinator: Coordinator, client: Client) -> None:
        self._coordinator = coordinator
        self._client = client

    def all(self) -> list[GroupSummary]:
        """Returns every group, sorted by name."""
        names = self._coordinator.children(group_nodes.CONSUMERS)
        return [
            GroupSummary(group, self.active(group), tuple(self.topics(group)))
            for group in map(group_nodes.group_of, names)
        ]

    def active(self, group: str) -> int:
        """Returns the number of active members: those that are registered in ZooKeeper and those
        that use Kafka's group protocol."""
        found = self._coordinator.get(group_nodes.record_path(group))
        coordinated = 0 if found is None else nodes.coordinated_members(found.data)
        return len(self.members(group)) + coordinated

    def members(self, group: str) -> Sequence[str]:
        """Returns the consumers that are registered in ZooKeeper now."""
        return self._coordinator.children(group_nodes.ids_path(group))

    def topics(self, group: str) -> Sequence[str]:
        """Returns the topics to which members that are registered in ZooKeeper subscribe, or for
        which the group has offsets or owner nodes."""
        topics = set(self._coordinator.children(group_nodes.offsets_path(group)))
        topics.update(self._coordinator.children(group_nodes.owners_path(group)))
        for member in self.members(group):
            found = self._coordinator.get(f"{group_nodes.ids_path(group)}/{member}")
            if found is not None:
                for subscribed in nodes.read_registration(member, found.data).values():
                    topics |= subscribed
        return sorted(topics)

    def describe(self, group: str) -> Sequence[PartitionStatus]:
        """Returns the status of every partition of the group's topics. Raises SkidwayError if there
        is no such group."""
        self._require(group)
        topics = self.topics(group)
        bounds = self._bounds(topics)
        found = []
        for topic in topics:
            tps = {tp for tp in bounds if tp.topic == topic} | self._committed(group, topic)
            for tp in sorted(tps):
                start, end = bounds.get(tp, (None, None))
                owner = self._coordinator.get(nodes.owner_path(group, tp))
                name = None if owner is None else owner.data.decode(errors="replace")
                offset = self._offset(group, tp)
                found.append(PartitionStatus(*tp, name, offset, start, end))
        return found

    def reset(
        self, group: str, offsets: Mapping[TopicPartition, int], *, dry_run: bool = False
    ) -> Sequence[Change]:
        """Sets the group's committed offsets to `offsets`, and returns the changes. With `dry_run`,
        only returns the changes. If a member is active or owns one of the partitions, raises
        SkidwayError and changes no offset.

        During the reset, this method owns the owner nodes of the partitions. So no member can begin
        to read at the old offsets.
        """
        active = self.active(group)
        if active:
            raise SkidwayError(
                f"group {group} has {active} active members: stop them before its offsets are set"
            )
        changes = [
            Change(*tp, self._offset(group, tp), offset) for tp, offset in sorted(offsets.items())
        ]
        if dry_run:
            return changes
        mine: list[str] = []
        try:
            for tp in sorted(offsets):
                path = nodes.owner_path(group, tp)
                if not self._coordinator.create_if_absent(path, RESETTER, ephemeral=True):
                    raise SkidwayError(f"{tp} is owned by a member of group {group}: stop it first")
                mine.append(path)
            for tp, offset in sorted(offsets.items()):
                self._set(group, tp, offset)
        finally:
            for path in mine:
                self._coordinator.delete(path)
        return changes

    def positions(
        self, group: str, topics: Sequence[str], where: int, partitions: Sequence[int] = ()
    ) -> dict[TopicPartition, int]:
        """Returns an offset for each partition. `where` is EARLIEST (log start), LATEST (log end),
        or a time in ms. If `where` is a time, the offset is that of the first record with this time
        or a later one. If all records are older, the offset is the log end."""
        tps = self._partitions(group, topics, partitions)
        found = self._client.list_offsets(dict.fromkeys(tps, where))
        late = [tp for tp, listed in found.items() if listed.offset < 0]
        found.update(self._client.list_offsets(dict.fromkeys(late, LATEST)))
        return {tp: listed.offset for tp, listed in found.items()}

    def at_offset(
        self, group: str, topics: Sequence[str], offset: int, partitions: Sequence[int] = ()
    ) -> dict[TopicPartition, int]:
        """Returns a dict that maps each of the partitions to `offset`. Raises UsageError if a topic
        or partition does not exist, or if that offset lies outside the log of a partition."""
        tps = self._partitions(group, topics, partitions)
        bounds = self._bounds(sorted({tp.topic for tp in tps}))
        for tp in tps:
            start, end = bounds[tp]
            if not start <= offset <= end:
                raise UsageError(f"{tp} holds offsets {start} to {end}, not {offset}")
        return dict.fromkeys(tps, offset)

    def _partitions(
        self, group: str, topics: Sequence[str], partitions: Sequence[int]
    ) -> list[TopicPartition]:
        """Returns partitions of the given topics, or of all topics of the group if `topics` is
        empty. `partitions` has the numbers of the wanted partitions; if it is empty, all are
        wanted. Raises UsageError if a given topic does not exist or no partition is left, and
        SkidwayError if `topics` is empty and there is no such group."""
        if not topics:
            self._require(group)
        names = list(topics) or list(self.topics(group))
        bounds = self._counts(names)
        missing = [name for name in names if not bounds.get(name)]
        if missing and topics:
            raise UsageError(f"there is no topic {missing[0]}")
        tps = [TopicPartition(name, p) for name in names for p in range(bounds.get(name, 0))]
        if partitions:
            tps = [tp for tp in tps if tp.partition in partitions]
        if not tps:
            raise UsageError(f"group {group} has none of these partitions")
        return tps

    def _counts(self, topics: Sequence[str]) -> dict[str, int]:
        if not topics:
            return {}
        found = self._client.metadata(topics).topics
        return {name: len(topic.partitions) for name, topic in found.items()}

    def _bounds(self, topics: Sequence[str]) -> dict[TopicPartition, tuple[int, int]]:
        counts = self._counts(topics)
        tps = [TopicPartition(name, p) for name, count in counts.items() for p in range(count)]
        if not tps:
            return {}
        start = self._client.list_offsets(dict.fromkeys(tps, EARLIEST))
        end = self._client.list_offsets(dict.fromkeys(tps, LATEST))
        return {tp: (start[tp].offset, end[tp].offset) for tp in tps}

    def _committed(self, group: str, topic: str) -> set[TopicPartition]:
        names = self._coordinator.children(f"{group_nodes.offsets_path(group)}/{topic}")
        return {TopicPartition(topic, int(name)) for name in names if name.isdecimal()}

    def _offset(self, group: str, tp: TopicPartition) -> int | None:
        found = self._coordinator.get(group_nodes.offset_path(group, tp))
        return None if found is None else nodes.read_offset(found.data)

    def _set(self, group: str, tp: TopicPartition, offset: int) -> None:
        path, data = group_nodes.offset_path(group, tp), nodes.offset_document(offset)
        while not self._coordinator.create_if_absent(path, data):
            found = self._coordinator.get(path)
            if found is not None and (
                found.data == data or self._coordinator.set_versioned(path, data, found.version)
            ):
                return

    def _require(self, group: str) -> None:
        names = self._coordinator.children(group_nodes.CONSUMERS)
        if group not in map(group_nodes.group_of, names):
            raise SkidwayError(f"there is no group {group}")
