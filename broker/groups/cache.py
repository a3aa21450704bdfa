"""Caches the committed offsets of groups with members, so that the broker need not read the offsets
again after each rebalance.

The cache has no groups without members, because other programs may write the offsets of such
groups. Examples are an administrator's tool, and consumers that coordinate through ZooKeeper. If a
topic was deleted and recreated, the cache does not return the offsets of the old topic.
"""

from __future__ import annotations

import uuid
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Final

from skidway.broker.coordination.consumers import TopicOffset
from skidway.broker.coordination.stored_groups import Offsets
from skidway.kafka.types import TopicPartition

BYTES_MAX: Final = 64 << 20
"""The offsets of all groups together have at most this many bytes. This is enough for 160,000
offsets without metadata."""


class OffsetCache:
    """Stores the offsets of groups. If the offsets need too much memory, drops those of the least
    recently used groups first. Only the loop's thread may use this object.
    """

    def __init__(self, topic_id: Callable[[str], uuid.UUID | None]) -> None:
        self._topic_id = topic_id
        self._groups: OrderedDict[str, dict[TopicPartition, TopicOffset]] = OrderedDict()
        self._bytes = 0

    @property
    def size_bytes(self) -> int:
        """The approximate number of bytes of memory that the cached offsets need."""
        return self._bytes

    def get(self, group: str) -> Offsets | None:
        """Returns all offsets of a group; None if they are not in the cache."""
        found = self._groups.get(group)
        if found is None:
            return None
        self._groups.move_to_end(group)
        current = {each.topic: self._topic_id(each.topic) for each in found}
        return {
            partition: each.committed
            for partition, each in found.items()
            if current[partition.topic] == each.topic_id
        }

    def put(self, group: str, offsets: Offsets) -> None:
        """Caches the offsets of a group. offsets: all offsets that ZooKeeper has for the group."""
        self.drop(group)
        known: dict[TopicPartition, TopicOffset] = {}
        for partition, committed in offsets.items():
            topic_id = self._topic_id(partition.topic)
            if topic_id is not None:
                known[partition] = TopicOffset(topic_id, committed)
        self._groups[group] = known
        self._bytes += _weight(known)
        self._make_room()

    def update(self, group: str, offsets: Mapping[TopicPartition, TopicOffset]) -> None:
        """If the cache has the group, replaces those of its offsets that the group has committed
        again, and adds new ones. If the cache does not have the group, does nothing."""
        known = self._groups.get(group)
        if known is None:
            return
        self._bytes -= _weight({each: known[each] for each in offsets if each in known})
        known.update(offsets)
        self._bytes += _weight(offsets)
        self._make_room()

    def drop(self, group: str) -> None:
        """Removes the offsets of a group from the cache."""
        self._bytes -= _weight(self._groups.pop(group, {}))

    def _make_room(self) -> None:
        while self._bytes > BYTES_MAX:
            self.drop(next(iter(self._groups)))


def _weight(offsets: Mapping[TopicPartition, TopicOffset]) -> int:
    return sum(each.size_bytes for each in offsets.values())
