"""Does `load compact`, which puts the small files of each hour together. Needs the output, but no
broker.

One load compacts at most `max.offsets.per.load` rows, unless a single group of files has more. If
another loader commits a load meanwhile, the compaction discards its attempt, and tries again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from skidway import log
from skidway.clock import Clock
from skidway.errors import SkidwayError
from skidway.loader.planning import topics
from skidway.loader.rewriting.groups import Group, to_compact
from skidway.loader.runs import old_manifests
from skidway.loader.runs.attempt import LostRace
from skidway.loader.runs.outcome import gravest
from skidway.loader.runs.progress_display import LoggedProgress
from skidway.loader.runs.rewrite_attempt import Rewrite, RewriteAttempt
from skidway.loader.runs.run_progress import COMPACT, RunProgress, Shown
from skidway.loader.settings import LoaderSettings
from skidway.loader.spark.runner import Interrupted, SparkRunner
from skidway.loader.state import commit, layout, operations
from skidway.loader.state.live import live
from skidway.loader.state.live_file import LiveFile
from skidway.loader.state.manifest import Manifest
from skidway.loader.state.run_notes import OwnNote
from skidway.loader.store import Store

RACES_MAX: Final = 5
"""At most this many attempts at one topic may fail because another loader committed first. Then the
run does not compact the rest of the topic's files.
"""

_log = log.get(__name__)


@dataclass(slots=True)
class Compacted:
    """Says what the compaction of one topic has done. hours: the hours whose files were put
    together."""

    topic: str
    loads: list[int] = field(default_factory=list)
    hours: set[str] = field(default_factory=set)
    files_before: int = 0
    files_after: int = 0
    rows: int = 0
    problems: list[SkidwayError] = field(default_factory=list)

    def add(self, manifest: Manifest) -> None:
        """Adds the files and hours of one load of the compaction to the result."""
        self.loads.append(manifest.number)
        self.hours |= {layout.hour_of(file.path) for file in manifest.files}
        self.files_before += len(manifest.removed)
        self.files_after += len(manifest.files)
        self.rows += sum(file.rows for file in manifest.files)

    def document(self) -> dict[str, Any]:
        """Returns this topic's result as the fields that `--json` prints."""
        return {
            "topic": self.topic,
            "loads": self.loads,
            "hours": len(self.hours),
            "files_before": self.files_before,
            "files_after": self.files_after,
            "rows": self.rows,
            "problems": [str(each) for each in self.problems],
        }


class Compaction:
    """Compacts the files of these hours of topics of one output."""

    def __init__(
        self,
        settings: LoaderSettings,
        store: Store,
        spark: SparkRunner,
        clock: Clock,
        hours: layout.Hours,
    ) -> None:
        self._settings, self._store, self._spark = settings, store, spark
        self._clock, self._hours = clock, hours

    def compact(self, topic: str, progress: RunProgress) -> Compacted:
        """Compacts one topic. An error does not end the run, but is added to the topic's result.
        Only Interrupted is raised."""
        result, races, tried = Compacted(topic), 0, set[str]()
        try:
            while races < RACES_MAX:
                newest = operations.run(commit.begin(topic), self._store)
                rewrite = None if newest is None else self._next(newest, tried)
                if newest is None or rewrite is None:
                    return result
                host = self._settings.host
                attempt = RewriteAttempt(self._store, self._spark, self._clock, host, newest)
                try:
                    manifest, kept = attempt.make(rewrite, progress.groups(topic, COMPACT))
                except LostRace as lost:
                    _log.warning("race_lost", topic=topic, reason=str(lost))
                    races += 1
                    continue
                result.problems += kept
                tried |= {file.file.path for group in rewrite.groups for file in group.files}
                if manifest is not None:
                    result.add(manifest)
                    progress.committed(manifest.rows())
                    old_manifests.fold(self._store, manifest, self._settings.manifests_keep)
                    tried |= {file.path for file in manifest.files}
            raise LostRace(f"{topic}: other loaders were faster {RACES_MAX} times; try again later")
        except Interrupted:
            raise
        except SkidwayError as error:
            result.problems.append(error)
            return result

    def _next(self, newest: Manifest, tried: set[str]) -> Rewrite | None:
        """Returns the files that the next load puts together, or None if no files are left. tried:
        files that an earlier load of this run has tried to put together, or has written."""
        found = operations.run(live(newest), self._store)
        files = [
            each for path, each in found.items() if self._hours.covers(path) and path not in tried
        ]
        groups = to_compact(files, self._settings.compact_target_bytes)
        if not groups:
            return None
        chosen = list(_limited(groups, self._settings.max_offsets_per_load))
        return Rewrite(chosen, found, self._settings.compression)


def compact(
    settings: LoaderSettings,
    clock: Clock,
    hours: layout.Hours,
    *,
    interrupted: Callable[[], bool],
    shown: Shown | None = None,
) -> list[Compacted]:
    """Compacts every topic of the output that the settings choose. shown: a function that shows the
    run's progress; None if the progress goes to the log."""
    store = settings.output.store()
    chosen, missing = topics.choose(settings.topics, store.names(layout.STATE))
    with (
        SparkRunner(settings, interrupted) as spark,
        OwnNote(store, clock, settings.host) as note,
    ):
        progress = RunProgress(clock, shown or LoggedProgress(clock), note)
        compaction = Compaction(settings, store, spark, clock, hours)
        done = [compaction.compact(topic, progress) for topic in chosen]
    return done + [_not_there(topic) for topic in missing]


def exit_code(results: Iterable[Compacted]) -> int:
    """Returns 0 if no topic has a problem. Otherwise returns the exit status of the gravest
    problem."""
    return gravest(problem.exit_code for each in results for problem in each.problems)


def _not_there(topic: str) -> Compacted:
    problem = SkidwayError(f"the output has no rows of the topic {topic}")
    return Compacted(topic, problems=[problem])


def _limited(groups: Iterable[Group], rows_max: int) -> Iterator[Group]:
    """Yields the first of `groups` that together have at most `rows_max` rows, but at least one
    group."""
    rows = 0
    for group in groups:
        if rows and rows + _rows(group.files) > rows_max:
            return
        rows += _rows(group.files)
        yield group


def _rows(files: Iterable[LiveFile]) -> int:
    return sum(each.file.rows for each in files)
