"""Defines the object that Spark calls to read a stream (`spark.readStream`). This object needs
Spark 4.2 or later. Earlier versions do not pass the stream's current positions when they ask a
Python source for the next offsets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from skidway.loader.datasource import columns, losses, progress, range_read, ranges, subscription
from skidway.loader.datasource.options import Options
from skidway.loader.datasource.positions import (
    EARLIEST,
    LATEST,
    Positions,
    TopicPositions,
    from_json,
    resolved,
    to_json,
)
from skidway.loader.datasource.schemas import schemas_of
from skidway.loader.datasource.spark_types import arrow_schema
from skidway.loader.planning.topic import SourceTopic

# Spark prescribes the names of these methods, which are in camel case.
# ruff: noqa: N802


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads one stream. Spark keeps the stream's positions in its checkpoint and passes them to the
    methods, so this object has no state that must survive a restart."""

    def __init__(self, options: Options, schema: StructType) -> None:
        self._options = options
        self._wanted: pa.Schema = arrow_schema(schema)
        self._schemas: dict[str, str] = {}
        self._target: Positions | None = None
        self._seen: Positions = {}
        self._initial: Positions | None = None

    def initialOffset(self) -> dict[str, Any]:
        """Returns the positions at which a new stream begins. Spark may call this method several
        times before it plans the first batch. All calls return the same positions. Raises
        SkidwayError if a topic does not exist, and UsageError if `startingOffsets` does not list
        exactly the topics and their partitions."""
        if self._initial is None:
            self._initial = self._begin()
        return to_json(self._initial)

    def getDefaultReadLimit(self) -> ReadLimit:
        """Returns the limit of one batch, which is the value of the option maxOffsetsPerTrigger. If
        the option is not set, a batch has no limit."""
        most = self._options.offsets_per_trigger
        return ReadAllAvailable() if most is None else ReadMaxRows(most)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """Returns the end positions of the next batch, which begins at `start`. If a topic was
        deleted (and perhaps created again) and `failOnDataLoss` is true, raises DataLost."""
        positions = from_json(start)
        topics = self._look()
        missing = progress.changed_topics(positions, topics)
        losses.report(missing, fails=self._options.fail_on_data_loss)
        self._seen = progress.ends_of(topics)
        if self._target is not None:
            topics = progress.up_to(topics, self._target)
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        return to_json(progress.next_positions(positions, topics, most))

    def reportLatestOffset(self) -> dict[str, Any] | None:
        """Returns the high watermarks that `latestOffset` last got from the brokers, or None before
        the first call of `latestOffset`. Spark shows these high watermarks in its progress reports.
        """
        return to_json(self._seen) if self._seen else None

    def prepareForTriggerAvailableNow(self) -> None:
        """Makes the stream end at the high watermarks that the topics have now."""
        self._target = progress.ends_of(self._look())

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """Returns the offset ranges that the tasks of one batch read. If some of the batch's
        records are missing and `failOnDataLoss` is true, raises DataLost.

        `end` has the offsets at which the batch ends, and also the offsets at which it begins
        (`TopicPositions.begins`). Usually these offsets are equal to those in `start`. But when
        Spark repeats the first batch of a stream after a crash, `start` has new initial positions.
        """
        if start == end:
            return []
        topics = {each.name: each for each in self._look()}
        missing: list[str] = []
        found: list[InputPartition] = []
        self._learn_schemas(topics)
        for name, ends in from_json(end).items():
            topic = topics.get(name)
            if topic is None or not ends.is_of(topic.topic_id):
                missing.append(f"the topic {name} was deleted before this batch was read")
                continue
            if ends.begins is None:
                continue  # the batch has nothing of this topic; the next batch begins at `ends`
            planned, lost = ranges.within(topic, ends.begins, ends.offsets)
            missing += lost
            records = self._options.records_per_partition
            found += ranges.cut(topic, planned, records, self._schemas[name])
        losses.report(missing, fails=self._options.fail_on_data_loss)
        return found

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Returns the rows of one offset range."""
        assert isinstance(partition, ranges.OffsetRange)
        return range_read.read(partition, self._wanted, self._options)

    def commit(self, end: dict[str, Any]) -> None:
        """Does nothing, because the stream's positions are in Spark's checkpoint, and brokers need
        no committed offsets."""

    def stop(self) -> None:
        """Does nothing, because no connection stays open between calls."""

    def _begin(self) -> Positions:
        options = self._options
        with options.kafka.client() as client:
            topics = subscription.subscribed(client, options)
            default = LATEST if options.since_ms is None else EARLIEST
            begin: Positions = resolved("startingOffsets", options.starting or default, topics)
            if options.since_ms is not None:
                begin = _not_before(
                    begin, subscription.offsets_at(client, topics, options.since_ms)
                )
        return begin

    def _look(self) -> list[SourceTopic]:
        with self._options.kafka.client() as client:
            return subscription.look(client, self._options)

    def _learn_schemas(self, topics: dict[str, SourceTopic]) -> None:
        """Asks the registry for the schemas of topics that are new to the stream. The stream uses
        the schema that the registry returned first for a topic, until the stream is started again.
        """
        new = [topic for name, topic in topics.items() if name not in self._schemas]
        self._schemas |= schemas_of(self._options, new)
        columns.check_wanted(self._wanted, self._schemas.values())


def _not_before(positions: Positions, at: dict[str, dict[int, int]]) -> dict[str, TopicPositions]:
    return {
        name: TopicPositions(
            topic.topic_id,
            {each: max(offset, at[name][each]) for each, offset in topic.offsets.items()},
        )
        for name, topic in positions.items()
    }
