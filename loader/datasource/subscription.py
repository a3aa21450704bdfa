"""Asks the brokers for the topics that a query reads."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from skidway.audit.counts import topic_patterns
from skidway.kafka.client import EARLIEST, LATEST, Client
from skidway.kafka.client.cluster import Cluster
from skidway.kafka.source import sources_of
from skidway.kafka.types import TopicPartition
from skidway.loader.datasource.options import Options
from skidway.loader.planning.plan import Bounds
from skidway.loader.planning.topic import SourceTopic
from skidway.loader.planning.topics import unknown


def look(client: Client, options: Options) -> list[SourceTopic]:
    """Returns the topics of the query that exist, sorted by name, with the first offset and the
    high watermark of each partition.

    If a partition's leader does not answer, raises the client's error. A pattern never matches
    Skidway's own topics.
    """
    # Asks for the topic ids first and for the bounds of the partitions later. If a topic is deleted
    # and created again between the two requests, the tasks notice that its id has changed.
    cluster = client.metadata(options.topics or None)
    names = [name for name in _chosen(options, cluster) if cluster.topics[name].partitions]
    tps = [TopicPartition(n, each.index) for n in names for each in cluster.topics[n].partitions]
    first = client.list_offsets(dict.fromkeys(tps, EARLIEST)) if tps else {}
    end = client.list_offsets(dict.fromkeys(tps, LATEST)) if tps else {}
    sources = sources_of(client, names, "") if names else {}
    found: dict[str, list[Bounds]] = {name: [] for name in names}
    for tp in tps:
        found[tp.topic].append(Bounds(tp.partition, first[tp].offset, end[tp].offset))
    return [
        SourceTopic(name, id_in(cluster, name), sources[name], tuple(found[name]))
        for name in names
        if name in sources  # a topic that is not in `sources` was deleted just now
    ]


def subscribed(client: Client, options: Options) -> list[SourceTopic]:
    """Returns the same as `look`, but raises SkidwayError if a topic in the query's options does
    not exist.
    """
    topics = look(client, options)
    for name in options.topics:
        if name not in {each.name for each in topics}:
            raise unknown(name)
    return topics


def offsets_at(
    client: Client, topics: Iterable[SourceTopic], time_ms: int
) -> dict[str, dict[int, int]]:
    """Returns, for each partition of the topics, the offset of the first record with the event time
    `time_ms` or a later one. With some brokers, the result is the first offset of this record's
    batch. If all records of a partition are older, returns the partition's high watermark in
    `topics`."""
    topics = list(topics)
    tps = [TopicPartition(topic.name, each.partition) for topic in topics for each in topic.bounds]
    listed = client.list_offsets(dict.fromkeys(tps, time_ms)) if tps else {}
    return {
        topic.name: {
            each.partition: _at_most(
                listed[TopicPartition(topic.name, each.partition)].offset, each
            )
            for each in topic.bounds
        }
        for topic in topics
    }


def id_in(cluster: Cluster, name: str) -> str:
    """Returns the id of a topic as hexadecimal digits. Returns an empty text if the topic does not
    exist, or if the brokers have no topic ids."""
    topic = cluster.topics.get(name)
    return "" if topic is None or topic.topic_id is None else topic.topic_id.hex


def _at_most(offset: int, bounds: Bounds) -> int:
    end = bounds.high_watermark
    return end if offset < 0 else min(offset, end)


def _chosen(options: Options, cluster: Cluster) -> list[str]:
    existing: Mapping[str, object] = cluster.topics
    if options.pattern is None:
        return sorted(set(options.topics).intersection(existing))
    return sorted(
        name
        for name in existing
        if re.fullmatch(options.pattern, name) and not topic_patterns.is_own(name)
    )
