"""Defines the result of a topic in one run, and the result of the whole run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Final

from skidway.errors import ConfigurationRefused, SkidwayError, StateRefused, Unreachable
from skidway.loader.slices.job import Stop
from skidway.loader.slices.join import PartitionResult
from skidway.loader.state.manifest import Manifest, PartitionRange

GRAVEST_FIRST: Final = (
    StateRefused.exit_code,
    ConfigurationRefused.exit_code,
    Unreachable.exit_code,
    SkidwayError.exit_code,
)
"""The exit statuses, the gravest first. First come problems that a person must repair (the loader
refused the state or the configuration). Then come problems with programs that cannot be reached,
because such a program may come back without help. All other problems come last. A run with several
problems ends with the gravest exit status.
"""


@dataclass(slots=True)
class TopicOutcome:
    """The result of a topic in this run. problems: errors, each with its exit status. notes: other
    sentences for the operator. foreign: says that the topic was left out, because it has no schema
    and only a pattern has chosen it; else ""."""

    topic: str
    loads: list[int] = field(default_factory=list)
    rows: int = 0
    rejects: int = 0
    repeats: int = 0
    files: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    waiting: list[Stop] = field(default_factory=list)
    problems: list[SkidwayError] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    ranges: list[PartitionRange] = field(default_factory=list)
    foreign: str = ""

    @property
    def status(self) -> str:
        """Returns a word for what became of the topic in this run."""
        if self.problems:
            return "problem"
        if self.foreign:
            return "no schema"
        return "waiting" if self.waiting else "good"

    def document(self) -> dict[str, Any]:
        """Returns this topic's result as the fields that `--json` prints."""
        return {
            "topic": self.topic,
            "status": self.status,
            "loads": self.loads,
            "rows": self.rows,
            "rejects": self.rejects,
            "repeats": self.repeats,
            "files": self.files,
            "reject_reasons": dict(self.reasons),
            "partitions": [
                {"partition": each.partition, "first": each.first, "end": each.end}
                for each in self.ranges
            ],
            "waiting": [stop.sentence for stop in self.waiting],
            "problems": [str(problem) for problem in self.problems],
            "notes": [*self.notes, *filter(None, [self.foreign])],
        }


@dataclass(slots=True)
class Report:
    """What a run did. seconds: the time that the run took, not counting the time that Spark took to
    start."""

    outcomes: list[TopicOutcome] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def exit_code(self) -> int:
        """Returns 0 if no topic has a problem. Otherwise returns the exit status of the gravest
        problem."""
        return gravest(problem.exit_code for each in self.outcomes for problem in each.problems)

    def sentences(self) -> list[str]:
        """Returns the sentences that are shown to people about all topics: the problems, the
        records that wait to be loaded, and the notes."""
        return [
            sentence
            for each in self.outcomes
            for sentence in (
                *map(str, each.problems), *(stop.sentence for stop in each.waiting), *each.notes,
                *filter(None, [each.foreign]),
            )
        ]  # fmt: skip

    def document(self) -> dict[str, Any]:
        """Returns the document for `--json`."""
        rows = sum(each.rows for each in self.outcomes)
        return {
            "ok": self.exit_code == 0,
            "rows": rows,
            "rejects": sum(each.rejects for each in self.outcomes),
            "repeats": sum(each.repeats for each in self.outcomes),
            "seconds": round(self.seconds, 3),
            "rows_per_second": round(rows / self.seconds) if self.seconds else 0,
            "topics": [each.document() for each in self.outcomes],
        }


def gravest(codes: Iterable[int]) -> int:
    """Returns the gravest of these exit statuses, or 0 if there are none."""
    found = set(codes)
    return next((code for code in GRAVEST_FIRST if code in found), max(found, default=0))


def note(
    outcome: TopicOutcome, manifest: Manifest | None, results: Iterable[PartitionResult]
) -> None:
    """Adds the result of one attempt to a topic's outcome. manifest: the manifest that the attempt
    committed; None if the attempt committed nothing."""
    outcome.waiting = []
    for result in results:
        stop = result.stop
        if stop is not None and stop.waiting_for is not None:
            outcome.waiting.append(stop)
        elif stop is not None:
            outcome.problems.append(SkidwayError(stop.sentence))
        if manifest is not None:
            outcome.repeats += sum(each.repeats for each in result.results)
            outcome.reasons += sum((each.reasons for each in result.results), Counter())
    if manifest is not None:
        outcome.loads.append(manifest.number)
        outcome.rows += manifest.rows()
        outcome.rejects += manifest.rejects()
        outcome.files += sum(1 for file in manifest.files if file.kind == "rows")
        begins = {each.partition: each.first for each in outcome.ranges}
        outcome.ranges = [
            replace(each, first=begins.get(each.partition, each.first))
            for each in manifest.partitions
        ]
