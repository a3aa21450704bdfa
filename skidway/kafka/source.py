"""Which topic of which cluster a record was first published to.

A mirror topic (`dc1.hdfs-logs`) says so in its topic configs (mirror.source.cluster,
mirror.source.cluster.id, mirror.source.topic, mirror.source.topic.id); any other topic is its own
source. Marks, counts and manifests carry the source with both ids, so that a topic made again is
another topic.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Source:
    """topic_id: 32 hexadecimal digits; cluster_id and topic_id are empty where not known."""

    cluster: str
    cluster_id: str
    topic: str
    topic_id: str
