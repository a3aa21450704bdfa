"""The result of comparing samples with rows and records, as a message to the collector.

For each topic, output and day of samples, only the newest result counts. All results go to one
partition of the audit topic, so the newest result is the last in the log, and clocks do not matter.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from skidway.kafka.source import Source

DIFFERENCES_MAX: Final = 100
"""A result lists at most this many differences."""

DAY_MS: Final = 86_400_000
DAYS_END_MS: Final = 253_402_300_800_000
"""The end of the year 9999, in ms. `day_text` cannot write a later year."""

_SOURCE_FIELDS = ("cluster", "cluster_id", "topic", "topic_id")
_FIELDS: Final = (
    "host", "output", "day", "compared", "equal", "differing", "unlisted_least",
    "unlisted_greatest",
)  # fmt: skip
_DIFFERENCE_FIELDS: Final = (
    "agent", "host", "file", "path", "first", "end", "tier", "place", "partition", "offset",
    "words",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ContentDifference:
    """A line whose row or record does not have the content that the agent makes from the line.

    time_ms: the event time, which determines the bucket. first, end: the line's bytes in the file.
    tier: HDFS if a row differs, BROKER or MIRROR if a record differs. place: the path of the row's
    file below the output, or the record's cluster. words: a sentence that says what differs.
    """

    time_ms: int
    agent: int
    host: str
    file: int
    path: str
    first: int
    end: int
    tier: str
    place: str
    partition: int
    offset: int
    words: str


@dataclass(frozen=True, slots=True)
class SampleResult:
    """The result for one topic, one output and one day of samples. day: the begin of the day (UTC),
    in ms.

    compared: how many lines of samples were compared. If unlisted differences of an earlier result
    still count, `compared` is not smaller than in that result, even if fewer lines were compared.
    equal: how many rows and records are equal to their samples. differing: at least this many rows
    and records differ from their samples. differences: the first DIFFERENCES_MAX differences.

    unlisted_least, unlisted_greatest: the result does not state the event times of lines whose
    difference is not listed, and of lines whose row or record may have another event time than the
    line. These fields are the least and the greatest event time (ms) that such lines can have. Both
    are 0 if there are no such lines."""

    time_ms: int
    host: str
    output: str
    source: Source
    day: int
    compared: int
    equal: int
    differing: int
    differences: tuple[ContentDifference, ...] = ()
    unlisted_least: int = 0
    unlisted_greatest: int = 0

    @property
    def unlisted(self) -> int:
        """How many differences the list leaves out."""
        return max(0, self.differing - len(self.differences))

    @property
    def unlisted_times(self) -> tuple[int, int] | tuple[()]:
        """`unlisted_least` and `unlisted_greatest`; empty if there are no lines to which they
        apply."""
        times = self.unlisted_least, self.unlisted_greatest
        return times if self.unlisted or any(times) else ()

    @property
    def name(self) -> str:
        """The name under which the ledger stores the newest result for a topic, an output and a
        day."""
        return f"sample of {day_text(self.day)} in {self.output or 'brokers'}"


def day_text(day: int) -> str:
    """Returns the day that begins at this time (ms), in the form 2026-01-31."""
    return datetime.fromtimestamp(day / 1000, UTC).strftime("%Y-%m-%d")


def record_of(result: SampleResult) -> dict[str, Any]:
    """The result as a record of the schema SampleResult."""
    record = {name: getattr(result, name) for name in _FIELDS}
    record |= {name: getattr(result.source, name) for name in _SOURCE_FIELDS}
    differences = [
        {name: getattr(each, name) for name in _DIFFERENCE_FIELDS} | {"time": each.time_ms}
        for each in result.differences
    ]
    return record | {"time": result.time_ms, "differences": differences}


def result_of(record: dict[str, Any], time_ms: int) -> SampleResult:
    """Decodes a record of the schema SampleResult. Raises ValueError if its day is not in the years
    1970 to 9999.
    """
    if not 0 <= record["day"] < DAYS_END_MS:
        raise ValueError(f"{record['day']} is no day")
    return SampleResult(
        time_ms=time_ms,
        source=Source(*(record[name] for name in _SOURCE_FIELDS)),
        differences=tuple(
            ContentDifference(each["time"], *(each[name] for name in _DIFFERENCE_FIELDS))
            for each in record["differences"]
        ),
        **{name: record[name] for name in _FIELDS},
    )
