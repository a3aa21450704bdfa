"""Fixtures: one of our brokers for all clients, and a driver for each client. A driver is a program
that uses its client library to do what a test requests. Each driver is started when a test first
needs it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from support.brokers import SkidwayBroker
from support.stock_clients import CLIENTS, Driver, StockClient
from support.zookeeper import ZooKeeper


@pytest.fixture(scope="session")
def story_broker(
    tmp_path_factory: pytest.TempPathFactory, zookeeper_server: ZooKeeper
) -> Iterator[SkidwayBroker]:
    folder = tmp_path_factory.mktemp("story-broker")
    # With this setting, a new group does not wait for further members before its first rebalance.
    settings = {"group_initial_rebalance_delay_ms": 0}
    broker = SkidwayBroker(folder, f"{zookeeper_server.address}/{folder.name}", **settings)
    try:
        yield broker.start()
    finally:
        broker.end()


@pytest.fixture(scope="session")
def drivers(
    tmp_path_factory: pytest.TempPathFactory, story_broker: SkidwayBroker
) -> Iterator[Callable[[StockClient], Driver]]:
    """Yields a function that returns the driver of a client, and starts it at the first call. Each
    client has one driver for the whole test run."""
    folder = tmp_path_factory.mktemp("drivers")
    started: dict[str, Driver] = {}

    def driver(client: StockClient) -> Driver:
        if client.name not in started:
            started[client.name] = Driver(client, story_broker.address, folder)
        return started[client.name]

    yield driver
    for each in started.values():
        each.close()


@pytest.fixture
def driver(client: StockClient, drivers: Callable[[StockClient], Driver]) -> Driver:
    return drivers(client)


@pytest.fixture
def reference(drivers: Callable[[StockClient], Driver]) -> Driver:
    """The driver of confluent-kafka (librdkafka). Tests use it for commands that the tested client
    lacks, and to check what the tested client has written."""
    return drivers(CLIENTS["confluent-kafka"])


@pytest.fixture
def new_member(
    client: StockClient, story_broker: SkidwayBroker, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[], Driver]]:
    """Yields a function that starts another driver of the tested client. This driver can join a
    group as a further member."""
    folder = tmp_path_factory.mktemp("members")
    started: list[Driver] = []

    def member() -> Driver:
        started.append(Driver(client, story_broker.address, folder))
        return started[-1]

    yield member
    for each in started:
        each.close()
