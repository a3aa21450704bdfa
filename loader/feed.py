"""What the loader reads from `_skidway_audit`: announcements, and its own messages.

Read are the audit topic of the cluster that is loaded from and the mirrored ones of the sources,
each from where the newest manifest left off. Announcements are kept beside the marks. Gaps are not
taken from here: what a counter could not have may still have been in the mirror, so only the mirror
itself names them (`skidway.kafka.gaps`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from audit import topic
from audit.marks import FileKey
from audit.messages import (
    TOPIC,
    Announcement,
    Delta,
    Message,
    MessageRefused,
    Seal,
    Tier,
    decode,
)
from loader.side import Place
from skidway import log
from skidway.clock import Clock
from skidway.kafka.client import Client, Fetcher
from skidway.kafka.source import Source
from skidway.kafka.types import TopicPartition

REJECTED_SUFFIX: Final = ".rejected"

_log = log.get(__name__)


@dataclass(slots=True)
class Feed:
    """What was read. positions: `topic/partition/topic id` -> next offset."""

    names: dict[tuple[str, str], dict[FileKey, Place]] = field(default_factory=dict)
    numbers: dict[tuple[str, int], int] = field(default_factory=dict)
    positions: dict[str, int] = field(default_factory=dict)

    def names_of(self, source: Source) -> dict[FileKey, Place]:
        """Announced files whose lines go to a topic, or whose rejected lines do."""
        base = source.topic.removesuffix(REJECTED_SUFFIX)
        return self.names.get((source.cluster, source.topic), {}) | self.names.get(
            (source.cluster, base), {}
        )

    def number(self, producer: str, epoch: int) -> int:
        """The highest number that an output published in an epoch, as far as it was read."""
        return self.numbers.get((producer, epoch), 0)

    def take(self, message: Message) -> None:
        """Notes a message; the first announcement of a file holds."""
        if isinstance(message, Announcement):
            source = message.source
            known = self.names.setdefault((source.cluster, source.topic), {})
            known.setdefault((message.agent, message.file), (message.host, message.path))
        elif isinstance(message, Delta | Seal) and message.sender.tier is Tier.HDFS:
            key = message.sender.producer, message.sender.epoch
            self.numbers[key] = max(message.number, self.numbers.get(key, 0))


def audit_topics(sources: Iterable[Source], cluster: str, existing: Iterable[str]) -> list[str]:
    """The audit topics that have to be read to load topics of these sources."""
    clusters = {source.cluster for source in sources} - {cluster}
    wanted = {TOPIC, *(f"{each}.{TOPIC}" for each in clusters)}
    return sorted(wanted.intersection(existing))


def read_on(client: Client, topics: Iterable[str], feed: Feed, clock: Clock) -> None:
    """Everything between the feed's positions (log start where there is none) and the watermarks
    now. An audit topic that was made again has another id, or is shorter than the position: it is
    read from its start."""
    names = sorted(topics)
    ids = client.metadata(names).topics if names else {}  # first: an old id is the cautious one
    found = topic.bounds(client, names)
    keys = {tp: _key(tp, ids[tp.topic].topic_id) for tp in found}
    ranges = {}
    for tp, (first, end) in found.items():
        position = feed.positions.get(keys[tp], 0)
        ranges[tp] = (max(position, first) if position <= end else first, end)
    for tp, offset, value in topic.read(client, Fetcher(client), ranges, clock):
        _take(feed, tp, offset, value)
    feed.positions = {keys[tp]: end for tp, (_, end) in ranges.items()}


def _key(tp: TopicPartition, topic_id: UUID | None) -> str:
    return f"{tp.topic}/{tp.partition}/{'' if topic_id is None else topic_id.hex}"


def _take(feed: Feed, tp: TopicPartition, offset: int, value: bytes) -> None:
    try:
        feed.take(decode(value))
    except MessageRefused as error:
        _log.warning("audit_message_unreadable", topic=tp.topic, offset=offset, reason=str(error))
