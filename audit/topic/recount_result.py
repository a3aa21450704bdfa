"""What a recount found, as a message, from which the collector learns it.

For each topic of each output the newest result counts, which is the last one in the log: recounts
of all outputs go to one partition of the audit topic, so no clock decides.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from skidway.kafka.source import Source

REASONS_MAX: Final = 10

_SOURCE_FIELDS = ("cluster", "cluster_id", "topic", "topic_id")
_FIELDS = (
    "host", "output", "loads", "files", "rows", "faults", "differences"
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class RecountResult:
    """The result for one topic of one output. since_ms: rows with event times from then on were
    counted again; None: all. faults, differences: how many; reasons: the first of them in words."""

    time_ms: int
    host: str
    output: str
    source: Source
    since_ms: int | None
    loads: int
    files: int
    rows: int
    faults: int
    differences: int
    reasons: tuple[str, ...]

    @property
    def is_good(self) -> bool:
        """Whether files and rows are what was committed and counted."""
        return not (self.faults or self.differences)


def record_of(result: RecountResult) -> dict[str, Any]:
    """The record that the schema Recount takes."""
    record = {name: getattr(result, name) for name in _FIELDS}
    record |= {name: getattr(result.source, name) for name in _SOURCE_FIELDS}
    record |= {"time": result.time_ms, "since": result.since_ms, "reasons": list(result.reasons)}
    return record


def result_of(record: dict[str, Any], time_ms: int) -> RecountResult:
    """The result in a record of the schema Recount."""
    return RecountResult(
        time_ms=time_ms,
        source=Source(*(record[name] for name in _SOURCE_FIELDS)),
        since_ms=record["since"],
        reasons=tuple(record["reasons"]),
        **{name: record[name] for name in _FIELDS},
    )
