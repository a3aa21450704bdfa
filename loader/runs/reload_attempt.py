"""Makes one attempt at a reload, which reads the records of some hours again and replaces the files
of these hours. The attempt plans, runs the slices, checks the records, and commits.

The slices run as in any load. The first slices begin at the offsets that `reloading/beginning.py`
finds, and with the marks that the loader had at these offsets. (A mark says how far a log file is
loaded.) The reload writes only the records of its hours. All other records that it reads only
advance the marks. The reload reads the offsets in portions of at most `max.offsets.per.load`, one
portion after the other, so that memory stays bounded.

If the number of rejects changes, the manifest contains deltas that count only this change, in place
of the previous manifest's deltas. So the caller must publish the previous manifest's deltas before
the attempt.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

from skidway.audit.counts.counts import Counts, Sums
from skidway.audit.counts.marks import FileKey
from skidway.audit.topic.messages import Sender, Tier
from skidway.errors import StateRefused
from skidway.loader.audit_topic import delta
from skidway.loader.planning import plan
from skidway.loader.planning.batch_below import compared
from skidway.loader.planning.plan import Planned
from skidway.loader.planning.topic import SourceTopic
from skidway.loader.planning.topic_plan import TopicPlan
from skidway.loader.reloading import beginning as beginnings
from skidway.loader.reloading.beginning import Beginning
from skidway.loader.reloading.lineage import ReloadRefused
from skidway.loader.reloading.names import names_since
from skidway.loader.reloading.rejects import rejects_in
from skidway.loader.rewriting.dropped import lost
from skidway.loader.rewriting.proof import check_same, content, rows_by_hour
from skidway.loader.runs.attempt import Attempt
from skidway.loader.runs.load_attempt import job_of
from skidway.loader.runs.newest_schema import schema_text
from skidway.loader.runs.parts import Parts
from skidway.loader.runs.replacing import Exchange, replacing
from skidway.loader.runs.working_time import WorkingTime
from skidway.loader.slices.job import Job
from skidway.loader.slices.join import PartitionResult, run_all
from skidway.loader.spark.runner import Progress
from skidway.loader.state import layout, operations
from skidway.loader.state.bucket_rows import BucketKey
from skidway.loader.state.bucket_spans import BucketSpans
from skidway.loader.state.live_file import LiveFile
from skidway.loader.state.manifest import REJECTS, ROWS, DataFile, Manifest
from skidway.loader.state.table_file import TableStaging
from skidway.loader.state.tables import Location, Tables, read_tables
from skidway.schemas.client import Registered


@dataclass(frozen=True, slots=True)
class Read:
    """What a reload got by reading its hours again. files: the new files, with rows and rejects of
    the hours. rejects: the number of rejects of each (agent, bucket).
    """

    files: list[DataFile]
    rejects: Counter[BucketKey]


class ReloadAttempt:
    """One attempt to reload some hours. files: all files of rows and rejects of the topic, by path.
    chosen: those of the hours.
    """

    def __init__(
        self,
        parts: Parts,
        topic: SourceTopic,
        newest: Manifest,
        files: Mapping[str, LiveFile],
        chosen: Mapping[str, LiveFile],
    ) -> None:
        self._parts, self._topic, self._newest = parts, topic, newest
        self._files, self._chosen = files, chosen
        self._old = [each.file for each in chosen.values()]
        self._attempt = Attempt(parts.store, parts.clock, parts.settings.host, topic.name, newest)
        self._load = self._attempt.load
        self._plan = TopicPlan(topic, newest, ())

    def plan(self) -> tuple[Beginning, list[Planned]]:
        """Returns where reading begins, and the offsets to read. Checks that the broker still has
        the batches that were loaded. Raises ReloadRefused if records cannot be read again, and
        StateRefused and ConfigurationRefused (see `TopicPlan.check`)."""
        self._plan.check(self._parts.settings.bucket_ms)
        steps = beginnings.beginning(self._topic.name, self._chosen)
        found = operations.run(steps, self._parts.store)
        ends = found.lineage.ends
        return found, [self._range(found, each, end) for each, end in sorted(ends.items())]

    def make(
        self, schema: Registered, progress: Progress, *, may_reject: bool, may_drop: bool
    ) -> tuple[Manifest, list[str]]:
        """Reads the records again and commits the load. Returns the manifest, and sentences for the
        operator. may_reject: whether records that were rows may become rejects. may_drop: whether
        values may be dropped, because the newest schema lacks their fields.

        Raises LostRace when another loader committed the same load number first, ReloadRefused or
        OtherRecords if the records are not those that were committed, and the errors that tasks
        raise.
        """
        return self._attempt.make(lambda: self._make(schema, progress, may_reject, may_drop))

    def _range(self, found: Beginning, partition: int, end: int) -> Planned:
        topic, client = self._topic, self._parts.client
        known = {each.partition: each for each in topic.bounds}
        if partition not in known:
            why = topic.away.get(partition, "the topic has no such partition now")
            raise _refused(f"{topic.name} partition {partition} cannot be read: {why}")
        bounds, gaps = known[partition], found.gaps.get(partition, ())
        position = found.position(partition)
        planned = beginnings.planned(topic.name, bounds, position, end, gaps)
        now = self._plan.partition(bounds)
        # At two offsets, the broker must still have the batch that was loaded: just before the
        # reload's offsets, and at the end of all loaded offsets.
        for each in (planned, now):
            refused = compared(client, topic.name, bounds, each).refused
            if refused:
                raise _refused(refused)
        return planned

    def _make(
        self, schema: Registered, progress: Progress, may_reject: bool, may_drop: bool
    ) -> tuple[Manifest, list[str]]:
        time_taken = WorkingTime(self._parts.clock, self._parts.spark)
        found, ranges = self.plan()
        if not may_drop:
            self._check_fields(found, schema.schema)
        before, names = self._tables(found)
        locations = {**self._parts.feed.locations_of(self._topic.source), **names}
        job = replace(
            job_of(self._parts, self._topic, self._load, schema, locations),
            patient=False,
            gaps=found.gaps,
            hours=frozenset(layout.hour_number(layout.hour_of(path)) for path in self._chosen),
        )
        read = self._read(job, ranges, before, progress)
        self._check(read.files, may_reject)
        change, notes = self._change_of_rejects(read)
        manifest = self._manifest(schema, read, change)
        return replace(manifest, seconds=round(time_taken.seconds(), 3)), notes

    def _check_fields(self, found: Beginning, newest: str) -> None:
        """Raises ReloadRefused if the files have, or had, values in columns in which the newest
        schema would not put them. A schema that the registry lost is not checked."""
        lineage, registry = found.lineage, self._parts.registry
        texts = {x: schema_text(registry, x) for x in sorted(lineage.written | lineage.given)}
        for written, given in product(sorted(lineage.written), sorted(lineage.given)):
            record, then = texts[written], texts[given]
            if record and then and (names := lost(record, then, newest)):
                raise _refused(
                    f"{self._topic.name}: by the newest schema, the values of the field {names[0]} "
                    "would not be in their column any more (if that is right, say --drop-fields)"
                )

    def _tables(self, found: Beginning) -> tuple[Tables, dict[FileKey, Location]]:
        """Returns the tables with the marks that the loader had at the offsets where reading
        begins. Also returns host and path of the log files in these tables, and of the log files
        that later loads have added.
        """
        store, name = self._parts.store, self._topic.name
        load = found.before.number if found.before else 0
        try:
            tables = read_tables(store, found.before)
            return tables, {**tables.locations, **names_since(store, name, load)}
        except StateRefused:  # another loader may have deleted the manifest meanwhile
            operations.run(beginnings.check_kept(name, load), store)
            raise

    def _read(
        self, job: Job, ranges: Sequence[Planned], tables: Tables, progress: Progress
    ) -> Read:
        """Runs the slices of all ranges, portion by portion, and returns what the slices wrote.
        Advances the marks in `tables` to the end of the ranges.
        """
        settings, read = self._parts.settings, Read([], Counter())
        left = list(ranges)
        while any(each.first < each.end for each in left):
            portion = plan.limit(left, settings.max_offsets_per_load)
            pieces = plan.cut(portion, settings.slice_records)
            results = run_all(
                pieces, tables.marks, lambda work: self._parts.spark.run(job, work, progress)
            )
            for result in results:
                _take(result, read, tables)
            ends = {each.partition: each.end for each in portion}
            left = [replace(each, first=ends[each.partition]) for each in left]
        return read

    def _check(self, new: Sequence[DataFile], may_reject: bool) -> None:
        """Raises OtherRecords if the new files have other records than the old ones, and
        ReloadRefused if rows would become rejects although they may not."""
        name = self._topic.name
        check_same(f"{name}: nothing is changed: in these hours the log has", self._old, new)
        was, now = content(self._old, ROWS).records, content(new, ROWS).records
        if now < was and not may_reject:
            raise _refused(
                f"{name}: {was - now} of {was} records that are rows would become rejects (if that "
                "is right, say --more-rejects)"
            )

    def _change_of_rejects(self, read: Read) -> tuple[Counter[BucketKey], list[str]]:
        """Returns, for each (agent, bucket), by how much this reload changes the number of rejects.
        If the change is not known, returns no change, and a sentence for the operator."""
        if content(self._old, REJECTS) == content(read.files, REJECTS):
            return Counter(), []
        old = [each for each in self._old if each.kind == REJECTS]
        change = Counter(read.rejects)
        for each in old:
            known = rejects_in(self._parts.store, each, self._parts.settings.bucket_ms)
            if known is None:
                return Counter(), [
                    f"{self._topic.name}: {each.path} is gone or damaged, and other records are "
                    "rejects now: the audit's number of rejects of these hours stays as it was"
                ]
            change.subtract(known)
        return Counter({key: count for key, count in change.items() if count}), []

    def _manifest(self, schema: Registered, read: Read, change: Counter[BucketKey]) -> Manifest:
        newest, now_ms = self._newest, self._parts.clock.time_ms()
        was, now = rows_by_hour(self._old), rows_by_hour(read.files)
        exchange = Exchange(
            rows={path: each for path, each in self._files.items() if each.file.kind == ROWS},
            old=sorted(self._chosen),
            new=read.files,
            schema=schema,
            carried=self._newest.carried if self._files.keys() - self._chosen else (),
            reopened=sorted(hour for hour in {*was, *now} if was.get(hour) != now.get(hour)),
        )
        made = replacing(self._parts.store, newest, self._load, now_ms, exchange)
        if not change:
            return made
        tables, side, audit = self._counted(change, now_ms)
        return replace(made, files=(*made.files, *tables), side=side, audit=audit)

    def _counted(
        self, change: Counter[BucketKey], now_ms: int
    ) -> tuple[list[DataFile], dict[str, tuple[str, ...]], Mapping[str, object]]:
        """Returns the new files of the tables `buckets` and `forgotten` (the other tables do not
        change), the paths of all tables' files, and the manifest's field `audit`.
        """
        newest, source = self._newest, self._topic.source
        spans = BucketSpans(self._parts.store, newest.side)
        counts = Counts(self._parts.settings.bucket_ms)
        for (agent, start), rejects in sorted(change.items()):
            counts.put((source, agent, start), Sums(rejects=rejects))
        cluster, host = self._parts.settings.cluster, self._parts.settings.host
        sender = Sender(Tier.HDFS, cluster, newest.producer, host, newest.epoch)
        previous = {(source, *key): number for key, number in spans.numbers(change).items()}
        head = delta.Head(sender, now_ms, delta.last_number(newest))
        numbered, audit = delta.make(head, counts, previous, source, ())
        touched = {(agent, start): n for (_, agent, start), n in numbered.touched.items()}
        staging = TableStaging(self._parts.store, self._load)
        side = {**newest.side, **spans.stage(staging, touched)}
        return staging.files, side, audit


def _take(result: PartitionResult, read: Read, tables: Tables) -> None:
    if result.stop is not None:
        raise _refused(result.stop.sentence)
    tables.marks.setdefault(result.partition, {}).update(result.moved)
    for each in result.results:
        read.files.extend(each.files)
        for (_, agent, start), sums in each.sums.items():
            if sums.rejects:
                read.rejects[agent, start] += sums.rejects


def _refused(sentence: str) -> ReloadRefused:
    return ReloadRefused(f"{sentence}; nothing is changed")
