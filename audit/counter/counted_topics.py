"""Which topics of a cluster a counter counts, and which it leaves out, and why.

A counter may vouch only for topics that it counts. So it names each topic that it leaves out: a
compacted topic, and a topic that it has counted before and does not find any more, unless the
brokers say that the topic was deleted. If the brokers do not tell the settings of a topic, nobody
knows whether it is a mirror of another topic. Then the counter counts all others, but vouches for
none.

A record lies in a log only at a broker that knows its partition. But a broker that is cut off from
ZooKeeper, or from the other brokers of Apache Kafka, answers from an old catalogue as if it were
sure. So each look asks every broker of the cluster, and the answers are believed only if all agree
about the topics of the counter. Otherwise the look fails, and nothing is counted anew, forgotten,
or taken for deleted. The counter cannot ask a broker that joined while all brokers to which the
counter is connected, or which these name, were cut off.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from skidway import log
from skidway.audit.counts import topic_patterns
from skidway.audit.topic.messages import Tier
from skidway.errors import SkidwayError
from skidway.kafka.client import Client
from skidway.kafka.client.cluster import Cluster, TopicMetadata
from skidway.kafka.compaction import COMPACTED, is_compacted
from skidway.kafka.errors import ErrorCode
from skidway.kafka.source import Source, source_in
from skidway.kafka.types import TopicPartition

NOT_CHOSEN: Final = "the setting `topics` does not choose it any more"

_LOOK_MS: Final = 2_000
_GONE: Final = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
_log = log.get(__name__)


class Selection(NamedTuple):
    """The topics of a cluster at one time. counted: the partitions that are counted, each with its
    source topic. left_out: the source topics that are not counted, and why. unread: the names of
    topics of which the brokers do not tell the settings, and why."""

    counted: Mapping[TopicPartition, Source]
    left_out: Mapping[Source, str]
    unread: Mapping[str, str]


class TopicsUncertain(SkidwayError):
    """The brokers do not agree about the topics, or one of them does not answer."""


class CountedTopics:
    """The topics of one counter's cluster. cluster_name: the name of this cluster. Only one thread
    uses this object."""

    def __init__(
        self, client: Client, patterns: Sequence[str], tier: Tier, cluster_name: str
    ) -> None:
        self._client = client
        self._patterns = patterns
        self._is_mirrored = tier is Tier.MIRROR
        self._cluster_name = cluster_name
        self._sources: dict[tuple[str, object], Source] = {}
        self._compacted: dict[tuple[str, object], Source] = {}
        self._deleted: set[Source] = set()

    @property
    def compacted(self) -> list[str]:
        """The names of the compacted topics."""
        return sorted(name for name, _ in self._compacted)

    def look(self, known: Iterable[Source]) -> Selection:
        """Asks the cluster for its topics. known: the source topics that the counter has counted.
        Raises KafkaError, TopicsUncertain, and BrokerUnreachable if no broker answers."""
        cluster = self._agreed()
        usable = [x for x, topic in cluster.topics.items() if topic.error is ErrorCode.NONE]
        chosen = topic_patterns.choose(self._patterns, usable)
        unread = self._learn(cluster, chosen)
        keys = [(name, cluster.topics[name].topic_id) for name in chosen]
        counted = {x[0]: self._sources[x] for x in keys if self._is_ours(x, self._sources)}
        left_out = {
            self._compacted[x]: COMPACTED for x in keys if self._is_ours(x, self._compacted)
        }
        here = {*counted.values(), *left_out, *self._deleted}
        left_out |= self._missed([x for x in known if x not in here], unread)
        self._deleted.difference_update(counted.values())
        partitions = {
            TopicPartition(name, partition.index): source
            for name, source in counted.items()
            for partition in cluster.topics[name].partitions
        }
        return Selection(partitions, left_out, unread)

    def _agreed(self, names: Sequence[str] | None = None) -> Cluster:
        """Returns what all brokers say of these topics, or, without names, of those that the
        patterns choose."""
        answers, failed = self._client.metadata_of_each(_LOOK_MS, names)
        if failed:
            raise TopicsUncertain(f"a broker does not answer: {next(iter(failed.values()))}")
        (first, cluster), *others = answers.items()
        shown = self._shown(cluster, names)
        for address, other in others:
            if other is cluster:  # the client decodes equal answers only once
                continue
            differing = shown ^ self._shown(other, names)
            if differing:
                name = min(x[0] for x in differing)
                raise TopicsUncertain(
                    f"broker {address} does not show the topic {name} as broker {first} does"
                )
        return cluster

    def _shown(
        self, cluster: Cluster, names: Sequence[str] | None
    ) -> set[tuple[str, ErrorCode, uuid.UUID | None, int]]:
        chosen = topic_patterns.choose(self._patterns, cluster.topics) if names is None else names
        topics = [cluster.topics[x] for x in chosen if x in cluster.topics]
        return {(x.name, x.error, x.topic_id, len(x.partitions)) for x in topics}

    def _learn(self, cluster: Cluster, names: Iterable[str]) -> dict[str, str]:
        """Asks once for the settings of each topic name and id, and always for those of compacted
        topics. Returns why the brokers do not tell the settings of some topics."""
        keys = {name: (name, cluster.topics[name].topic_id) for name in names}
        fresh = sorted(name for name, key in keys.items() if key not in self._sources)
        configs, errors = self._client.topic_configs_now(fresh)
        before, self._compacted = self._compacted, {}
        for name, found in configs.items():
            source = source_in(cluster, self._cluster_name, name, found)
            if not is_compacted(found):
                self._sources[keys[name]] = source
                continue
            self._compacted[keys[name]] = source
            if keys[name] not in before:
                _log.warning("topic_not_counted", topic=name, reason=COMPACTED)
        return {name: str(error) for name, error in errors.items() if error.code is not _GONE}

    def _is_ours(
        self, key: tuple[str, object], sources: Mapping[tuple[str, object], Source]
    ) -> bool:
        """Whether this counter's tier counts the topic, if `sources` has it."""
        source = sources.get(key)
        if source is None:
            return False
        return self._is_mirrored == ((source.cluster, source.topic) != (self._cluster_name, key[0]))

    def _missed(self, sources: Collection[Source], unread: Mapping[str, str]) -> dict[Source, str]:
        """Returns those of the source topics that still exist, and why they are not counted."""
        names = {source: self._name_of(source) for source in sources}
        topics = self._agreed(sorted(set(names.values()))).topics if names else {}
        found = {}
        for source, name in names.items():
            error = topics[name].error if name in topics else _GONE
            if name in unread:
                found[source] = unread[name]
            elif error is ErrorCode.NONE and not self._is_another(source, topics[name]):
                found[source] = NOT_CHOSEN
            elif error in (ErrorCode.NONE, _GONE):
                self._deleted.add(source)
            else:
                found[source] = f"the brokers do not show it: {error.name}"
        return found

    def _is_another(self, source: Source, topic: TopicMetadata) -> bool:
        """Whether the topic that now has this name is another one than the source topic."""
        key = topic.name, topic.topic_id
        now = self._sources.get(key, self._compacted.get(key))
        if now is not None or self._is_mirrored:
            return now is not None and now != source
        return source.topic_id != (topic.topic_id.hex if topic.topic_id else "")

    def _name_of(self, source: Source) -> str:
        return f"{source.cluster}.{source.topic}" if self._is_mirrored else source.topic
