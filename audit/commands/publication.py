"""Publishes the messages that commands send to the collector, on the audit topic of a cluster."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence

from skidway.audit.commands import options
from skidway.audit.settings import AuditSettings
from skidway.audit.topic import topic
from skidway.audit.topic.messages import TOPIC
from skidway.audit.topic.publisher import MemoryOutbox, Publisher
from skidway.clock import Clock
from skidway.errors import Unreachable
from skidway.kafka.client import Client, Producer
from skidway.kafka.types import TopicPartition

PUBLISHED_WITHIN_S = 30.0


def say(
    args: argparse.Namespace,
    settings: AuditSettings | None,
    values: Sequence[bytes],
    clock: Clock,
    what: str,
) -> None:
    """Publishes messages to one partition of the audit topic, on the cluster whose audit topics the
    commands read. Raises Unreachable if the brokers do not acknowledge the messages in time, and
    PublishRefused if they refuse a message.

    what: what the messages contain, in words for the error message.
    """
    with options.client_of(args, settings) as client:
        _publish(client, values, clock, what)


def _publish(client: Client, values: Sequence[bytes], clock: Clock, what: str) -> None:
    count = topic.ensure(client, time.sleep)
    partition = TopicPartition(TOPIC, topic.partition_of("", count))
    outbox = MemoryOutbox(values)
    if not Publisher(Producer(client), outbox, partition, clock).flush(PUBLISHED_WITHIN_S):
        raise Unreachable(
            f"The cluster has not acknowledged {what} within {PUBLISHED_WITHIN_S:.0f} s: check"
            " in the report whether it is known before you repeat it."
        )
