"""Counts which path each codec uses to encode, how many datums each path processed, and how many
rows and datums were refused.

Paths: `pyruhvro` encodes flat records; `columns` encodes and decodes any schema that has columns,
with numpy and Arrow; `fastavro` decodes single datums that `columns` leaves to it.
"""

from __future__ import annotations

from typing import Final

from prometheus_client import Counter

PYRUHVRO: Final = "pyruhvro"
COLUMNS: Final = "columns"
FASTAVRO: Final = "fastavro"

_MADE = Counter(
    "skidway_schemas_codecs_total", "Codecs made, by the path of their schema.", ["path"]
)
_DATUMS = Counter(
    "skidway_schemas_datums_total", "Datums encoded and decoded.", ["direction", "path"]
)
_REFUSED = Counter(
    "skidway_schemas_refused_datums_total", "Rows and datums set apart.", ["direction"]
)


def made(path: str) -> None:
    """Counts a new codec. `path` is the implementation with which the codec encodes, such as
    `columns`."""
    _MADE.labels(path).inc()


def datums(direction: str, path: str, count: int) -> None:
    """Counts datums that a codec has encoded or decoded. direction: `encode` or `decode`. path: the
    implementation that did this, such as `columns`. count: the number of datums."""
    if count:
        _DATUMS.labels(direction, path).inc(count)


def refused(direction: str, count: int) -> None:
    """Counts `count` rows or datums that were refused."""
    if count:
        _REFUSED.labels(direction).inc(count)
