"""Runs the server, and says how it is: to the service manager, in /health and in /metrics."""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Iterable, Mapping

from prometheus_client import REGISTRY
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from skidway import files, java, log, ports, systemd
from skidway.errors import SkidwayError
from skidway.insecure_listeners import tell
from skidway.service import Shutdown
from skidway.telemetry import Health, TelemetryServer
from skidway.zookeeper.configuration import prepare, start_command
from skidway.zookeeper.server import ANSWERS_YET_EVERY_S, Server
from skidway.zookeeper.settings import ZookeeperSettings
from skidway.zookeeper.system_nodes import SystemNodes
from skidway.zookeeper.tls import LOOK_EVERY_S, ServerTls

ANSWER_WITHIN_S = 2.0
ANSWER_BYTES_MAX = 64 * 1024
CLOSE_AGAIN_EVERY_S = 1.0

_log = log.get(__name__)


def run(settings: ZookeeperSettings, shutdown: Shutdown) -> int:
    """Runs the server until shutdown (returns 0) or until the JVM ends (returns the status of
    `Server.wait`)."""
    java_found = java.find()
    ports.refuse_used(settings.client_port_address, settings.client_port, "clientPort")
    if settings.secure_client_port is not None:
        address = settings.secure_client_port_address
        ports.refuse_used(address, settings.secure_client_port, "secureClientPort")
    tls = settings.tls()
    with files.DirectoryLock(settings.data_dir):
        prepare(settings)
        if tls is not None:
            tls.copy()
        nodes = SystemNodes()
        command = start_command(settings, java_found, nodes.jvm_option)
        attendant = _Attendant(settings, tls, nodes)
        telemetry = TelemetryServer(
            settings.metrics_listener, attendant.health, settings.allowed_hosts
        )
        collector = _StatusCollector(settings)
        server = Server(command)
        REGISTRY.register(collector)
        tell(settings.insecure())
        try:
            telemetry.start()
            _log.info(
                "zookeeper_started",
                port=settings.client_port,
                java=java_found.version,
                java_source=java_found.source,
                pid=server.pid,
            )
            return server.wait(shutdown, attendant.look)
        finally:
            server.stop()
            telemetry.stop()
            REGISTRY.unregister(collector)


class _Attendant:
    """What this program does while the server runs: it closes ZooKeeper's own nodes, waits until
    the server is ready, looks at the files for TLS, and says how the server is."""

    def __init__(
        self, settings: ZookeeperSettings, tls: ServerTls | None, nodes: SystemNodes
    ) -> None:
        self._settings, self._tls, self._nodes = settings, tls, nodes
        self._is_ready = self._are_closed = False

    def look(self) -> float | None:
        """Returns after how many seconds to call this method again; None if there is no need."""
        if not self._are_closed and _mode(self._settings) is not None:
            settings = self._settings
            host = _target(settings.client_port_address)
            self._are_closed = self._nodes.close(
                f"[{host}]:{settings.client_port}"
                if ":" in host
                else f"{host}:{settings.client_port}"
            )
        self._is_ready = self._is_ready or _tell_ready(self._settings)
        if not self._is_ready:
            return ANSWERS_YET_EVERY_S
        if not self._are_closed:
            return CLOSE_AGAIN_EVERY_S
        if self._tls is None:
            return None
        try:
            self._tls.copy()
        except SkidwayError as error:
            _log.error("certificates_not_copied", reason=str(error))
        return LOOK_EVERY_S

    def health(self) -> Health:
        """Returns the server's health. The server is healthy when it serves clients, either as a
        single server, or as leader or follower of a quorum."""
        settings = self._settings
        mode = _mode(settings)
        detail = {
            "address": f"{settings.client_port_address}:{settings.client_port}",
            "mode": mode or "not serving",
        }
        if self._tls is not None and self._tls.problem:
            detail["certificates"] = self._tls.problem
        return Health(self._is_ready and mode is not None, detail)


def _tell_ready(settings: ZookeeperSettings) -> bool:
    """If the server is ready, tells the service manager and returns True. A single server is ready
    when it serves clients. A member of an ensemble is ready as soon as it answers `ruok`, even
    though no member serves clients before a majority of the members runs. Operators may start one
    member after the other, and wait until each member is ready before they start the next one."""
    if settings.servers:
        done = ask(settings.client_port_address, settings.client_port, b"ruok") == "imok"
    else:
        done = _mode(settings) is not None
    if done and settings.secure_client_port is not None:  # ZooKeeper opens this port last
        done = _accepts(settings.secure_client_port_address, settings.secure_client_port)
    if done:
        systemd.ready(f"answers on port {settings.secure_client_port or settings.client_port}")
    return done


def _mode(settings: ZookeeperSettings) -> str | None:
    """Returns whether the server is single, leader or follower; None if it serves no clients."""
    return parse_srvr(ask(settings.client_port_address, settings.client_port, b"srvr")).get("Mode")


def ask(host: str, port: int, word: bytes) -> str:
    """Sends a four-letter word (a command of ZooKeeper, such as `srvr`), and returns the answer, or
    "" if no answer comes in time."""
    answer = bytearray()
    deadline = time.monotonic() + ANSWER_WITHIN_S
    try:
        with _connected(host, port) as connection:
            connection.sendall(word)
            while len(answer) < ANSWER_BYTES_MAX and time.monotonic() < deadline:
                part = connection.recv(4096)
                if not part:
                    break
                answer += part
    except OSError:
        return ""
    return answer.decode("utf-8", "replace")


def _accepts(host: str, port: int) -> bool:
    try:
        _connected(host, port).close()
    except OSError:
        return False
    return True


def _connected(host: str, port: int) -> socket.socket:
    return socket.create_connection((_target(host), port), ANSWER_WITHIN_S)


def _target(host: str) -> str:
    """Returns the address at which this program reaches a port that is bound to `host`."""
    return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - not bound here


def parse_srvr(text: str) -> dict[str, str]:
    """Returns the values in ZooKeeper's answer to `srvr`, by name: its lines are `Name: value`."""
    return dict(re.findall(r"^([A-Z][^:\n]*): (.*?)\s*$", text, re.MULTILINE))


class _StatusCollector(Collector):
    """The gauges of /metrics. For each scrape, this class asks ZooKeeper once with the four-letter
    word `srvr`, and takes the gauges' values from the answer."""

    _GAUGES: Mapping[str, tuple[str, str]] = {
        "Connections": ("skidway_zookeeper_connections_count", "Clients connected"),
        "Outstanding": ("skidway_zookeeper_outstanding_requests_count", "Requests queued"),
        "Node count": ("skidway_zookeeper_nodes_count", "Nodes in the tree"),
        "Received": ("skidway_zookeeper_received_packets_count", "Packets received since start"),
        "Sent": ("skidway_zookeeper_sent_packets_count", "Packets sent since start"),
    }

    def __init__(self, settings: ZookeeperSettings) -> None:
        self._settings = settings

    def collect(self) -> Iterable[GaugeMetricFamily]:
        settings = self._settings
        status = parse_srvr(ask(settings.client_port_address, settings.client_port, b"srvr"))
        yield GaugeMetricFamily(
            "skidway_zookeeper_serving", "1 if it serves", int("Mode" in status)
        )
        for name, (metric, words) in self._GAUGES.items():
            if name in status:
                yield GaugeMetricFamily(metric, words, float(status[name]))
