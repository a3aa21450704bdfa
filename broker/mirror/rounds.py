"""Makes the plan for one source (a cluster from which this cluster mirrors): which mirror topics to
create, to extend and to follow. For this it compares the topics of the source with those of this
cluster. Does no I/O.

If a wanted topic of the source has no mirror topic in this cluster yet, the plan creates the mirror
topic. It does so only after the configs of the source's topic have shown that this topic is not
itself a mirror. If the mirror topic exists, its partitions follow those of the source's topic. If
the mirror topic has fewer partitions than the source's topic, the plan adds the missing partitions.
If the source's topic or cluster was recreated under the same name, it has another id. The records
of the recreated topic are not mirrored, so that they are not mixed with the old records. If a
wanted topic is not mirrored although it is no mirror itself, the plan lists the topic with the
reason. The plan also lists each topic whose configs show that it is no mirror, but which is left
out because it has the name of a mirror.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from skidway.broker.catalog import Topic as LocalTopic
from skidway.broker.mirror import selection
from skidway.broker.topics.assignment import PARTITIONS_MAX
from skidway.kafka.client.cluster import Cluster, TopicMetadata
from skidway.kafka.types import TopicPartition

PREFIX: Final = "mirror.source."
SOURCE_CLUSTER: Final = f"{PREFIX}cluster"
SOURCE_CLUSTER_ID: Final = f"{PREFIX}cluster.id"
SOURCE_TOPIC: Final = f"{PREFIX}topic"
SOURCE_TOPIC_ID: Final = f"{PREFIX}topic.id"

MIRRORED_MAX: Final = 50_000
"""Of one source, so many partitions are mirrored: each needs a directory and a node in ZooKeeper,
and the source says how many there are."""

TopicKey = tuple[str, str]
"""The name and the id of a topic in the source. The id is empty if the source does not send ids."""


@dataclass(frozen=True, slots=True)
class Mirroring:
    """What is mirrored, and into which cluster: the names of both clusters, and the patterns of the
    topics."""

    cluster: str
    here: str
    patterns: Sequence[re.Pattern[str]]


@dataclass(frozen=True, slots=True)
class Creation:
    """A mirror topic to create."""

    name: str
    partitions: int
    configs: Mapping[str, str]


class Extension(NamedTuple):
    """A mirror topic, and how many partitions it shall have."""

    topic: LocalTopic
    partitions: int

    @property
    def name(self) -> str:
        return self.topic.name


@dataclass(slots=True)
class Plan:
    """What to do now with the mirror topics.

    extend, follow: mirror topics, each with the number of partitions of the source's topic.
    describe: topics of the source whose configs must be read to find out whether they are mirrors
    themselves. room: how many further partitions may be mirrored. stopped: by name, the mirror
    topics that an operator must look at, with reasons. unmirrored: the partitions of the source
    whose mirror topic is stopped, by the topic's name. left_out: by name, topics of the source that
    are not mirrored, and mirror topics that get no more records, with reasons.
    """

    create: list[Creation] = field(default_factory=list)
    extend: list[Extension] = field(default_factory=list)
    follow: list[tuple[LocalTopic, int]] = field(default_factory=list)
    describe: list[TopicMetadata] = field(default_factory=list)
    room: int = 0
    stopped: dict[str, str] = field(default_factory=dict)
    unmirrored: dict[str, list[TopicPartition]] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)

    def stop(self, here: LocalTopic, topic: TopicMetadata, reason: str) -> None:
        """Stops a mirror topic. topic: the source's topic that is not mirrored therefore."""
        self.stopped[here.name] = reason
        numbers = range(len(topic.partitions))
        self.unmirrored[here.name] = [TopicPartition(topic.name, number) for number in numbers]


def plan(
    mirroring: Mirroring,
    source: Cluster,
    local: Mapping[str, LocalTopic],
    are_mirrors: Mapping[TopicKey, bool],
    busy: Collection[str],
) -> Plan:
    """Plans what to do in a round. `source` contains the topics that the source cluster has now.

    local: all topics of this cluster, by name. are_mirrors: for each topic of the source whose
    configs are known, whether it is a mirror itself. busy: the names of topics of this cluster that
    are being created, extended or deleted.
    """
    made = Plan()
    usable = {name: topic for name, topic in source.topics.items() if not topic.error}
    wanted = selection.wanted(usable, mirroring.patterns, mirroring.here)
    made.room = MIRRORED_MAX - sum(
        len(each.partitions)
        for each in local.values()
        if each.configs.get(SOURCE_CLUSTER) == mirroring.cluster
    )
    for name in wanted:
        here = local.get(selection.mirror_name(mirroring.cluster, name))
        if here is None:
            _create(made, mirroring, source, usable[name], are_mirrors, busy)
        elif not is_mirror_of(here, mirroring.cluster, name):
            made.stop(here, usable[name], f"{here.name} exists here and is no mirror of {name}")
        else:
            _go_on(made, mirroring, source, usable[name], here, busy)
    mistakable = selection.mistakable(usable, mirroring.patterns, mirroring.here)
    for name, reason in sorted(mistakable.items()):
        _leave_out(made, usable[name], reason, are_mirrors)
    _keep(made, mirroring.cluster, source, local.values(), set(wanted))
    return made


def topic_key(topic: TopicMetadata) -> TopicKey:
    """Returns the name and id of a topic, which together distinguish the topic from earlier and
    later topics of the same name.
    """
    return topic.name, _id(topic)


def is_mirror_of(local: LocalTopic, cluster: str, topic: str) -> bool:
    """Returns whether a topic of this cluster is the mirror of the source cluster's topic."""
    origin = (local.configs.get(SOURCE_CLUSTER), local.configs.get(SOURCE_TOPIC))
    return origin == (cluster, topic)


def _create(
    made: Plan,
    mirroring: Mirroring,
    source: Cluster,
    topic: TopicMetadata,
    are_mirrors: Mapping[TopicKey, bool],
    busy: Collection[str],
) -> None:
    refusal = selection.name_refusal(mirroring.cluster, topic.name) or _no_room(made, topic)
    is_mirror = are_mirrors.get(topic_key(topic))
    name = selection.mirror_name(mirroring.cluster, topic.name)
    if refusal is not None:
        made.left_out[topic.name] = refusal
    elif is_mirror is None:
        made.describe.append(topic)
    elif name in busy:
        made.room -= len(topic.partitions)
    elif not is_mirror and topic.partitions:
        made.room -= len(topic.partitions)
        configs = {
            SOURCE_CLUSTER: mirroring.cluster,
            SOURCE_CLUSTER_ID: source.cluster_id or "",
            SOURCE_TOPIC: topic.name,
            SOURCE_TOPIC_ID: _id(topic),
        }
        made.create.append(Creation(name, len(topic.partitions), configs))


def _leave_out(
    made: Plan, topic: TopicMetadata, reason: str, are_mirrors: Mapping[TopicKey, bool]
) -> None:
    """Adds to `left_out` a topic that has the name of a mirror, but is no mirror. If its configs
    are not known yet, adds the topic to `describe` instead."""
    is_mirror = are_mirrors.get(topic_key(topic))
    if is_mirror is None:
        made.describe.append(topic)
    elif not is_mirror:
        made.left_out[topic.name] = reason


def _go_on(
    made: Plan,
    mirroring: Mirroring,
    source: Cluster,
    topic: TopicMetadata,
    here: LocalTopic,
    busy: Collection[str],
) -> None:
    if _differ(here.configs.get(SOURCE_CLUSTER_ID), source.cluster_id):
        reason = (
            f"{mirroring.cluster} is another cluster now: {source.cluster_id}, "
            f"not {here.configs[SOURCE_CLUSTER_ID]}"
        )
        made.stop(here, topic, reason)
    elif _differ(here.configs.get(SOURCE_TOPIC_ID), _id(topic)):
        reason = (
            f"topic {topic.name} was made again in {mirroring.cluster}: its id is {_id(topic)}, "
            f"not {here.configs[SOURCE_TOPIC_ID]}"
        )
        made.stop(here, topic, reason)
    elif (refusal := _no_room(made, topic, len(here.partitions))) is not None:
        made.stop(here, topic, refusal)
    else:
        made.room -= max(len(topic.partitions) - len(here.partitions), 0)
        made.follow.append((here, len(topic.partitions)))
        if len(topic.partitions) > len(here.partitions) and here.name not in busy:
            made.extend.append(Extension(here, len(topic.partitions)))


def _keep(
    made: Plan, cluster: str, source: Cluster, local: Collection[LocalTopic], wanted: set[str]
) -> None:
    """Finds the mirror topics in this cluster that no longer get records from the source, and adds
    them to the plan (`left_out`), each with the reason.
    """
    for here in local:
        name = here.configs.get(SOURCE_TOPIC, "")
        proper = selection.mirror_name(cluster, name)
        if here.configs.get(SOURCE_CLUSTER) != cluster or (name in wanted and here.name == proper):
            continue
        found = source.topics.get(name)
        if here.name != proper:
            made.left_out[here.name] = f"the mirror of topic {name} would be called {proper}"
        elif found is None:
            made.left_out[here.name] = f"{cluster} has no topic {name} any more"
        elif found.error:
            made.left_out[here.name] = f"{cluster} answers {found.error.name} for topic {name}"
        else:
            made.left_out[here.name] = f"mirror.sources does not name topic {name} any more"


def _no_room(made: Plan, topic: TopicMetadata, known: int = 0) -> str | None:
    count = len(topic.partitions)
    if count > PARTITIONS_MAX:
        return (
            f"the source's topic has {count} partitions, and a topic has at most {PARTITIONS_MAX}"
        )
    if count - known > max(made.room, 0):
        return f"at most {MIRRORED_MAX} partitions of a source are mirrored"
    return None


def _differ(known: str | None, told: str | None) -> bool:
    """Returns whether both ids are known, and are not equal. An id is unknown if the source is too
    old to send ids.
    """
    return bool(known) and bool(told) and known != told


def _id(topic: TopicMetadata) -> str:
    return topic.topic_id.hex if topic.topic_id is not None else ""
