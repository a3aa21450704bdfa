"""Runs `skidway broker run` with a real ZooKeeper, and has methods that stop, kill and restart the
broker."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support import telemetry
from support.certificates import Authority
from support.processes import Program, free_port, skidway
from support.zookeeper import ZooKeeper


class SkidwayBroker:
    """One broker with its own folder. The keyword arguments are further settings of the broker,
    with `_` for each `.` of their names."""

    def __init__(self, folder: Path, zookeeper: str, **settings: object) -> None:
        self.port, self.metrics_port = free_port(), free_port()
        self.address = f"127.0.0.1:{self.port}"
        self.logs = folder / "logs"
        self.folder = folder
        self.settings: dict[str, object] = {
            "listeners": f"PLAINTEXT://{self.address}",
            "log.dirs": self.logs,
            "zookeeper.connect": zookeeper,
            "metrics.listener": f"127.0.0.1:{self.metrics_port}",
            **{key.replace("_", "."): value for key, value in settings.items()},
        }
        self.program = Program(self.command(), folder / "broker.out")

    def command(self) -> list[str]:
        sets = [
            word for key, value in self.settings.items() for word in ("--set", f"{key}={value}")
        ]
        return skidway("broker", "run", *sets)

    def ready(self) -> bool:
        return telemetry.is_healthy(self.metrics_port)

    def up(self) -> bool:
        """Returns whether the broker serves requests, even if it is not healthy."""
        return '"broker_started"' in self.program.output() and bool(self.health())

    def health(self) -> dict[str, Any]:
        """Returns the JSON document of /health, even if the status is 503."""
        return telemetry.health(self.metrics_port)[1]

    def metric(self, name: str) -> float:
        """Returns the first value in the broker's /metrics whose line begins with `name`, or 0 if
        there is no such line."""
        found = telemetry.metrics(self.metrics_port)
        return next((found[each] for each in found if f"{each} ".startswith(name)), 0.0)

    def start(self) -> SkidwayBroker:
        self.program = Program(self.command(), self.folder / "broker.out")
        self.program.start().wait_until(self.ready)
        return self

    def restart(self) -> None:
        """Stops the broker cleanly, and starts it again with the same files."""
        assert self.program.stop() == 0, self.program.output()
        self.start()

    def end(self) -> None:
        """Ends the broker's process if the process runs."""
        if self.program.running:
            self.program.kill()

    def crash(self) -> None:
        """Kills the broker with kill -9, and starts it again with the same files."""
        self.program.kill()
        self.start()


class TlsBroker(SkidwayBroker):
    """A broker with a listener without TLS, for the test, and one with TLS, at `tls_address`.
    clients: whether the clients of the latter show a certificate."""

    def __init__(self, folder: Path, zookeeper: str, clients: str = "requested") -> None:
        self.authority = Authority(folder)
        own, self.pair = self.authority.sign("broker"), self.authority.sign("client")
        self.crl = self.authority.revoke()
        self.tls_port = free_port()
        self.tls_address = f"127.0.0.1:{self.tls_port}"
        super().__init__(
            folder, zookeeper,
            ssl_certificate_location=own.certificate, ssl_key_location=own.key,
            ssl_ca_location=self.authority.certificate, ssl_crl_location=self.crl,
            ssl_client_auth=clients, group_initial_rebalance_delay_ms=0,
        )  # fmt: skip
        self.settings["listeners"] = f"PLAINTEXT://{self.address},SSL://{self.tls_address}"


@pytest.fixture(scope="module")
def skidway_broker(
    tmp_path_factory: pytest.TempPathFactory, zookeeper_server: ZooKeeper
) -> Iterator[SkidwayBroker]:
    """One broker for all tests of a module, with the settings of a default installation."""
    folder = tmp_path_factory.mktemp("broker")
    broker = SkidwayBroker(folder, f"{zookeeper_server.address}/{folder.name}")
    try:
        yield broker.start()
    finally:
        broker.end()


@pytest.fixture
def own_broker(tmp_path: Path, zookeeper: str) -> Iterator[SkidwayBroker]:
    """A broker that only one test uses. The broker is not started yet."""
    broker = SkidwayBroker(tmp_path, zookeeper)
    yield broker
    broker.end()


@pytest.fixture(params=["apache", "skidway"])
def bootstrap(request: pytest.FixtureRequest) -> str:
    """The address of the broker that the test uses. Each test runs twice, once with Apache Kafka
    and once with our broker."""
    name = "apache_kafka" if request.param == "apache" else "skidway_broker"
    return str(request.getfixturevalue(name).address)
