"""Does `load reload`, which reads the records of some hours of one topic again, and replaces the
files of these hours.

One load reloads whole hours. Together these hours have at most `max.offsets.per.load` records,
unless a single hour has more. If another loader commits a load meanwhile, the reload discards its
attempt, and tries again. If an hour cannot be reloaded, its files stay as they are, and the other
hours are still reloaded.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from skidway import log
from skidway.clock import Clock
from skidway.errors import SkidwayError
from skidway.kafka.client import Client
from skidway.loader.planning import topics
from skidway.loader.planning.topic import SourceTopic
from skidway.loader.reloading.hours import COUNTED, ReloadRefused, contents, first_group
from skidway.loader.runs.attempt import LostRace
from skidway.loader.runs.group_offsets import GroupOffsets
from skidway.loader.runs.newest_schema import newest_schema
from skidway.loader.runs.outcome import gravest
from skidway.loader.runs.parts import Parts
from skidway.loader.runs.progress_display import LoggedProgress
from skidway.loader.runs.run import parts_of
from skidway.loader.runs.run_progress import RELOAD, RunProgress, Shown
from skidway.loader.runs.session import RunSession, look
from skidway.loader.runs.topic_reload import TopicReload
from skidway.loader.runs.topic_run import RACES_MAX, TopicRun
from skidway.loader.settings import LoaderSettings
from skidway.loader.spark.runner import Interrupted, SparkRunner
from skidway.loader.state import commit, layout, operations
from skidway.loader.state.live import live
from skidway.loader.state.live_file import LiveFile
from skidway.loader.state.manifest import ROWS, DataFile, Manifest
from skidway.loader.state.run_notes import OwnNote
from skidway.loader.store import open_store

_log = log.get(__name__)


@dataclass(frozen=True, slots=True)
class Wish:
    """Describes what the operator wants to reload. first, end: the hours [first, end), like
    `2026-01-31T07`. may_reject: whether to reload an hour even if some of its rows become rejects.
    dry: whether to only plan the reload, without reading records or changing anything."""

    topic: str
    first: str
    end: str
    may_reject: bool = False
    dry: bool = False

    def covers(self, path: str) -> bool:
        """Returns whether a file belongs to one of the hours that are to be reloaded."""
        return self.first <= layout.hour_of(path) < self.end


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
        self.hours |= {layout.hour_of(path) for path in old}
        self.files_before += len(old)
        found = contents(each.file for each in old.values()).values()
        self.records += sum(each.all.records for each in found)
        self.rejects_before += sum(each.rejects.records for each in found)

    def by(self, files: list[DataFile]) -> None:
        """Adds the new files, which replace the old files, to the result."""
        self.files_after += len(files)
        self.rejects_after += sum(each.rejects.records for each in contents(files).values())

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
        self._run = TopicRun(parts, self._topic, offsets, progress, time.sleep)
        self._parts, self._wish, self._progress = parts, wish, progress
        self._done = set[str]()
        self._alone = set[str]()  # hours that must each be reloaded in a load of their own
        self.result = Reloaded(wish.topic)

    def run(self) -> Reloaded:
        """Reloads the hours. An error of the topic is not raised, but is added to the result. Only
        Interrupted is raised."""
        try:
            newest = self._begin()
            self._parts.feed.positions.update(newest.audit_positions)
            self._parts.read_on()
            races = 0
            while self._next():
                if races == RACES_MAX:
                    raise LostRace(
                        f"{self._topic.name}: other loaders were faster {RACES_MAX} times; try "
                        "again later, or stop them meanwhile"
                    )
                races += self._attempt()
            self._converted_again()
        except Interrupted:
            raise
        except SkidwayError as error:
            self.result.problems.append(error)
        if not self.result.hours and not self.result.problems:
            self.result.notes.append(f"{self._topic.name} has no files in these hours")
        self.result.problems += self._run.outcome.problems
        self.result.notes += self._run.outcome.notes
        return self.result

    def _begin(self) -> Manifest:
        """Moves into place the committed files that earlier loads have not moved yet, and returns
        the newest manifest. It is no error if a file of an hour that this reload replaces is
        gone."""
        steps = commit.begin(self._topic.name, self._wish.covers)
        self._run.newest = operations.run(steps, self._parts.store)
        # The reload asks for the watermarks after it has read the manifest. So the watermarks are
        # not below the ends of committed loads.
        self._topic = self._look()
        return self._newest()

    def _newest(self) -> Manifest:
        if self._run.newest is None:
            raise SkidwayError(f"the output has no rows of the topic {self._topic.name}")
        return self._run.newest

    def _next(self) -> bool:
        """Chooses the files of the next load. Returns False if no files are left."""
        found = operations.run(live(self._newest(), COUNTED), self._parts.store)
        left = {
            path: each
            for path, each in found.items()
            if self._wish.covers(path) and layout.hour_of(path) not in self._done
        }
        alone = {path: each for path, each in left.items() if layout.hour_of(path) in self._alone}
        records_max = 1 if alone else self._parts.settings.max_offsets_per_load
        self._group = first_group(alone or left, records_max)
        self._others = {
            each.schema_id
            for path, each in found.items()
            if each.file.kind == ROWS and path not in self._group
        }
        return bool(self._group)

    def _attempt(self) -> int:
        """Reloads the chosen hours. Returns how many races this attempt has lost: 1 if another
        loader committed a load first, otherwise 0."""
        hours = {layout.hour_of(path) for path in self._group}
        try:
            if self._wish.dry:
                self._plan()
            elif not self._reloaded():
                return 0  # the newest manifest has changed, so the files must be chosen again
        except LostRace as lost:
            _log.warning("race_lost", topic=self._topic.name, reason=str(lost))
            self._run.forget_conversion()  # the other loader may have added files of another schema
            self._begin()
            return 1
        except ReloadRefused as refused:
            if len(refused.sentences) == 1 and len(refused.hours) > 1:
                self._alone |= refused.hours  # each of these hours then gets a load of its own
                return 0
            self.result.problems += map(SkidwayError, refused.sentences)
            hours = {*refused.hours}
        self._done |= hours
        return 0

    def _plan(self) -> None:
        """Adds to the result what the reload would read and replace if it were not a dry run."""
        _, ranges = self._load().plan()
        self.result.replaced(self._group)
        self.result.offsets += sum(each.end - each.first for each in ranges)

    def _reloaded(self) -> bool:
        """Reloads the chosen hours and commits the load. But if files must first be rewritten with
        the columns of a newer schema, rewrites these files instead, and returns False."""
        self._run.publish()
        schema = newest_schema(self._parts.registry, self._topic)
        if self._run.convert(schema):
            return False
        progress = self._progress.groups(self._topic.name, RELOAD)
        manifest, notes = self._load().run(schema, progress, may_reject=self._wish.may_reject)
        self._run.committed(manifest)
        self.result.loads.append(manifest.number)
        self.result.replaced(self._group)
        self.result.by([each for each in manifest.files if each.kind in COUNTED])
        self.result.notes += notes
        return True

    def _load(self) -> TopicReload:
        newest = self._newest()
        return TopicReload(self._parts, self._topic, newest, self._group, self._others)

    def _converted_again(self) -> None:
        """If some files could not be rewritten with the columns of a newer schema, checks again
        which files must be rewritten. The reload may have replaced the files that could not be
        rewritten."""
        if self._run.outcome.problems:
            self._run.outcome.problems = []
            self._run.forget_conversion()
            self._run.convert(newest_schema(self._parts.registry, self._topic))


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
    store = open_store(settings.output, settings.modes)
    with (
        SparkRunner(settings, interrupted) as spark,
        Client(settings.bootstrap_servers, client_id="skidway-loader") as client,
        OwnNote(store, clock, settings.host) as note,
    ):
        progress = RunProgress(clock, shown or LoggedProgress(clock), note)
        parts = parts_of(look(settings, client), client, store, spark, clock)
        return Reload(parts, lambda: _topic(look(settings, client), wish), wish, progress).run()


def _topic(session: RunSession, wish: Wish) -> SourceTopic:
    for trouble in session.troubles.values():
        raise trouble
    found: Final = [each for each in session.topics if each.name == wish.topic]
    if not found:
        raise SkidwayError(f"the topic {wish.topic} does not exist")
    return found[0]
