"""Compares lines, rows and verdicts, and computes the numbers that the torture reports. Does no
I/O."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from torture.hosts import REMADE, Line
from torture.lake import Row

Bucket = tuple[str, int]
"""The name of a topic in the mirror, without `.rejected`, and the start of a bucket in ms since
1970. The start may also be that of an hour."""


HOUR_MS = 3_600_000
REJECTED = ".rejected"
MADE_AGAIN = f"dc1.{REMADE}"
PROVEN_LEAST = 0.2
"""At least this share of all lines must have arrived once and in complete buckets. Otherwise a run
of the torture proves nothing."""
ORDER = ("complete", "open", "incomplete", "unknown", "lost")
"""All verdicts, from the best to the gravest."""
Said = tuple[str, Sequence[str]]
"""The verdict on a bucket, and the reasons for this verdict."""


INHERITED_MS = 600_000
"""If the audit does not list a bucket, the bucket gets the verdict of the topic's next listed
bucket. This holds only if the listed bucket begins less than INHERITED_MS milliseconds later."""


@dataclass(slots=True)
class Truth:
    """What happened to every line. The fields contain line numbers, buckets or counts.

    - lost, doubled: lines that are missing, or that arrived twice, although the audit calls their
      bucket complete.
    - false_complete: the buckets of the lines in `lost` and `doubled`.
    - torn: lines of which only a part arrived as a row, and lines that arrived as a row instead of
      a reject, or as a reject instead of a row.
    - invented: line numbers that rows or rejects of a topic contain, but that no written line of
      this topic has.
    - missing: lines that did not arrive, but whose buckets the audit calls open or incomplete,
      because it still waits for lines. Lines of the topic MADE_AGAIN are in `declared` instead.
    - marked: the number of hours that have a file `_SUCCESS`.
    - false_marks: the hours that have `_SUCCESS` although a line is missing or came twice. Lines in
      Parquet files that a DELETE fault has removed do not count.
    - declared: the number of other lines that are missing or came twice: those for which the
      audit's verdict or a recount says that something is wrong.
    - proven: the number of lines that arrived once, in complete buckets.
    - false_alarms: buckets with the verdict "lost" or "unknown", although none of their lines is
      missing or doubled, except the buckets in `beside`.
    - beside: buckets with the verdict "lost" or "unknown" that have each line once, but share a
      reason of the verdict with a bucket that has missing or doubled lines. So the alarm itself is
      right.
    - unhealed: buckets with the verdict "open" or "incomplete", although none of their lines is
      missing or doubled.

    For each bucket, the fields false_alarms, beside and unhealed contain the first reason of the
    verdict.
    """

    lines: int = 0
    rows: int = 0
    rejects: int = 0
    buckets: int = 0
    complete: int = 0
    proven: int = 0
    lost: list[int] = field(default_factory=list)
    doubled: list[int] = field(default_factory=list)
    missing: list[int] = field(default_factory=list)
    torn: list[int] = field(default_factory=list)
    invented: list[int] = field(default_factory=list)
    declared: int = 0
    false_complete: set[Bucket] = field(default_factory=set)
    marked: int = 0
    false_marks: set[Bucket] = field(default_factory=set)
    beside: dict[Bucket, str] = field(default_factory=dict)
    false_alarms: dict[Bucket, str] = field(default_factory=dict)
    unhealed: dict[Bucket, str] = field(default_factory=dict)

    @property
    def numbers(self) -> tuple[object, ...]:
        """Numbers that change as long as the programs still work. Two results with equal numbers
        count as unchanged. The reasons of verdicts are left out, because they may contain times."""
        wrong = (self.lost, self.doubled, self.missing, self.torn, self.invented)
        alarms = (set(x) for x in (self.beside, self.false_alarms, self.unhealed))
        return (*map(len, wrong), self.rows, self.complete, self.declared, *alarms)

    @property
    def is_good(self) -> bool:
        """Whether at least the share PROVEN_LEAST of the lines was proven, and the fields lost,
        doubled, missing, torn, invented, false_complete and false_marks are empty."""
        wrong = self.lost or self.doubled or self.missing or self.torn or self.invented
        false = self.false_complete or self.false_marks
        return not (wrong or false) and self.proven >= PROVEN_LEAST * self.lines


@dataclass(frozen=True, slots=True)
class Arrived:
    """The result at the end of the pipeline: rows, rejects and verdicts.

    - rows: the rows, by the topic's name in the mirror.
    - rejects: the numbers of the rejected lines, by the topic's name in the mirror without
      `.rejected`.
    - verdicts: the buckets of the audit's report.
    - recounted: the buckets in which, according to a recount, the rows differ from the audit's
      counts.
    - gone: the numbers of the lines in Parquet files that a DELETE fault has removed.
    - marked: the hours that have a file `_SUCCESS`, each with its topic and its start.
    """

    rows: Mapping[str, Sequence[Row]]
    rejects: Mapping[str, Sequence[int]]
    verdicts: Sequence[Mapping[str, Any]]
    recounted: Set[Bucket] = frozenset()
    gone: Set[int] = frozenset()
    marked: Set[Bucket] = frozenset()


def compared(lines: Iterable[Line], arrived: Arrived, bucket_ms: int) -> Truth:
    """Compares the lines that were written with what arrived."""
    found = Truth()
    words = _Words(arrived.verdicts)
    by_number = {line.number: line for line in lines}
    rows = Counter(
        (topic, row.number) for topic, of in arrived.rows.items() for row in of if not row.is_copy
    )
    rejects = Counter((topic, number) for topic, of in arrived.rejects.items() for number in of)
    found.lines, found.rows, found.rejects = len(by_number), rows.total(), rejects.total()
    found.buckets, found.marked = len(words.gravest), len(arrived.marked)
    found.complete = sum(1 for word, _ in words.gravest.values() if word == "complete")
    found.torn = sorted(x.number for of in arrived.rows.values() for x in of if not x.is_whole)
    wrong: set[Bucket] = set()
    for line in by_number.values():
        bucket = line.topic, line.time_ms - line.time_ms % bucket_ms
        named = line.topic, line.number
        there, elsewhere = (rows, rejects) if line.fits else (rejects, rows)
        word, count = words.of(bucket, fits=line.fits), there[named] + elsewhere[named]
        if count == 1 and (there[named] or word == "complete"):
            found.proven += word == "complete" and bucket in words.gravest
            if not there[named]:
                found.torn.append(line.number)
            continue
        wrong.add(bucket)
        hour = line.topic, line.time_ms - line.time_ms % HOUR_MS
        if line.fits and hour in arrived.marked and line.number not in arrived.gone:
            found.false_marks.add(hour)
        if not count and line.number in arrived.gone and bucket in arrived.recounted:
            found.declared += 1
        elif word == "complete":
            (found.doubled if count else found.lost).append(line.number)
            found.false_complete.add(bucket)
        elif word in ("open", "incomplete") and not count and bucket[0] != MADE_AGAIN:
            found.missing.append(line.number)
        else:
            found.declared += 1
    found.invented = sorted(
        {number for topic, number in rows | rejects if _topic(by_number.get(number)) != topic}
    )
    _add_alarms(found, words, wrong)
    return found


def _topic(line: Line | None) -> str:
    return "" if line is None else line.topic


def _add_alarms(found: Truth, words: _Words, wrong: Set[Bucket]) -> None:
    real = {x for bucket in wrong if bucket in words.gravest for x in words.gravest[bucket][1]}
    for bucket, (word, reasons) in words.gravest.items():
        if bucket in wrong or word == "complete":
            continue
        alarms = found.false_alarms if word in ("lost", "unknown") else found.unhealed
        if alarms is found.false_alarms and not real.isdisjoint(reasons):
            alarms = found.beside
        alarms[bucket] = next(iter(reasons), "")


class _Words:
    """The audit's verdict on every bucket. Several topics may have had the same name, and each has
    a topic of rejects. For each name and bucket, `gravest` contains the gravest verdict (see ORDER)
    of all these topics, with its reasons.

    The audit does not list a bucket in which nothing was counted. If all lines of a bucket were
    lost, the audit shows the loss in a later bucket: that of the time at which the loss was
    declared. So if the audit does not list a bucket, the bucket gets the verdict of the next listed
    bucket, if this verdict is "lost" or "unknown". A topic that was deleted and created again has
    several ids, and the audit lists the buckets of each id separately. If an id's list lacks the
    bucket, the id's next bucket counts in its place, whatever its verdict is.

    A line that does not match the source's pattern gets the time at which the agent read it. So
    this line may be counted in any later bucket of the topic of rejects.
    """

    def __init__(self, verdicts: Iterable[Mapping[str, Any]]) -> None:
        self.gravest: dict[Bucket, Said] = {}
        self._words: dict[str, dict[str, dict[int, str]]] = defaultdict(lambda: defaultdict(dict))
        for each in verdicts:
            topic, start, word = (
                f"{each['cluster']}.{each['topic']}",
                each["bucket"],
                each["verdict"],
            )
            self._words[topic][each["topic_id"]][start] = word
            bucket = topic.removesuffix(REJECTED), start
            if bucket not in self.gravest or _graver(word, self.gravest[bucket][0]):
                self.gravest[bucket] = word, each["reasons"]

    def of(self, bucket: Bucket, *, fits: bool) -> str:
        """Returns the gravest verdict that applies to a line of the bucket, or "complete" if there
        is none. `fits` says whether the line matches the pattern in the agent's settings."""
        topic, start = bucket
        found = [self._one(words, topic, start) for words in self._words[topic].values()]
        if not fits:
            ids = self._words[topic + REJECTED].values()
            behind = range(start, start + INHERITED_MS)
            found += [word for words in ids for at, word in words.items() if at in behind]
        return max((x for x in found if x), key=ORDER.index, default="complete")

    def _one(self, words: Mapping[int, str], topic: str, start: int) -> str:
        """Returns the verdict on the bucket for one topic id, or an empty string if there is none
        for this topic id."""
        own = words.get(start)
        if own is not None:
            return own
        if topic != MADE_AGAIN and any(start in x for x in self._words[topic].values()):
            return ""
        behind = [at for at in words if start < at < start + INHERITED_MS]
        word = words[min(behind)] if behind else ""
        return word if topic == MADE_AGAIN or word in ("lost", "unknown") else ""


def named_by_recount(document: Mapping[str, Any], bucket_ms: int) -> set[Bucket]:
    """The buckets in which a recount found a difference. For a file that the recount calls damaged
    or missing, the result also has all buckets of the file's hour. `document` is the output of
    `skidway audit recount --json`."""
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


def _graver(word: str, than: str) -> bool:
    return ORDER.index(word) > ORDER.index(than)
