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
