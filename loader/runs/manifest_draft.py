"""Makes the manifest of one attempt, after all slices have run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from typing import Any

from skidway.audit.counts.counts import Counts
from skidway.audit.topic.messages import Sender, Tier
from skidway.loader.audit_topic import delta
from skidway.loader.planning.plan import Planned
from skidway.loader.planning.topic import SourceTopic
from skidway.loader.runs.closing import Closing
from skidway.loader.runs.columns_file import stage_columns
from skidway.loader.runs.parts import Parts
from skidway.loader.slices.job import SliceResult
from skidway.loader.slices.join import PartitionResult
from skidway.loader.state import layout, success_files
from skidway.loader.state.bucket_rows import BucketKey
from skidway.loader.state.bucket_spans import BucketSpans
from skidway.loader.state.layout import LoadId
from skidway.loader.state.manifest import (
    ROWS,
    Gap,
    Manifest,
    PartitionRange,
    SchemaChoice,
)
from skidway.loader.state.table_file import TableStaging
from skidway.loader.state.tables import Changes, Tables, stage
from skidway.schemas.client import Registered


class ManifestDraft:
    """Makes the manifest of an attempt from the previous manifest, and from the results of the
    attempt's slices. Each attempt needs its own `ManifestDraft`.
    """

    def __init__(
        self, parts: Parts, topic: SourceTopic, newest: Manifest | None, load: LoadId
    ) -> None:
        self._parts, self._topic, self._newest, self._load = parts, topic, newest, load

    def finished(
        self,
        ranges: Sequence[PartitionRange],
        results: Sequence[PartitionResult],
        tables: Tables,
        schema: Registered,
    ) -> Manifest:
        """Returns the manifest. Also applies the load's changes to `tables`, and writes files with
        these changes into the staging directory."""
        parts, topic, newest = self._parts, self._topic, self._newest
        used = [each for result in results for each in result.results]
        written = [file for each in used for file in each.files]
        head, before = self._head(), newest.side if newest else {}
        spans = BucketSpans(parts.store, before)
        buckets, audit = self._audit(head, ranges, used, spans)
        changes = self._changes(results, ranges, tables)
        choice = SchemaChoice(schema.subject, schema.version, schema.id)
        staging = TableStaging(parts.store, self._load)
        side = stage(staging, before, tables, changes) | spans.stage(staging, buckets)
        return Manifest(
            number=self._load.number,
            uuid=self._load.uuid,
            created=head.time_ms,
            program=version("skidway"),
            producer=head.sender.producer,
            epoch=head.sender.epoch,
            cluster=parts.settings.cluster,
            cluster_id=parts.cluster_id,
            topic=topic.name,
            topic_id=topic.topic_id,
            source=topic.source,
            partitions=tuple(ranges),
            files=(*written, *staging.files),
            schema=choice,
            schemas=_followed(newest, choice, has_rows=any(_has_rows(each) for each in used)),
            carried=newest.carried if newest else (),
            schema_ids=dict(sum((each.schema_ids for each in used), Counter())),
            side=side,
            audit_positions=dict(parts.feed.positions),
            audit=audit,
            columns=stage_columns(parts.store, self._load, schema.schema),
            unmarked=success_files.unmarked(
                newest.unmarked if newest else (),
                (layout.hour_of(each.path) for each in written if each.kind == ROWS),
                head.time_ms,
            ),
        )

    def _head(self) -> delta.Head:
        """Returns the sender of this output's audit deltas (messages with counts), the present
        time, and the number of the last delta."""
        parts, newest = self._parts, self._newest
        if newest is None:
            parts.read_on()  # `next_epoch` must know all published epochs
        now = parts.clock.time_ms()
        # The producer's name comes from the newest manifest, so it stays the same if the output has
        # moved to another URL.
        producer = newest.producer if newest else f"{parts.store.url}/{self._topic.name}"
        epoch = newest.epoch if newest else parts.feed.next_epoch(producer)
        host = parts.settings.host
        sender = Sender(Tier.HDFS, parts.settings.cluster, producer, host, epoch)
        return delta.Head(sender, now, delta.last_number(newest))

    def _audit(
        self,
        head: delta.Head,
        ranges: Sequence[PartitionRange],
        used: Iterable[SliceResult],
        spans: BucketSpans,
    ) -> tuple[dict[BucketKey, int], dict[str, Any]]:
        """Returns, for each bucket, the number of the new delta that counts the bucket. Also
        returns the manifest's field `audit`."""
        source = self._topic.source
        counts = _counts(used, self._parts.settings.bucket_ms)
        known = spans.numbers((agent, start) for (_, agent, start), _ in counts.items())
        previous = {(source, *key): number for key, number in known.items()}
        numbered, audit = delta.make(head, counts, previous, source, ranges)
        return {(agent, start): n for (_, agent, start), n in numbered.touched.items()}, audit

    def _changes(
        self,
        results: Iterable[PartitionResult],
        ranges: Sequence[PartitionRange],
        tables: Tables,
    ) -> Changes:
        """Returns what the load changes in the tables. Also applies these changes to `tables`."""
        newest, source = self._newest, self._topic.source
        positions = newest.audit_positions if newest else {}
        known = self._parts.feed.new_locations(source, positions)
        added = Changes(
            marks={each.partition: each.moved for each in results if each.moved},
            locations={key: at for key, at in known.items() if key not in tables.locations},
        )
        tables.add(added)
        closed = Closing(self._parts, self._topic, newest).changes(tables, ranges)
        tables.add(closed)
        return added.then(closed)


def _followed(
    newest: Manifest | None, choice: SchemaChoice, *, has_rows: bool
) -> tuple[SchemaChoice, ...]:
    """Returns the manifest's field `schemas`: the schemas of all files of rows after the load.
    choice: the schema of the rows that the load adds."""
    before = () if newest is None else newest.schemas
    if not has_rows:
        return before
    return (*(each for each in before if each.id != choice.id), choice)


def _has_rows(result: SliceResult) -> bool:
    return any(file.kind == ROWS for file in result.files)


def ranges_of(
    planned: Iterable[Planned],
    results: Iterable[PartitionResult],
    named: Mapping[int, Sequence[Gap]],
) -> list[PartitionRange]:
    """Returns the new manifest's entry for each partition. named: for each partition, the gaps that
    an earlier manifest, the mirror or the operator has listed.
    """
    by_partition = {each.partition: each for each in results}
    return [
        _range(each, by_partition.get(each.partition), named[each.partition]) for each in planned
    ]


def _range(
    planned: Planned, result: PartitionResult | None, named: Sequence[Gap]
) -> PartitionRange:
    gaps: tuple[Gap, ...] = (planned.gap,) if planned.gap else ()
    # If there is no result, the load has read nothing of the partition, and the entry keeps these
    # values. The next load then begins at `planned.first`. If there is a `planned.gap`, the gap
    # ends at `planned.first`.
    end, below = planned.first, planned.below
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
