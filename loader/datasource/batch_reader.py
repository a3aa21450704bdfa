"""What Spark asks for a query: `spark.read`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from skidway.kafka.client import Client
from skidway.loader.datasource import columns, losses, progress, range_read, ranges, subscription
from skidway.loader.datasource.filters import Filters
from skidway.loader.datasource.options import Options
from skidway.loader.datasource.positions import EARLIEST, LATEST, TopicPositions, resolved
from skidway.loader.datasource.ranges import OffsetRange
from skidway.loader.datasource.schemas import schemas_of
from skidway.loader.datasource.subscription import CLIENT_ID
from skidway.loader.planning.plan import Planned
from skidway.loader.planning.topic import SourceTopic


class BatchReader(DataSourceReader):
    """Plans ranges when a query begins; each task then reads one of them."""

    def __init__(self, options: Options, schema: StructType) -> None:
        self._options = options
        self._wanted: pa.Schema = to_arrow_schema(schema, timezone="UTC")
        self._filters = Filters()

    def partitions(self) -> list[InputPartition]:
        """The ranges of all tasks. Spark calls this once per query. Raises UsageError, DataLost,
        and the errors of brokers and registry."""
        options = self._options
        with Client(options.bootstrap_servers, client_id=CLIENT_ID) as client:
            topics = subscription.subscribed(client, options)
            starts = resolved("startingOffsets", options.starting or EARLIEST, topics)
            ends = resolved("endingOffsets", options.ending or LATEST, topics)
            since, _ = self._filters.times_within(options.since_ms, None)
            at = {} if since is None else subscription.offsets_at(client, topics, since)
        schemas = schemas_of(options, topics)
        columns.check_wanted(self._wanted, schemas.values())
        missing = progress.changed_topics(starts, topics) + progress.changed_topics(ends, topics)
        found: list[InputPartition] = []
        for topic in topics:
            firsts = progress.firsts(starts, topic.name, topic.topic_id)
            planned, lost = ranges.within(topic, firsts, _lasts(ends[topic.name], topic))
            missing += lost
            wanted = self._narrowed(topic, planned, at.get(topic.name, {}))
            found += ranges.cut(topic, wanted, options.records_per_partition, schemas[topic.name])
        losses.report(missing, fails=options.fail_on_data_loss)
        return found

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one range. If there is no range, Spark calls this with a partition of its
        own."""
        if not isinstance(partition, OffsetRange):
            return iter(())
        return range_read.read(partition, self._wanted, self._options, self._filters)

    def _narrowed(
        self, topic: SourceTopic, planned: Sequence[Planned], at: Mapping[int, int]
    ) -> list[Planned]:
        """Without the offsets that cannot have a wanted row. at: by partition, an offset before
        which all records are too old."""
        low, high = self._filters.offsets()
        return [
            replace(
                each,
                first=max(each.first, low, at.get(each.partition, 0)),
                end=min(each.end, high),
            )
            for each in planned
            if self._filters.admits(topic.name, each.partition)
        ]


def _lasts(ends: TopicPositions, topic: SourceTopic) -> Mapping[int, int]:
    """Offsets of a topic that was made again mean nothing now, so all of the new topic is read."""
    if ends.is_of(topic.topic_id):
        return ends.offsets
    return {each.partition: each.high_watermark for each in topic.bounds}


class FilteringReader(BatchReader):
    """A reader that gets the query's filters."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 - Spark's name
        """Takes the filters. Returns all of them, so that Spark applies them again."""
        self._filters = Filters.of(filters)
        return filters
