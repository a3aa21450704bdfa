"""Chooses records of a byte range that the agent has chosen as a sample, and computes their content
sums for the audit. A content sum is a checksum of a record's content. All functions are pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from skidway.agent.batches.records import Int64s
from skidway.audit.counts.content import content_sums
from skidway.audit.topic.sample import SamplePart
from skidway.kafka.source import Source
from skidway.schemas import wire

RECORDS_MAX: Final = 1_000
"""A sample contains the content sums of at most this many records of a range, so that the sample's
audit message stays below 20 KiB.
"""


@dataclass(frozen=True, slots=True)
class RangeRecords:
    """Those records of a range that belong to one topic. values: each has the schema's id before
    the datum.
    """

    source: Source
    first: Int64s
    length: Int64s
    times: Int64s
    values: pa.BinaryArray


def window(
    records: Sequence[RangeRecords], begin: int, end: int, lot: int, limit: int = RECORDS_MAX
) -> tuple[int, int]:
    """Returns the byte range whose records the sample contains: [begin, end) if it has at most
    `limit` records, otherwise a part of it with `limit` records. lot: a random number that chooses
    this part.
    """
    firsts = sorted(first for each in records for first in each.first.tolist())
    if len(firsts) <= limit:
        return begin, end
    at = lot % (len(firsts) - limit + 1)
    behind = firsts[at + limit] if at + limit < len(firsts) else end
    return (begin if at == 0 else firsts[at]), behind


def parts(records: Iterable[RangeRecords], begin: int, end: int) -> tuple[SamplePart, ...]:
    """Returns what a sample contains about the records that begin in [begin, end): one part for
    each topic.
    """
    found = (_part(each, begin, end) for each in records)
    return tuple(sorted(filter(None, found), key=lambda each: each.source.topic))


def _part(records: RangeRecords, begin: int, end: int) -> SamplePart | None:
    chosen = np.flatnonzero((begin <= records.first) & (records.first < end))
    if not len(chosen):
        return None
    chosen = chosen[np.argsort(records.first[chosen], kind="stable")]
    ids, datums = wire.split(records.values.take(pa.array(chosen)))
    times = records.times[chosen]
    return SamplePart(
        records.source,
        int(ids[0]),
        int(times.min()),
        int(times.max()),
        tuple(records.first[chosen].tolist()),
        tuple(content_sums(times, records.length[chosen], datums)),
    )
