"""If a broker is killed and restarted, stock clients that are members of groups continue at their
committed offsets and lose no records."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support.brokers import SkidwayBroker
from support.stock_clients import CLIENTS, Driver, StockClient
from support.stock_group import EACH, PARTITIONS, Group
from support.story import each_client

pytestmark = pytest.mark.slow


@pytest.fixture
def broker(tmp_path: Path, zookeeper: str) -> Iterator[SkidwayBroker]:
    """A broker that only one test uses. The test kills this broker."""
    broker = SkidwayBroker(tmp_path, zookeeper, group_initial_rebalance_delay_ms=0)
    try:
        yield broker.start()
    finally:
        broker.end()


@pytest.fixture
def start(broker: SkidwayBroker, tmp_path: Path) -> Iterator[Callable[[StockClient], Driver]]:
    """Yields a function that starts a driver: a program that uses a client library, such as
    librdkafka, to carry out the commands of a test."""
    started: list[Driver] = []

    def program(client: StockClient) -> Driver:
        started.append(Driver(client, broker.address, tmp_path))
        return started[-1]

    yield program
    for each in started:
        each.close()


@each_client()
def test_two_members_go_on_with_a_broker_that_was_killed(
    client: StockClient, broker: SkidwayBroker, start: Callable[[StockClient], Driver]
) -> None:
    """If the broker is killed while the second member joins, and again while both members share the
    partitions, every record arrives. The broker keeps the committed offsets."""
    group = Group(start(CLIENTS["confluent-kafka"]), lambda: start(client))
    group.write()
    first = group.join()
    group.read_all(range(EACH))
    group.commit()
    second = group.join()
    group.poll()
    broker.crash()
    group.settle()
    if "commit" not in client.lacks:  # clients without the command "commit" commit automatically
        assert group.committed() == [EACH] * len(PARTITIONS)
    group.write()
    group.read_again(range(EACH, 2 * EACH))
    group.settle()
    group.commit()
    broker.crash()
    group.write()
    group.read_again(range(2 * EACH, 3 * EACH))
    group.settle()
    assert all(group.read[each] for each in (first, second))
    group.commit()
    for member in (second, first):
        group.leave(member)
    assert group.committed() == [3 * EACH] * len(PARTITIONS)
