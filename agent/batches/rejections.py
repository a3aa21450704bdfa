"""Counts the rejected lines of each topic, for the log, and computes their share of the
topic's recent lines.

A log entry gives the topic, the reasons, the number of lines and of files, and the path and
position of one of these lines, but never a line's content. The share covers the last one to two
minutes in which lines came. So if no more lines come, the share stays as it was after the last
lines, until no source has the topic any more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import field
from typing import Final

from skidway import invocation
from skidway.agent.batches.rejected import RejectedLine
from skidway.dataclass import dataclass

TELL_EVERY_S: Final = 60.0
"""The least number of seconds between two log entries about the same topic."""

HALF_WINDOW_S: Final = 60.0
LINES_MIN: Final = 10
"""If a topic had fewer recent lines than this, `too_many` leaves out the topic, whatever the share
of its rejected lines is."""


@dataclass(frozen=True, slots=True)
class Untold:
    """Lines of one topic that were rejected, and that no log entry of the agent has counted yet.
    files: how many files they are in. path, position: where the first of these lines begins.
    """

    topic: str
    reasons: dict[str, int]
    files: int
    path: str
    position: int

    @property
    def count(self) -> int:
        """How many lines were rejected."""
        return sum(self.reasons.values())


@dataclass(slots=True)
class _Half:
    """The share of rejected lines is computed over two periods, one after the other. Each object of
    this class is one of these periods: how many lines came in the period, and how many of them were
    rejected. since: the monotonic time (s) at which the period began."""

    since: float
    lines: int = 0
    rejected: int = 0


@dataclass(slots=True)
class _Topic:
    current: _Half
    before: _Half
    reasons: Counter[str] = field(default_factory=Counter)
    files: set[int] = field(default_factory=set)
    example: tuple[str, int] = ("", 0)
    latest: tuple[str, str, int] = ("", "", 0)
    told_at: float | None = None


class Rejections:
    """Owns, for each topic, the numbers of its recent lines and of its rejected lines. share_max:
    too_many() returns the topics whose share of rejected lines is greater than `share_max`.
    """

    def __init__(self, share_max: float) -> None:
        self.share_max = share_max
        self._present: frozenset[str] = frozenset()
        self._topics: dict[str, _Topic] = {}

    def take_topics(self, topics: Iterable[str]) -> None:
        """Takes the topics of the present sources. If a topic is added or removed, its recent lines
        are forgotten, and its share is computed from later lines only. Rejected lines that are not
        logged yet are still logged.
        """
        before, self._present = self._present, frozenset(topics)
        for topic in self._topics.keys() - (before & self._present):
            known = self._topics[topic]
            known.before, known.current = _Half(known.current.since), _Half(known.current.since)

    def saw(self, topic: str, records: int, rejected: Sequence[RejectedLine], now: float) -> None:
        """Counts lines of a topic. records: how many of them were not rejected. now: the monotonic
        time (s)."""
        known = self._topics.setdefault(topic, _Topic(_Half(now), _Half(now)))
        if now - known.current.since >= HALF_WINDOW_S:
            known.before, known.current = known.current, _Half(now)
        known.current.lines += records + len(rejected)
        known.current.rejected += len(rejected)
        if not rejected:
            return
        first = rejected[0]
        if not known.reasons:
            known.example = first.path, first.first
        known.latest = first.reason, first.path, first.first
        known.reasons.update(line.reason for line in rejected)
        known.files.update(line.file for line in rejected)

    def due(self, now: float) -> list[Untold]:
        """Returns the rejected lines about which a log entry is due now (a topic gets at most one
        entry in TELL_EVERY_S seconds), and marks them as logged. Forgets the topics that no present
        source has, once nothing about them has to be logged."""
        found = []
        for topic, known in list(self._topics.items()):
            if known.told_at is not None and now - known.told_at < TELL_EVERY_S:
                continue
            if known.reasons:
                reasons, files = dict(known.reasons), len(known.files)
                found.append(Untold(topic, reasons, files, *known.example))
                known.reasons.clear()
                known.files.clear()
                known.told_at = now
            elif topic not in self._present:
                del self._topics[topic]
        return found

    def too_many(self) -> dict[str, str]:
        """Returns one sentence about each topic with too many rejected lines, by the topic's name.
        A topic has too many if its share of rejected lines is above the limit. Topics that no
        present source has are left out.
        """
        found, validate = {}, invocation.of_this_process().command("agent validate")
        for topic in sorted(self._topics.keys() & self._present):
            known = self._topics[topic]
            lines = known.current.lines + known.before.lines
            rejected = known.current.rejected + known.before.rejected
            if lines >= LINES_MIN and rejected > self.share_max * lines:
                reason, path, position = known.latest
                found[topic] = (
                    f"{rejected} of the last {lines} lines did not fit, as one in {path} at byte "
                    f"{position}: {reason}; {validate} shows why"
                )
        return found
