"""Implements `skidway registry run`, which runs the registry as a process."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator

from prometheus_client import REGISTRY
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from skidway import log, systemd
from skidway.clock import SystemClock
from skidway.http import server
from skidway.http.hosts import AllowedHosts
from skidway.insecure_listeners import tell
from skidway.schemas.compatibility import Level
from skidway.schemas.registry.authentication import BasicAuthentication
from skidway.schemas.registry.rest import CONTENT_TYPE, application
from skidway.schemas.registry.settings import RegistrySettings
from skidway.schemas.registry.store import Store
from skidway.schemas.registry.zookeeper_log import ZookeeperLog
from skidway.service import Shutdown
from skidway.telemetry import Health, TelemetryServer

__all__ = ["RegistrySettings", "run"]

_log = log.get(__name__)


def run(settings: RegistrySettings, shutdown: Shutdown) -> int:
    """Runs the registry until `shutdown` is requested. If the registry cannot start, raises an
    error with one sentence that says why."""
    with contextlib.ExitStack() as stack:
        sockets: dict[bool, list[socket.socket]] = {False: [], True: []}
        for each in settings.addresses:
            sockets[each.is_tls].append(stack.enter_context(each.open()))
        coordinator = stack.enter_context(settings.zookeeper.open())
        store = Store(ZookeeperLog(coordinator), SystemClock(), Level(settings.level))
        store.start()
        stack.callback(store.close)
        telemetry = TelemetryServer(
            settings.metrics_listener,
            lambda: _health(store, coordinator.problem),
            settings.allowed_hosts,
        )
        telemetry.start()
        stack.callback(telemetry.stop)
        stack.enter_context(_metrics(store))
        tell(settings.insecure())
        app = application(store, mode_mutability=settings.mode_mutability)
        users = settings.users
        if users is not None:
            app = BasicAuthentication(app, users, settings.realm)
        _log.info("registry_started", listeners=settings.listeners, entries=store.entries)
        server.serve(
            app, sockets[False], sockets[True], settings.tls, shutdown, _ready,
            hosts=AllowedHosts(settings.allowed_hosts), media_type=CONTENT_TYPE,
        )  # fmt: skip
    _log.info("registry_stopped")
    return 0


def _ready() -> None:
    systemd.ready("answers")


def _health(store: Store, problem: str) -> Health:
    detail = {"entries": store.entries, "zookeeper": "connected" if store.connected else "away"}
    if problem:
        detail["zookeeper_refuses"] = problem
    if store.failed is not None:
        detail["failed"] = str(store.failed)
    return Health(store.connected and not problem and store.failed is None, detail)


@contextlib.contextmanager
def _metrics(store: Store) -> Iterator[None]:
    collector = _StoreMetrics(store)
    REGISTRY.register(collector)
    try:
        yield
    finally:
        REGISTRY.unregister(collector)


class _StoreMetrics(Collector):
    """Metrics of the store, which are computed at each scrape."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yields how many subjects, schemas and the like the state has, and whether the registry is
        connected to ZooKeeper."""
        subjects, last_id, parsed = self._store.read(
            lambda s: (len(s.subjects), s.last_id, s.parsed.characters)
        )
        for name, text, value in (
            ("subjects", "Subjects, deleted ones included.", subjects),
            ("ids", "Schema ids given out.", last_id),
            ("parsed_characters", "Schemas that are remembered as types, by length.", parsed),
            ("log_entries", "Entries of the log that were read.", self._store.entries),
            ("store_connected", "1 if ZooKeeper is there.", int(self._store.connected)),
        ):
            yield GaugeMetricFamily(f"skidway_schemas_{name}", text, value)
