"""Which topics of a cluster a counter counts, and which it leaves out, and why.

A counter may vouch only for topics that it counts. So it names each topic that it leaves out: a
compacted topic, and a topic that it has counted before and does not find any more, unless the
brokers say that the topic was deleted. If the brokers do not tell the settings of a topic, nobody
knows whether it is a mirror of another topic. Then the counter counts all others, but vouches for
none.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from skidway import log
from skidway.audit.counts import topic_patterns
from skidway.audit.topic.messages import Tier
from skidway.kafka.client import Client
from skidway.kafka.client.cluster import Cluster, TopicMetadata
from skidway.kafka.compaction import COMPACTED, is_compacted
from skidway.kafka.errors import ErrorCode
from skidway.kafka.source import Source, source_in
from skidway.kafka.types import TopicPartition

NOT_CHOSEN: Final = "the setting `topics` does not choose it any more"

_GONE: Final = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
_log = log.get(__name__)


class Selection(NamedTuple):
    """The topics of a cluster at one time. counted: the partitions that are counted, each with its
    source topic. left_out: the source topics that are not counted, and why. unread: the names of
    topics of which the brokers do not tell the settings, and why."""

    counted: Mapping[TopicPartition, Source]
    left_out: Mapping[Source, str]
    unread: Mapping[str, str]


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
        Raises KafkaError."""
        cluster = self._client.metadata()
        usable = [x for x, topic in cluster.topics.items() if topic.error is ErrorCode.NONE]
        chosen = topic_patterns.choose(self._patterns, usable)
        unread = self._learn(cluster, chosen)
        keys = [(name, cluster.topics[name].topic_id) for name in chosen]
        counted = {x[0]: self._sources[x] for x in keys if self._is_ours(x, self._sources)}
        left_out = {
            self._compacted[x]: COMPACTED for x in keys if self._is_ours(x, self._compacted)
        }
        here = {*counted.values(), *left_out, *self._deleted}
        left_out |= self._missed(cluster, [x for x in known if x not in here], unread)
        partitions = {
            TopicPartition(name, partition.index): source
            for name, source in counted.items()
            for partition in cluster.topics[name].partitions
        }
        return Selection(partitions, left_out, unread)

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

    def _missed(
        self, cluster: Cluster, sources: Collection[Source], unread: Mapping[str, str]
    ) -> dict[Source, str]:
        """Returns those of the source topics that still exist, and why they are not counted."""
        names = {source: self._name_of(source) for source in sources}
        absent = sorted(set(names.values()) - cluster.topics.keys())
        topics = {**(self._client.metadata(absent).topics if absent else {}), **cluster.topics}
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
