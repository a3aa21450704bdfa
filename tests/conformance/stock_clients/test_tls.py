"""Every unmodified stock client works with our broker over TLS, with and without a certificate of
its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from skidway.kafka.client import Client, NewTopic
from support.brokers import TlsBroker
from support.kafka import topic_name
from support.stock_clients import Driver, StockClient
from support.story import each_quickly, write_and_read
from support.zookeeper import ZooKeeper


@pytest.fixture(scope="module")
def tls_broker(
    tmp_path_factory: pytest.TempPathFactory, zookeeper_server: ZooKeeper
) -> Iterator[TlsBroker]:
    folder = tmp_path_factory.mktemp("tls-broker")
    broker = TlsBroker(folder, f"{zookeeper_server.address}/{folder.name}")
    try:
        yield broker.start()
    finally:
        broker.end()


@pytest.fixture(params=["tls", "mutual"])
def tls_driver(
    request: pytest.FixtureRequest, client: StockClient, tls_broker: TlsBroker, tmp_path: Path
) -> Iterator[Driver]:
    pair = tls_broker.pair
    own = [pair.certificate, pair.key] if request.param == "mutual" else []
    authorities = tmp_path / "authorities.pem"
    authorities.write_bytes(tls_broker.authority.certificate.read_bytes())
    driver = Driver(client, tls_broker.tls_address, tmp_path, [authorities, *own])
    yield driver
    driver.close()


@each_quickly()
def test_each_client_speaks_tls(
    client: StockClient, tls_driver: Driver, tls_broker: TlsBroker
) -> None:
    """A client produces, consumes and is a member of a group over TLS. It stays at the listener
    with TLS: the broker has told it no other address."""
    topic = topic_name("tls")
    with Client(tls_broker.address) as plain:
        assert plain.create_topics([NewTopic(topic, 1, 1)]) == {topic: None}
    accepted = tls_broker.metric("skidway_broker_connections_accepted_total")
    done = tls_broker.metric("skidway_broker_handshakes_total")
    write_and_read(tls_driver, topic)
    more = tls_broker.metric("skidway_broker_handshakes_total") - done
    assert more > 0
    assert tls_broker.metric("skidway_broker_connections_accepted_total") - accepted == more
