"""Does `load reload`, which reads the records of some hours of one topic again, and replaces the
files of these hours, all in one load. If that cannot be done, nothing changes.

If another loader commits a load meanwhile, the reload discards its attempt, and tries again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from skidway import log
from skidway.clock import Clock
from skidway.errors import SkidwayError
from skidway.loader.planning import topics
from skidway.loader.planning.topic import SourceTopic
from skidway.loader.rewriting.proof import content
from skidway.loader.runs.attempt import LostRace
from skidway.loader.runs.group_offsets import GroupOffsets
from skidway.loader.runs.newest_schema import newest_schema
from skidway.loader.runs.outcome import gravest
from skidway.loader.runs.parts import Parts
from skidway.loader.runs.progress_display import LoggedProgress
from skidway.loader.runs.reload_attempt import ReloadAttempt
from skidway.loader.runs.run import parts_of
from skidway.loader.runs.run_progress import RELOAD, RunProgress, Shown
from skidway.loader.runs.run_topics import RunTopics, look
from skidway.loader.runs.topic_loads import RACES_MAX, TopicLoads
from skidway.loader.settings import LoaderSettings
from skidway.loader.spark.runner import Interrupted, SparkRunner
from skidway.loader.state import commit, layout, operations
from skidway.loader.state.live import KINDS, live
from skidway.loader.state.live_file import LiveFile
from skidway.loader.state.manifest import REJECTS, DataFile, Manifest
from skidway.loader.state.run_notes import OwnNote

_log = log.get(__name__)


@dataclass(frozen=True, slots=True)
class Wish:
    """Describes what the operator wants to reload. may_reject: whether to reload even if some rows
    become rejects. may_drop: whether to reload even if the newest schema lacks fields whose values
    the replaced files have. dry: whether to only plan the reload, without reading records or
    changing anything."""

    topic: str
    hours: layout.Hours
    may_reject: bool = False
    may_drop: bool = False
    dry: bool = False


@dataclass(slots=True)
class Reloaded:
    """The result of a reload. offsets: how many offsets the reload would read; only a dry run
    counts them."""

    topic: str
    loads: list[int] = field(default_factory=list)
    hours: set[str] = field(default_factory=set)
    files_before: int = 0
    files_after: int = 0
    records: int = 0
    rejects_before: int = 0
    rejects_after: int = 0
    offsets: int = 0
    problems: list[SkidwayError] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def exit_code(self) -> int:
        """Returns 0 if there is no problem. Otherwise returns the exit status of the gravest
        problem."""
        return gravest(each.exit_code for each in self.problems)

    def replaced(self, old: Mapping[str, LiveFile]) -> None:
        """Adds the files `old`, which this reload replaces, to the result."""
        files = [each.file for each in old.values()]
        self.hours = {layout.hour_of(path) for path in old}
        self.files_before, self.records = len(old), content(files).records
        self.rejects_before = content(files, REJECTS).records

    def by(self, new: Sequence[DataFile]) -> None:
        """Adds the new files, which replace the old files, to the result."""
        self.files_after = sum(each.kind in KINDS for each in new)
        self.rejects_after = content(new, REJECTS).records

    def document(self) -> dict[str, Any]:
        """Returns the document for `--json`."""
        return {
            "ok": self.exit_code == 0,
            "topic": self.topic,
            "loads": self.loads,
            "hours": sorted(self.hours),
            "files_before": self.files_before,
            "files_after": self.files_after,
            "records": self.records,
            "rejects_before": self.rejects_before,
            "rejects_after": self.rejects_after,
            "offsets": self.offsets,
            "problems": [str(each) for each in self.problems],
            "notes": self.notes,
        }


class Reload:
    """Reloads some hours of one topic. look: a function that asks the brokers for the topic's
    state.
    """

    def __init__(
        self,
        parts: Parts,
        look: Callable[[], SourceTopic],
        wish: Wish,
        progress: RunProgress,
    ) -> None:
        self._topic, self._look = look(), look
        offsets = GroupOffsets(parts.client, parts.settings.group_id)
        self._loads = TopicLoads(parts, self._topic, offsets, progress, time.sleep)
        self._parts, self._wish, self._progress = parts, wish, progress
        self.result = Reloaded(wish.topic)

    def reload(self) -> Reloaded:
        """Reloads the hours. An error of the topic is not raised, but is added to the result. Only
        Interrupted is raised."""
        try:
            self._begin()
            self._parts.feed.positions.update(self._newest().audit_positions)
            self._parts.read_on()
            self._reload_or_lose()
            self._converted_again()
        except Interrupted:
            raise
        except SkidwayError as error:
            self.result.problems.append(error)
        self.result.problems += self._loads.outcome.problems
        self.result.notes += self._loads.outcome.notes
        return self.result

    def _begin(self) -> None:
        """Moves into place the committed files that earlier loads have not moved yet, and reads the
        newest manifest. It is no error if a file of an hour that this reload replaces is gone."""
        steps = commit.begin(self._topic.name, self._wish.hours)
        self._loads.newest = operations.run(steps, self._parts.store)
        # The reload asks for the watermarks after it has read the manifest. So the watermarks are
        # not below the ends of committed loads.
        self._topic = self._look()

    def _newest(self) -> Manifest:
        if self._loads.newest is None:
            raise SkidwayError(f"the output has no rows of the topic {self._topic.name}")
        return self._loads.newest

    def _reload_or_lose(self) -> None:
        """Reloads the hours. Raises LostRace if other loaders always commit a load first."""
        for _ in range(RACES_MAX):
            try:
                return self._reload()
            except LostRace as lost:
                _log.warning("race_lost", topic=self._topic.name, reason=str(lost))
                # the other loader may have added files of another schema
                self._loads.forget_conversion()
                self._begin()
        raise LostRace(
            f"{self._topic.name}: other loaders were faster {RACES_MAX} times; try again later, or "
            "stop them meanwhile"
        )

    def _reload(self) -> None:
        """Reloads the hours and commits the load. Before that, rewrites files that plain Spark
        could not read together with rows of the newest schema."""
        parts, name = self._parts, self._topic.name
        if not self._wish.dry:
            self._loads.publish()
            schema = newest_schema(parts.registry, self._topic)
            self._loads.convert(schema)
        files = operations.run(live(self._newest(), KINDS), parts.store)
        chosen = {path: each for path, each in files.items() if self._wish.hours.covers(path)}
        if not chosen:
            self.result.notes.append(f"{name} has no files in these hours")
            return
        attempt = ReloadAttempt(parts, self._topic, self._newest(), files, chosen)
        if self._wish.dry:
            _, ranges = attempt.plan()
            self.result.offsets = sum(each.end - each.first for each in ranges)
        else:
            progress = self._progress.groups(name, RELOAD)
            may_reject, may_drop = self._wish.may_reject, self._wish.may_drop
            manifest, notes = attempt.make(
                schema, progress, may_reject=may_reject, may_drop=may_drop
            )
            self._loads.committed(manifest)
            self.result.loads.append(manifest.number)
            self.result.by(manifest.files)
            self.result.notes += notes
        self.result.replaced(chosen)

    def _converted_again(self) -> None:
        """If some files could not be rewritten with the columns of a newer schema, checks again
        which files must be rewritten. The reload may have replaced the files that could not be
        rewritten."""
        if self._loads.outcome.problems:
            self._loads.outcome.problems = []
            self._loads.forget_conversion()
            self._loads.convert(newest_schema(self._parts.registry, self._topic))


def reload(
    settings: LoaderSettings,
    wish: Wish,
    clock: Clock,
    *,
    interrupted: Callable[[], bool] = lambda: False,
    shown: Shown | None = None,
) -> Reloaded:
    """Reloads hours of one topic of the output. shown: a function that shows the run's progress;
    None if the progress goes to the log. Raises the errors that stop the whole run, for example if
    no broker answers, if the topic does not exist, or if the output is refused."""
    settings = replace(settings, topics=[wish.topic])
    topics.check(settings.topics)
    store = settings.output.store()
    with (
        SparkRunner(settings, interrupted) as spark,
        settings.kafka.client() as client,
        OwnNote(store, clock, settings.host) as note,
    ):
        progress = RunProgress(clock, shown or LoggedProgress(clock), note)
        parts = parts_of(look(settings, client), client, store, spark, clock)
        return Reload(parts, lambda: _topic(look(settings, client), wish), wish, progress).reload()


def _topic(found: RunTopics, wish: Wish) -> SourceTopic:
    for trouble in found.troubles.values():
        raise trouble
    chosen = [each for each in found.topics if each.name == wish.topic]
    if not chosen:
        raise topics.unknown(wish.topic)
    return chosen[0]
