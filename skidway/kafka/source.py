"""Which topic of which cluster a record was first published to.

A mirror topic (`dc1.hdfs-logs`) says so in its topic configs (mirror.source.cluster,
mirror.source.cluster.id, mirror.source.topic, mirror.source.topic.id); any other topic is its own
source. Marks, counts and manifests carry the source with both ids, so that a topic made again is
another topic.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from skidway.kafka.client import Client

CLUSTER_CONFIG = "mirror.source.cluster"
"""The topic config that makes a topic a mirror; its siblings add `.id`, and name the topic."""


@dataclass(frozen=True, slots=True)
class Source:
    """topic_id: 32 hexadecimal digits; cluster_id and topic_id are empty where not known."""

    cluster: str
    cluster_id: str
    topic: str
    topic_id: str


def sources_of(client: Client, topics: Sequence[str], cluster_name: str) -> dict[str, Source]:
    """The source of each of these topics that exists. `cluster_name`: of the client's cluster."""
    cluster = client.metadata(sorted(topics))
    existing = {name: topic for name, topic in cluster.topics.items() if topic.partitions}
    configs = client.topic_configs(sorted(existing))
    found = {}
    for name, topic in existing.items():
        topic_id = topic.topic_id.hex if topic.topic_id is not None else ""
        own = Source(cluster_name, cluster.cluster_id or "", name, topic_id)
        found[name] = _mirrored(configs.get(name, {})) or own
    return found


def _mirrored(configs: dict[str, str]) -> Source | None:
    """What the topic configs of a mirror say; None for any other topic."""
    if not configs.get(CLUSTER_CONFIG):
        return None
    return Source(
        cluster=configs[CLUSTER_CONFIG],
        cluster_id=configs.get("mirror.source.cluster.id", ""),
        topic=configs.get("mirror.source.topic", ""),
        topic_id=configs.get("mirror.source.topic.id", ""),
    )


def sources_of(client: Client, topics: Sequence[str], cluster_name: str) -> dict[str, Source]:
    """The source of each topic of a cluster, which people call `cluster_name`.

    KafkaError for a topic that does not exist, BrokerUnreachable when nobody answers.
    """
    cluster = client.metadata(topics)
    configs = client.topic_configs(topics)
    found: dict[str, Source] = {}
    for name in topics:
        topic = cluster.topics.get(name)
        if topic is None or topic.error is not ErrorCode.NONE:
            code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if topic is None else topic.error
            raise KafkaError(code, f"topic {name}")
        topic_id = "" if topic.topic_id is None else topic.topic_id.hex
        own = Source(cluster_name, cluster.cluster_id or "", name, topic_id)
        found[name] = mirrored_from(configs.get(name, {})) or own
    return found


def mirrored_from(configs: Mapping[str, str]) -> Source | None:
    """The source that a mirror topic's configs name; None for a topic that is no mirror."""
    if not configs.get(MIRROR_SOURCE_CLUSTER):
        return None
    return Source(
        configs[MIRROR_SOURCE_CLUSTER],
        configs.get(MIRROR_SOURCE_CLUSTER_ID, ""),
        configs.get(MIRROR_SOURCE_TOPIC, ""),
        configs.get(MIRROR_SOURCE_TOPIC_ID, ""),
    )
