"""The source of a record: the topic and cluster to which the record was first published.

A mirror topic (`dc1.hdfs-logs`) names its source in its topic configs (mirror.source.cluster,
mirror.source.cluster.id, mirror.source.topic, mirror.source.topic.id). Any other topic is its own
source. A source includes the ids of cluster and topic, so a deleted topic and a new topic of the
same name are different sources. Loader and counters recognize repeated records by keys that include
the source. The audit's counts and the loader's manifests also contain the source.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from skidway.dataclass import dataclass
from skidway.errors import ConfigurationRefused

if TYPE_CHECKING:
    from skidway.kafka.client import Client
    from skidway.kafka.client.cluster import Cluster

CLUSTER_NAME: Final = "cluster.name"
"""The broker config with the cluster's name. Apache Kafka's brokers do not have this config."""

DEFAULT_CLUSTER: Final = "main"
"""The cluster's name if neither the brokers nor the settings give it a name."""

CLUSTER_CONFIG = "mirror.source.cluster"
"""The topic config with the name of the mirrored cluster. Only a mirror topic has it. Three other
configs have the name of the mirrored topic, the cluster's id and the topic's id.
"""


@dataclass(frozen=True, slots=True)
class Source:
    """A topic of a cluster. topic_id is 32 hexadecimal digits; an unknown id is empty."""

    cluster: str
    cluster_id: str
    topic: str
    topic_id: str


def check_cluster_name(name: str | None) -> None:
    """Raises ConfigurationRefused if a cluster name is empty or has a dot. The dot is reserved: it
    follows the cluster's name in the name of a mirror topic."""
    if name is not None and (not name or "." in name):
        raise ConfigurationRefused(f"cluster.name: {name!r} must be a name without a dot")


def cluster_name_of(broker_configs: Mapping[str, str], configured: str | None) -> str:
    """Returns the name of the cluster whose brokers have the configs `broker_configs`
    (docs/delivery.md, section 1).

    All programs must use the same name for a cluster; otherwise the audit cannot match their
    messages. So the name is the one that the brokers report. `configured` is the name in the
    settings of this program; it is for Apache Kafka, whose brokers report no name. Raises
    ConfigurationRefused if the brokers report one name and the settings have another.
    """
    own = broker_configs.get(CLUSTER_NAME)
    if own is not None and configured is not None and own != configured:
        raise ConfigurationRefused(
            f"cluster.name: {configured!r} here, but the brokers call their cluster {own!r};"
            " use their name, or leave it out"
        )
    return own or configured or DEFAULT_CLUSTER


def sources_of(client: Client, topics: Sequence[str], cluster_name: str) -> dict[str, Source]:
    """Returns the sources of those `topics` that exist. `cluster_name` is the name of the client's
    cluster."""
    cluster = client.metadata(sorted(topics))
    existing = sorted(name for name, topic in cluster.topics.items() if topic.partitions)
    configs = client.topic_configs(existing)
    return {x: source_in(cluster, cluster_name, x, configs.get(x, {})) for x in existing}


def source_in(
    cluster: Cluster, cluster_name: str, topic: str, configs: Mapping[str, str]
) -> Source:
    """Returns the source of a topic of a cluster. configs: the settings of the topic."""
    topic_id = cluster.topics[topic].topic_id
    own = Source(cluster_name, cluster.cluster_id or "", topic, topic_id.hex if topic_id else "")
    return _mirrored(configs) or own


def _mirrored(configs: Mapping[str, str]) -> Source | None:
    """Returns the source that a topic's configs name, or None if the topic is not a mirror
    topic."""
    if not configs.get(CLUSTER_CONFIG):
        return None
    return Source(
        cluster=configs[CLUSTER_CONFIG],
        cluster_id=configs.get("mirror.source.cluster.id", ""),
        topic=configs.get("mirror.source.topic", ""),
        topic_id=configs.get("mirror.source.topic.id", ""),
    )
