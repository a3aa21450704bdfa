"""Where a topic's records were first published to."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from skidway.kafka.client.cluster import Cluster, Partition, Topic
from skidway.kafka.errors import ErrorCode
from skidway.kafka.source import Source, sources_of

TOPIC_ID = uuid.UUID(int=10)


class OneCluster:
    """Two topics, one of them a mirror, and one that does not exist."""

    def metadata(self, topics: Sequence[str]) -> Cluster:
        partition = Partition(0, 1, 0, (1,), (1,))
        found = {
            "plain": Topic("plain", TOPIC_ID, ErrorCode.NONE, (partition,)),
            "dc1.logs": Topic("dc1.logs", uuid.UUID(int=11), ErrorCode.NONE, (partition,)),
            "old": Topic("old", None, ErrorCode.NONE, (partition,)),
            "none": Topic("none", None, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ()),
        }
        return Cluster("kafka-id", 1, {}, {name: found[name] for name in topics})

    def topic_configs(self, names: Sequence[str]) -> dict[str, dict[str, str]]:
        mirror = {
            "mirror.source.cluster": "dc1",
            "mirror.source.cluster.id": "their-id",
            "mirror.source.topic": "logs",
            "mirror.source.topic.id": "0a",
        }
        return {name: mirror if name == "dc1.logs" else {"retention.ms": "-1"} for name in names}


def test_a_topic_is_its_own_source_or_its_mirrors() -> None:
    """A mirror names its source with both ids; any other topic is its own; a missing one is not."""
    topics = ["plain", "dc1.logs", "old", "none"]
    found = sources_of(OneCluster(), topics, "offline")  # type: ignore[arg-type]
    assert found == {
        "plain": Source("offline", "kafka-id", "plain", TOPIC_ID.hex),
        "dc1.logs": Source("dc1", "their-id", "logs", "0a"),
        "old": Source("offline", "kafka-id", "old", ""),
    }
