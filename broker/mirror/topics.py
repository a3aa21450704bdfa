"""The topics of one source (a cluster whose topics are mirrored). Asks the source for its topics in
rounds, and creates and extends their mirrors.

`rounds` decides what to do with topics and partitions. This module carries out the decisions about
topics, and `source` carries out the decisions about partitions. For one source, only one request is
in flight at a time, and at most `CHANGES_MAX` topics are changed at the same time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from skidway import log
from skidway.broker.mirror import rounds, selection
from skidway.broker.mirror.rounds import Mirroring, Plan, TopicKey, topic_key
from skidway.broker.mirror.surroundings import Ask, Done, Local
from skidway.clock import Clock
from skidway.errors import SkidwayError
from skidway.kafka.client.cluster import Address, Cluster, TopicMetadata, cluster_of
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


class SourceTopics:
    """The topics of one source. Only the MirrorSource uses it.

    is_reachable: whether the source answered the last request for its topics; None before the first
    request. away_since_ms: since when (ms since 1970) the source has not answered; None if it does.
    failure: why the source did not answer. misnamed: if this broker's settings give the
    source cluster a wrong name, a sentence that says so; otherwise empty. With a wrong name, a
    round makes no plan, so no further partition is followed. not_done: topics that could not be
    created or examined, each with the reason.
    """

    def __init__(
        self,
        mirroring: Mirroring,
        local: Local,
        ask: Ask,
        follow: Callable[[Plan], None],
        clock: Clock,
    ) -> None:
        """follow: a function that is called with each plan, and that follows the partitions of the
        topics in the plan."""
        self.mirroring = mirroring
        self.plan = Plan()
        self.not_done: dict[str, str] = {}
        self.is_reachable: bool | None = None
        self.away_since_ms: int | None = None
        self.failure = ""
        self.misnamed = ""
        self._cluster: Cluster | None = None
        self._local = local
        self._ask = ask
        self._follow = follow
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

    def begin_round(self) -> None:
        """Asks for the source's topics. Does nothing if an earlier request is not answered yet, or
        the source has just named too many topics."""
        if not self._is_asking and self._clock.monotonic() >= self._ask_at:
            self._is_asking = True
            self._ask(metadata_call(None), self._told)

    def leader(self, tp: TopicPartition) -> Address | None:
        """Returns which broker of the source leads a partition, by the newest plan; None if this is
        unknown. (The client that fetches knows only the topics that it fetches.)"""
        return None if self._cluster is None else self._cluster.leader(tp)

    def _told(self, answer: Answer) -> None:
        self._is_asking = False
        failure = "" if answer.error is None else str(answer.error)
        if not failure and len(answer.response.topics) > TOPICS_MAX:
            named = len(answer.response.topics)
            failure = f"it names {named} topics, and a mirror looks at no more than {TOPICS_MAX}"
            self._ask_at = self._clock.monotonic() + ASK_AGAIN_S
        self._note_reached(failure)
        if not failure:
            self._undescribed.clear()
            self._compare_name(cluster_of(answer.response))

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

    def _compare_name(self, cluster: Cluster) -> None:
        """Compares the source cluster's name in the settings of its brokers with its name in this
        broker's settings. The round continues only if the names are the same. Agents and counters
        write the name from the settings of the source's brokers into their messages to the audit.
        If this broker used another name, the audit would not find these messages.

        Some brokers, for example those of Apache Kafka, report no name. In this case the name in
        this broker's settings counts as correct.
        """
        if self._named == cluster.cluster_id or not cluster.brokers:
            self._act(cluster)
            return
        broker = cluster.brokers[min(cluster.brokers)]
        self._is_asking = True

        def told(answer: Answer) -> None:
            self._is_asking = False
            if answer.error is not None:
                self.failure = str(answer.error)
                return
            own = _name_told(answer.response)
            if own in (None, self.mirroring.cluster):
                self._named, self.misnamed = cluster.cluster_id, ""
                self._act(cluster)
                return
            misnamed = f"its brokers call their cluster {own!r} (cluster.name)"
            if misnamed != self.misnamed:
                self.misnamed = misnamed
                _log.error("mirror_stopped", cluster=self.mirroring.cluster, reason=misnamed)

        call = describe_configs_call(ResourceType.BROKER, [str(broker.id)])
        self._ask(call, told, broker.address)

    def _act(self, cluster: Cluster) -> None:
        known = {topic_key(topic) for topic in cluster.topics.values()}
        self._are_mirrors = {k: v for k, v in self._are_mirrors.items() if k in known}
        busy = self._local.busy() | self._changing
        local = self._local.topics()
        plan = rounds.plan(self.mirroring, cluster, local, self._are_mirrors, busy)
        self._say(plan)
        self.plan, self._cluster = plan, cluster
        unknown = [each for each in plan.describe if topic_key(each) not in self._undescribed]
        if unknown:
            self._describe(cluster, unknown[:TOPICS_A_QUESTION])
        for creation in plan.create:
            self._change(creation.name, partial(self._local.create, creation))
        for topic, count in plan.extend:
            self._change(topic.name, partial(self._local.extend, topic, count))
        names = {each.name for each in plan.create} | {each.name for each, _ in plan.extend}
        names |= self._changing | {each.name for each in plan.describe}
        self.not_done = {k: v for k, v in self.not_done.items() if k in names}
        self._follow(plan)

    def _say(self, plan: Plan) -> None:
        for name, reason in plan.stopped.items():
            if self.plan.stopped.get(name) != reason:
                self._stops.tell((name, reason), topic=name, reason=reason)
        for name, reason in plan.left_out.items():
            if self.plan.left_out.get(name) != reason:
                self._left_out.tell((name, reason), topic=name, reason=reason)

    def _change(self, name: str, work: Callable[[Done], None]) -> None:
        """Creates or extends a topic. If the change fails, the next round tries again."""
        if len(self._changing) >= CHANGES_MAX:
            return
        self._changing.add(name)

        def done(error: SkidwayError | None) -> None:
            self._changing.discard(name)
            self.not_done.pop(name, None)
            if error is not None:
                self.not_done[name] = str(error)
                self._not_made.tell((name, str(error)), topic=name, reason=str(error))

        work(done)

    def _describe(self, cluster: Cluster, topics: Sequence[TopicMetadata]) -> None:
        """Asks the source for the configs that show whether `topics` are mirrors themselves, then
        makes a new plan."""
        self._is_asking = True
        keys = {topic.name: topic_key(topic) for topic in topics}

        def told(answer: Answer) -> None:
            self._is_asking = False
            if answer.error is not None:
                self.failure = str(answer.error)
                return
            for row in answer.response.results:
                if row.resource_name in keys:
                    self._described(keys[row.resource_name], row)
            self._undescribed |= set(keys.values()) - set(self._are_mirrors)
            self._act(cluster)

        self._ask(describe_configs_call(ResourceType.TOPIC, keys), told)

    def _described(self, key: TopicKey, row: DescribeConfigsResult) -> None:
        self.not_done.pop(row.resource_name, None)
        if row.error_code:
            error = error_for(row.error_code, row.error_message or None)
            self.not_done[row.resource_name] = f"its configs cannot be read: {error}"
        else:
            configs = {each.name: each.value or "" for each in row.configs}
            self._are_mirrors[key] = selection.is_mirror(configs)


def _name_told(response: DescribeConfigsResponse) -> str | None:
    configs = [each for row in response.results if not row.error_code for each in row.configs]
    return next((each.value for each in configs if each.name == CLUSTER_NAME), None)
