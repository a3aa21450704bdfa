"""At any time, the members of a group are either all stock clients or all consumers of
`skidway.consumer` ("our consumers")."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer as StockConsumer
from confluent_kafka import KafkaError

from conformance.consumer.conftest import Topic
from skidway.consumer import Consumer, GroupCoordinated
from support.brokers import SkidwayBroker
from support.processes import eventually


@pytest.fixture
def stock(topic: Topic) -> Iterator[StockConsumer]:
    """A consumer of librdkafka, subscribed to the topic."""
    consumer = StockConsumer(
        {
            "bootstrap.servers": topic.bootstrap,
            "group.id": topic.name,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "session.timeout.ms": 6_000,
        }
    )
    consumer.subscribe([topic.name])
    yield consumer
    consumer.close()


def ours(topic: Topic) -> Consumer:
    return Consumer(
        topic.bootstrap,
        topic.name,
        topic.name,
        auto_offset_reset="earliest",
    )


def test_our_consumer_does_not_enter_a_group_of_stock_clients(
    topic: Topic, stock: StockConsumer
) -> None:
    """If a consumer of `skidway.consumer` joins a group of stock clients, it raises
    GroupCoordinated. After the last stock client has left, such a consumer can join and continues
    at the committed offsets."""
    topic.produce(100)
    found: list[int] = []

    def read() -> bool:
        found.extend(each.offset() for each in stock.consume(100, 0.1) if each.error() is None)
        return len(found) == 100

    eventually(read)
    stock.commit(asynchronous=False)
    with ours(topic) as consumer, pytest.raises(GroupCoordinated, match="choose another name"):
        next(consumer)
    stock.unsubscribe()
    topic.produce(20)

    def goes_on() -> bool:
        try:
            with ours(topic) as consumer:
                return len([next(consumer) for _ in range(20)]) == 20
        except GroupCoordinated:
            return False

    eventually(goes_on)


def test_stock_clients_do_not_enter_a_group_of_our_consumers(
    topic: Topic, stock: StockConsumer, skidway_broker: SkidwayBroker
) -> None:
    """If stock clients join a group of consumers of `skidway.consumer`, the stock clients get
    INCONSISTENT_GROUP_PROTOCOL and no record, and the broker logs the refusal. After the last of
    these consumers has left, the stock clients continue at the committed offsets."""
    topic.produce(100)
    with ours(topic) as consumer:
        assert len([next(consumer) for _ in range(50)]) == 50
        errors: list[int] = []

        def refused() -> bool:
            for each in stock.consume(10, 0.1):
                error = each.error()
                assert error is not None, "a record of a group that others have"
                errors.append(error.code())
            consumer.poll(0, max_records=1)
            return bool(errors)

        eventually(refused)
        assert errors[0] == KafkaError.INCONSISTENT_GROUP_PROTOCOL
        assert not stock.assignment()
        eventually(
            lambda: not consumer.poll(100) and sum(map(consumer.position, topic.tps())) == 100
        )
    log = skidway_broker.program.output()
    lines = [each for each in log.splitlines() if "group_has_zookeeper_consumers" in each]
    assert len([each for each in lines if topic.name in each]) == 1
    topic.produce(20)
    found: list[int] = []

    def goes_on() -> bool:
        found.extend(each.offset() for each in stock.consume(100, 0.1) if each.error() is None)
        return len(found) == 20

    eventually(goes_on)
