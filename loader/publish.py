"""Publishes audit messages of the loader to `_skidway_audit` of the cluster that is loaded from."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from skidway.audit.topic import topic
from skidway.audit.topic.messages import TOPIC, Delta, encode
from skidway.clock import Clock
from skidway.errors import SkidwayError, Unreachable
from skidway.kafka import columns
from skidway.kafka.client import Client, Producer
from skidway.kafka.types import TopicPartition

TIMEOUT_S: Final = 60.0
POLL_MS: Final = 500


def publish(client: Client, messages: Sequence[Delta], clock: Clock) -> None:
    """Sends messages of one output and waits until they are acknowledged.

    The manifest is the outbox: whatever fails here is published again by the next run. Raises
    Unreachable when the acknowledgements are late, SkidwayError when the broker refuses.
    """
    if not messages:
        return
    count = topic.ensure(client, clock, time.sleep)
    tp = TopicPartition(TOPIC, topic.partition_of(messages[0].sender.producer, count))
    producer = Producer(client)
    try:
        _send(producer, tp, messages, clock)
    finally:
        producer.close()


def _send(producer: Producer, tp: TopicPartition, messages: Sequence[Delta], clock: Clock) -> None:
    deadline = clock.monotonic() + TIMEOUT_S
    waiting = list(messages)
    acknowledged = 0
    while acknowledged < len(messages):
        while waiting and producer.has_room:
            values = pa.array([encode(waiting.pop(0))], pa.binary())
            times = np.array([clock.time_ms()], np.int64)
            producer.send(tp, columns.encode(values, times), None)
        for delivery in producer.poll(POLL_MS):
            if delivery.error is not None:
                raise SkidwayError(f"{TOPIC} refuses an audit message: {delivery.error}")
            acknowledged += 1
        if clock.monotonic() > deadline:
            raise Unreachable(f"{TOPIC}: audit messages were not acknowledged in {TIMEOUT_S:.0f} s")
