"""Lines, rows and verdicts together: the numbers of the torture. Pure."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from torture.hosts import Line

Bucket = tuple[str, int]
"""Topic as a mirror calls it, without `.rejected`, and the bucket's start in ms."""


ORDER = ("complete", "open", "incomplete", "unknown", "lost")
"""Verdicts, the gravest last."""
Said = tuple[str, Sequence[str]]
"""A word on a bucket, and its reasons."""


@dataclass(slots=True)
class Truth:
    """What became of every line. lost, doubled: numbers of lines in buckets that are complete;
    declared: how many others are missing or came twice; beside: alarms with a reason that another
    bucket has as well, in which lines are missing or double; of alarms the first reason."""

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
    beside: dict[Bucket, str] = field(default_factory=dict)
    false_alarms: dict[Bucket, str] = field(default_factory=dict)
    unhealed: dict[Bucket, str] = field(default_factory=dict)

    @property
    def is_good(self) -> bool:
        """Whether nothing was lost or doubled in silence."""
        return not (self.lost or self.doubled or self.invented or self.false_complete)


def compared(
    lines: Iterable[Line], rows: Iterable[int], rejects: Iterable[int],
    verdicts: Iterable[Mapping[str, Any]], bucket_ms: int, *,
    recounted: Set[Bucket] = frozenset(), copied: Mapping[int, int] | None = None,
) -> Truth:  # fmt: skip
    """rows, rejects: the numbers of the lines that they hold. verdicts: the report's buckets.
    recounted: those of which a recount says that their rows are not what was counted. copied: how
    often more a line may be there, as one of a file that was copied."""
    found = Truth()
    by_number = {line.number: line for line in lines}
    there = Counter(rows)
    apart = Counter(rejects)
    found.lines, found.rows, found.rejects = len(by_number), there.total(), apart.total()
    verdicts = list(verdicts)
    words = _by_bucket(verdicts)
    said = _Words(verdicts)
    found.buckets = len(words)
    found.complete = sum(1 for word, _ in words.values() if word == "complete")
    wrong: set[Bucket] = set()
    for number, line in by_number.items():
        count = there[number] + apart[number]
        if 1 <= count <= 1 + (copied or {}).get(number, 0):
            continue
        bucket = line.topic, line.time_ms - line.time_ms % bucket_ms
        wrong.add(bucket)
        if said.word(bucket) == "complete" and bucket not in recounted:
            (found.doubled if count else found.lost).append(number)
            found.false_complete.add(bucket)
        else:
            found.declared += 1
    found.invented = sorted((there.keys() | apart.keys()) - by_number.keys())
    real = {reason for bucket in wrong if bucket in words for reason in words[bucket][1]}
    for bucket, (word, reasons) in words.items():
        if bucket in wrong or word == "complete":
            continue
        alarms = found.false_alarms if word in ("lost", "unknown") else found.unhealed
        if alarms is found.false_alarms and not real.isdisjoint(reasons):
            alarms = found.beside
        alarms[bucket] = next(iter(reasons), "")
    return found


class _Words:
    """The word on every bucket of a topic's name, the gravest of those on all topics that had it.

    Where nothing was counted the audit lists no bucket, but that of a loss's declaration, behind
    all that may be lost: so the next one of that topic which is listed has the word."""

    def __init__(self, verdicts: Iterable[Mapping[str, Any]]) -> None:
        self._words: dict[str, dict[str, dict[int, str]]] = defaultdict(lambda: defaultdict(dict))
        for each in verdicts:
            of_name = self._words[_name(each)]
            known = of_name[each["topic_id"] + each["topic"]]
            known[each["bucket"]] = each["verdict"]
        self._listed = {
            name: {id_: sorted(words) for id_, words in ids.items()}
            for name, ids in self._words.items()
        }

    def word(self, bucket: Bucket) -> str:
        name, start = bucket
        found = []
        for id_, listed in self._listed.get(name, {}).items():
            if (at := bisect_left(listed, start)) < len(listed):
                found.append(self._words[name][id_][listed[at]])
        return max(found, key=ORDER.index, default="complete")


def named_by_recount(document: Mapping[str, Any], bucket_ms: int) -> set[Bucket]:
    """Of its differences, and all those of an hour in which something is wrong with a file."""
    found: set[Bucket] = set()
    for each in document.get("topics", ()):
        topic = each["topic"].removesuffix(".rejected")
        found |= {(topic, difference["bucket"]) for difference in each["differences"]}
        for fault in each["faults"]:
            if fault["hour"]:
                hour = datetime.fromisoformat(f"{fault['hour']}:00+00:00").timestamp() * 1000
                found |= {
                    (topic, int(hour) + at) for at in range(0, 3_600_000, bucket_ms)
                }  # fmt: skip
    return found


def _by_bucket(verdicts: Iterable[Mapping[str, Any]]) -> dict[Bucket, Said]:
    """The gravest word on a bucket, its rejects' with it, and its reasons."""
    found: dict[Bucket, Said] = {}
    for each in verdicts:
        key = _name(each), each["bucket"]
        known = found.get(key)
        if known is None or ORDER.index(each["verdict"]) > ORDER.index(known[0]):
            found[key] = each["verdict"], each["reasons"]
    return found


def _name(verdict: Mapping[str, Any]) -> str:
    return f"{verdict['cluster']}.{verdict['topic']}".removesuffix(".rejected")
