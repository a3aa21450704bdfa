"""Defines the object that Spark calls to read a batch query (`spark.read`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from skidway.loader.datasource import columns, losses, progress, range_read, ranges, subscription
from skidway.loader.datasource.options import Options
from skidway.loader.datasource.positions import EARLIEST, LATEST, TopicPositions, resolved
from skidway.loader.datasource.ranges import OffsetRange
from skidway.loader.datasource.schemas import schemas_of
from skidway.loader.datasource.spark_types import arrow_schema
from skidway.loader.planning.plan import Planned
from skidway.loader.planning.topic import SourceTopic


class BatchReader(DataSourceReader):
    """When a query begins, divides the offsets of its topics into ranges. Then each task reads one
    range.

    This reader accepts no filters (it does not define `pushFilters`). Spark 4.3 would pass the
    filters of a DataFrame's first query to the reader, and use the same reader for later queries of
    the DataFrame. Later queries without these filters would miss rows.
    """

    def __init__(self, options: Options, schema: StructType) -> None:
        self._options = options
        self._wanted: pa.Schema = arrow_schema(schema)

    def partitions(self) -> list[InputPartition]:
        """Returns the offset ranges of all tasks. Spark calls this method when the first query of a
        DataFrame begins, and keeps the ranges for later queries of the DataFrame. Raises
        UsageError, DataLost, SkidwayError if a topic or its schema does not exist, and the errors
        of brokers and registry."""
        options = self._options
        with options.kafka.client() as client:
            topics = subscription.subscribed(client, options)
            starts = resolved("startingOffsets", options.starting or EARLIEST, topics)
            ends = resolved("endingOffsets", options.ending or LATEST, topics)
            at: dict[str, dict[int, int]] = {}
            if options.since_ms is not None:
                at = subscription.offsets_at(client, topics, options.since_ms)
        schemas = schemas_of(options, topics)
        columns.check_wanted(self._wanted, schemas.values())
        missing = progress.changed_topics(starts, topics) + progress.changed_topics(ends, topics)
        found: list[InputPartition] = []
        for topic in topics:
            firsts = progress.firsts(starts, topic.name, topic.topic_id)
            planned, lost = ranges.within(topic, firsts, _lasts(ends[topic.name], topic))
            missing += lost
            late = [_from(each, at.get(topic.name, {}).get(each.partition, 0)) for each in planned]
            found += ranges.cut(topic, late, options.records_per_partition, schemas[topic.name])
        losses.report(missing, fails=options.fail_on_data_loss)
        return found

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Returns the rows of one offset range. If `partitions` returned no range, Spark passes an
        object of its own instead of a range, and this method returns no rows."""
        if not isinstance(partition, OffsetRange):
            return iter(())
        return range_read.read(partition, self._wanted, self._options)


def _from(planned: Planned, offset: int) -> Planned:
    return replace(planned, first=max(planned.first, offset))


def _lasts(ends: TopicPositions, topic: SourceTopic) -> Mapping[int, int]:
    """Returns the offset at which the query ends in each partition. Usually this is the offset in
    `ends`. But if the topic was deleted and created again, `ends` has the offsets of the old topic,
    and the query ends at the high watermarks of the new topic.
    """
    if ends.is_of(topic.topic_id):
        return ends.offsets
    return {each.partition: each.high_watermark for each in topic.bounds}
