"""Collects closures of files and agents' seals from the audit topics. A closure is an agent's
message that it has closed a file. A seal is an agent's message that it has counted all lines up to
a time.

For each agent and topic, this module keeps only the newest seal, because the newest seal proves
everything that the earlier seals prove. An agent may send a message again after a crash, so a copy
of an older seal may follow a closure. Therefore the newest seal is the seal with the highest epoch
and number, whatever the order of the messages. The place (partition and offset) of a seal is where
its first copy was read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from skidway.audit.counts.marks import FileKey
from skidway.audit.topic.messages import Announcement, Seal, Tier
from skidway.kafka.source import Source
from skidway.loader.state.closures import Heard


class Place(NamedTuple):
    """Where a message was read: the partition, and the message's offset. log:
    `topic/partition/topic id`.
    """

    log: str
    offset: int

    def is_new(self, positions: Mapping[str, int]) -> bool:
        """Returns whether the message at this place is new to a reader. positions: the offsets up
        to which the reader has read the audit topics."""
        return self.offset >= positions.get(self.log, 0)


class _Closure(NamedTuple):
    time_ms: int
    place: Place


class _Newest(NamedTuple):
    """An agent's newest seal of a topic."""

    key: tuple[int, int]
    time_ms: int
    offsets: Mapping[int, int]
    place: Place


@dataclass(slots=True)
class Endings:
    """The closures (agents' messages that a file is closed) and the seals that were read from the
    audit topics."""

    _closures: dict[tuple[str, str], dict[FileKey, _Closure]] = field(default_factory=dict)
    _seals: dict[Source, dict[str, _Newest]] = field(default_factory=dict)
    _named: dict[Source, dict[int, int]] = field(default_factory=dict)

    def take(self, message: Announcement | Seal, place: Place) -> None:
        """Stores a seal, or an agent's message that it has closed a file. If two messages say that
        the same file is closed, keeps the first of them."""
        if isinstance(message, Announcement):
            if message.length is not None:
                source = message.source
                known = self._closures.setdefault((source.cluster, source.topic), {})
                closure = _Closure(message.time_ms, place)
                known.setdefault((message.agent, message.file), closure)
        elif message.sender.tier is Tier.AGENT:
            self._take_seal(message, place)

    def closed(
        self, topics: Iterable[tuple[str, str]], positions: Mapping[str, int]
    ) -> dict[FileKey, int]:
        """Returns the closed files of these topics, each with the time at which its agent closed
        it. Leaves out closures before `positions`. topics: cluster and name of each topic.
        positions: the offsets up to which the caller has already read the audit topics."""
        closures = self._closures_of(topics)
        return {key: each.time_ms for key, each in closures if each.place.is_new(positions)}

    def named(self, source: Source) -> Mapping[int, int]:
        """Returns, for each partition of the topic `source`, the highest offset that any seal
        names. (Each seal names an offset for each partition.)
        """
        return self._named.get(source, {})

    def seals(
        self, source: Source, topics: Iterable[tuple[str, str]], positions: Mapping[str, int]
    ) -> dict[int, Heard]:
        """Returns each agent's newest seal of the topic `source`. With each seal, returns the files
        whose closures come from the same agent and precede the seal in the same partition of the
        audit topic. Leaves out seals before `positions`. topics: the pairs (cluster, topic) under
        which agents announce the files whose lines may be in `source`. positions: the offsets up to
        which the caller has already read the audit topics.
        """
        seals = self._seals.get(source, {})
        follows: dict[str, set[FileKey]] = {}
        for key, each in self._closures_of(topics):
            seal = seals.get(str(key[0]))
            if seal and seal.place.log == each.place.log and seal.place > each.place:
                follows.setdefault(str(key[0]), set()).add(key)
        return {
            int(agent): Heard(seal.time_ms, seal.offsets, follows.get(agent, frozenset()))
            for agent, seal in seals.items()
            if seal.place.is_new(positions)
        }

    def _closures_of(self, topics: Iterable[tuple[str, str]]) -> Iterator[tuple[FileKey, _Closure]]:
        for name in topics:
            yield from self._closures.get(name, {}).items()

    def _take_seal(self, message: Seal, place: Place) -> None:
        key = (message.sender.epoch, message.number)
        agent = message.sender.producer
        for topic in message.topics:
            known = self._seals.setdefault(topic.source, {})
            named = self._named.setdefault(topic.source, {})
            for partition, offset in topic.offsets:
                named[partition] = max(offset, named.get(partition, offset))
            if agent not in known or known[agent].key < key:
                known[agent] = _Newest(key, message.time_ms, dict(topic.offsets), place)
