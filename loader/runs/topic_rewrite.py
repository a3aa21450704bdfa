"""Makes one attempt at a load that rewrites files of one topic: runs a task for each group of
files, and commits the manifest.

The load reads no offsets and counts nothing. Its manifest repeats the newest manifest's entries for
partitions, tables and the audit, adds the new files, and removes the old files. The entry for the
audit has the audit messages of the newest load. The newest load may have been killed before it
published these messages, so the entry is repeated.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.metadata import version

from skidway.clock import Clock
from skidway.errors import SkidwayError
from skidway.loader.rewriting.group_rewrite import RewriteJob, Rewritten
from skidway.loader.rewriting.groups import Group
from skidway.loader.runs.attempt import Attempt
from skidway.loader.runs.columns_file import stage_columns
from skidway.loader.runs.working_time import WorkingTime
from skidway.loader.spark.runner import Progress, SparkRunner
from skidway.loader.spark.task import rewrite_group
from skidway.loader.state import layout, operations, success_files
from skidway.loader.state.live_file import LiveFile
from skidway.loader.state.manifest import Manifest, SchemaChoice
from skidway.loader.store import Store
from skidway.schemas.client import Registered


@dataclass(frozen=True, slots=True)
class Rewrite:
    """Describes what a load rewrites, and for which hours it writes or deletes `_SUCCESS`. files:
    all files of rows of the topic, by path. reader: the schema whose columns the new files get;
    None if the new files have the columns of the old files. texts: if `reader` is not None, the
    schemas of the old files, by id. success: for each complete hour that gets `_SUCCESS`, the
    content of this file. If some files of an hour cannot be rewritten, the load writes no
    `_SUCCESS` for the hour. reopened: hours that lose the file `_SUCCESS`. Hours are written as
    `2026-01-31T07`."""

    groups: Sequence[Group]
    files: Mapping[str, LiveFile]
    compression: str
    reader: Registered | None = None
    texts: Mapping[int, str] = field(default_factory=dict)
    success: Mapping[str, bytes] = field(default_factory=dict)
    reopened: Collection[str] = ()


class TopicRewrite:
    """One attempt to rewrite files of one topic."""

    def __init__(
        self, store: Store, spark: SparkRunner, clock: Clock, host: str, newest: Manifest
    ) -> None:
        self._store, self._spark, self._clock, self._newest = store, spark, clock, newest
        self._attempt = Attempt(store, clock, host, newest.topic, newest)

    def run(
        self, rewrite: Rewrite, progress: Progress
    ) -> tuple[Manifest | None, list[SkidwayError]]:
        """Rewrites the files and commits the load. Returns the manifest, or None if nothing
        changes. Also returns an error for each group that could not be rewritten.

        Raises LostRace when another loader committed the same load number first, and the errors
        that tasks raise.
        """
        return self._attempt.run(lambda: self._run(rewrite, progress))

    def _run(
        self, rewrite: Rewrite, progress: Progress
    ) -> tuple[Manifest | None, list[SkidwayError]]:
        time_taken = WorkingTime(self._clock, self._spark)
        results = self._results(rewrite, progress)
        kept = [SkidwayError(each.kept) for each in results if each.made is None]
        if kept:  # if another loader has removed the files, `check` raises LostRace
            self._attempt.check()
        success = self._success(rewrite, results)
        if len(kept) == len(results) and not success and not rewrite.reopened:
            return None, kept
        manifest = self._manifest(rewrite, results, success)
        return replace(manifest, seconds=round(time_taken.seconds(), 3)), kept

    def _results(self, rewrite: Rewrite, progress: Progress) -> list[Rewritten]:
        reader = None if rewrite.reader is None else rewrite.reader.schema
        job = RewriteJob(self._attempt.load, rewrite.compression, reader, rewrite.texts)
        work = [
            partial(rewrite_group, self._store.url, self._store.modes, job, group, number)
            for number, group in enumerate(rewrite.groups)
        ]
        rows = sum(each.file.rows for group in rewrite.groups for each in group.files)
        results: list[Rewritten] = self._spark.run_work(work, progress, rows)
        return sorted(results, key=lambda each: each.group.files[0].file.path)

    def _success(self, rewrite: Rewrite, results: Sequence[Rewritten]) -> dict[str, bytes]:
        """Returns the content of each `_SUCCESS` that the load writes, with the hour as key. The
        load writes this file for the hours in `rewrite.success`. If the load rewrites files of an
        hour that already has a `_SUCCESS`, it writes the hour's `_SUCCESS` again."""
        same = {_hour(each) for each in results if each.made is not None} - {*rewrite.reopened}
        kept = operations.run(success_files.marked(self._newest.topic, same), self._store)
        unfit = {_hour(each) for each in results if each.made is None}
        new = {hour: data for hour, data in rewrite.success.items() if hour not in unfit}
        return kept | new

    def _manifest(
        self, rewrite: Rewrite, results: Sequence[Rewritten], success: Mapping[str, bytes]
    ) -> Manifest:
        newest, load, columns = self._newest, self._attempt.load, None
        schema = newest.schema
        if (reader := rewrite.reader) is not None:
            schema = SchemaChoice(reader.subject, reader.version, reader.id)
            columns = stage_columns(self._store, load, reader.schema)
        done = [each for each in results if each.made is not None]
        removed = tuple(x.file.path for each in done for x in each.group.files)
        return replace(
            newest,
            number=load.number,
            uuid=load.uuid,
            created=self._clock.time_ms(),
            program=version("skidway"),
            partitions=tuple(replace(x, first=x.end, gaps=()) for x in newest.partitions),
            files=tuple(each.made for each in done if each.made is not None),
            removed=removed,
            schema=schema,
            schemas=_followed(newest, rewrite, done, schema),
            schema_ids={},
            columns=columns,
            success=success_files.stage(self._store, load, success),
            reopened=tuple(layout.success(load.topic, hour) for hour in rewrite.reopened),
            unmarked=success_files.unmarked(
                newest.unmarked, rewrite.reopened, self._clock.time_ms(), success
            ),
        )


def _hour(result: Rewritten) -> str:
    return layout.hour_of(result.group.files[0].file.path)


def _followed(
    newest: Manifest, rewrite: Rewrite, done: Sequence[Rewritten], schema: SchemaChoice | None
) -> tuple[SchemaChoice, ...]:
    """Returns the manifest's field `schemas`: the schemas of all files of rows after the load.
    schema: the schema of the rewritten files, if `rewrite.reader` is set."""
    if rewrite.reader is None or schema is None:
        return newest.schemas
    removed = {file.file.path for each in done for file in each.group.files}
    left = {each.schema_id for path, each in rewrite.files.items() if path not in removed}
    return (*(each for each in newest.schemas if each.id in left and each.id != schema.id), schema)
