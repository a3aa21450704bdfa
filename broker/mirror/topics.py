"""The topics of one source (a cluster whose topics are mirrored). Has the source asked for its
topics in rounds, and their mirrors created and extended.

`rounds` decides what to do with topics and partitions. This module does no I/O: its caller carries
out what it returns. For one source, only one of these requests is in flight at a time, and at most
`CHANGES_MAX` topics are changed at the same time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from skidway import log
from skidway.broker.mirror import rounds, selection
from skidway.broker.mirror.rounds import Creation, Extension, Mirroring, Plan, TopicKey, topic_key
from skidway.broker.mirror.surroundings import Ask, Local
from skidway.clock import Clock
from skidway.errors import SkidwayError
from skidway.kafka.client.cluster import Address, Cluster, cluster_of
from skidway.kafka.client.connection import Answer
from skidway.kafka.client.metadata import metadata_call
from skidway.kafka.client.requests import describe_configs_call
from skidway.kafka.errors import error_for
from skidway.kafka.protocol.describe_configs import (
    DescribeConfigsResponse,
    DescribeConfigsResult,
    ResourceType,
)
from skidway.kafka.source import CLUSTER_NAME
from skidway.kafka.types import TopicPartition
from skidway.rare_lines import RareLines

TOPICS_A_QUESTION: Final = 100
"""One request asks for the configs of at most this many topics."""
CHANGES_MAX: Final = 100
"""At most this many topics are created or extended at a time, so that clients do not wait long for
an answer to a request that needs ZooKeeper.
"""
TOPICS_MAX: Final = 20_000
"""A source that names more topics is not looked at, because this broker's own clients wait during
each look. It is asked again after `ASK_AGAIN_S`; what is followed already is still copied.
"""
ASK_AGAIN_S: Final = 60.0

_log = log.get(__name__)


class AllTopics(NamedTuple):
    """Which topics does the source have?"""


class ClusterName(NamedTuple):
    """What do the brokers of the source call their cluster?"""

    cluster: Cluster


class TopicConfigs(NamedTuple):
    """Do the configs of these topics show that the topics are mirrors themselves?"""

    cluster: Cluster
    keys: Mapping[str, TopicKey]


TopicQuestion = AllTopics | ClusterName | TopicConfigs
Output = Ask[TopicQuestion] | Creation | Extension | Plan
"""What the caller has to do: send a request, create or extend a topic and then call `changed`, or
follow the partitions of the topics in a plan."""


class SourceTopics:
    """The topics of one source. Only the MirrorSource uses it.

    is_reachable: whether the source answered the last request for its topics; None before the first
    request. away_since_ms: since when (ms since 1970) the source has not answered; None if it does.
    failure: why the source did not answer. misnamed: if this broker's settings give the
    source cluster a wrong name, a sentence that says so; otherwise empty. With a wrong name, a
    round makes no plan, so no further partition is followed. not_done: topics that could not be
    created or examined, each with the reason.
    """

    def __init__(self, mirroring: Mirroring, local: Local, clock: Clock) -> None:
        self.mirroring = mirroring
        self.plan = Plan()
        self.not_done: dict[str, str] = {}
        self.is_reachable: bool | None = None
        self.away_since_ms: int | None = None
        self.failure = ""
        self.misnamed = ""
        self._cluster: Cluster | None = None
        self._local = local
        self._clock = clock
        self._is_asking = False
        self._ask_at = 0.0  # not before this time, in monotonic seconds
        self._named: str | None = None  # the id of the source cluster, once its name is checked
        self._are_mirrors: dict[TopicKey, bool] = {}
        # The topics whose configs the source has not returned, although this round asked for them.
        self._undescribed: set[TopicKey] = set()
        self._changing: set[str] = set()
        # The source can cause each of these lines again and again.
        self._stops = RareLines("mirror_topic_stopped", clock.monotonic, _log.error)
        self._left_out = RareLines("topic_not_mirrored", clock.monotonic, _log.warning)
        self._not_made = RareLines("mirror_topic_not_made", clock.monotonic, _log.warning)

    def begin_round(self) -> list[Output]:
        """Asks for the source's topics. Does nothing if an earlier request is not answered yet, or
        the source has just named too many topics."""
        if self._is_asking or self._clock.monotonic() < self._ask_at:
            return []
        self._is_asking = True
        return [Ask(metadata_call(None), AllTopics())]

    def answered(self, question: TopicQuestion, answer: Answer) -> list[Output]:
        """Takes the source's answer to a question, and returns what is to be done next."""
        self._is_asking = False
        if isinstance(question, AllTopics):
            return self._listed(answer)
        if answer.error is not None:
            self.failure = str(answer.error)
            return []
        if isinstance(question, TopicConfigs):
            self._described(question.keys, answer.response.results)
        elif not self._is_named(question.cluster, _name_told(answer.response)):
            return []
        return self._act(question.cluster)

    def changed(self, name: str, error: SkidwayError | None) -> None:
        """Called when a topic was created or extended. If this has failed, the next round tries
        again."""
        self._changing.discard(name)
        self.not_done.pop(name, None)
        if error is not None:
            self.not_done[name] = str(error)
            self._not_made.tell((name, str(error)), topic=name, reason=str(error))

    def leader(self, tp: TopicPartition) -> Address | None:
        """Returns which broker of the source leads a partition, by the newest plan; None if this is
        unknown. (The client that fetches knows only the topics that it fetches.)"""
        return None if self._cluster is None else self._cluster.leader(tp)

    def _listed(self, answer: Answer) -> list[Output]:
        failure = "" if answer.error is None else str(answer.error)
        if not failure and len(answer.response.topics) > TOPICS_MAX:
            named = len(answer.response.topics)
            failure = f"it names {named} topics, and a mirror looks at no more than {TOPICS_MAX}"
            self._ask_at = self._clock.monotonic() + ASK_AGAIN_S
        self._note_reached(failure)
        if failure:
            return []
        self._undescribed.clear()
        cluster = cluster_of(answer.response)
        if self._named == cluster.cluster_id or not cluster.brokers:
            return self._act(cluster)
        broker = cluster.brokers[min(cluster.brokers)]
        call = describe_configs_call(ResourceType.BROKER, [str(broker.id)], (CLUSTER_NAME,))
        self._is_asking = True
        return [Ask(call, ClusterName(cluster), broker.address)]

    def _note_reached(self, failure: str) -> None:
        before, self.is_reachable, self.failure = self.is_reachable, not failure, failure
        if before == self.is_reachable:
            return
        cluster = self.mirroring.cluster
        if failure:
            self.away_since_ms = self._clock.time_ms()
            _log.error("mirror_source_away", cluster=cluster, reason=failure)
        else:
            self.away_since_ms = None
            _log.info("mirror_source_answers", cluster=cluster)

    def _is_named(self, cluster: Cluster, own: str | None) -> bool:
        """Compares the source cluster's name in the settings of its brokers with its name in this
        broker's settings. The round continues only if the names are the same. Agents and counters
        write the name from the settings of the source's brokers into their messages to the audit.
        If this broker used another name, the audit would not find these messages.

        Some brokers, for example those of Apache Kafka, report no name. In this case the name in
        this broker's settings counts as correct.
        """
        if own in (None, self.mirroring.cluster):
            self._named, self.misnamed = cluster.cluster_id, ""
            return True
        misnamed = f"its brokers call their cluster {own!r} (cluster.name)"
        if misnamed != self.misnamed:
            self.misnamed = misnamed
            _log.error("mirror_stopped", cluster=self.mirroring.cluster, reason=misnamed)
        return False

    def _act(self, cluster: Cluster) -> list[Output]:
        known = {topic_key(topic) for topic in cluster.topics.values()}
        self._are_mirrors = {k: v for k, v in self._are_mirrors.items() if k in known}
        busy = self._local.busy() | self._changing
        local = self._local.topics()
        plan = rounds.plan(self.mirroring, cluster, local, self._are_mirrors, busy)
        self._say(plan)
        self.plan, self._cluster = plan, cluster
        outputs: list[Output] = []
        unknown = [each for each in plan.describe if topic_key(each) not in self._undescribed]
        if unknown:
            self._is_asking = True
            keys = {topic.name: topic_key(topic) for topic in unknown[:TOPICS_A_QUESTION]}
            call = describe_configs_call(ResourceType.TOPIC, keys)
            outputs.append(Ask(call, TopicConfigs(cluster, keys)))
        changes: list[Creation | Extension] = [*plan.create, *plan.extend]
        names = {each.name for each in changes} | {each.name for each in plan.describe}
        names |= self._changing
        self.not_done = {k: v for k, v in self.not_done.items() if k in names}
        changes = changes[: CHANGES_MAX - len(self._changing)]
        self._changing |= {each.name for each in changes}
        return [*outputs, *changes, plan]

    def _say(self, plan: Plan) -> None:
        for name, reason in plan.stopped.items():
            if self.plan.stopped.get(name) != reason:
                self._stops.tell((name, reason), topic=name, reason=reason)
        for name, reason in plan.left_out.items():
            if self.plan.left_out.get(name) != reason:
                self._left_out.tell((name, reason), topic=name, reason=reason)

    def _described(
        self, keys: Mapping[str, TopicKey], rows: Iterable[DescribeConfigsResult]
    ) -> None:
        for row in rows:
            key = keys.get(row.resource_name)
            if key is None:
                continue
            self.not_done.pop(row.resource_name, None)
            if row.error_code:
                error = error_for(row.error_code, row.error_message or None)
                self.not_done[row.resource_name] = f"its configs cannot be read: {error}"
            else:
                configs = {each.name: each.value or "" for each in row.configs}
                self._are_mirrors[key] = selection.is_mirror(configs)
        self._undescribed |= set(keys.values()) - set(self._are_mirrors)


def _name_told(response: DescribeConfigsResponse) -> str | None:
    configs = [each for row in response.results if not row.error_code for each in row.configs]
    return next((each.value for each in configs if each.name == CLUSTER_NAME), None)
