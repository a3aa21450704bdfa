"""Drops topics and brokers with illegal names from the answers of brokers. Whoever uses a client
may take a topic's name as the name of a file or of a ZooKeeper node, and a broker's host goes to
the resolver and to people's terminals. A partition whose leader is dropped has no leader.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from skidway import log
from skidway.kafka.errors import ErrorCode
from skidway.kafka.host_names import HOST_NAME_MAX, is_address
from skidway.kafka.protocol.metadata import MetadataResponseBroker, MetadataResponseTopic
from skidway.kafka.topic_names import TOPIC_NAME_MAX, illegal_topic

NAMED_MAX: Final = 100
"""A process names at most this many of the dropped topics, and as many brokers."""

_ABSENT: Final = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INVALID_TOPIC_EXCEPTION)

_log = log.get(__name__)


class IllegalNames:
    """The illegal names that were found so far. Each is logged once."""

    def __init__(self) -> None:
        self._topics: set[str] = set()
        self._brokers: set[str] = set()

    def legal_topics(
        self, topics: Iterable[MetadataResponseTopic]
    ) -> list[tuple[str, MetadataResponseTopic]]:
        """Returns the topics with legal names, by name. Logs the other topics, but for those that
        do not exist according to the answer: somebody only asked for such a name."""
        legal, illegal = [], []
        for topic in topics:
            if not topic.name:
                continue
            if illegal_topic(topic.name) is None:
                legal.append((topic.name, topic))
            elif topic.error_code not in _ABSENT:
                illegal.append(topic.name[:TOPIC_NAME_MAX])
        fresh = _fresh(illegal, self._topics)
        if fresh:
            _log.warning("illegal_topics_dropped", topics=fresh)
        return legal

    def legal_brokers(
        self, brokers: Iterable[MetadataResponseBroker]
    ) -> list[MetadataResponseBroker]:
        """Returns the brokers to whose addresses a client can connect, and logs the others."""
        legal, illegal = [], []
        for broker in brokers:
            if is_address(broker.host, broker.port):
                legal.append(broker)
            else:
                illegal.append(f"{broker.host[:HOST_NAME_MAX]}:{broker.port}")
        fresh = _fresh(illegal, self._brokers)
        if fresh:
            _log.warning("illegal_brokers_dropped", brokers=fresh)
        return legal


def _fresh(illegal: Iterable[str], named: set[str]) -> list[str]:
    fresh = [name for name in dict.fromkeys(illegal) if name not in named]
    fresh = fresh[: NAMED_MAX - len(named)]
    named.update(fresh)
    return fresh
