"""Which broker leads which partition, as far as this client knows.

`Metadata` asks for the topics in use. It asks again when a leader is unknown, or when an answer or
a lost connection shows that a leader may have changed, but it waits between two requests
(`Backoff`). It also asks every five minutes. It never creates a topic. This module does no I/O:
`advance` submits requests through the session, and the time is a parameter.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import cast

from skidway.kafka.client.backoff import Backoff
from skidway.kafka.client.calls import Buffer, MessageCall
from skidway.kafka.client.cluster import Address, Cluster, cluster_of
from skidway.kafka.client.session import Channel, ClientSession, Inbox
from skidway.kafka.errors import ErrorCode
from skidway.kafka.protocol.apis import ApiKey
from skidway.kafka.protocol.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from skidway.kafka.types import TopicPartition

AGE_MAX_S = 300.0
TOPICS_MAX = 100_000

_NOTHING = Cluster(None, -1, {}, {})


def metadata_call(topics: Iterable[str] | None) -> MessageCall:
    """Returns a Metadata request for some topics, or for all topics (None). The request never
    creates a topic.
    """
    wanted = None if topics is None else tuple(MetadataRequestTopic(name=t) for t in topics)
    request = MetadataRequest(topics=wanted, allow_auto_topic_creation=False)
    return MessageCall(ApiKey.METADATA, lambda _: request, MetadataResponse)


class SharedMetadataCall:
    """One Metadata request to several brokers. Its response is a `Cluster`. Equal answers are
    decoded only once: in a large cluster, this takes most of the time."""

    api = ApiKey.METADATA
    is_answered = True

    def __init__(self, topics: Iterable[str] | None) -> None:
        self._call = metadata_call(topics)
        self._read: dict[tuple[int, bytes], Cluster] = {}

    def frame(self, version: int, correlation_id: int, client_id: str) -> Sequence[Buffer]:
        """Returns the request in one piece."""
        return self._call.frame(version, correlation_id, client_id)

    def read(self, body: memoryview, version: int) -> Cluster:
        """Returns what the broker knows."""
        key = version, bytes(body)
        if key not in self._read:
            self._read[key] = cluster_of(cast("MetadataResponse", self._call.read(body, version)))
        return self._read[key]


class Metadata:
    """What is known about the cluster's brokers and topics, and when to ask the brokers again."""

    def __init__(self, bootstrap: tuple[Address, ...], random: Callable[[], float]) -> None:
        self._bootstrap = bootstrap
        self._topics: set[str] = set()
        self._inbox: Inbox = deque()
        self._ticket: int | None = None
        self._backoff = Backoff(random)
        self._stale = False
        self._asked_at = 0.0
        self._due_at: float | None = None
        self._turn = 0
        self.cluster = _NOTHING

    def want(self, topic: str) -> None:
        """Includes a topic in all requests from now on, to learn the leaders of its partitions.
        Raises ValueError if the client has `TOPICS_MAX` topics already."""
        if topic not in self._topics:
            if len(self._topics) >= TOPICS_MAX:
                raise ValueError(f"more than {TOPICS_MAX} topics in one client")
            self._topics.add(topic)
            self._stale, self._due_at = True, None

    def unwant(self, topic: str) -> None:
        """Leaves a topic out of later requests, because nobody uses the topic any more."""
        self._topics.discard(topic)

    def leader(self, tp: TopicPartition) -> Address | None:
        """Returns the address of a partition's leader. If the leader is unknown, returns None, and
        `advance` will ask for it."""
        address = self.cluster.leader(tp)
        if address is None:
            self.want(tp.topic)
            self._stale = True
        return address

    def topic_id(self, topic: str) -> str:
        """Returns a topic's id according to the last Metadata answer, as 32 hexadecimal digits, or
        "" if it is unknown.
        """
        found = self.cluster.topics.get(topic)
        return "" if found is None or found.topic_id is None else found.topic_id.hex

    def mark_stale(self) -> None:
        """Notes that metadata must be requested again, because an answer or a lost connection has
        shown that a leader may have changed."""
        self._stale = True

    def addresses(self) -> list[Address]:
        """Returns the addresses of all known brokers, and then those of `bootstrap`, each once."""
        known = [broker.address for broker in self.cluster.brokers.values()]
        return list(dict.fromkeys([*known, *self._bootstrap]))

    def next_address(self, session: ClientSession, channel: Channel, now: float) -> Address | None:
        """Returns the address of a broker that can be asked now, or None. A connected broker is
        preferred. If no broker is connected, the usable addresses take turns.
        """
        addresses = self.addresses()
        usable = [each for each in addresses if session.usable(each, channel, now)]
        for address in usable:
            if session.is_ready(address, channel):
                return address
        self._turn += 1
        return usable[self._turn % len(usable)] if usable else None

    def advance(self, session: ClientSession, now: float) -> None:
        """Processes the answer to the last request if it has come, and sends the next request if it
        is due."""
        while self._inbox:
            self._take(now)
        old = bool(self._topics) and now - self._asked_at >= AGE_MAX_S
        if self._ticket is not None or not (self._stale or old):
            return
        if self._due_at is not None and now < self._due_at:
            return
        address = self.next_address(session, Channel.MAIN, now)
        if address is None:
            self._due_at = now + self._backoff.next_s()
            return
        self._stale, self._asked_at = False, now
        call = metadata_call(sorted(self._topics))
        self._ticket = session.submit(address, Channel.MAIN, call, self._inbox, now)

    @property
    def next_deadline(self) -> float | None:
        """Returns the time (monotonic seconds) at which the next request may be sent, or None if no
        request waits.
        """
        return self._due_at if self._stale and self._ticket is None else None

    def learned(self, cluster: Cluster) -> None:
        """Processes the answer to a metadata request that this object did not send. The answer's
        topics replace the known topics of the same names; other topics stay as they were."""
        topics = {**self.cluster.topics, **cluster.topics}
        self.cluster = Cluster(cluster.cluster_id, cluster.controller_id, cluster.brokers, topics)

    def _take(self, now: float) -> None:
        answer = self._inbox.popleft()
        self._ticket = None
        if answer.error is not None:
            self._stale = True
        else:
            self.cluster = cluster_of(answer.response)
            self._backoff.reset() if self._is_complete() else None
        self._due_at = now + self._backoff.next_s()

    def _is_complete(self) -> bool:
        for name in self._topics:
            topic = self.cluster.topics.get(name)
            if topic is None or topic.error is not ErrorCode.NONE:
                return False
            if any(each.leader < 0 for each in topic.partitions):
                return False
        return True
