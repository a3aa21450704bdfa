"""Values: a point in a file, a record or row of a line, and the fate of a line in a tier."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

from skidway.kafka.origin import Origin
from skidway.kafka.source import Source

REJECTED_SUFFIX: Final = ".rejected"
"""The names of topics of rejects, to which agents send rejected lines, end with this text."""


class Point(NamedTuple):
    """A byte of a file, which need not be the first byte of a line. file: the file id. byte: the
    byte's position."""

    agent: int
    file: int
    byte: int


def is_at(origin: Origin, point: Point) -> bool:
    """Whether the origin's bytes include the point. An origin of length 0 counts as one byte."""
    is_same_file = (origin.agent, origin.file) == (point.agent, point.file)
    return is_same_file and origin.first <= point.byte < origin.first + max(origin.length, 1)


class LineRecord(NamedTuple):
    """A record in a topic, made from a line. time_ms: its event time. origin: None if no agent sent
    it.
    """

    topic: str
    partition: int
    offset: int
    time_ms: int
    origin: Origin | None
    value: bytes | None


class LineRow(NamedTuple):
    """A row that was made from a line. path: the path of its Parquet file below the output. load:
    the load that wrote the file. is_reject: whether the file has rejects of the loader."""

    path: str
    load: int
    partition: int
    offset: int
    time_ms: int | None
    origin: Origin
    is_reject: bool


class State(StrEnum):
    """Whether a tier has a line, and if not, the reason."""

    FOUND = "found"
    REJECTED = "rejected"
    PENDING = "not yet"
    FILTERED = "filtered"
    LOST = "lost"
    UNCERTAIN = "uncertain"
    EXPIRED = "expired"
    MISSING = "missing"
    UNKNOWN = "not looked at"


HAS_IT: Final = frozenset({State.FOUND, State.REJECTED})
"""If a line's fate in a tier is one of these states, the tier has the line."""


@dataclass(frozen=True, slots=True)
class Fate:
    """Whether one tier has a line and, if not, why. tier: host, broker, mirror or hdfs. place:
    where the line is in the tier, for example a partition and an offset; if the tier lacks it, the
    cluster or output. clock: what happened at `time_ms`, for example "load committed". detail: a
    further explanation in words.
    """

    tier: str
    state: State
    place: str = ""
    time_ms: int | None = None
    clock: str = ""
    detail: str = ""


@dataclass(frozen=True, slots=True)
class FileName:
    """The names of a file: the host, path and topic that its agent announced. announced_ms: the
    time of the announcement."""

    agent: int
    file: int
    host: str = ""
    path: str = ""
    source: Source | None = None
    announced_ms: int | None = None
