"""Real programs tell a service manager when they are ready and when they stop."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from skidway.kafka.client import Client
from support import telemetry
from support.brokers import SkidwayBroker, own_broker
from support.processes import WITHIN_S, Program, accepts, answers, free_port, skidway
from support.registry import Registry
from support.service_manager import ServiceManager, service_manager
from support.zookeeper import ZooKeeper

__all__ = ["own_broker"]

pytestmark = pytest.mark.java


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[ServiceManager]:
    with service_manager(tmp_path) as made:
        yield made


def started(program: Program, manager: ServiceManager) -> Program:
    """Starts the program's command under the service manager, and waits until the program says that
    it is ready."""
    made = Program(program.command, program.log, env=manager.environment).start()
    try:
        assert manager.next()["READY"] == "1"
    except BaseException:
        made.kill()
        raise AssertionError(made.output()) from None
    return made


def stopped(program: Program, manager: ServiceManager) -> None:
    """Sends SIGTERM. Asserts that the program reports to the service manager that it stops, and
    exits with status 0."""
    assert program.stop() == 0
    assert [message.get("STOPPING") for message in manager.waiting()] == ["1"]


def test_zookeeper_is_ready_when_it_answers(tmp_path: Path, manager: ServiceManager) -> None:
    """ZooKeeper says "ready" only when it answers clients, which is long after the JVM has started
    and the port is open."""
    server = ZooKeeper(tmp_path)
    program = started(server.program, manager)
    assert server.ready()
    stopped(program, manager)


def test_a_member_is_ready_before_its_ensemble_is(tmp_path: Path, manager: ServiceManager) -> None:
    """A member of a ZooKeeper ensemble says "ready" even before it answers clients. Otherwise
    members that are started one after the other would wait for each other."""
    server = ZooKeeper(tmp_path)
    servers = {n: f"127.0.0.1:{free_port()}:{free_port()}" for n in (1, 2, 3)}
    members = [f"server.{n}={address}" for n, address in servers.items()]
    server.program.command += [w for each in ("myid=1", *members) for w in ("--set", each)]
    program = started(server.program, manager)
    assert accepts(server.port)
    assert not server.ready()
    stopped(program, manager)


def test_a_broker_is_ready_when_it_serves(
    own_broker: SkidwayBroker, manager: ServiceManager
) -> None:
    """When a broker says "ready", it is registered and healthy, and answers clients."""
    program = started(own_broker.program, manager)
    assert own_broker.ready()
    with Client(own_broker.address) as client:
        assert len(client.metadata().brokers) == 1
    stopped(program, manager)


def test_a_broker_without_zookeeper_is_never_ready(tmp_path: Path, manager: ServiceManager) -> None:
    """A broker without ZooKeeper never says "ready". It exits with status 3. After this status,
    systemd starts the unit again."""
    away = f"127.0.0.1:{free_port()}"
    broker = SkidwayBroker(tmp_path, away, zookeeper_connection_timeout_ms=1000)
    program = Program(broker.command(), tmp_path / "broker.out", env=manager.environment).start()
    assert program.wait() == 3
    assert not manager.waiting()


def test_a_registry_is_ready_when_it_answers(
    zookeeper: str, tmp_path: Path, manager: ServiceManager
) -> None:
    """When a registry says "ready", it can already answer requests."""
    registry = Registry(zookeeper, tmp_path)
    program = started(registry.program, manager)
    assert answers(f"{registry.url}/subjects")
    stopped(program, manager)


def test_the_collector_is_ready_without_its_cluster(
    tmp_path: Path, manager: ServiceManager
) -> None:
    """The collector says "ready" when its dashboard listens and /health answers 200, even if its
    cluster cannot be reached."""
    port, metrics_port = free_port(), free_port()
    settings = [
        f"bootstrap.servers=127.0.0.1:{free_port()}",
        f"store.dir={tmp_path / 'store'}",
        f"listener=127.0.0.1:{port}",
        f"metrics.listener=127.0.0.1:{metrics_port}",
    ]
    options = [word for each in settings for word in ("--set", each)]
    command = skidway("audit", "run", *options)
    program = started(Program(command, tmp_path / "audit.out"), manager)
    assert accepts(port)
    assert telemetry.is_healthy(metrics_port)
    stopped(program, manager)


def test_a_counter_is_ready_when_it_counts(
    own_broker: SkidwayBroker, tmp_path: Path, manager: ServiceManager
) -> None:
    """A counter that has reached its cluster says "ready". The message to the service manager names
    the counter's tier, for example "broker". As long as no broker answers, a counter says
    nothing."""

    def counter(address: str) -> Program:
        settings = [
            f"bootstrap.servers={address}",
            f"state.dir={tmp_path / 'count'}",
            "metrics.listener=127.0.0.1:0",
        ]
        options = [word for each in settings for word in ("--set", each)]
        command = skidway("audit", "count", *options)
        return Program(command, tmp_path / "count.out", env=manager.environment).start()

    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(WITHIN_S)
        program = counter(f"127.0.0.1:{silent.getsockname()[1]}")
        try:
            connection, _ = silent.accept()
            with connection:
                connection.settimeout(WITHIN_S)
                assert connection.recv(1), "it asks who the brokers are"
                assert not manager.waiting()
        finally:
            program.kill()
    own_broker.start()
    program = counter(own_broker.address)
    try:
        assert "counting tier broker" in manager.wait_for("READY")["STATUS"]
    finally:
        assert program.stop() == 0
