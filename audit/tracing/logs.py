"""The clusters in which a command searches for lines. Finds out which of their topics have the
records of a source topic, and searches these topics.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from skidway.audit.tracing.lines import REJECTED_SUFFIX, LineRecord
from skidway.audit.tracing.log_search import LogSearch, record_at
from skidway.kafka.batch import BatchHeader
from skidway.kafka.client import EARLIEST, LATEST, READ_UNCOMMITTED, Client
from skidway.kafka.columns import unpack
from skidway.kafka.source import CLUSTER_NAME, Source, cluster_name_of, sources_of
from skidway.kafka.types import TopicPartition
from skidway.schemas.topic_reading import MAX_BYTES, read_batches

BROKER, MIRROR = "broker", "mirror"
Ranges = dict[TopicPartition, tuple[int, int]]
Batch = tuple[TopicPartition, BatchHeader, memoryview]
Read = Callable[[Client, Ranges, int], Iterator[Batch]]

ONE_BATCH: Final = 64 * 1024
"""The limit (in bytes) of a fetch response if only one record is needed. The limit is small, so
that the response has few other batches. A single batch may be larger than the limit."""


OPEN: Final = "a transaction is open at offset {at} of {tp}: nothing can be read from there on"


class Span(NamedTuple):
    """The offsets of a partition. first: the first offset. readable: up to where committed records
    can be read. end: the high watermark. If a transaction is open, it begins at `readable`, and
    `end` is greater; otherwise both are the same."""

    first: int
    readable: int
    end: int


Spans = dict[TopicPartition, Span]


@dataclass(slots=True)
class SiteCluster:
    """A cluster to search. topics: by source cluster and source topic, the topic's name in this
    cluster. read: a function that reads ranges of the cluster's logs. known: the offsets of each
    partition at the time when the cluster was first asked for them."""

    client: Client
    name: str
    topics: dict[tuple[str, str], str] = field(default_factory=dict)
    read: Read = read_batches
    known: Spans = field(default_factory=dict)

    def tier(self, source: Source) -> str:
        """The tier of this cluster for the records of a source topic: broker in the source's own
        cluster, mirror in all others."""
        return BROKER if source.cluster == self.name else MIRROR

    def topics_of(self, source: Source) -> list[str]:
        """The names that a source topic and its topic of rejects have in this cluster. Leaves out
        topics that do not exist in the cluster."""
        names = (source.topic, source.topic + REJECTED_SUFFIX)
        found = (self.topics.get((source.cluster, name)) for name in names)
        return [name for name in found if name is not None]

    def span(self, tp: TopicPartition) -> Span:
        """The offsets of a partition. Raises KafkaError if there is no such partition."""
        if tp not in self.known:
            self.known |= spans_of(self.client, [tp])
        return self.known[tp]

    def source_named(self, topic: str) -> tuple[str, str] | None:
        """The source cluster and source topic of a topic in this cluster; None if they are
        unknown."""
        return next((key for key, name in self.topics.items() if name == topic), None)


def topic_here(client: Client, source: Source) -> str | None:
    """The name that a source topic or its mirrored copy has in a cluster; None if the cluster has
    neither. If the cluster has topics with both names, this is the name of the mirrored copy."""
    names = [f"{source.cluster}.{source.topic}", source.topic]
    known = client.metadata(names).topics
    return next((x for x in names if x in known and not known[x].error), None)


def look(
    client: Client, wanted: Collection[str], configured_name: str | None = None
) -> SiteCluster:
    """Asks a cluster which of its topics belong to the source topics `wanted`: topics with these
    names, their mirrored copies, and the topics of rejects of both. Returns the cluster with these
    topics. configured_name: the cluster's name in the settings; None to ask the brokers for the
    name."""
    name = cluster_name_of(client.broker_configs(CLUSTER_NAME), configured_name)
    ends = {each for topic in wanted for each in (topic, topic + REJECTED_SUFFIX)}
    known = client.metadata().topics
    here = [each for each in known if each in ends or each.partition(".")[2] in ends]
    sources = sources_of(client, here, name)
    return SiteCluster(client, name, {(x.cluster, x.topic): n for n, x in sources.items()})


def spans_of(client: Client, tps: Sequence[TopicPartition]) -> Spans:
    """Returns the offsets of partitions. Raises KafkaError if one of them does not exist."""
    first = client.list_offsets(dict.fromkeys(tps, EARLIEST))
    # What arrives between the two questions does not look like an open transaction.
    end = client.list_offsets(dict.fromkeys(tps, LATEST), READ_UNCOMMITTED)
    readable = client.list_offsets(dict.fromkeys(tps, LATEST))
    return {
        tp: Span(first[tp].offset, readable[tp].offset, max(readable[tp].offset, end[tp].offset))
        for tp in tps
    }


def spans_of_topics(client: Client, topics: Sequence[str]) -> Spans:
    """Returns the offsets of the partitions of these topics."""
    found = client.metadata(topics).topics
    tps = [TopicPartition(name, p.index) for name in found for p in found[name].partitions]
    return spans_of(client, tps) if tps else {}


def open_transactions(spans: Spans) -> list[str]:
    """Returns a text for each partition in which a transaction is open."""
    is_open = ((tp, x) for tp, x in spans.items() if x.readable < x.end)
    return [OPEN.format(tp=tp, at=x.readable) for tp, x in is_open]


def ranges_since(client: Client, spans: Spans, since_ms: int | None) -> tuple[Ranges, Ranges]:
    """Returns two ranges of offsets for each of these partitions. The first range begins at the
    first record with an event time of `since_ms` or later, and ends where committed records end.
    The second range has the offsets before the first range. Without `since_ms`, the first range has
    all offsets.
    """
    begin = {} if since_ms is None else client.list_offsets(dict.fromkeys(spans, since_ms))
    later: Ranges = {}
    earlier: Ranges = {}
    for tp, (first, readable, _) in spans.items():
        at = begin[tp].offset if tp in begin else first
        at = max(at if at >= 0 else readable, first)
        later[tp], earlier[tp] = (at, readable), (first, at)
    return later, earlier


def searched(cluster: SiteCluster, ranges: Ranges, search: LogSearch) -> Iterator[LineRecord]:
    """Yields the records in `ranges` that match the search."""
    for tp, header, raw in cluster.read(cluster.client, ranges, MAX_BYTES):
        for record in search.take(tp.topic, tp.partition, header, raw):
            if ranges[tp][0] <= record.offset < ranges[tp][1]:
                yield record


NO_OFFSET: Final = "the log of {tp} has the offsets {first} to {end} only"


def record_of(cluster: SiteCluster, topic: str, partition: int, offset: int) -> LineRecord | str:
    """Returns the record at an offset. If the log has no record there, returns a text that says
    why.
    """
    tp = TopicPartition(topic, partition)
    first, readable, end = cluster.span(tp)
    if first == end:
        return f"{tp} is empty"
    if not first <= offset < end:
        return NO_OFFSET.format(tp=tp, first=first, end=end - 1)
    if offset >= readable:
        return OPEN.format(tp=tp, at=readable)
    for _, header, raw in cluster.read(cluster.client, {tp: (offset, offset + 1)}, ONE_BATCH):
        found = None if header.is_control else record_at(unpack(raw), topic, partition, offset)
        if found is not None:
            return found
        if header.is_aborted:
            return f"the record at offset {offset} of {tp} was aborted with its transaction"
    return f"the log of {tp} has no record at offset {offset}"
