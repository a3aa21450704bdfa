"""Defines the metrics that `/metrics` shows about a run while the run works (`metrics.listener`).

The counters count from the start of the program, which may do many runs (`--every`). Between runs,
the gauges keep the figures of the last run that had something to load.
"""

from __future__ import annotations

from typing import Final

from prometheus_client import Counter, Gauge

TAKEN: Final = Gauge(
    "skidway_loader_run_records", "Records that the run has taken from the topic.", ["topic"]
)
EXPECTED: Final = Gauge(
    "skidway_loader_run_expected_records", "Records that the run is to take.", ["topic"]
)
LOADS: Final = Counter("skidway_loader_loads", "Loads that this program has committed.")
ROWS: Final = Counter("skidway_loader_rows", "Rows that this program has committed.")
REJECTS: Final = Counter(
    "skidway_loader_rejects", "Rejects that this program has committed.", ["topic", "reason"]
)
