"""Makes one attempt at a load that rewrites files of one topic: runs a task for each group of
files, and commits the manifest."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from skidway.clock import Clock
from skidway.errors import SkidwayError
from skidway.loader.rewriting.group_rewrite import RewriteJob, Rewritten
from skidway.loader.rewriting.groups import Group
from skidway.loader.runs.attempt import Attempt
from skidway.loader.runs.replacing import Exchange, replacing
from skidway.loader.runs.working_time import WorkingTime
from skidway.loader.spark.runner import Progress, SparkRunner
from skidway.loader.spark.task import rewrite_group
from skidway.loader.state import layout
from skidway.loader.state.live_file import LiveFile
from skidway.loader.state.manifest import CarriedColumn, Manifest
from skidway.loader.store import Store
from skidway.schemas.client import Registered


@dataclass(frozen=True, slots=True)
class Rewrite:
    """Describes what a load rewrites, and for which hours it writes or deletes `_SUCCESS`. files:
    all files of rows of the topic, by path. reader: the schema whose columns the new files get;
    None if the new files have the columns of the old files. texts: if `reader` is not None, the
    schemas of the old files, by id. carried: the columns of these files whose fields `reader`
    lacks. success: for each complete hour that gets `_SUCCESS`, the content of this file.
    If some files of an hour cannot be rewritten, the load writes no `_SUCCESS` for the hour.
    reopened: hours that lose the file `_SUCCESS`. Hours are written as `2026-01-31T07`."""

    groups: Sequence[Group]
    files: Mapping[str, LiveFile]
    compression: str
    reader: Registered | None = None
    texts: Mapping[int, str] = field(default_factory=dict)
    carried: Collection[CarriedColumn] = ()
    success: Mapping[str, bytes] = field(default_factory=dict)
    reopened: Collection[str] = ()


class RewriteAttempt:
    """One attempt to rewrite files of one topic."""

    def __init__(
        self, store: Store, spark: SparkRunner, clock: Clock, host: str, newest: Manifest
    ) -> None:
        self._store, self._spark, self._clock, self._newest = store, spark, clock, newest
        self._attempt = Attempt(store, clock, host, newest.topic, newest)

    def make(
        self, rewrite: Rewrite, progress: Progress
    ) -> tuple[Manifest | None, list[SkidwayError]]:
        """Rewrites the files and commits the load. Returns the manifest, or None if nothing
        changes. Also returns an error for each group that could not be rewritten.

        Raises LostRace when another loader committed the same load number first, and the errors
        that tasks raise.
        """
        return self._attempt.make(lambda: self._make(rewrite, progress))

    def _make(
        self, rewrite: Rewrite, progress: Progress
    ) -> tuple[Manifest | None, list[SkidwayError]]:
        time_taken = WorkingTime(self._clock, self._spark)
        results = self._results(rewrite, progress)
        kept = [SkidwayError(each.kept) for each in results if each.made is None]
        if kept:  # if another loader has removed the files, `check` raises LostRace
            self._attempt.check()
        change = _exchange(self._newest, rewrite, results)
        if not (change.new or change.success or change.reopened):
            return None, kept
        now_ms, load = self._clock.time_ms(), self._attempt.load
        manifest = replacing(self._store, self._newest, load, now_ms, change)
        return replace(manifest, seconds=round(time_taken.seconds(), 3)), kept

    def _results(self, rewrite: Rewrite, progress: Progress) -> list[Rewritten]:
        reader = None if rewrite.reader is None else rewrite.reader.schema
        job = RewriteJob(self._attempt.load, rewrite.compression, reader, rewrite.texts)
        work = [
            partial(rewrite_group, self._store.connection, job, group, number)
            for number, group in enumerate(rewrite.groups)
        ]
        rows = sum(each.file.rows for group in rewrite.groups for each in group.files)
        results: list[Rewritten] = self._spark.run_work(work, progress, rows)
        return sorted(results, key=lambda each: each.group.files[0].file.path)


def _exchange(newest: Manifest, rewrite: Rewrite, results: Sequence[Rewritten]) -> Exchange:
    unfit = {layout.hour_of(x.group.files[0].file.path) for x in results if x.made is None}
    return Exchange(
        rows=rewrite.files,
        old=[y.file.path for x in results if x.made is not None for y in x.group.files],
        new=[each.made for each in results if each.made is not None],
        schema=rewrite.reader,
        carried=(*newest.carried, *rewrite.carried),
        success={hour: data for hour, data in rewrite.success.items() if hour not in unfit},
        reopened=rewrite.reopened,
    )
