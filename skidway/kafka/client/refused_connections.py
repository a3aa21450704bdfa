"""Counts the connections that a broker has not let in, by the setting that may be wrong."""

from __future__ import annotations

from functools import cache
from typing import Any


def count_refused(place: str) -> None:
    """Counts a connection in the program's metrics. place: the setting and its file, as in the
    sentence for people."""
    _counter().labels(place).inc()


@cache
def _counter() -> Any:
    from prometheus_client import Counter  # imported here: most programs are let in

    return Counter(
        "skidway_kafka_refused_connections",
        "Connections that were not made, because broker and client do not accept each other.",
        ["setting"],
    )
