"""Counts the connections that a broker has not let in, by the setting that may be wrong. Imported
only when that happens: most programs are let in, and prometheus_client takes time."""

from __future__ import annotations

from prometheus_client import Counter

_refused = Counter(
    "skidway_kafka_refused_connections",
    "Connections that were not made, because broker and client do not accept each other.",
    ["setting"],
)


def count_refused(place: str) -> None:
    """Counts a connection in the program's metrics. place: the setting and its file, as in the
    sentence for people."""
    _refused.labels(place).inc()
