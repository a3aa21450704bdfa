"""One attempt at a load that rewrites files of one topic: run the groups, commit.

The load takes no offsets and counts nothing. Its manifest repeats what the newest manifest says
about partitions, tables and the audit, adds the new files, and removes the old ones. It repeats the
audit messages too, because the newest load may have ended before they were published.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.metadata import version

from skidway.clock import Clock
from skidway.errors import SkidwayError
from skidway.loader.rewriting.group_rewrite import RewriteJob, Rewritten
from skidway.loader.rewriting.groups import Group
from skidway.loader.runs.attempt import Attempt
from skidway.loader.runs.columns_file import stage_columns
from skidway.loader.spark.runner import Progress, SparkRunner
from skidway.loader.spark.task import rewrite_group
from skidway.loader.state.live import LiveFile
from skidway.loader.state.manifest import Manifest, SchemaChoice
from skidway.loader.store import Store
from skidway.schemas.client import Registered


@dataclass(frozen=True, slots=True)
class Rewrite:
    """Which files become which. files: all files of rows of the topic, by path. reader: the schema
    whose columns the files get; None if they keep their columns. texts: the schemas of the old
    files, by id, if `reader` is given."""

    groups: Sequence[Group]
    files: Mapping[str, LiveFile]
    compression: str
    reader: Registered | None = None
    texts: Mapping[int, str] = field(default_factory=dict)


class TopicRewrite:
    """One attempt. Used once."""

    def __init__(self, store: Store, spark: SparkRunner, clock: Clock, newest: Manifest) -> None:
        self._store, self._spark, self._clock, self._newest = store, spark, clock, newest
        self._attempt = Attempt(store, clock, newest.topic, newest)

    def run(
        self, rewrite: Rewrite, progress: Progress
    ) -> tuple[Manifest | None, list[SkidwayError]]:
        """Rewrites and commits. Returns the manifest, which is None if every group stays as it is,
        and why groups stay.

        Raises LostRace when another loader committed the same load number first, and the errors
        that tasks raise.
        """
        return self._attempt.run(lambda: self._run(rewrite, progress))

    def _run(
        self, rewrite: Rewrite, progress: Progress
    ) -> tuple[Manifest | None, list[SkidwayError]]:
        results = self._results(rewrite, progress)
        kept = [SkidwayError(each.kept) for each in results if each.made is None]
        if kept:  # another loader may have removed the files meanwhile
            self._attempt.check()
        if len(kept) == len(results):
            return None, kept
        return self._manifest(rewrite, results), kept

    def _results(self, rewrite: Rewrite, progress: Progress) -> list[Rewritten]:
        reader = None if rewrite.reader is None else rewrite.reader.schema
        job = RewriteJob(self._attempt.load, rewrite.compression, reader, rewrite.texts)
        work = [
            partial(rewrite_group, self._store.url, job, group, number)
            for number, group in enumerate(rewrite.groups)
        ]
        results: list[Rewritten] = self._spark.run_work(work, progress)
        return sorted(results, key=lambda each: each.group.files[0].file.path)

    def _manifest(self, rewrite: Rewrite, results: Sequence[Rewritten]) -> Manifest:
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
        )


def _followed(
    newest: Manifest, rewrite: Rewrite, done: Sequence[Rewritten], schema: SchemaChoice | None
) -> tuple[SchemaChoice, ...]:
    """The schemas that files follow after the load."""
    if rewrite.reader is None or schema is None:
        return newest.schemas
    removed = {file.file.path for each in done for file in each.group.files}
    left = {each.schema_id for path, each in rewrite.files.items() if path not in removed}
    return (*(each for each in newest.schemas if each.id in left and each.id != schema.id), schema)
