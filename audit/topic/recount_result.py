"""The result of a recount, as a message to the collector.

For each topic of each output, only the newest result counts: the one with the most loads, and of
those the one with the latest time. The order in the log does not matter, because anybody can repeat
an older result.
"""

from __future__ import annotations

from typing import Any, Final

from skidway.dataclass import dataclass
from skidway.kafka.source import Source

REASONS_MAX: Final = 10

_SOURCE_FIELDS = ("cluster", "cluster_id", "topic", "topic_id")
_FIELDS = (
    "host", "output", "loads", "files", "rows", "faults", "differences"
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class RecountResult:
    """The result for one topic of one output. since_ms: only rows with event times from this time
    on were recounted; None if all rows were recounted. faults: how many errors were found in files
    and manifests. differences: how many counts of tiers differ from the recounted rows. reasons:
    sentences about the first REASONS_MAX of these errors and differences."""

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
        """Whether the files agree with the manifests, and the rows agree with the counts of the
        tiers."""
        return not (self.faults or self.differences)


def record_of(result: RecountResult) -> dict[str, Any]:
    """The result as a record of the schema Recount."""
    record = {name: getattr(result, name) for name in _FIELDS}
    record |= {name: getattr(result.source, name) for name in _SOURCE_FIELDS}
    record |= {"time": result.time_ms, "since": result.since_ms, "reasons": list(result.reasons)}
    return record


def result_of(record: dict[str, Any], time_ms: int) -> RecountResult:
    """Decodes a record of the schema Recount."""
    return RecountResult(
        time_ms=time_ms,
        source=Source(*(record[name] for name in _SOURCE_FIELDS)),
        since_ms=record["since"],
        reasons=tuple(record["reasons"]),
        **{name: record[name] for name in _FIELDS},
    )
