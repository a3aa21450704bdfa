"""The source of a topic is the cluster and the topic where its records were first published."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

import pytest

from skidway.errors import ConfigurationRefused
from skidway.kafka.client.cluster import Cluster, Partition, TopicMetadata
from skidway.kafka.errors import ErrorCode
from skidway.kafka.source import Source, check_cluster_name, cluster_name_of, sources_of

TOPIC_ID = uuid.UUID(int=10)


class OneCluster:
    """A fake client of a cluster with a mirror topic (a copy of another cluster's topic) and two
    other topics. The cluster has no topic named `none`."""

    def metadata(self, topics: Sequence[str]) -> Cluster:
        partition = Partition(0, 1, 0, (1,), (1,))
        found = {
            "plain": TopicMetadata("plain", TOPIC_ID, ErrorCode.NONE, (partition,)),
            "dc1.logs": TopicMetadata("dc1.logs", uuid.UUID(int=11), ErrorCode.NONE, (partition,)),
            "old": TopicMetadata("old", None, ErrorCode.NONE, (partition,)),
            "none": TopicMetadata("none", None, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ()),
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
    """A mirror topic's config gives the cluster and the topic of its source, each with name and id.
    Any other topic is its own source. A missing topic has no source."""
    topics = ["plain", "dc1.logs", "old", "none"]
    found = sources_of(OneCluster(), topics, "offline")  # type: ignore[arg-type]
    assert found == {
        "plain": Source("offline", "kafka-id", "plain", TOPIC_ID.hex),
        "dc1.logs": Source("dc1", "their-id", "logs", "0a"),
        "old": Source("offline", "kafka-id", "old", ""),
    }


@pytest.mark.parametrize(
    ("own", "configured", "name"),
    [("dc1", None, "dc1"), ("dc1", "dc1", "dc1"), (None, "dc1", "dc1"), (None, None, "main")],
)
def test_a_cluster_has_the_name_that_its_brokers_tell(
    own: str | None, configured: str | None, name: str
) -> None:
    """The name of a cluster is the brokers' setting cluster.name. The name in the program's own
    settings is used only if the brokers do not have this setting, as is the case with Apache
    Kafka."""
    configs = {"retention.ms": "-1"} if own is None else {"cluster.name": own}
    assert cluster_name_of(configs, configured) == name


def test_a_cluster_under_two_names_is_refused() -> None:
    """If the program's settings and the brokers give a cluster different names, the name in the
    settings is refused. Otherwise agents would announce their files under one name, counters would
    count records under the other, and the audit would never compare the two."""
    with pytest.raises(ConfigurationRefused, match=r"'offline' here, but the brokers .* 'main'"):
        cluster_name_of({"cluster.name": "main"}, "offline")


@pytest.mark.parametrize("name", ["", "dc.1"])
def test_a_cluster_name_has_no_dot(name: str) -> None:
    """A cluster name that is empty or has a dot is refused. In a mirror topic's name, the cluster's
    name ends at the first dot."""
    with pytest.raises(ConfigurationRefused, match="without a dot"):
        check_cluster_name(name)
