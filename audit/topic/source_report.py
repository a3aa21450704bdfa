"""The report of an agent about its sources: the paths that it cannot read, and the sources without
files. The report is the body of a note (see module notes), and a part of /health and of the state.

    {"unread": [{"topic": NAME, "path": PATH, "reason": TEXT, "holds": BOOLEAN}],
     "fileless": [{"topic": NAME, "paths": [PATTERN], "since": MS or null}], "more": N}

`holds` says whether the agent seals nothing of the topic because of the path. `since` is the time
since which no file has ever matched the source; null if a file matched it before. `more` is how
many further paths and sources are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from skidway.audit.topic.notes import is_count
from skidway.cli.moments import shown
from skidway.dataclass import dataclass

KIND: Final = "sources"
ROWS_MAX: Final = 40
PATTERNS_MAX: Final = 3
TEXT_MAX: Final = 300


@dataclass(frozen=True, slots=True)
class UnreadPath:
    """A path at which the agent reads nothing. holds: whether it holds the topic's seal."""

    topic: str
    path: str
    reason: str
    holds: bool

    @property
    def words(self) -> str:
        """The path and the reason, as a sentence without a full stop."""
        return f"the agent cannot read {self.path}: {self.reason}"


@dataclass(frozen=True, slots=True)
class FilelessSource:
    """A source without files. since_ms: since when no file has ever matched it; None if a file
    matched it before. paths: the first of its patterns."""

    topic: str
    paths: tuple[str, ...]
    since_ms: int | None

    @property
    def words(self) -> str:
        """Which source it is and since when, as a sentence without a full stop."""
        source = f"source {', '.join(self.paths)}"
        if self.since_ms is None:
            return f"{source} matches no file now, and did before"
        since = shown(self.since_ms // 1000 * 1000).replace(".000Z", "Z")
        return f"{source} has matched no file since {since}"


@dataclass(frozen=True, slots=True)
class SourceReport:
    """What an agent cannot read. more: how many paths and sources the report leaves out."""

    unread: tuple[UnreadPath, ...] = ()
    fileless: tuple[FilelessSource, ...] = ()
    more: int = 0


NOTHING: Final = SourceReport()


def bounded(unread: Iterable[UnreadPath], fileless: Iterable[FilelessSource]) -> SourceReport:
    """Returns a report with the first of these paths and sources: those that hold seals first."""
    paths = sorted(unread, key=lambda x: (not x.holds, x.topic, x.path))
    sources = sorted(fileless, key=lambda x: (x.since_ms is None, x.topic, x.paths))
    more = max(len(paths) - ROWS_MAX, 0) + max(len(sources) - ROWS_MAX, 0)
    return SourceReport(tuple(paths[:ROWS_MAX]), tuple(sources[:ROWS_MAX]), more)


def body_of(report: SourceReport) -> dict[str, Any]:
    """Returns the report as the body of a note."""
    return {
        "unread": [
            {
                "topic": x.topic,
                "path": x.path[:TEXT_MAX],
                "reason": x.reason[:TEXT_MAX],
                "holds": x.holds,
            }
            for x in report.unread
        ],
        "fileless": [
            {
                "topic": x.topic,
                "paths": [each[:TEXT_MAX] for each in x.paths[:PATTERNS_MAX]],
                "since": x.since_ms,
            }
            for x in report.fileless
        ],
        "more": report.more,
    }


def report_of(body: Mapping[str, Any]) -> SourceReport:
    """Returns the report in the body of a note. Leaves out what does not have the form of
    `body_of`."""
    unread = (
        UnreadPath(x["topic"], x["path"], x["reason"], bool(x.get("holds")))
        for x in _records(body.get("unread"))
        if all(isinstance(x.get(name), str) for name in ("topic", "path", "reason"))
    )
    fileless = (
        FilelessSource(x["topic"], _texts(x.get("paths")), _count(x.get("since")))
        for x in _records(body.get("fileless"))
        if isinstance(x.get("topic"), str)
    )
    return SourceReport(tuple(unread), tuple(fileless), _count(body.get("more")) or 0)


def _records(found: object) -> Sequence[dict[str, Any]]:
    rows = found[:ROWS_MAX] if isinstance(found, list) else []
    return [row for row in rows if isinstance(row, dict)]


def _texts(found: object) -> tuple[str, ...]:
    rows = found[:PATTERNS_MAX] if isinstance(found, list) else []
    return tuple(row for row in rows if isinstance(row, str))


def _count(found: Any) -> int | None:
    return int(found) if is_count(found) else None
