"""Marks the complete hours of one topic with `_SUCCESS`, after a run has loaded the topic.

The load that marks an hour also puts the small files of the hour together. So a job that waits for
`_SUCCESS` finds only a few files, and no later compaction replaces these files.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from skidway import log
from skidway.errors import SkidwayError, Unreachable
from skidway.loader.audit_topic import delta
from skidway.loader.complete_hours import choice, success_file
from skidway.loader.complete_hours.collector import Answer, Collector
from skidway.loader.rewriting.groups import Group, to_compact
from skidway.loader.runs.attempt import LostRace
from skidway.loader.runs.parts import Parts
from skidway.loader.runs.rewrite_attempt import Rewrite, RewriteAttempt
from skidway.loader.spark.runner import Progress
from skidway.loader.state import layout, operations, success_files
from skidway.loader.state.file_check import fault
from skidway.loader.state.live import live
from skidway.loader.state.live_file import LiveFile
from skidway.loader.state.manifest import Manifest

PATIENCE_S: Final = 5.0
"""The marking of a topic asks the collector about two lists of hours (`_reopened`, `_answers`). For
each list, it waits at most this many seconds until the collector has read the output's newest audit
message."""

PAUSE_S: Final = 0.5

_log = log.get(__name__)


@dataclass(slots=True)
class Marked:
    """The result of marking hours. newest: the newest manifest. loads: the loads that were
    committed. marked: the hours that got the file `_SUCCESS`. reopened: the hours that lost their
    `_SUCCESS`. problems: why files of hours could not be put together, why a complete hour got no
    `_SUCCESS`, or why the collector did not answer."""

    newest: Manifest
    loads: list[int] = field(default_factory=list)
    marked: list[str] = field(default_factory=list)
    reopened: list[str] = field(default_factory=list)
    problems: list[SkidwayError] = field(default_factory=list)

    def add(self, manifest: Manifest) -> None:
        """Adds one load to the result, with the hours whose `_SUCCESS` the load has written or
        deleted."""
        self.newest = manifest
        self.loads.append(manifest.number)
        self.marked += [layout.hour_of(each.path) for each in manifest.success]
        self.reopened += [layout.hour_of(path) for path in manifest.reopened]


class HourMarking:
    """Writes `_SUCCESS` for the complete hours of one topic, in one run."""

    def __init__(
        self,
        parts: Parts,
        collector: Collector,
        newest: Manifest,
        progress: Progress,
        pause: Callable[[float], object],
    ) -> None:
        self._parts, self._collector = parts, collector
        self._progress, self._pause = progress, pause
        self._done = Marked(newest)
        self._away: Unreachable | None = None
        self._now_ms = parts.clock.time_ms()

    def mark(self) -> Marked:
        """Asks the collector about hours. Then commits loads that write `_SUCCESS` for complete
        hours, and delete the `_SUCCESS` of hours that have become incomplete. Returns what was
        done. If another loader commits a load first, marks no further hours. If the collector stops
        answering after some questions, uses the earlier answers, and adds the problem to the
        result. Raises Unreachable if the collector does not answer the first question, and
        SkidwayError if it refuses a question.
        """
        newest = self._done.newest
        week = choice.over(self._now_ms, choice.LOOKED_HOURS)
        until = layout.hour_text(layout.hour_number(week[-1]) + 1)
        judged = self._collector.judged(newest.source, week[0], until)
        looked = choice.looked(judged, self._now_ms)
        missing = set(looked) - self._marks(looked).keys()
        asked = choice.asked(newest.unmarked, missing, judged, self._now_ms)
        # The questions about hours that have `_SUCCESS` come first, because a wrong `_SUCCESS` is
        # worse than a missing one.
        reopened = self._reopened(judged)
        complete = {x: y for x, y in self._answers(asked).items() if y.is_complete}
        try:
            self._commit(complete, reopened)
        except LostRace as lost:
            _log.info("race_lost", topic=newest.topic, reason=str(lost))
        if self._away is not None:
            self._done.problems.append(self._away)
        return self._done

    def _reopened(self, judged: Mapping[str, Answer]) -> list[str]:
        """Returns hours that have `_SUCCESS`, although records of these hours are now missing in
        some tier or were declared lost. Asks the collector again about some of the hours that its
        last judgement found incomplete. This judgement may be out of date, or the collector may not
        have read all counts when it judged."""
        marked = self._marks(choice.incomplete(judged))
        answers = self._answers(choice.reopened(marked, self._now_ms))
        return [x for x, y in answers.items() if not y.is_complete and y.lacks]

    def _marks(self, hours: Iterable[str]) -> dict[str, bytes]:
        return operations.run(
            success_files.marked(self._done.newest.topic, hours), self._parts.store
        )

    def _answers(self, hours: Iterable[str]) -> dict[str, Answer]:
        """Asks the collector about these hours. Returns, for each hour, the answer that takes all
        rows of this output into account. Returns no answers if the collector has not yet read all
        audit messages of the output. If the collector stops answering, returns the answers up to
        then."""
        newest, found = self._done.newest, {}
        wanted = delta.last_key(newest)
        until = time.monotonic() + PATIENCE_S
        for hour in hours if self._away is None else ():
            try:
                answer = self._collector.complete(newest.source, hour, newest.producer)
                while answer.heard != wanted and time.monotonic() < until:
                    self._pause(PAUSE_S)
                    answer = self._collector.complete(newest.source, hour, newest.producer)
            except Unreachable as error:
                self._away = error
                break
            if answer.heard != wanted:
                _log.info("collector_behind", topic=newest.topic, heard=answer.heard, last=wanted)
                return {}
            found[hour] = answer
        return found

    def _commit(self, complete: Mapping[str, Answer], reopened: list[str]) -> None:
        files = operations.run(live(self._done.newest), self._parts.store) if complete else {}
        complete = self._sound(complete, files)
        groups = self._groups(files, complete)
        rows = _rows(files)
        left = sorted(complete)
        while left or reopened:
            chosen = self._fitting(left, groups)
            success = {
                hour: success_file.content(
                    self._done.newest.topic, hour, rows[hour], complete[hour]
                )
                for hour in chosen
            }
            rewrite = Rewrite(
                [group for hour in chosen for group in groups.get(hour, ())],
                files,
                self._parts.settings.compression,
                success=success,
                reopened=reopened,
            )
            parts = self._parts
            attempt = RewriteAttempt(
                parts.store, parts.spark, parts.clock, parts.settings.host, self._done.newest
            )
            manifest, kept = attempt.make(rewrite, self._progress)
            self._done.problems += kept
            if manifest is not None:
                self._done.add(manifest)
            left, reopened = left[len(chosen) :], []

    def _sound(
        self, complete: Mapping[str, Answer], files: Mapping[str, LiveFile]
    ) -> dict[str, Answer]:
        """Returns the hours of which every file exists, with the length and the number of rows that
        were committed. Does not check the bytes of the files. A load later checks the bytes of
        those files that it puts together."""
        unfit = dict[str, SkidwayError]()
        for path, each in files.items():
            if (hour := layout.hour_of(path)) in complete:
                words = fault(self._parts.store, each.file)
                if words:
                    unfit.setdefault(hour, SkidwayError(f"{words}; {hour} gets no _SUCCESS"))
        self._done.problems += unfit.values()
        return {hour: answer for hour, answer in complete.items() if hour not in unfit}

    def _groups(
        self, files: Mapping[str, LiveFile], hours: Iterable[str]
    ) -> dict[str, list[Group]]:
        """Returns, for each of `hours`, the groups of small files that are put together. Each group
        becomes one file."""
        chosen = set(hours)
        own = [each for path, each in files.items() if layout.hour_of(path) in chosen]
        groups: dict[str, list[Group]] = {}
        for group in to_compact(own, self._parts.settings.compact_target_bytes):
            groups.setdefault(layout.hour_of(group.files[0].file.path), []).append(group)
        return groups

    def _fitting(self, hours: list[str], groups: Mapping[str, list[Group]]) -> list[str]:
        """Returns the first hours of `hours` that one load may rewrite: the groups of files of
        these hours together have at most `max.offsets.per.load` rows. Returns at least one hour."""
        rows, most = 0, self._parts.settings.max_offsets_per_load
        for count, hour in enumerate(hours):
            rows += sum(x.file.rows for group in groups.get(hour, ()) for x in group.files)
            if count and rows > most:
                return hours[:count]
        return hours


def _rows(files: Mapping[str, LiveFile]) -> Counter[str]:
    """Returns how many rows each hour has."""
    rows: Counter[str] = Counter()
    for path, each in files.items():
        rows[layout.hour_of(path)] += each.file.rows
    return rows
