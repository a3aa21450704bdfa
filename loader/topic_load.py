"""One topic, from its newest manifest to the watermarks: plan, run, join, commit.

The driver's side of a load. `TopicLoad` is made for each attempt; an attempt that loses the race
for its number is thrown away, and the next one begins behind the winner's manifest.
"""

from __future__ import annotations

import contextlib
import os
import socket
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from importlib.metadata import version
from uuid import uuid4

from skidway import log
from skidway.audit.counts.counts import Counts
from skidway.audit.topic.messages import Sender, Tier
from skidway.clock import Clock
from skidway.errors import SkidwayError, Unreachable
from skidway.kafka.batch import CorruptBatch
from skidway.kafka.client import Client
from skidway.kafka.errors import KafkaError
from skidway.kafka.source import Source
from skidway.kafka.types import TopicPartition
from skidway.loader import commit, delta, layout, plan
from skidway.loader.columns import RESERVED
from skidway.loader.decode import NOT_FOUND, check_reader
from skidway.loader.feed import Feed, read_on
from skidway.loader.fetch import header_at
from skidway.loader.join import PartitionResult, run_all
from skidway.loader.manifest import Gap, Manifest, PartitionRange, SchemaChoice
from skidway.loader.plan import Bounds, Planned
from skidway.loader.settings import LoaderSettings
from skidway.loader.side import Changes, SideState, apply, read_state, write_side
from skidway.loader.slices import Job, SliceResult, Stop
from skidway.loader.spark import Interrupted, Progress, SparkRunner
from skidway.loader.store import Store
from skidway.loader.waiting import WaitingNotes
from skidway.schemas.client import Registered, RegistryClient, RegistryRefused

_log = log.get(__name__)


@dataclass(frozen=True, slots=True)
class Parts:
    """What every topic of a run shares. audit_topics: what the feed is read from."""

    settings: LoaderSettings
    client: Client
    registry: RegistryClient
    store: Store
    spark: SparkRunner
    clock: Clock
    feed: Feed
    cluster_id: str
    audit_topics: Sequence[str]

    def read_on(self) -> None:
        """Reads the feed to the end of its topics."""
        read_on(self.client, self.audit_topics, self.feed, self.clock)


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic of the cluster, as it was when the run began.

    gaps: offsets that its mirror named as missing, by partition. away: why a partition has no
    bounds.
    """

    name: str
    topic_id: str
    source: Source
    bounds: tuple[Bounds, ...]
    gaps: Mapping[int, tuple[Gap, ...]] = field(default_factory=dict)
    away: Mapping[int, str] = field(default_factory=dict)

    @property
    def subject(self) -> str:
        """Subject of the values: the source topic's, whatever the mirror is called."""
        return f"{self.source.topic}-value"


@dataclass(slots=True)
class Outcome:
    """What became of a topic in this run. problems: sentences, each with its exit status. notes:
    what else there is to say."""

    topic: str
    loads: list[int] = field(default_factory=list)
    rows: int = 0
    rejects: int = 0
    repeats: int = 0
    files: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    waiting: list[Stop] = field(default_factory=list)
    problems: list[SkidwayError] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    ranges: list[PartitionRange] = field(default_factory=list)


class TopicLoad:
    """One attempt at one load of one topic."""

    def __init__(self, parts: Parts, topic: Topic, newest: Manifest | None) -> None:
        self._parts, self._topic, self._newest = parts, topic, newest
        self._number = newest.number + 1 if newest else 1
        self._uuid = uuid4().hex
        self._staging = layout.staging(topic.name, self._number, self._uuid)
        self._before = plan.positions(newest)
        accepted = plan.parse_accepted(parts.settings.gaps_accepted)
        self._gaps = {
            partition: plan.named_gaps(
                topic.name, partition, self._before.get(partition), topic.gaps, accepted
            )
            for partition in {
                *self._before,
                *topic.away,
                *(each.partition for each in topic.bounds),
            }
        }

    def plan(self) -> list[Planned]:
        """The range of every partition, with what the batch below has to say about it."""
        plan.check_identity(self._newest, self._topic.source)
        plan.check_bucket(self._newest, self._parts.settings.bucket_ms)
        topic = self._topic
        missing = plan.missing_partitions(topic.name, self._before, topic.bounds, topic.away)
        return [*(self._plan_partition(bounds) for bounds in topic.bounds), *missing]

    def run(
        self, planned: Sequence[Planned], progress: Progress
    ) -> tuple[Manifest | None, list[PartitionResult]]:
        """Runs and commits. (manifest, results): no manifest when there was nothing to commit.

        Raises LostRace when another loader took the number, and everything that tasks raise.
        """
        try:
            self._claim()
            job, state, schema = self._prepare()
            pieces = plan.cut(planned, self._parts.settings.slice_records)
            results = run_all(
                pieces, state.marks, lambda work: self._parts.spark.run(job, work, progress)
            )
            manifest = self._manifest(planned, results, state, schema)
        except Interrupted:
            self._discard()
            raise
        except SkidwayError as error:
            self._discard()
            path = layout.manifest(self._topic.name, self._number)
            if self._parts.store.length(path) is not None:
                raise self._lost() from error  # the winner may have deleted our staging directory
            raise
        if manifest is None:
            self._discard()
        else:
            self.commit(manifest)
        return manifest, results

    def commit(self, manifest: Manifest) -> None:
        """Commits staged files. Raises LostRace, and StoreFailed when the store fails on the way:
        then nothing is deleted, because the manifest may stand."""
        store = self._parts.store
        try:
            mine = commit.run(commit.commit(manifest), store)
        except SkidwayError as error:
            data = store.read(manifest.path)
            if data is None or Manifest.from_json(data, manifest.path).uuid == manifest.uuid:
                raise
            raise self._lost() from error
        if not mine:
            raise self._lost()

    def _claim(self) -> None:
        """Says in the staging directory whose it is. An output that cannot be written fails here,
        before Spark is started for it."""
        now = datetime.fromtimestamp(self._parts.clock.time_ms() / 1000, UTC)
        text = f"process {os.getpid()} on {socket.gethostname()} since {now:%Y-%m-%dT%H:%M:%SZ}\n"
        writer = self._parts.store.create(f"{self._staging}/owner")
        writer.write(text.encode())
        writer.close()

    def _discard(self) -> None:
        """Deletes the staging directory of a load that was not committed and never will be."""
        with contextlib.suppress(SkidwayError):  # what brought us here is told, not this
            self._parts.store.delete(self._staging)

    def _lost(self) -> LostRace:
        return LostRace(
            f"another loader committed load {self._number} of {self._topic.name} meanwhile"
        )

    def _plan_partition(self, bounds: Bounds) -> Planned:
        previous = self._before.get(bounds.partition)
        planned = plan.plan_partition(
            self._topic.name, bounds, previous, self._gaps[bounds.partition]
        )
        below = planned.below
        if planned.refused or below is None:
            return planned
        if bounds.log_start > below.last_offset:
            return plan.unverified(planned)
        tp = TopicPartition(self._topic.name, bounds.partition)
        try:
            header = header_at(self._parts.client, tp, max(below.base_offset, bounds.log_start))
            refused = plan.check_below(self._topic.name, planned, header)
        except (CorruptBatch, KafkaError, Unreachable) as error:
            refused = (
                f"{self._topic.name} partition {bounds.partition}: kept back at offset "
                f"{planned.position}, because the batch below cannot be read: {error}"
            )
        if refused:
            at = planned.position
            return replace(planned, first=at, end=at, gap=None, refused=refused)
        return planned

    def _prepare(self) -> tuple[Job, SideState, Registered]:
        settings, topic = self._parts.settings, self._topic
        schema = self._schema()
        state = read_state(self._parts.store, self._newest)
        names = {**self._parts.feed.names_of(topic.source), **state.names}
        notes = WaitingNotes(self._parts.store, topic.name)
        job = Job(
            topic=topic.name,
            source=topic.source,
            load=self._number,
            uuid=self._uuid,
            output=self._parts.store.url,
            bootstrap_servers=settings.bootstrap_servers,
            registry_url=settings.schema_registry_url,
            registry_security=settings.registry_security,
            reader=schema.schema,
            bucket_ms=settings.bucket_ms,
            compression=settings.compression,
            names=names,
            unannounced=notes.over(self._parts.clock.time_ms(), settings.announce_wait_ms),
            patient=settings.announce_wait_ms > 0,
            gaps=self._gaps,
        )
        return job, state, schema

    def _schema(self) -> Registered:
        subject = self._topic.subject
        try:
            schema = self._parts.registry.latest(subject)
        except RegistryRefused as error:
            if error.status != NOT_FOUND:
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

    def _manifest(
        self,
        planned: Sequence[Planned],
        results: Sequence[PartitionResult],
        state: SideState,
        schema: Registered,
    ) -> Manifest | None:
        """The manifest with its side files staged; None when no partition moved."""
        topic, newest, parts = self._topic, self._newest, self._parts
        ranges = [
            _range(each, _of(results, each.partition), self._gaps[each.partition])
            for each in planned
        ]
        if all(each.first == each.end for each in ranges):
            return None
        if newest is None:
            parts.read_on()  # its epoch is above all that were published up to now
        now = parts.clock.time_ms()
        # an output that is reached by another name keeps the name under which it numbers
        producer = newest.producer if newest else f"{parts.store.url}/{topic.name}"
        epoch = newest.epoch if newest else parts.feed.next_epoch(producer)
        host = socket.gethostname()
        used = [each for result in results for each in result.results]
        numbered, audit = delta.make(
            Sender(Tier.HDFS, parts.settings.cluster, producer, host, epoch),
            now,
            delta.last_number(newest),
            _counts(used, parts.settings.bucket_ms),
            {(topic.source, *key): number for key, number in state.buckets.items()},
            topic.source,
            ranges,
        )
        known = parts.feed.names_of(topic.source)
        changes = Changes(
            marks={each.partition: each.moved for each in results if each.moved},
            names={key: place for key, place in known.items() if key not in state.names},
            buckets={(agent, start): n for (_, agent, start), n in numbered.touched.items()},
        )
        apply(state, changes)
        files, side = write_side(
            parts.store,
            topic.name,
            self._number,
            self._staging,
            newest.side if newest else {},
            state,
            changes,
        )
        return Manifest(
            number=self._number,
            uuid=self._uuid,
            created=now,
            program=version("skidway"),
            producer=producer,
            epoch=epoch,
            cluster=parts.settings.cluster,
            cluster_id=parts.cluster_id,
            topic=topic.name,
            topic_id=topic.topic_id,
            source=topic.source,
            partitions=tuple(ranges),
            files=(*(file for each in used for file in each.files), *files),
            schema=SchemaChoice(schema.subject, schema.version, schema.id),
            schema_ids=dict(sum((each.schema_ids for each in used), Counter())),
            side=side,
            audit_positions=dict(parts.feed.positions),
            audit=audit,
        )


class LostRace(SkidwayError):
    """Another loader committed the number that this one wanted."""


def note(outcome: Outcome, manifest: Manifest | None, results: Iterable[PartitionResult]) -> None:
    """Adds one attempt to what is told about a topic."""
    outcome.waiting = []
    for result in results:
        stop = result.stop
        if stop is not None and stop.waiting_for is not None:
            outcome.waiting.append(stop)
        elif stop is not None:
            outcome.problems.append(SkidwayError(stop.sentence))
        if manifest is not None:
            outcome.repeats += sum(each.repeats for each in result.results)
            outcome.reasons += sum((each.reasons for each in result.results), Counter())
    if manifest is not None:
        outcome.loads.append(manifest.number)
        outcome.rows += manifest.rows()
        outcome.rejects += manifest.rejects()
        outcome.files += sum(1 for file in manifest.files if file.kind == "rows")
        begins = {each.partition: each.first for each in outcome.ranges}
        outcome.ranges = [
            replace(each, first=begins.get(each.partition, each.first))
            for each in manifest.partitions
        ]


def _of(results: Sequence[PartitionResult], partition: int) -> PartitionResult | None:
    return next((each for each in results if each.partition == partition), None)


def _range(
    planned: Planned, result: PartitionResult | None, named: Sequence[Gap]
) -> PartitionRange:
    """What the manifest says of one partition."""
    gaps: tuple[Gap, ...] = (planned.gap,) if planned.gap else ()
    end, below = planned.first, planned.below  # nothing but perhaps a named gap was passed
    if result is not None:
        end, gaps = result.end, gaps + result.gaps
        below = result.below or below
    ahead = tuple(gap for gap in named if gap.end > end)
    return PartitionRange(planned.partition, planned.position, end, gaps, ahead, below)


def _counts(results: Iterable[SliceResult], bucket_ms: int) -> Counts:
    counts = Counts(bucket_ms)
    for result in results:
        for key, sums in result.sums.items():
            counts.put(key, sums)
    return counts
