"""Fixtures: one of our brokers, one JVM with Kafka's Java clients, and a Java Admin client that is
connected to the broker."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from support.brokers import SkidwayBroker, own_broker, skidway_broker
from support.java_clients import JavaClients
from support.kafka import topic_name

__all__ = ["own_broker", "skidway_broker"]


@pytest.fixture(scope="session")
def java_clients(tmp_path_factory: pytest.TempPathFactory) -> Iterator[JavaClients]:
    clients = JavaClients(tmp_path_factory.mktemp("java-clients"))
    clients.start()
    yield clients
    clients.stop()


@pytest.fixture
def bootstrap(skidway_broker: SkidwayBroker) -> str:
    return skidway_broker.address


@pytest.fixture
def admin(java_clients: JavaClients, bootstrap: str) -> Iterator[Any]:
    with java_clients.admin(bootstrap) as made:
        yield made


@pytest.fixture
def topic(java_clients: JavaClients, admin: Any) -> str:
    """A topic with two partitions, which only one test uses."""
    name = topic_name("java")
    java_clients.create(admin, name, 2)
    return name
