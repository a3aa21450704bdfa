"""The faults that a recount finds in files of the output, with the rows that each fault affects."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import Enum
from typing import Any, Final

FAULTS_MAX: Final = 1_000
"""For each topic, at most this many faults are kept in memory. Further faults are only counted."""

AGENTS_MAX: Final = 10
HOUR_MS: Final = 3_600_000

_HOUR = re.compile(r"/dt=(\d{4}-\d\d-\d\d)/hour=(\d\d)/")
_FILE = re.compile(r"/(?:part|reject)-\d+-(\d+)-(\d+)\.parquet$")
"""Matches the names of files with rows of one partition; the groups are the partition and the first
offset. A file `rows-<load>-<index>.parquet` may have rows of several partitions, so its name shows
neither a partition nor an offset."""


class Kind(Enum):
    """The kinds of faults."""

    NO_MANIFEST = "no manifest"
    CHECKPOINT = "checkpoint"
    REMOVAL = "removal"
    UNNAMED = "unnamed"
    TWICE = "twice"
    GONE = "gone"
    DAMAGED = "damaged"
    UNREADABLE = "unreadable"
    OTHER_ROWS = "other rows"


@dataclass(frozen=True, slots=True)
class Whereabouts:
    """The known facts about the rows of a file. An empty value or None means "not known". hour: the
    hour of the rows' event times, such as `2026-01-31T07`. agents, partition: the agents and the
    partition from which the rows come. first, end: the offsets of all rows are in the range
    [first, end)."""

    hour: str = ""
    agents: tuple[int, ...] = ()
    partition: int | None = None
    first: int | None = None
    end: int | None = None

    def __str__(self) -> str:
        parts = [f"hour {self.hour}"] if self.hour else []
        if self.agents:
            more = " and others" if len(self.agents) > AGENTS_MAX else ""
            names = ", ".join(str(agent) for agent in self.agents[:AGENTS_MAX])
            parts.append(f"agent{'s' if len(self.agents) > 1 else ''} {names}{more}")
        if self.partition is not None:
            parts.append(f"partition {self.partition}")
        if self.first is not None and self.end is not None:
            parts.append(f"offsets {self.first} to {self.end - 1}")
        return ", ".join(parts)


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault of a file. what: a sentence that says what is wrong with the file. place: the rows
    that the fault affects.
    """

    kind: Kind
    path: str
    what: str
    place: Whereabouts = Whereabouts()

    @property
    def sentence(self) -> str:
        """Says what is wrong, and which rows the fault affects."""
        place = str(self.place)
        return f"{self.what} ({place})" if place else self.what


@dataclass(slots=True)
class Faults:
    """All faults of a topic. Keeps only the first `FAULTS_MAX` faults, and counts the others."""

    kept: list[Fault] = field(default_factory=list)
    more: int = 0

    @property
    def is_full(self) -> bool:
        """Whether FAULTS_MAX faults are kept, so that further faults are only counted."""
        return len(self.kept) >= FAULTS_MAX

    def add(self, fault: Fault) -> None:
        """Keeps a fault. If FAULTS_MAX faults are kept already, only counts the fault."""
        if self.is_full:
            self.more += 1
        else:
            self.kept.append(fault)

    def __bool__(self) -> bool:
        return bool(self.kept)

    def sentences(self) -> Iterator[str]:
        """Yields a sentence for each of the first faults. If there are more faults, the last
        sentence says how many.
        """
        for fault in self.kept:
            yield fault.sentence
        if self.more:
            yield f"{self.more} more faults of this kind or another"


def by_name(path: str) -> Whereabouts:
    """Returns those facts about a file's rows that the file's path shows."""
    hour, file = _HOUR.search(path), _FILE.search(path)
    place = Whereabouts(f"{hour[1]}T{hour[2]}" if hour else "")
    return replace(place, partition=int(file[1])) if file else place


def hour_ms(path: str) -> int | None:
    """Returns the start (ms) of the hour in which the event times of a file's rows are. Returns
    None if the file's path shows no hour."""
    hour = by_name(path).hour
    return _begin_ms(hour) if hour else None


def is_before(path: str, since_ms: int) -> bool:
    """Whether a file's path shows that all of its rows are older than `since_ms`, the start of an
    hour."""
    begin_ms = hour_ms(path)
    return begin_ms is not None and begin_ms < since_ms


def by_manifest(path: str, manifest: Mapping[str, Any]) -> Whereabouts:
    """Returns those facts about a file's rows that the file's path and its load's manifest show.
    `agents` are the agents for which the load has counts in the file's hour. The range of offsets
    begins at the file's first offset and ends at the end of the load.

    If the file's name has no first offset, only the hour is known. If the load replaced files, the
    agents and offsets are unknown too: the load read no new offsets, and its counts do not describe
    its files."""
    place, file = by_name(path), _FILE.search(path)
    if not place.hour or file is None or manifest["removed"]:
        return place
    agents = _agents(manifest["audit"], _begin_ms(place.hour))
    first = int(file[2])
    ends = [x["end"] for x in manifest["partitions"] if x["partition"] == place.partition]
    return replace(place, agents=agents, first=first, end=max(ends, default=first + 1))


def _begin_ms(hour: str) -> int:
    begin = datetime.strptime(f"{hour}+0000", "%Y-%m-%dT%H%z").astimezone(UTC)
    return int(begin.timestamp()) * 1000


def _agents(audit: Mapping[str, Any], begin_ms: int) -> tuple[int, ...]:
    counts: Sequence[Mapping[str, Any]] = [
        count for delta in audit.get("deltas", ()) for count in delta["counts"]
    ]
    end_ms, size = begin_ms + HOUR_MS, audit["bucket_ms"]
    touching = (x for x in counts if x["bucket"] < end_ms and x["bucket"] + size > begin_ms)
    return tuple(sorted({x["agent"] for x in touching}))
