"""What the producer knows about topics: the number of partitions and the largest size of a batch.

The thread that calls `send` asks the brokers, because the sender's thread must not wait. The
directory has its own connections for these requests. One thread asks at a time. Other threads wait
for the answer, each at most `max.block.ms`.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace

from skidway.clock import Clock
from skidway.errors import SkidwayError, Unreachable
from skidway.kafka.client import Client, TopicMetadata
from skidway.kafka.errors import BrokerUnreachable, ErrorCode, KafkaError, error_for

LOOK_AGAIN_S = 0.1


@dataclass(frozen=True, slots=True)
class KnownTopic:
    """A topic. `available` contains the partitions that have a leader. If no partition has a
    leader, `available` contains all partitions."""

    partitions: int
    available: tuple[int, ...]
    limit_bytes: int
    asked_at: float


class Directory:
    """The known topics. Several threads may use the directory."""

    def __init__(self, client: Client, *, batch_size: int, age_max_s: float, clock: Clock) -> None:
        """The directory owns the client, and closes it."""
        self._client = client
        self._batch_size = batch_size
        self._age_max_s = age_max_s
        self._clock = clock
        self._topics: dict[str, KnownTopic] = {}
        self._lock = threading.Lock()
        self._closed = False

    def topic(self, name: str, timeout_s: float, partition: int = 0) -> KnownTopic:
        """Returns what the producer knows about a topic. If the topic is not known yet, asks the
        brokers. Raises KafkaError if the topic still does not exist after `timeout_s`, and
        Unreachable if no broker answers.

        If the known topic lacks `partition`, the partition may be new, so this method asks the
        brokers again. If the known topic has the partition, but its metadata is older than
        `age_max_s`, the first thread that notices this asks once, without a retry. Meanwhile, the
        other threads do not wait, but use the old metadata. If the brokers do not answer, or answer
        with an error, the first thread uses the old metadata, too. So an unreachable broker does
        not delay messages for which the old metadata is sufficient.
        """
        known = self._topics.get(name)
        now = self._clock.monotonic()
        if known is None:
            return self._learn(name, None, now + timeout_s)
        is_missing = partition >= known.partitions
        if now - known.asked_at < (LOOK_AGAIN_S if is_missing else self._age_max_s):
            return known
        try:
            return self._learn(name, known, now + timeout_s if is_missing else now)
        except SkidwayError:
            return known  # the metadata is old, but still usable

    def close(self) -> None:
        """Closes the connections without waiting. If a thread is asking the brokers now, that
        thread closes the connections when it has finished."""
        self._closed = True
        if self._lock.acquire(blocking=False):
            self._release()

    def _learn(self, name: str, before: KnownTopic | None, until: float) -> KnownTopic:
        """Asks the brokers about a topic. If another thread has asked about it meanwhile, returns
        that thread's answer."""
        if not self._lock.acquire(timeout=max(until - self._clock.monotonic(), 0.0)):
            raise Unreachable(f"no broker has answered about topic {name} in time")
        try:
            known = self._topics.get(name)
            return self._ask(name, until) if known is None or known is before else known
        except SkidwayError:
            # The old answer (`before`) counts as new, so that other threads do not ask again at
            # once.
            if before is not None:
                self._topics[name] = replace(before, asked_at=self._clock.monotonic())
            raise
        finally:
            self._release()

    def _release(self) -> None:
        if self._closed:
            self._client.close()
        self._lock.release()

    def _ask(self, name: str, until: float) -> KnownTopic:
        while True:
            try:
                topic = self._look(name)
                break
            except (BrokerUnreachable, KafkaError) as error:
                final = isinstance(error, KafkaError) and not error.retriable
                if final or self._closed or self._clock.monotonic() >= until:
                    raise
            self._client.pause(LOOK_AGAIN_S)
        leaders = tuple(each.index for each in topic.partitions if each.leader >= 0)
        found = KnownTopic(
            len(topic.partitions),
            leaders or tuple(range(len(topic.partitions))),
            min(self._batch_size, self._max_message_bytes(name)),
            self._clock.monotonic(),
        )
        self._topics[name] = found
        return found

    def _look(self, name: str) -> TopicMetadata:
        """Asks the brokers for the topic's metadata, and returns it. Raises KafkaError if the topic
        does not exist. Raises BrokerUnreachable if no broker answers."""
        topic = self._client.metadata([name]).topics.get(name)
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if topic is None else topic.error
        if topic is None or code is not ErrorCode.NONE or not topic.partitions:
            raise error_for(code, f"topic {name}")
        return topic

    def _max_message_bytes(self, name: str) -> int:
        """Returns the topic's limit for the size of a batch. If the broker does not return this
        limit, the producer later halves a batch that is too large."""
        try:
            text = self._client.topic_configs([name])[name].get("max.message.bytes", "")
        except (KafkaError, Unreachable):
            return self._batch_size
        return int(text) if text.isdecimal() else self._batch_size
