"""A sample says what the records of a byte range of a file must contain. A sample is a message of
the agent that has read the file.

The agent chooses random ranges of the files whose lines it has delivered. The agent makes the
records of these ranges again, and publishes a checksum of each record's content, its content sum
(audit/counts/content.py). `skidway audit sample` compares these sums with rows and records. A
sample has no number in the agent's sequence of messages, because no verdict waits for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from skidway.audit.topic.sample_result import DAY_MS, DAYS_END_MS
from skidway.kafka.source import Source

_SUM_BYTES: Final = 8
_FIELDS: Final = (
    "agent", "host", "period", "period_ms", "number", "count", "file", "path", "first", "end",
    "recipe", "gone",
)  # fmt: skip
_SOURCE_FIELDS = ("cluster", "cluster_id", "topic", "topic_id")

Int64s = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class SamplePart:
    """The records of one topic that the agent makes from the sampled range of bytes. firsts: for
    each record, the position of its line's first byte in the file, in ascending order. sums: the
    content sum of each record. least_ms, greatest_ms: the least and the greatest event time of the
    records.
    """

    source: Source
    schema_id: int
    least_ms: int
    greatest_ms: int
    firsts: tuple[int, ...]
    sums: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Sample:
    """The bytes [first, end) of a file, and the records that the agent makes from them.

    period: the start, in ms, of the period in which the agent delivered the lines of the range.
    count: how many ranges the agent chose in this period. number: the range's number among them,
    from 1 on. gone: the reason why the agent could not make the records again; empty if it could.
    """

    time_ms: int
    agent: int
    host: str
    period: int
    period_ms: int
    number: int
    count: int
    file: int
    path: str
    first: int
    end: int
    recipe: bytes
    gone: str = ""
    parts: tuple[SamplePart, ...] = ()

    @property
    def key(self) -> tuple[int, int, int, int]:
        """A key that all copies of one message share, so that readers can drop repeated copies."""
        return self.agent, self.period, self.file, self.first

    @property
    def day(self) -> int:
        """The day (UTC) of the sample, as the time in ms at which the day starts."""
        return self.period - self.period % DAY_MS


def record_of(sample: Sample) -> dict[str, Any]:
    """The sample as a record of the schema Sample."""
    record = {name: getattr(sample, name) for name in _FIELDS}
    return record | {"time": sample.time_ms, "parts": [_part_record(x) for x in sample.parts]}


def sample_of(record: dict[str, Any], time_ms: int) -> Sample:
    """Decodes a record of the schema Sample. Raises ValueError if a part does not have one sum for
    each position, or if the period does not begin in the years 1970 to 9999.
    """
    if not 0 <= record["period"] < DAYS_END_MS:
        raise ValueError(f"{record['period']} is no time")
    parts = tuple(_part(each) for each in record["parts"])
    return Sample(time_ms=time_ms, parts=parts, **{name: record[name] for name in _FIELDS})


def _part_record(part: SamplePart) -> dict[str, Any]:
    record: dict[str, Any] = {name: getattr(part.source, name) for name in _SOURCE_FIELDS}
    return record | {
        "schema_id": part.schema_id,
        "least_time": part.least_ms,
        "greatest_time": part.greatest_ms,
        "firsts": np.array(part.firsts, "<i8").tobytes(),
        "sums": b"".join(part.sums),
    }


def _part(record: dict[str, Any]) -> SamplePart:
    firsts = tuple(np.frombuffer(record["firsts"], "<i8").tolist())
    packed = record["sums"]
    if len(packed) != _SUM_BYTES * len(firsts):
        raise ValueError("a sample has another number of sums than of positions")
    sums = tuple(packed[at : at + _SUM_BYTES] for at in range(0, len(packed), _SUM_BYTES))
    return SamplePart(
        Source(*(record[name] for name in _SOURCE_FIELDS)),
        record["schema_id"],
        record["least_time"],
        record["greatest_time"],
        firsts,
        sums,
    )
