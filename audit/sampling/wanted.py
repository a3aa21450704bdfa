"""Values: what a sample says about one topic, and what was found of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from skidway.audit.topic.sample import Sample, SamplePart
from skidway.audit.topic.sample_result import DAY_MS


class Span(NamedTuple):
    """Bytes [begin, end) of a file of an agent."""

    agent: int
    file: int
    begin: int
    end: int


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a sample says about one topic: which records its range becomes."""

    sample: Sample
    part: SamplePart

    @property
    def span(self) -> Span:
        """The sampled bytes."""
        return Span(self.sample.agent, self.sample.file, self.sample.first, self.sample.end)

    @property
    def day(self) -> int:
        """The begin (ms) of the day (UTC) of the sample."""
        return self.sample.period - self.sample.period % DAY_MS


@dataclass(frozen=True, slots=True)
class Found:
    """A row or a record whose line begins in a span.

    first, length: its origin. time_ms: its event time. content: its content sum; None if it cannot
    be made, and then `obstacle` says why. place: a row's file and number in it, or a topic.
    is_reject: whether the loader made a reject of the record. datum: the datum of a record.
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


def wanted_of(samples: Iterable[Sample]) -> Iterator[Wanted]:
    """What samples say, topic by topic. Ranges that are gone say nothing."""
    for sample in samples:
        for part in sample.parts:
            yield Wanted(sample, part)


def least_ms(wanted: Sequence[Wanted]) -> int:
    """The least event time of the records."""
    return min(each.part.least_ms for each in wanted)
