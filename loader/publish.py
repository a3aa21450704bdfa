"""Publishes audit messages of the loader to `_skidway_audit` of the cluster that is loaded from."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from audit.messages import TOPIC, Delta, encode
from skidway.errors import SkidwayError, Unreachable
from skidway.kafka.client import Client, NewTopic, Producer
from skidway.kafka.columns import encode as encode_batch
from skidway.kafka.errors import ErrorCode
from skidway.kafka.types import TopicPartition

FLUSH_MS: Final = 60_000


def publish(client: Client, messages: Sequence[Delta], time_ms: int) -> None:
    """Sends messages of one output and waits until they are acknowledged.

    Raises Unreachable when they are not in time; the next run publishes them again.
    """
    if not messages:
        return
    tp = TopicPartition(TOPIC, _partition(client, messages[0].sender.producer))
    producer = Producer(client)
    try:
        for message in messages:
            values = pa.array([encode(message)], pa.binary())
            producer.send(tp, encode_batch(values, np.array([time_ms], np.int64)), message.number)
            for delivery in producer.poll(0):
                _check(delivery.error)
        if not producer.flush(FLUSH_MS):
            raise Unreachable(f"{TOPIC}: the audit counts were not acknowledged in time")
        for delivery in producer.poll(0):
            _check(delivery.error)
    finally:
        producer.close()


def _partition(client: Client, producer: str) -> int:
    """Always the same partition for one output, so that its messages stay in order."""
    topic = client.metadata([TOPIC]).topics.get(TOPIC)
    if topic is None or not topic.partitions:
        error = client.create_topics([NewTopic(TOPIC)])[TOPIC]
        if error is not None and error.code is not ErrorCode.TOPIC_ALREADY_EXISTS:
            raise SkidwayError(f"{TOPIC} does not exist and cannot be created: {error}")
        topic = client.metadata([TOPIC]).topics[TOPIC]
    return zlib.crc32(producer.encode()) % max(len(topic.partitions), 1)


def _check(error: SkidwayError | None) -> None:
    if error is not None:
        raise SkidwayError(f"{TOPIC}: the broker refused the audit counts: {error}")
