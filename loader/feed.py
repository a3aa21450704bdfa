"""What the loader reads from `_skidway_audit`: announcements, gaps of mirrors, its own messages.

Read are the audit topic of the cluster that is loaded from and the mirrored ones of the sources,
each from where the newest manifest left off. Announcements are kept beside the marks, gaps only for
the load that reads them (a gap that is passed is written into the manifest).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from audit import topic
from audit.marks import FileKey
from audit.messages import (
    TOPIC,
    Announcement,
    Delta,
    Heartbeat,
    Message,
    MessageRefused,
    Tier,
    decode,
)
from loader.manifest import Gap
from loader.side import Place
from skidway import log
from skidway.clock import Clock
from skidway.kafka.client import Client, Fetcher
from skidway.kafka.source import Source
from skidway.kafka.types import TopicPartition

REJECTED_SUFFIX: Final = ".rejected"

_log = log.get(__name__)

GapKey = tuple[Source, int]
"""Source topic and partition."""


@dataclass(slots=True)
class Feed:
    """What was read. positions: `topic/partition` -> next offset."""

    names: dict[tuple[str, str], dict[FileKey, Place]] = field(default_factory=dict)
    gaps: dict[GapKey, list[Gap]] = field(default_factory=dict)
    numbers: dict[tuple[str, int], int] = field(default_factory=dict)
    positions: dict[str, int] = field(default_factory=dict)

    def names_of(self, source: Source) -> dict[FileKey, Place]:
        """Announced files whose lines go to a topic, or whose rejected lines do."""
        base = source.topic.removesuffix(REJECTED_SUFFIX)
        return self.names.get((source.cluster, source.topic), {}) | self.names.get(
            (source.cluster, base), {}
        )

    def gaps_of(self, source: Source) -> dict[int, tuple[Gap, ...]]:
        """Gaps that a mirror named in a source topic, by partition."""
        return {
            partition: tuple(gaps)
            for (named, partition), gaps in self.gaps.items()
            if _same(named, source)
        }

    def number(self, producer: str, epoch: int) -> int:
        """The highest number that an output published in an epoch, as far as it was read."""
        return self.numbers.get((producer, epoch), 0)

    def take(self, message: Message) -> None:
        """Notes a message; the first announcement of a file holds."""
        if isinstance(message, Announcement):
            source = message.source
            known = self.names.setdefault((source.cluster, source.topic), {})
            known.setdefault((message.agent, message.file), (message.host, message.path))
        elif not isinstance(message, Heartbeat) and message.sender.tier is Tier.HDFS:
            key = message.sender.producer, message.sender.epoch
            self.numbers[key] = max(message.number, self.numbers.get(key, 0))
        elif isinstance(message, Delta) and message.sender.tier is Tier.MIRROR:
            for gap in message.gaps:
                named = self.gaps.setdefault((gap.source, gap.partition), [])
                named.append(Gap(gap.first, gap.end, gap.reason))


def _same(named: Source, source: Source) -> bool:
    """Whether a gap's topic is this one, and not another of the same name before or after it."""
    return (named.cluster, named.topic) == (source.cluster, source.topic) and (
        not named.topic_id or not source.topic_id or named.topic_id == source.topic_id
    )


def audit_topics(sources: Iterable[Source], cluster: str, existing: Iterable[str]) -> list[str]:
    """The audit topics that have to be read to load topics of these sources."""
    clusters = {source.cluster for source in sources} - {cluster}
    wanted = {TOPIC, *(f"{each}.{TOPIC}" for each in clusters)}
    return sorted(wanted.intersection(existing))


def read_on(client: Client, topics: Iterable[str], feed: Feed, clock: Clock) -> None:
    """Everything between the feed's positions (log start where there is none) and the watermarks
    now. An audit topic that is shorter than the position was made again and is read from its start.
    """
    ranges = {}
    for tp, (first, end) in topic.bounds(client, topics).items():
        position = feed.positions.get(_key(tp), 0)
        ranges[tp] = (max(position, first) if position <= end else first, end)
    for tp, offset, value in topic.read(client, Fetcher(client), ranges, clock):
        _take(feed, tp, offset, value)
    feed.positions.update({_key(tp): end for tp, (_, end) in ranges.items()})


def _key(tp: TopicPartition) -> str:
    return f"{tp.topic}/{tp.partition}"


def _take(feed: Feed, tp: TopicPartition, offset: int, value: bytes) -> None:
    try:
        feed.take(decode(value))
    except MessageRefused as error:
        _log.warning("audit_message_unreadable", topic=tp.topic, offset=offset, reason=str(error))
