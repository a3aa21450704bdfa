"""Creates the topics that a program needs, and waits until the brokers know new topics."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from skidway import log
from skidway.errors import Unreachable
from skidway.kafka.client.client import Client
from skidway.kafka.client.cluster import Broker, NewTopic, TopicMetadata
from skidway.kafka.errors import BrokerUnreachable, ErrorCode, KafkaError

READY_WITHIN_S: Final = 30.0
KNOWN_WITHIN_S: Final = 10.0

_ASK_AGAIN_S = 0.1

_log = log.get(__name__)


def ensure_topics(
    client: Client, needed: Sequence[NewTopic], pause: Callable[[float], object]
) -> dict[str, TopicMetadata]:
    """Creates the topics that are missing, waits until every partition has a leader, and returns
    the topics by name. Existing topics stay as they are.

    A cluster confirms a new topic before all its brokers know the topic. So for a short time after
    its creation, a topic can still be missing from an answer.

    pause: a function that sleeps for the given number of seconds, or for a shorter time if the
    program must stop. Raises Unreachable if a partition has no leader in time, and KafkaError if
    the cluster refuses a topic.
    """
    names = [each.name for each in needed]
    deadline = client.clock.monotonic() + READY_WITHIN_S
    while True:
        found = client.metadata(names).topics
        waiting = [each for each in needed if not _is_ready(found.get(each.name))]
        if not waiting:
            return {name: found[name] for name in names}
        _create(client, [each for each in waiting if _is_missing(found.get(each.name))])
        if client.clock.monotonic() > deadline:
            raise Unreachable(
                f"Topic {waiting[0].name} has no leader after {READY_WITHIN_S:.0f} s."
            )
        pause(_ASK_AGAIN_S)


def wait_until_known(
    client: Client, topic: str, partitions: int, pause: Callable[[float], object]
) -> list[Broker]:
    """Waits until each broker lists the topic with at least this number of partitions, at most
    KNOWN_WITHIN_S seconds. Returns the brokers that answer, but do not list it in this time. A
    broker that does not answer takes the client's request timeout in addition.

    A cluster confirms a new topic or partition before all its brokers know it. Without this wait, a
    broker could tell the next command of a script that the topic does not exist. A broker that does
    not answer cannot say this either, so it counts as one that lists the topic.
    """
    deadline = client.clock.monotonic() + KNOWN_WITHIN_S
    waiting = list(client.metadata(()).brokers.values())
    while True:
        waiting = [each for each in waiting if not _knows(client, each, topic, partitions)]
        if not waiting or client.clock.monotonic() > deadline:
            return waiting
        pause(_ASK_AGAIN_S)


def _knows(client: Client, broker: Broker, topic: str, partitions: int) -> bool:
    try:
        found = client.metadata([topic], broker).topics.get(topic)
    except BrokerUnreachable:
        return True
    return found is not None and len(found.partitions) >= partitions


def _create(client: Client, missing: Sequence[NewTopic]) -> None:
    for name, error in client.create_topics(missing).items() if missing else ():
        if error is None:
            _log.info("topic_created", topic=name)
        elif error.code is not ErrorCode.TOPIC_ALREADY_EXISTS and not error.retriable:
            raise error


def _is_missing(topic: TopicMetadata | None) -> bool:
    return topic is None or topic.error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _is_ready(topic: TopicMetadata | None) -> bool:
    if topic is not None and topic.error is ErrorCode.INVALID_TOPIC_EXCEPTION:
        raise KafkaError(topic.error, f"the cluster does not take the name {topic.name}")
    return (
        topic is not None
        and bool(topic.partitions)
        and all(partition.leader >= 0 for partition in topic.partitions)
    )
