"""The names of all metrics that Skidway's programs can export, as Prometheus stores them.

Most metrics are registered when the module that declares them is imported. Other metrics exist only
in the answer to a scrape. To get their names, this module scrapes a broker object (without a
running broker) and an empty store of schemas. The names of the metrics about ZooKeeper and about
the loader's last run come from tables in the code.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator
from dataclasses import fields
from pathlib import Path

from prometheus_client import REGISTRY, Metric

from skidway import zookeeper
from skidway.broker.metrics import BrokerCollector
from skidway.clock import SystemClock
from skidway.loader.runs.textfile import LastRun
from skidway.schemas.registry.program import _StoreMetrics
from skidway.schemas.registry.store import Store
from support.broker_core import broker_core
from support.registry_log import MemoryLog, SharedLog

DECLARING = (
    "skidway.agent.events",
    "skidway.audit.collector.metrics",
    "skidway.audit.counter.counter",
    "skidway.audit.evidence.collection",
    "skidway.audit.topic.publisher",
    "skidway.loader.runs.progress_metrics",
    "skidway.schemas.codec.metrics",
    "skidway.schemas.registry.authentication",
    "skidway.schemas.registry.rest.application",
    "skidway.schemas.registry.store",
)
"""The modules that declare metrics when they are imported."""

SUFFIXES = {"counter": ("_total",), "histogram": ("_bucket", "_sum", "_count")}
MIRROR = {
    "cluster": "dc1", "records": 0, "bytes": 0, "lag": 0, "partitions": 0, "stopped_count": 0,
    "waiting_count": 0, "gap_count": 0, "group_failures": 0, "reachable": True,
}  # fmt: skip


def all_names(folder: Path) -> set[str]:
    """Returns the names of all metrics. The function scrapes, among others, a broker object, whose
    log it makes in `folder`."""
    for module in DECLARING:
        importlib.import_module(module)
    with broker_core(folder) as core:
        broker = set(_names(BrokerCollector(core.broker, lambda: [MIRROR]).collect()))
    store = Store(MemoryLog(SharedLog()), SystemClock())
    return {
        *_names(REGISTRY.collect()),
        *broker,
        *_names(_StoreMetrics(store).collect()),
        *(name for name, _ in zookeeper._StatusCollector._GAUGES.values()),
        "skidway_zookeeper_serving",
        *(each.metadata["name"] for each in fields(LastRun)),
    }


def _names(families: Iterable[Metric]) -> Iterator[str]:
    for each in families:
        for suffix in SUFFIXES.get(each.type, ("",)):
            yield each.name + suffix
