"""What a recount finds wrong with files of the output, each by name and place."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import Enum
from typing import Any, Final

FAULTS_MAX: Final = 1_000
"""How many faults are kept; further ones are only counted."""

AGENTS_MAX: Final = 10
HOUR_MS: Final = 3_600_000

_HOUR = re.compile(r"/dt=(\d{4}-\d\d-\d\d)/hour=(\d\d)/")
_FILE = re.compile(r"/(?:part|reject)-\d+-(\d+)-(\d+)\.parquet$")


class Kind(Enum):
    """What is wrong."""

    NO_MANIFEST = "no manifest"
    UNNAMED = "unnamed"
    TWICE = "twice"
    GONE = "gone"
    DAMAGED = "damaged"
    UNREADABLE = "unreadable"
    OTHER_ROWS = "other rows"


@dataclass(frozen=True, slots=True)
class Whereabouts:
    """Which rows a file has, as far as that is known: hour of event time as `2026-01-31T07`,
    agents, partition, and offsets [first, end) between which they lie."""

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
    """One fault. what: a sentence without the place."""

    kind: Kind
    path: str
    what: str
    place: Whereabouts = Whereabouts()

    @property
    def sentence(self) -> str:
        """What is wrong, and which rows it concerns."""
        place = str(self.place)
        return f"{self.what} ({place})" if place else self.what


@dataclass(slots=True)
class Faults:
    """All faults of a topic; only the first of them are kept."""

    kept: list[Fault] = field(default_factory=list)
    more: int = 0

    @property
    def is_full(self) -> bool:
        """Whether further faults are only counted: then nobody needs to know more about them."""
        return len(self.kept) >= FAULTS_MAX

    def add(self, fault: Fault) -> None:
        """Keeps a fault, or only counts it."""
        if self.is_full:
            self.more += 1
        else:
            self.kept.append(fault)

    def __bool__(self) -> bool:
        return bool(self.kept)

    def sentences(self) -> Iterator[str]:
        """Every fault that was kept, and how many more there are."""
        for fault in self.kept:
            yield fault.sentence
        if self.more:
            yield f"{self.more} more faults of this kind or another"


def by_name(path: str) -> Whereabouts:
    """What a path says about its rows."""
    hour, file = _HOUR.search(path), _FILE.search(path)
    place = Whereabouts(f"{hour[1]}T{hour[2]}" if hour else "")
    return replace(place, partition=int(file[1])) if file else place


def is_before(path: str, since_ms: int) -> bool:
    """Whether, by its path, all rows of a file are of hours before the one that begins then."""
    hour = by_name(path).hour
    return bool(hour) and _begin_ms(hour) < since_ms


def by_manifest(path: str, manifest: Mapping[str, Any]) -> Whereabouts:
    """What the manifest that names a file says about its rows: agents with counts in that hour, and
    the offsets from the file's first one to where the load ended."""
    place, file = by_name(path), _FILE.search(path)
    if not place.hour or file is None:
        return place
    agents = _agents(manifest["audit"], _begin_ms(place.hour))
    first = int(file[2])
    ends = [x["end"] for x in manifest["partitions"] if x["partition"] == place.partition]
    return replace(place, agents=agents, first=first, end=max(ends, default=first + 1))


def _begin_ms(hour: str) -> int:
    begin = datetime.strptime(f"{hour}+0000", "%Y-%m-%dT%H%z").astimezone(UTC)
    return int(begin.timestamp()) * 1000


def _agents(audit: Mapping[str, Any], begin_ms: int) -> tuple[int, ...]:
    """Agents for which the load has a bucket that touches the hour that begins then."""
    counts: Sequence[Mapping[str, Any]] = [
        count for delta in audit.get("deltas", ()) for count in delta["counts"]
    ]
    end_ms, size = begin_ms + HOUR_MS, audit["bucket_ms"]
    touching = (x for x in counts if x["bucket"] < end_ms and x["bucket"] + size > begin_ms)
    return tuple(sorted({x["agent"] for x in touching}))
