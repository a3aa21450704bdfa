"""Loads one topic in one run, load after load, up to the high watermarks that the topic's
partitions had when the run started. Then writes `_SUCCESS` for the hours that are complete.

Each attempt begins after the newest manifest, whichever loader committed that manifest. After an
attempt, the run does one of three things (`_After`). It begins the next load, ends the work on this
topic, or waits a short time for announcements and tries again. (Announcements are agents' messages
with the host and path of a file.) The number of attempts that load nothing is limited.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from enum import Enum, auto
from typing import Final

from skidway import log
from skidway.errors import SkidwayError, StateRefused
from skidway.loader.audit_topic import delta
from skidway.loader.audit_topic.publication import publish
from skidway.loader.planning import plan
from skidway.loader.planning.plan import Planned
from skidway.loader.planning.topic import SourceTopic
from skidway.loader.runs import old_manifests
from skidway.loader.runs.attempt import LostRace
from skidway.loader.runs.conversion import conversion
from skidway.loader.runs.group_offsets import GroupOffsets
from skidway.loader.runs.hour_marking import HourMarking
from skidway.loader.runs.load_attempt import LoadAttempt
from skidway.loader.runs.newest_schema import foreign
from skidway.loader.runs.outcome import TopicOutcome, note
from skidway.loader.runs.parts import Parts
from skidway.loader.runs.rewrite_attempt import RewriteAttempt
from skidway.loader.runs.run_progress import MARK, REWRITE, RunProgress
from skidway.loader.spark.runner import Progress
from skidway.loader.state import commit, operations
from skidway.loader.state.manifest import Manifest
from skidway.loader.state.waiting import WaitingNotes
from skidway.schemas.client import Registered

RACES_MAX: Final = 5
"""At most this many attempts at one topic may fail because another loader committed first. Then the
run leaves the rest of the topic to a later run.
"""

WAITS_MAX: Final = 20
"""For each topic, a run waits at most this many times for missing announcements."""

PATIENCE_S: Final = 10.0
"""One wait for missing announcements (`WAITS_MAX`) takes at most this many seconds. If no
announcement comes, the run leaves the records of the unannounced files, and all later records of
their partitions, to a later run."""

_log = log.get(__name__)


class _After(Enum):
    """What the run does after an attempt to load the topic: try again at once, wait for missing
    announcements, or end."""

    ON = auto()
    WAIT = auto()
    END = auto()


class TopicLoads:
    """Loads one topic in this run. The object has the state of the topic in the run. `load run`
    calls `begin`, `load` and `mark` in this order, once each. `load reload` calls only `publish`,
    `convert`, `committed` and `forget_conversion`.
    """

    def __init__(
        self,
        parts: Parts,
        topic: SourceTopic,
        offsets: GroupOffsets,
        progress: RunProgress,
        pause: Callable[[float], object],
    ) -> None:
        self._parts, self._topic, self._offsets = parts, topic, offsets
        self._progress, self._pause = progress, pause
        self._races = 0
        self._tried: set[int] = set()  # ids of the schemas for which `convert` has run
        self._kept: list[SkidwayError] = []  # the errors that say why files were not rewritten
        self.newest: Manifest | None = None
        self.outcome = TopicOutcome(topic.name)

    def begin(self) -> None:
        """Moves into place the committed files that earlier loads have not moved yet. Reads the
        newest manifest. If the topic is foreign, says so in the outcome."""
        self.newest = operations.run(commit.begin(self._topic.name), self._parts.store)
        if self.newest is None and self._topic.name not in self._parts.settings.topics:
            self.outcome.foreign = foreign(self._parts.registry, self._topic)

    @property
    def needs_audit_topics(self) -> bool:
        """Returns whether the run needs the audit topics to load this topic. If the topic never had
        a record, the run does not need them. An example is the `.rejected` topic of a topic without
        rejects. Such a topic has no positions in the audit topics yet, so without this check the
        run would read the audit topics from their beginning.
        """
        return self.newest is not None or any(each.high_watermark for each in self._topic.bounds)

    def load(self) -> None:
        """Loads the topic. If the topic cannot be loaded, raises the error that says why. If only
        some partitions cannot be loaded, adds the reasons to the outcome."""
        self._offsets.tell(self._topic, self.newest)
        for _ in range(WAITS_MAX):
            while (after := self._attempt()) is _After.ON:
                pass
            if after is _After.END or not self._awaited():
                return

    def mark(self) -> None:
        """If the settings name a collector, marks complete hours with `_SUCCESS`. Raises
        Unreachable if the collector does not answer, and SkidwayError if it refuses a question."""
        collector = self._parts.collector
        if self.newest is None or collector is None:
            return
        progress = self._progress.groups(self._topic.name, MARK)
        marking = HourMarking(self._parts, collector, self.newest, progress, self._pause)
        done = marking.mark()
        self.newest = done.newest
        self.outcome.loads += done.loads
        self._progress.committed(0, len(done.loads))
        self.outcome.problems += done.problems
        if done.loads:
            old_manifests.fold(self._parts.store, done.newest, self._parts.settings.manifests_keep)
            _log.info(
                "hours_marked", topic=self._topic.name, marked=done.marked, reopened=done.reopened
            )

    def _attempt(self) -> _After:
        self.publish()
        attempt = LoadAttempt(self._parts, self._topic, self.newest)
        whole = attempt.plan()
        refused = [SkidwayError(each.refused) for each in whole if each.refused]
        self.outcome.problems = [*self._kept, *refused]
        if not any(_moves(each) for each in whole):
            if self._races and not self.outcome.problems:
                self.outcome.notes.append(_done_by_another(self._topic))
            return _After.END
        if self._races == RACES_MAX:
            raise LostRace(_never_won(self._topic))
        planned = plan.limit(whole, self._parts.settings.max_offsets_per_load)
        try:
            if self.convert(attempt.schema()):
                return _After.ON
            manifest, results = attempt.make(planned, self._shown(whole, planned))
        except LostRace as lost:
            _log.warning("race_lost", topic=self._topic.name, reason=str(lost))
            self.forget_conversion()  # the other loader may have added files of another schema
            self._races += 1
            self.begin()
            self._topic = _not_behind(self._topic, self.newest)
            return _After.ON
        note(self.outcome, manifest, results)
        if manifest is None:
            return _After.WAIT
        self.committed(manifest)
        for each in (part for result in results for part in result.results):
            self._progress.rejected(self._topic.name, each.reasons)
        # Each load that commits a manifest reads further offsets of some partition. So the caller's
        # loop ends at the high watermarks at the latest.
        return _After.ON if plan.has_more(whole, planned, manifest) else _After.WAIT

    def convert(self, schema: Registered) -> bool:
        """Rewrites the files that plain Spark could not read correctly together with rows of this
        schema (conversion.py). A second call for the same schema does nothing, unless
        `forget_conversion` was called in between. Returns whether this call committed a load. If
        files cannot be rewritten, they are reported as problems of this run, but the run still
        loads the rows of the new schema."""
        if self.newest is None or schema.id in self._tried:
            return False
        found = conversion(self._parts, self.newest, schema)
        manifest, kept = None, list[SkidwayError]()
        if found.rewrite is not None:
            parts = self._parts
            host = parts.settings.host
            attempt = RewriteAttempt(parts.store, parts.spark, parts.clock, host, self.newest)
            progress = self._progress.groups(self._topic.name, REWRITE)
            manifest, kept = attempt.make(found.rewrite, progress)
        self._tried.add(schema.id)
        self._kept = [*found.problems, *kept]
        self.outcome.problems += self._kept
        self.outcome.notes += found.notes
        if manifest is None:
            return False
        _log.info(
            "files_rewritten",
            topic=self._topic.name,
            load=manifest.number,
            removed=len(manifest.removed),
            files=len(manifest.files),
        )
        self.outcome.loads.append(manifest.number)
        self.committed(manifest)
        return True

    def _shown(self, whole: Sequence[Planned], planned: Sequence[Planned]) -> Progress:
        """Returns the function to which the next load reports its progress."""
        load = self.newest.number + 1 if self.newest else 1
        slices = plan.cut(planned, self._parts.settings.slice_records)
        return self._progress.load(self._topic.name, load, whole, slices)

    def forget_conversion(self) -> None:
        """Makes the next call of `convert` check all files again."""
        self._tried.clear()

    def committed(self, manifest: Manifest) -> None:
        """Makes a committed load the newest load of this run, publishes its counts, and commits its
        offsets to the consumer group. From time to time, replaces old manifests by a checkpoint (a
        file that lists all files of the output)."""
        self.newest = manifest
        self._progress.committed(manifest.rows())
        self.publish()
        _log.info(
            "load_committed",
            topic=self._topic.name,
            load=manifest.number,
            rows=manifest.rows(),
            rejects=manifest.rejects(),
        )
        self._offsets.tell(self._topic, manifest)
        old_manifests.fold(self._parts.store, manifest, self._parts.settings.manifests_keep)

    def publish(self) -> None:
        """Publishes those audit messages of the newest load that the audit topic does not have yet.

        Raises StateRefused if the audit topic has messages of this output that are newer than the
        messages in the newest manifest.
        """
        if self.newest is None:
            return
        if self._is_behind(self.newest):
            copy = self.newest
            self.begin()  # another loader may just have committed a newer manifest
            if self.newest is None or self._is_behind(self.newest):
                raise StateRefused(self._older_copy(copy))
        feed, newest = self._parts.feed, self.newest
        known = feed.number(newest.producer, newest.epoch)
        if known >= delta.last_number(newest):
            return
        missing = [each for each in delta.messages(newest) if each.number > known]
        notes = [delta.note(newest), delta.status(newest)] if missing else []
        parts = self._parts
        publish(parts.client, missing, parts.clock, notes, parts.signer)
        for message in missing:
            feed.take(message)

    def _is_behind(self, newest: Manifest) -> bool:
        return self._parts.feed.newest(newest.producer) > delta.last_key(newest)

    def _older_copy(self, newest: Manifest) -> str:
        epoch, number = self._parts.feed.newest(newest.producer)
        return (
            f"{newest.producer}: the audit topic has message {number} of epoch {epoch} of this "
            f"output, the newest manifest ends with message {delta.last_number(newest)} of epoch "
            f"{newest.epoch}: the output is an older copy; restore it, or load into another one"
        )

    def _awaited(self) -> bool:
        """If tasks stopped early because announcements were missing, waits a short time for these
        announcements. Returns whether any of these announcements came."""
        topic, waiting = self._topic, self.outcome.waiting
        notes = WaitingNotes(self._parts.store, topic.name)
        for key in {key for stop in waiting for key in stop.awaited}:
            notes.begin(key, self._parts.clock.time_ms())
        keys = {stop.waiting_for for stop in waiting if stop.waiting_for is not None}
        until = time.monotonic() + PATIENCE_S
        while keys and time.monotonic() < until:
            self._parts.read_on()
            announced = self._parts.feed.locations_of(topic.source)
            if keys & announced.keys():
                notes.clear(announced)
                return True
            self._pause(1.0)
        notes.clear(self._parts.feed.locations_of(topic.source))
        for stop in waiting:
            _log.warning("waiting_for_announcement", reason=stop.sentence)
        return False


def _not_behind(topic: SourceTopic, newest: Manifest | None) -> SourceTopic:
    """Returns a copy of `topic`. Another loader may have begun later, got higher watermarks, and
    committed the newest load. If this load ended above a partition's high watermark in `topic`, the
    copy has the end of the load in place of that watermark."""
    ends = {} if newest is None else {each.partition: each.end for each in newest.partitions}
    bounds = (
        replace(each, high_watermark=max(each.high_watermark, ends.get(each.partition, 0)))
        for each in topic.bounds
    )
    return replace(topic, bounds=tuple(bounds))


def _moves(planned: Planned) -> bool:
    return planned.first < planned.end or planned.gap is not None


def _done_by_another(topic: SourceTopic) -> str:
    return (
        f"{topic.name}: another loader was faster and has loaded what was left up to the "
        "watermarks of this run's start"
    )


def _never_won(topic: SourceTopic) -> str:
    return (
        f"{topic.name}: another loader was faster {RACES_MAX} times, and there is more to load; "
        "the next run goes on"
    )
