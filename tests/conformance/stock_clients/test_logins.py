"""Every unmodified stock client logs in to our broker over TLS, by each mechanism, and needs the
rights that Kafka's documentation names."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.kafka import topic_name
from support.secured_broker import SecuredBroker
from support.stock_clients import Driver, StockClient
from support.story import MECHANISMS, each_login, write_and_read
from support.zookeeper import ZooKeeper

LOGINS, DENIALS = "skidway_broker_authentications_total", "skidway_broker_denials_total"


@pytest.fixture(scope="module")
def cluster(
    tmp_path_factory: pytest.TempPathFactory, zookeeper_server: ZooKeeper
) -> Iterator[SecuredBroker]:
    folder = tmp_path_factory.mktemp("secured-broker")
    address = f"{zookeeper_server.address}/{folder.name}"
    with SecuredBroker(folder, address).running() as made:
        for mechanism in MECHANISMS[:2]:
            made.add_user("ada", mechanism)
        yield made


@pytest.fixture
def driver(
    mechanism: str, client: StockClient, cluster: SecuredBroker, tmp_path: Path
) -> Iterator[Driver]:
    authorities = tmp_path / "authorities.pem"
    authorities.write_bytes(cluster.authority.certificate.read_bytes())
    login = [authorities, mechanism, "ada", "ada secret"]
    driver = Driver(client, cluster.address, tmp_path, login)
    yield driver
    driver.close()


@each_login()
def test_each_client_logs_in(
    mechanism: str, client: StockClient, driver: Driver, cluster: SecuredBroker
) -> None:
    """A client that has logged in produces, consumes and is a member of a group. With exactly the
    rights for this, nothing that it asks for is denied."""
    topic = topic_name("logins")
    cluster.create_topic(topic, 1)
    cluster.allow("ada", ["READ", "WRITE"], topics=[topic])
    cluster.allow("ada", ["READ"], groups=["*"])
    logins = f'{LOGINS}{{mechanism="{mechanism}",outcome="ok"}}'
    before = cluster.broker.metric(logins)
    write_and_read(driver, topic)
    assert cluster.broker.metric(logins) > before
    assert "login_failed" not in cluster.broker.program.output()
    assert cluster.broker.metric(DENIALS) == 0
