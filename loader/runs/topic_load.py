"""Loads one topic, from its newest manifest to the high watermarks: plan, run, join, commit.

This is the part of a load that runs in Spark's driver. Each load of a topic has a number, and each
attempt at a load has a `TopicLoad` of its own. If another loader commits the attempt's load number
first, the attempt is thrown away, and the next attempt begins after the other loader's manifest.
"""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Sequence
from datetime import UTC, datetime
from uuid import uuid4

from skidway.errors import SkidwayError
from skidway.loader.planning import plan
from skidway.loader.planning.batch_below import compared
from skidway.loader.planning.plan import Planned
from skidway.loader.planning.topic import SourceTopic
from skidway.loader.planning.topic_plan import TopicPlan
from skidway.loader.reading.columns import RESERVED
from skidway.loader.reading.decoder import check_reader
from skidway.loader.runs.manifest_draft import ManifestDraft, ranges_of
from skidway.loader.runs.parts import Parts
from skidway.loader.slices.job import Job
from skidway.loader.slices.join import PartitionResult, run_all
from skidway.loader.spark.runner import Interrupted, Progress
from skidway.loader.state import commit, layout, operations
from skidway.loader.state.layout import LoadId
from skidway.loader.state.manifest import Manifest
from skidway.loader.state.tables import Tables, read_tables
from skidway.loader.state.waiting import WaitingNotes
from skidway.schemas.client import SUBJECT_UNKNOWN, Registered, RegistryRefused


class TopicLoad:
    """One attempt at one load of one topic."""

    def __init__(self, parts: Parts, topic: SourceTopic, newest: Manifest | None) -> None:
        self._parts, self._topic, self._newest = parts, topic, newest
        self._load = LoadId(topic.name, newest.number + 1 if newest else 1, uuid4().hex)
        self._plan = TopicPlan(topic, newest, parts.settings.gaps_accepted)

    def plan(self) -> list[Planned]:
        """Compares the last loaded batch of each partition with the batch that the broker has in
        its place. Returns for every partition the range of offsets to load."""
        self._plan.check(self._parts.settings.bucket_ms)
        topic, client = self._topic, self._parts.client
        found = [(bounds, self._plan.partition(bounds)) for bounds in topic.bounds]
        ranges = [compared(client, topic.name, bounds, each) for bounds, each in found]
        return [*ranges, *self._plan.missing()]

    def run(
        self, planned: Sequence[Planned], progress: Progress
    ) -> tuple[Manifest | None, list[PartitionResult]]:
        """Runs the slices of the planned ranges and commits the load. Returns (manifest, results);
        the manifest is None if there was nothing to commit.

        Raises LostRace when another loader committed the same load number first, and the errors
        that tasks raise.
        """
        try:
            self._claim()
            manifest, results = self._run(planned, progress)
        except Interrupted:
            self._discard()
            raise
        except SkidwayError as error:
            self._discard()
            path = layout.manifest(self._topic.name, self._load.number)
            if self._parts.store.length(path) is not None:
                raise self._lost() from error  # the other loader may have deleted our staging files
            raise
        if manifest is None:
            self._discard()
        else:
            self.commit(manifest)
        return manifest, results

    def _run(
        self, planned: Sequence[Planned], progress: Progress
    ) -> tuple[Manifest | None, list[PartitionResult]]:
        """Runs the slices and makes the manifest. The manifest is None if the load takes no offset
        of any partition."""
        schema = self._schema()
        tables = read_tables(self._parts.store, self._newest)
        job = self._job(schema, tables)
        pieces = plan.cut(planned, self._parts.settings.slice_records)
        results = run_all(
            pieces, tables.marks, lambda work: self._parts.spark.run(job, work, progress)
        )
        ranges = ranges_of(planned, results, self._plan.gaps)
        if all(each.first == each.end for each in ranges):
            return None, results
        draft = ManifestDraft(self._parts, self._topic, self._newest, self._load)
        return draft.finished(ranges, results, tables, schema), results

    def commit(self, manifest: Manifest) -> None:
        """Commits staged files. Raises LostRace if another loader has committed this load number,
        and StoreFailed if the store fails during the commit. After StoreFailed nothing is deleted,
        because the manifest may already exist."""
        store = self._parts.store
        try:
            mine = operations.run(commit.commit(manifest), store)
        except SkidwayError as error:
            data = store.read(manifest.path)
            if data is None or Manifest.from_json(data, manifest.path).uuid == manifest.uuid:
                raise
            raise self._lost() from error
        if not mine:
            raise self._lost()

    def _claim(self) -> None:
        """Writes into the staging directory a file that names the process of this attempt. If the
        output cannot be written, the load fails here, before Spark starts."""
        now = datetime.fromtimestamp(self._parts.clock.time_ms() / 1000, UTC)
        text = f"process {os.getpid()} on {socket.gethostname()} since {now:%Y-%m-%dT%H:%M:%SZ}\n"
        writer = self._parts.store.create(f"{self._load.staging}/owner")
        writer.write(text.encode())
        writer.close()

    def _discard(self) -> None:
        """Deletes the staging directory of a load that is not committed and never will be."""
        # A failed deletion raises nothing, because the caller raises the error that ended the load.
        with contextlib.suppress(SkidwayError):
            self._parts.store.delete(self._load.staging)

    def _lost(self) -> LostRace:
        return LostRace(
            f"another loader committed load {self._load.number} of {self._topic.name} meanwhile"
        )

    def _job(self, schema: Registered, tables: Tables) -> Job:
        settings, topic = self._parts.settings, self._topic
        notes = WaitingNotes(self._parts.store, topic.name)
        return Job(
            topic=topic.name,
            source=topic.source,
            load=self._load.number,
            uuid=self._load.uuid,
            output=self._parts.store.url,
            bootstrap_servers=settings.bootstrap_servers,
            registry_url=settings.schema_registry_url,
            registry_security=settings.registry_security,
            reader=schema.schema,
            bucket_ms=settings.bucket_ms,
            compression=settings.compression,
            locations={**self._parts.feed.locations_of(topic.source), **tables.locations},
            unannounced=notes.over(self._parts.clock.time_ms(), settings.announce_wait_ms),
            patient=settings.announce_wait_ms > 0,
            gaps=self._plan.gaps,
        )

    def _schema(self) -> Registered:
        subject = self._topic.subject
        try:
            schema = self._parts.registry.latest(subject)
        except RegistryRefused as error:
            # a 404 without this error code may come from a proxy
            if error.error_code != SUBJECT_UNKNOWN:
                raise
            raise SkidwayError(
                f"{self._topic.name} has records, but no schema is registered under {subject}; "
                "register it: skidway schemas register"
            ) from error
        try:
            check_reader(schema.schema, RESERVED)
        except SkidwayError as error:
            raise SkidwayError(
                f"{self._topic.name} cannot be loaded with version {schema.version} of {subject}: "
                f"{error}"
            ) from error
        return schema


class LostRace(SkidwayError):
    """Another loader has already committed a load with the number of this attempt."""
