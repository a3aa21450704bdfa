"""The report of a program about itself, as the body of a note (see module notes): how it was
started, and what it waits for. A counter also reports this of the brokers of its cluster, which
send nothing to the audit.

    {"tier": TIER, "invocation": {...}, "obstacles": [OBSTACLE, ...], "brokers": [BROKER, ...]}

    OBSTACLE  {"kind": KIND, "name": NAME, "words": TEXT, "since": MS or null}
    BROKER    {"address": "HOST:PORT", "host": NAME, "invocation": {...}, "obstacles": [...],
               "mirrors": [CLUSTER, ...]}

KIND says what does not answer: a registry, a ZooKeeper ensemble, a cluster; or that the program
itself is held up. NAME is its address or, of a cluster, its name. TIER is that of the program.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, Final

from skidway.audit.topic.notes import Note, is_count
from skidway.cli.moments import shown
from skidway.dataclass import dataclass
from skidway.invocation import Invocation, invocation_of, record_of

KIND: Final = "status"
CONFIG: Final = "skidway.status"
"""The name under which a broker answers with its own status, if DescribeConfigs asks for it."""
OBSTACLES_MAX: Final = 20
BROKERS_MAX: Final = 100
MIRRORS_MAX: Final = 100
WORDS_MAX: Final = 500


class Kind(StrEnum):
    """What keeps a program from its work."""

    ZOOKEEPER = "zookeeper"
    CLUSTER = "cluster"
    REGISTRY = "registry"
    OTHER = "other"


_SUBJECTS = {
    Kind.ZOOKEEPER: "ZooKeeper ({})",
    Kind.CLUSTER: "Cluster {}",
    Kind.REGISTRY: "The registry ({})",
}


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Something that keeps a program from its work. words: the reason; empty if there is none to
    tell. since_ms: since when; None if unknown."""

    kind: Kind
    name: str
    words: str
    since_ms: int | None = None

    @property
    def sentence(self) -> str:
        """What does not answer, since when and why, without a full stop."""
        if self.kind is Kind.OTHER:
            return self.words
        since = "" if self.since_ms is None else f" since {_to_seconds(self.since_ms)}"
        reason = f": {self.words}" if self.words else ""
        return f"{_SUBJECTS[self.kind].format(self.name)} does not answer{since}{reason}"


@dataclass(frozen=True, slots=True)
class BrokerStatus:
    """What a broker says about itself. address: its address as the cluster's clients know it.
    mirrors: the clusters whose topics it mirrors."""

    address: str
    host: str
    invocation: Invocation = Invocation()
    obstacles: tuple[Obstacle, ...] = ()
    mirrors: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ProgramStatus:
    """What a program says about itself, and about the brokers of its cluster. tier: the tier of a
    counter; "" of another program."""

    invocation: Invocation = Invocation()
    obstacles: tuple[Obstacle, ...] = ()
    brokers: tuple[BrokerStatus, ...] = ()
    tier: str = ""


def body_of(found: ProgramStatus) -> dict[str, Any]:
    """Returns the body of a note."""
    return {
        "tier": found.tier,
        "invocation": record_of(found.invocation),
        "obstacles": _records_of(found.obstacles),
        "brokers": [{"address": x.address, **document_of(x)} for x in found.brokers[:BROKERS_MAX]],
    }


def document_of(found: BrokerStatus) -> dict[str, Any]:
    """Returns what a broker answers about itself; its address is known to who asks."""
    return {
        "host": found.host,
        "invocation": record_of(found.invocation),
        "obstacles": _records_of(found.obstacles),
        "mirrors": list(found.mirrors[:MIRRORS_MAX]),
    }


def status_of(note: Note) -> ProgramStatus:
    """Returns the status in a note. Leaves out parts that do not have the form of `body_of`."""
    brokers = note.body.get("brokers")
    rows = brokers[:BROKERS_MAX] if isinstance(brokers, list) else ()
    return ProgramStatus(
        invocation_of(note.body.get("invocation")),
        _obstacles(note.body.get("obstacles")),
        tuple(broker_of(str(row.get("address", "")), row) for row in rows if _is_record(row)),
        str(note.body.get("tier", "")),
    )


def broker_of(address: str, record: Mapping[str, Any]) -> BrokerStatus:
    """Returns the status of a broker from a document like that of `document_of`."""
    host, mirrors = record.get("host"), record.get("mirrors")
    named = mirrors[:MIRRORS_MAX] if isinstance(mirrors, list) else ()
    return BrokerStatus(
        address,
        host if isinstance(host, str) else "",
        invocation_of(record.get("invocation")),
        _obstacles(record.get("obstacles")),
        tuple(x for x in named if isinstance(x, str)),
    )


def _records_of(found: Sequence[Obstacle]) -> list[dict[str, Any]]:
    return [
        {"kind": x.kind.value, "name": x.name, "words": x.words[:WORDS_MAX], "since": x.since_ms}
        for x in found[:OBSTACLES_MAX]
    ]


def _obstacles(rows: object) -> tuple[Obstacle, ...]:
    kinds = {x.value: x for x in Kind}
    found = []
    for row in rows[:OBSTACLES_MAX] if isinstance(rows, list) else ():
        if not _is_record(row):
            continue
        name, words, since = row.get("name"), row.get("words"), row.get("since")
        if isinstance(name, str) and isinstance(words, str):
            kind = kinds.get(str(row.get("kind")), Kind.OTHER)
            known = since if is_count(since) else None
            found.append(Obstacle(kind, name, words[:WORDS_MAX], known))
    return tuple(found)


def _to_seconds(time_ms: int) -> str:
    return shown(time_ms // 1000 * 1000).replace(".000Z", "Z")


def _is_record(row: object) -> bool:
    return isinstance(row, dict)
