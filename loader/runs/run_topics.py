"""Asks the brokers, before anything is loaded, for topics and high watermarks, and for the source
topic of each mirrored topic."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from skidway.errors import SkidwayError, Unreachable
from skidway.kafka import gaps
from skidway.kafka.client import Client
from skidway.kafka.client.cluster import Cluster
from skidway.kafka.compaction import COMPACTED, is_compacted
from skidway.kafka.source import CLUSTER_NAME, Source, cluster_name_of, sources_of
from skidway.kafka.types import TopicPartition
from skidway.loader.audit_topic.feed import audit_topics
from skidway.loader.planning import bounds, topics
from skidway.loader.planning.bounds import Asked
from skidway.loader.planning.topic import SourceTopic
from skidway.loader.settings import LoaderSettings
from skidway.loader.state.manifest import Gap


@dataclass(frozen=True, slots=True)
class RunTopics:
    """The topics of a run, as the brokers answered at its start. settings: the settings of the run,
    with the cluster's name. missing: topics that the settings list, but that do not exist.
    troubles: for each topic that cannot be loaded now, the reason."""

    settings: LoaderSettings
    cluster_id: str
    topics: list[SourceTopic]
    missing: list[str]
    troubles: dict[str, SkidwayError]
    audit_topics: list[str]


def look(settings: LoaderSettings, client: Client) -> RunTopics:
    """Asks the brokers for the topics that the settings choose, and for their high watermarks.
    Returns the answers. Raises Unreachable, ConfigurationRefused."""
    name = cluster_name_of(client.broker_configs(CLUSTER_NAME), settings.cluster_name)
    settings = replace(settings, cluster_name=name)
    cluster = client.metadata()
    chosen, missing = topics.choose(settings.topics, cluster.topics)
    # First asks for the watermarks of the data topics, and later reads announcements and gaps. So
    # no announcement and no gap is missing for records below the watermarks: a file's announcement
    # is acknowledged before the file's records are sent, and the mirror notes a gap before it
    # copies records after the gap.
    asked = bounds.ask(client, cluster, _partitions(cluster, chosen))
    found, troubles = _look_at_all(settings, client, cluster, chosen, asked)
    audits = audit_topics((topic.source for topic in found), settings.cluster, cluster.topics)
    return RunTopics(settings, cluster.cluster_id or "", found, missing, troubles, audits)


def _look_at_all(
    settings: LoaderSettings, client: Client, cluster: Cluster, names: Sequence[str], asked: Asked
) -> tuple[list[SourceTopic], dict[str, SkidwayError]]:
    """Returns the topics that can be loaded. Also returns, for each topic that cannot be loaded,
    the error that prevents this. Raises Unreachable."""
    try:
        return _look_at(settings, client, cluster, names, asked), {}
    except Unreachable:
        raise
    except SkidwayError:
        pass  # the loop below asks for each topic alone, so that only faulty topics are left out
    found: list[SourceTopic] = []
    troubles: dict[str, SkidwayError] = {}
    for name in names:
        try:
            found += _look_at(settings, client, cluster, [name], asked)
        except Unreachable:
            raise
        except SkidwayError as error:
            troubles[name] = SkidwayError(f"{name} cannot be loaded now: {error}")
    return found, troubles


def _look_at(
    settings: LoaderSettings, client: Client, cluster: Cluster, names: Sequence[str], asked: Asked
) -> list[SourceTopic]:
    """Returns the topics with these names, as they are now. Raises SkidwayError if one of these
    topics has no partition that can be loaded, or is compacted."""
    sources = sources_of(client, names, settings.cluster)
    for name in names:
        partitions = _partitions(cluster, [name])
        if name not in sources or not partitions:
            raise SkidwayError(f"it has no partitions now ({cluster.topics[name].error.name})")
        if all(tp in asked.away for tp in partitions):
            raise SkidwayError(str(asked.away[partitions[0]]))
    configs = client.topic_configs(names)
    if any(is_compacted(configs.get(name, {})) for name in names):
        raise SkidwayError(COMPACTED)
    named = gaps.named_by_mirrors(client, names)
    return [_topic(cluster, sources[name], name, named[name], asked) for name in names]


def _partitions(cluster: Cluster, names: Iterable[str]) -> list[TopicPartition]:
    return [
        TopicPartition(name, partition.index)
        for name in names
        for partition in cluster.topics[name].partitions
    ]


def _topic(
    cluster: Cluster, source: Source, name: str, named: Sequence[gaps.Gap], asked: Asked
) -> SourceTopic:
    topic_id = cluster.topics[name].topic_id
    missing: dict[int, tuple[Gap, ...]] = {}
    for gap in named:
        known = missing.get(gap.partition, ())
        missing[gap.partition] = (*known, Gap(gap.first, gap.end, gap.reason))
    return SourceTopic(
        name,
        source.topic_id if topic_id is None else topic_id.hex,
        source,
        tuple(each for tp, each in asked.bounds.items() if tp.topic == name),
        missing,
        {tp.partition: str(error) for tp, error in asked.away.items() if tp.topic == name},
    )
