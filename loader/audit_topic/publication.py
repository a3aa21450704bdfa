"""Publishes the loader's audit messages to the topic `_skidway_audit` of the cluster that the
loader loads from."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final

from skidway.audit.signing.signer import Signer, require_key
from skidway.audit.topic import topic
from skidway.audit.topic.claims import sender_overclaim
from skidway.audit.topic.messages import TOPIC, Delta, encode
from skidway.audit.topic.notes import Note
from skidway.audit.topic.publisher import MemoryOutbox, Publisher
from skidway.clock import Clock
from skidway.errors import Unreachable
from skidway.kafka.client import Client, Producer
from skidway.kafka.types import TopicPartition

TIMEOUT_S: Final = 60.0


def publish(
    client: Client,
    messages: Sequence[Delta],
    clock: Clock,
    notes: Sequence[Note] = (),
    signer: Signer | None = None,
) -> None:
    """Sends the given audit messages of one output to the audit topic, and then the output's notes
    (messages that change no verdict). Waits until the broker has acknowledged all of them. Does
    nothing if there are no messages.

    The newest manifest also contains these messages. So if the sending fails, the next run
    publishes the same messages again. signer: signs the messages; None if nobody does. Raises
    Unreachable if the broker has not acknowledged all messages within TIMEOUT_S, and SkidwayError
    if the broker refuses a message, or if the signer has no usable key.
    """
    if not messages:
        return
    count = topic.ensure(client, time.sleep)
    partition = TopicPartition(TOPIC, topic.partition_of(messages[0].sender.producer, count))
    outbox = MemoryOutbox([*map(encode, messages), *map(encode, notes)])
    require_key(signer, lambda identity: sender_overclaim(identity, messages[0].sender))
    producer = Producer(client)
    try:
        if not Publisher(producer, outbox, partition, clock, signer).flush(TIMEOUT_S):
            raise Unreachable(f"{TOPIC}: audit messages were not acknowledged in {TIMEOUT_S:.0f} s")
    finally:
        producer.close()
