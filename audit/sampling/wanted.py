"""The values that `comparison` compares: a sample's part for one topic, and the rows and records
that were found for it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from skidway.audit.topic.sample import Sample, SamplePart


class Span(NamedTuple):
    """The bytes [begin, end) of a log file. agent, file: the agent's id and the file id."""

    agent: int
    file: int
    begin: int
    end: int


@dataclass(frozen=True, slots=True)
class Wanted:
    """The part of a sample for one topic: the records that the agent makes from the sampled
    bytes.
    """

    sample: Sample
    part: SamplePart

    @property
    def span(self) -> Span:
        """The sampled bytes."""
        return Span(self.sample.agent, self.sample.file, self.sample.first, self.sample.end)

    def has_no_line(self, agent: int, file: int, first: int) -> bool:
        """Whether the position `first` of the file is in the sampled bytes, but the agent makes no
        record from a line that begins at this position.
        """
        span = self.span
        is_sampled = (agent, file) == (span.agent, span.file) and span.begin <= first < span.end
        return is_sampled and first not in self.part.firsts

    def sum_at(self, first: int) -> bytes | None:
        """The content sum (the checksum of the record's content) for the line that begins at this
        position of the file; None if the sample names no such line."""
        at = bisect_left(self.part.firsts, first)
        is_named = at < len(self.part.firsts) and self.part.firsts[at] == first
        return self.part.sums[at] if is_named else None

    @property
    def day(self) -> int:
        """The day (UTC) of the sample, as the time in ms at which the day starts."""
        return self.sample.day


@dataclass(frozen=True, slots=True)
class Found:
    """A row or a record whose line begins in a span.

    first, length: from the origin of the row or record. time_ms: the event time. place: for a row,
    the file and the row's number in the file; for a record, the topic. is_reject: whether the
    loader rejected the record. datum: the datum of a record. host, path: a row's `_host` and
    `_file`; empty if the column is null; None for a record, and if there is no such column.

    content: the content sum. It is None for a reject of the loader. It is also None if a row's
    columns do not fit the record's schema, or if this schema cannot be used; `obstacle` then says
    why. It is empty if a row's value does not fit this schema, or if a record has another schema or
    no datum.
    """

    first: int
    length: int
    time_ms: int
    partition: int
    offset: int
    place: str
    content: bytes | None
    obstacle: str = ""
    is_reject: bool = False
    datum: bytes = b""
    host: str | None = None
    path: str | None = None


def wanted_of(samples: Iterable[Sample]) -> Iterator[Wanted]:
    """Yields each part of each sample. If a sample's bytes were gone before the agent could read
    them again, the sample has no parts.
    """
    for sample in samples:
        for part in sample.parts:
            yield Wanted(sample, part)


def least_ms(wanted: Sequence[Wanted]) -> int:
    """The least event time of the records in these parts of samples."""
    return min(each.part.least_ms for each in wanted)
