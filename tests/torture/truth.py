"""Lines, rows and verdicts together: the numbers of the torture. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from torture.hosts import Line

Bucket = tuple[str, int]
"""Topic of the datacenter, without `.rejected`, and the bucket's start in ms."""


@dataclass(slots=True)
class Truth:
    """What became of every line. lost, doubled: numbers of lines in buckets that are complete;
    declared: how many others are missing or came twice; by_reason: of alarms, the first reason."""

    lines: int = 0
    rows: int = 0
    rejects: int = 0
    buckets: int = 0
    complete: int = 0
    lost: list[int] = field(default_factory=list)
    doubled: list[int] = field(default_factory=list)
    invented: list[int] = field(default_factory=list)
    declared: int = 0
    false_complete: set[Bucket] = field(default_factory=set)
    false_alarms: dict[Bucket, str] = field(default_factory=dict)
    unhealed: dict[Bucket, str] = field(default_factory=dict)

    @property
    def is_good(self) -> bool:
        """Whether nothing was lost or doubled in silence."""
        return not (self.lost or self.doubled or self.invented or self.false_complete)


def compared(
    lines: Iterable[Line], rows: Iterable[int], rejects: Iterable[int],
    verdicts: Iterable[Mapping[str, Any]], bucket_ms: int,
) -> Truth:  # fmt: skip
    """rows, rejects: the numbers of the lines that they hold. verdicts: the report's buckets."""
    found = Truth()
    by_number = {line.number: line for line in lines}
    there = Counter(rows)
    apart = Counter(rejects)
    found.lines, found.rows, found.rejects = len(by_number), there.total(), apart.total()
    words = _by_bucket(verdicts)
    found.buckets = len(words)
    found.complete = sum(1 for word, _ in words.values() if word == "complete")
    wrong: set[Bucket] = set()
    for number, line in by_number.items():
        count = there[number] + apart[number]
        if count == 1:
            continue
        bucket = line.topic, line.time_ms - line.time_ms % bucket_ms
        wrong.add(bucket)
        if words.get(bucket, ("complete", ""))[0] == "complete":  # of no bucket nothing is said
            (found.doubled if count else found.lost).append(number)
            found.false_complete.add(bucket)
        else:
            found.declared += 1
    found.invented = sorted((there.keys() | apart.keys()) - by_number.keys())
    for bucket, (word, why) in words.items():
        if bucket in wrong or word == "complete":
            continue
        (found.false_alarms if word in ("lost", "unknown") else found.unhealed)[bucket] = why
    return found


def _by_bucket(verdicts: Iterable[Mapping[str, Any]]) -> dict[Bucket, tuple[str, str]]:
    """The gravest word on a bucket, its rejects' with it, and the first reason."""
    order = ["complete", "open", "incomplete", "unknown", "lost"]
    found: dict[Bucket, tuple[str, str]] = {}
    for each in verdicts:
        key = each["topic"].removesuffix(".rejected"), each["bucket"]
        why = next(iter(each["reasons"]), "")
        known = found.get(key)
        if known is None or order.index(each["verdict"]) > order.index(known[0]):
            found[key] = each["verdict"], why
    return found
