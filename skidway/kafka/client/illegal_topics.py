"""Drops topics with illegal names from the answers of brokers. Whoever uses a client may take a
topic's name as the name of a file or of a ZooKeeper node."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from skidway import log
from skidway.kafka.errors import ErrorCode
from skidway.kafka.protocol.metadata import MetadataResponseTopic
from skidway.kafka.topic_names import TOPIC_NAME_MAX, illegal_topic

NAMED_MAX: Final = 100
"""A process names at most this many of the dropped topics."""

_ABSENT: Final = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INVALID_TOPIC_EXCEPTION)

_log = log.get(__name__)


class IllegalTopics:
    """The illegal names that were found so far. Each is logged once."""

    def __init__(self) -> None:
        self._named: set[str] = set()

    def dropped_from(
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
        self._name(illegal)
        return legal

    def _name(self, illegal: Iterable[str]) -> None:
        fresh = [name for name in dict.fromkeys(illegal) if name not in self._named]
        fresh = fresh[: NAMED_MAX - len(self._named)]
        self._named.update(fresh)
        if fresh:
            _log.warning("illegal_topics_dropped", topics=fresh)
