"""The report of a loader about one load, as the body of a note (see module notes). The fields
`number` and `time` of the note are the number of the load and the time of its commit.

    {"source": [CLUSTER, CLUSTER_ID, TOPIC, TOPIC_ID], "seconds": SECONDS, "offsets": N, "rows": N,
     "rejects": N, "files": N, "bytes": N, "rejected": [HOUR_MS, PARTITION, OFFSET]}

`rejected` names one record that the load rejected, so that the collector's pages can show an
example. It is null if the load rejected nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple, dataclass
from typing import Any, Final, NamedTuple

from skidway.audit.topic.notes import Note, is_count
from skidway.kafka.source import Source

KIND: Final = "load"
KEPT: Final = 64
"""For each output and topic, the audit keeps the notes of this many newest loads."""

SECONDS_MAX: Final = 1e9

_COUNTS = ("offsets", "rows", "rejects", "files", "bytes")


class RejectedRecord(NamedTuple):
    """A record that a load rejected. hour_ms: the start of the hour of its event time."""

    hour_ms: int
    partition: int
    offset: int


@dataclass(frozen=True, slots=True)
class Load:
    """One load of a topic. seconds: how long the load took. files, bytes: the number of files with
    rows that the load wrote, and their bytes. rejected: one of the records that the load rejected.
    A value that the loader did not report is None.
    """

    number: int
    source: Source
    seconds: float | None = None
    offsets: int | None = None
    rows: int | None = None
    rejects: int | None = None
    files: int | None = None
    bytes: int | None = None
    rejected: RejectedRecord | None = None


def body_of(load: Load) -> dict[str, Any]:
    """The load as the body of a note."""
    counts = {name: getattr(load, name) for name in _COUNTS}
    rejected = None if load.rejected is None else list(load.rejected)
    source = list(astuple(load.source))
    return {"source": source, "seconds": load.seconds, **counts, "rejected": rejected}


def load_of(note: Note) -> Load | None:
    """Returns the load in a note, or None if the note does not name the load's topic."""
    names = note.body.get("source")
    if not isinstance(names, list) or len(names) != 4:
        return None
    if not all(isinstance(x, str) for x in names):
        return None
    counts = {name: _count(note.body, name) for name in _COUNTS}
    seconds, rejected = _seconds(note.body.get("seconds")), _rejected(note.body.get("rejected"))
    return Load(note.number, Source(*names), seconds, **counts, rejected=rejected)


def _seconds(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value < SECONDS_MAX else None


def _rejected(value: object) -> RejectedRecord | None:
    if not isinstance(value, list) or len(value) != 3 or not all(map(is_count, value)):
        return None
    return RejectedRecord(*value)


def _count(body: Mapping[str, Any], name: str) -> int | None:
    value = body.get(name)
    return value if is_count(value) else None
