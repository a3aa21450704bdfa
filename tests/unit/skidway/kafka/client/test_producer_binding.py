"""A producer can be bound to the ids of its topics. If such a topic is deleted and created again,
the producer sends nothing to the new topic. The tests use no network."""

from __future__ import annotations

import uuid
from types import SimpleNamespace
from typing import Any

from skidway.kafka.batch import EncodedBatch
from skidway.kafka.client import Producer
from skidway.kafka.client.calls import ProduceCall
from skidway.kafka.client.cluster import Broker, Cluster, Partition, TopicMetadata
from skidway.kafka.client.metadata import Metadata
from skidway.kafka.client.session import Channel
from skidway.kafka.codecs import NONE
from skidway.kafka.errors import ErrorCode
from skidway.kafka.types import TopicPartition
from support.clock import ManualClock
from support.promises import promise

TP = TopicPartition("logs", 0)
FIRST, SECOND = uuid.UUID(int=1), uuid.UUID(int=2)


class Session:
    """A fake session in which every broker can be reached and none answers."""

    def __init__(self) -> None:
        self.produced = 0

    def usable(self, *_: Any) -> bool:
        return True

    def is_ready(self, *_: Any) -> bool:
        return True

    def submit(self, to: Any, channel: Channel, call: Any, *_: Any) -> int:
        self.produced += isinstance(call, ProduceCall)
        return self.produced


def told(topic_id: uuid.UUID | None) -> Cluster:
    leader = Partition(0, 1, 0, (1,), (1,))
    topic = TopicMetadata("logs", topic_id, ErrorCode.NONE, (leader,))
    return Cluster("c", 1, {1: Broker(1, "b1", 9092)}, {"logs": topic})


def producing(topic_id: uuid.UUID | None, bound: str) -> tuple[Producer, Metadata, Session]:
    picture, session = Metadata((), lambda: 0.5), Session()
    client = SimpleNamespace(
        clock=ManualClock(), random=lambda: 0.5, picture=picture, session=session,
        push=lambda: None, request_timeout_ms=1_000,
    )  # fmt: skip
    producer = Producer(client, idempotent=False)  # type: ignore[arg-type]
    producer.bind({"logs": bound})
    picture.learned(told(topic_id))
    producer.send(TP, EncodedBatch(b"opaque", NONE.number, 1, 0, 0, 6), None)
    return producer, picture, session


def test_batches_go_to_the_topic_that_they_are_for() -> None:
    """A producer that is bound to a topic id sends as long as the topic has this id. If the cluster
    does not support topic ids, the producer sends by the topic's name."""
    for topic_id, bound in ((FIRST, FIRST.hex), (None, FIRST.hex), (SECOND, "")):
        producer, _, session = producing(topic_id, bound)
        assert (session.produced, producer.made_again) == (1, frozenset())


@promise("2 topic made again")
def test_a_topic_made_again_takes_nothing_that_was_for_the_one_before() -> None:
    """If a topic was deleted and created again, a producer that is bound to the old topic's id
    reports this. The producer does not send the batches for the old topic, and keeps them
    pending."""
    producer, _, session = producing(SECOND, FIRST.hex)
    assert (session.produced, producer.made_again) == (0, {"logs"})
    producer, picture, session = producing(FIRST, FIRST.hex)
    picture.learned(told(SECOND))
    producer.send(TP, EncodedBatch(b"opaque", NONE.number, 1, 0, 0, 6), None)
    assert (session.produced, producer.made_again) == (1, {"logs"})
    assert producer.pending_count == 2
