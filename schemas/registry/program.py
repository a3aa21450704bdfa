"""`skidway registry run`: the registry as a process, on uvicorn."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal
from urllib.parse import urlsplit

import uvicorn
from prometheus_client import REGISTRY
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from schemas.compatibility import Level
from schemas.registry.rest import application
from schemas.registry.store import Store
from schemas.registry.zookeeper_log import ZookeeperLog
from skidway import log, ports
from skidway.clock import SystemClock
from skidway.coordination import Coordinator, check_connect
from skidway.errors import ConfigurationRefused
from skidway.service import Shutdown
from skidway.settings import setting
from skidway.telemetry import Health, TelemetryServer, host_and_port

BACKLOG: Final = 512
KEEP_ALIVE_S: Final = 30
STOP_WITHIN_S: Final = 5

_log = log.get(__name__)

LevelName = Literal[
    "NONE",
    "BACKWARD",
    "BACKWARD_TRANSITIVE",
    "FORWARD",
    "FORWARD_TRANSITIVE",
    "FULL",
    "FULL_TRANSITIVE",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistrySettings:
    """Settings of `skidway registry run`, under Confluent's names where they have one."""

    listeners: list[str] = setting(
        "listeners",
        ["http://127.0.0.1:8081"],
        help="Where clients connect; 0.0.0.0 is every address.",
    )
    zookeeper_connect: str = setting(
        "zookeeper.connect",
        "127.0.0.1:2181",
        help="ZooKeeper, without chroot: one registry serves every cluster of the company.",
    )
    level: LevelName = setting(
        "schema.compatibility.level",
        "BACKWARD",
        help="How schemas may change where no level was set by request.",
    )
    metrics_listener: str = setting(
        "metrics.listener", "127.0.0.1:9103", help="Where /metrics and /health are answered."
    )

    def check(self) -> None:
        """Refuses addresses that are none."""
        if not self.listeners:
            raise ConfigurationRefused("listeners: at least one is needed.")
        for listener in self.listeners:
            address(listener)
        check_connect(self.zookeeper_connect)
        host_and_port(self.metrics_listener, key="metrics.listener")


def address(listener: str) -> tuple[str, int]:
    """Host and port of http://host:port. Raises `ConfigurationRefused`."""
    parts = urlsplit(listener)
    try:
        port = parts.port
    except ValueError:
        port = None
    good = parts.scheme == "http" and parts.hostname and port is not None
    if not good or parts.path not in ("", "/") or parts.query:
        raise ConfigurationRefused(f"listeners: {listener!r} is not http://host:port.")
    return str(parts.hostname), int(port or 0)


def run(settings: RegistrySettings, shutdown: Shutdown) -> int:
    """Serves until asked to end. Raises one sentence for what keeps it from starting."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(_listening(each)) for each in settings.listeners]
        coordinator = stack.enter_context(Coordinator(settings.zookeeper_connect))
        store = Store(ZookeeperLog(coordinator), SystemClock(), Level(settings.level))
        store.start()
        stack.callback(store.close)
        telemetry = TelemetryServer(settings.metrics_listener, lambda: _health(store))
        telemetry.start()
        stack.callback(telemetry.stop)
        stack.enter_context(_metrics(store))
        _log.info("registry_started", listeners=settings.listeners, entries=store.entries)
        _serve(store, sockets, shutdown)
    _log.info("registry_stopped")
    return 0


def _serve(store: Store, sockets: list[socket.socket], shutdown: Shutdown) -> None:
    config = uvicorn.Config(
        application(store),
        log_config=None,
        access_log=False,
        lifespan="off",
        server_header=False,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=STOP_WITHIN_S,
    )
    server = _Server(config)

    async def serve() -> None:
        def end() -> None:
            server.should_exit = True
            loop.remove_reader(shutdown.fileno())

        loop = asyncio.get_running_loop()
        loop.add_reader(shutdown.fileno(), end)
        await server.serve(sockets)

    asyncio.run(serve())


class _Server(uvicorn.Server):
    """Leaves the signals to `skidway.service`."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def _listening(listener: str) -> socket.socket:
    host, port = address(listener)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        made = socket.create_server((host, port), family=family, backlog=BACKLOG)
        # Accepted sockets inherit it; asyncio sets it only on sockets that it made itself, and
        # without it every answer on a kept connection waits 40 ms for the client's acknowledgement.
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    except OSError as error:
        raise ports.cannot_listen(host, port, "listeners", error) from error
    return made


def _health(store: Store) -> Health:
    detail = {"entries": store.entries, "zookeeper": "connected" if store.connected else "away"}
    if store.failed is not None:
        detail["failed"] = str(store.failed)
    return Health(store.connected and store.failed is None, detail)


@contextlib.contextmanager
def _metrics(store: Store) -> Iterator[None]:
    collector = _StoreMetrics(store)
    REGISTRY.register(collector)
    try:
        yield
    finally:
        REGISTRY.unregister(collector)


class _StoreMetrics(Collector):
    """Read at each scrape, so that nothing is counted twice."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Sizes of the state, and whether writes are possible."""
        subjects, last_id = self._store.read(lambda s: (len(s.subjects), s.last_id))
        for name, text, value in (
            ("subjects", "Subjects, deleted ones included.", subjects),
            ("ids", "Schema ids given out.", last_id),
            ("log_entries", "Entries of the log that were read.", self._store.entries),
            ("store_connected", "1 if ZooKeeper is there.", int(self._store.connected)),
        ):
            yield GaugeMetricFamily(f"skidway_schemas_{name}", text, value)
