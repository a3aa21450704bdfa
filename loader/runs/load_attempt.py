"""Makes one attempt at one load of a topic: plans the ranges, runs the slices, joins their results,
and commits the manifest.

This part of a load runs in the loader's own process, which is Spark's driver if the load needs
Spark. Each load of a topic has a number, and each attempt at a load has a `LoadAttempt` of its own.
If another loader commits the attempt's load number first, the attempt is discarded, and the next
attempt begins after the other loader's manifest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from skidway.audit.counts.marks import FileKey
from skidway.loader.planning import plan
from skidway.loader.planning.batch_below import compared
from skidway.loader.planning.plan import Planned
from skidway.loader.planning.topic import SourceTopic
from skidway.loader.planning.topic_plan import TopicPlan
from skidway.loader.runs.attempt import Attempt
from skidway.loader.runs.manifest_draft import ManifestDraft, ranges_of
from skidway.loader.runs.newest_schema import newest_schema
from skidway.loader.runs.parts import Parts
from skidway.loader.runs.working_time import WorkingTime
from skidway.loader.slices.job import Job
from skidway.loader.slices.join import PartitionResult, run_all
from skidway.loader.spark.runner import Progress
from skidway.loader.state.layout import LoadId
from skidway.loader.state.manifest import Manifest
from skidway.loader.state.tables import Location, read_tables
from skidway.loader.state.waiting import WaitingNotes
from skidway.schemas.client import Registered


class LoadAttempt:
    """One attempt at one load of one topic."""

    def __init__(self, parts: Parts, topic: SourceTopic, newest: Manifest | None) -> None:
        self._parts, self._topic, self._newest = parts, topic, newest
        host = parts.settings.host
        self._attempt = Attempt(parts.store, parts.clock, host, topic.name, newest)
        self._load = self._attempt.load
        self._plan = TopicPlan(topic, newest, parts.settings.gaps_accepted)
        self._schema: Registered | None = None

    def plan(self) -> list[Planned]:
        """Compares the last loaded batch of each partition with the broker's batch at the same
        offset. Returns for every partition the range of offsets to load. Raises StateRefused and
        ConfigurationRefused (see `TopicPlan.check`)."""
        self._plan.check(self._parts.settings.bucket_ms)
        topic, client = self._topic, self._parts.client
        found = [(bounds, self._plan.partition(bounds)) for bounds in topic.bounds]
        ranges = [compared(client, topic.name, bounds, each) for bounds, each in found]
        return [*ranges, *self._plan.missing()]

    def schema(self) -> Registered:
        """Returns the newest schema of the topic's subject. The columns of this load's rows follow
        this schema. Raises SkidwayError if the subject has no schema, or if the schema cannot
        become columns."""
        if self._schema is None:
            self._schema = newest_schema(self._parts.registry, self._topic)
        return self._schema

    def make(
        self, planned: Sequence[Planned], progress: Progress
    ) -> tuple[Manifest | None, list[PartitionResult]]:
        """Runs the slices of the planned ranges and commits the load. Returns the manifest, and the
        result of each partition. If there was nothing to commit, returns None in place of the
        manifest.

        Raises LostRace when another loader committed the same load number first, and the errors
        that tasks raise.
        """
        return self._attempt.make(lambda: self._make(planned, progress))

    def _make(
        self, planned: Sequence[Planned], progress: Progress
    ) -> tuple[Manifest | None, list[PartitionResult]]:
        """Runs the slices and makes the manifest. Returns the manifest, and the result of each
        partition. If the load reads no offset of any partition, returns None in place of the
        manifest."""
        schema = self.schema()
        time_taken = WorkingTime(self._parts.clock, self._parts.spark)
        tables = read_tables(self._parts.store, self._newest)
        locations = {
            **self._parts.feed.locations_of(self._topic.source), **tables.locations,
        }  # fmt: skip
        job = job_of(self._parts, self._topic, self._load, schema, locations)
        job = replace(job, gaps=self._plan.gaps)
        pieces = plan.cut(planned, self._parts.settings.slice_records)
        results = run_all(
            pieces, tables.marks, lambda work: self._parts.spark.run(job, work, progress)
        )
        ranges = ranges_of(planned, results, self._plan.gaps)
        if all(each.first == each.end for each in ranges):
            return None, results
        draft = ManifestDraft(self._parts, self._topic, self._newest, self._load)
        manifest = draft.finished(ranges, results, tables, schema)
        return replace(manifest, seconds=round(time_taken.seconds(), 3)), results


def job_of(
    parts: Parts,
    topic: SourceTopic,
    load: LoadId,
    schema: Registered,
    locations: Mapping[FileKey, Location],
) -> Job:
    """Returns what the tasks of a load have in common. The field `gaps` is empty; the caller must
    set it, because loads and reloads find their gaps in different ways."""
    settings = parts.settings
    notes = WaitingNotes(parts.store, topic.name)
    return Job(
        topic=topic.name,
        source=topic.source,
        load=load.number,
        uuid=load.uuid,
        store=parts.store.connection,
        kafka=settings.kafka,
        registry=settings.registry,
        reader=schema.schema,
        bucket_ms=settings.bucket_ms,
        compression=settings.compression,
        locations=locations,
        unannounced=notes.over(parts.clock.time_ms(), settings.announce_wait_ms),
        patient=settings.announce_wait_ms > 0,
        gaps={},
    )
