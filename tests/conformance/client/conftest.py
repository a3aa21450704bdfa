"""Fixtures for the two brokers that the client must work with: Apache Kafka's and our own."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from skidway.errors import Unreachable
from skidway.kafka.client import Client
from skidway.kafka.errors import KafkaError
from support.processes import Program, free_port, running, skidway


class OurBroker:
    """Our broker (`skidway broker run`), which uses the ZooKeeper of the test run."""

    def __init__(self, folder: Path, zookeeper: str) -> None:
        self.port = free_port()
        self.address = f"127.0.0.1:{self.port}"
        settings = {
            "listeners": f"PLAINTEXT://{self.address}",
            "log.dirs": str(folder / "logs"),
            "zookeeper.connect": zookeeper,
            "metrics.listener": f"127.0.0.1:{free_port()}",
        }
        sets = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
        self.program = Program(skidway("broker", "run", *sets), folder / "broker.out")

    def ready(self) -> bool:
        """Returns whether the broker answers."""
        with (
            contextlib.suppress(Unreachable, KafkaError),
            Client(self.address, request_timeout_ms=1_000) as client,
        ):
            return bool(client.metadata(()).brokers)
        return False

    def restart(self) -> None:
        """Kills the broker (kill -9) and starts it again with the same files."""
        self.program.signal(signal.SIGKILL)
        self.program.wait()
        self.program.start().wait_until(self.ready)


@pytest.fixture(scope="module")
def our_broker(
    tmp_path_factory: pytest.TempPathFactory, zookeeper_server: object
) -> Iterator[OurBroker]:
    folder = tmp_path_factory.mktemp("broker")
    chroot = f"{zookeeper_server.address}/{folder.name}"  # type: ignore[attr-defined]
    broker = OurBroker(folder, chroot)
    with running(broker.program, broker.ready):
        yield broker


@pytest.fixture(params=["apache", "skidway"])
def bootstrap(request: pytest.FixtureRequest) -> str:
    """A bootstrap address for the client. Each test runs twice, once with Apache Kafka and once
    with our broker."""
    name = "apache_kafka" if request.param == "apache" else "our_broker"
    return str(request.getfixturevalue(name).address)
