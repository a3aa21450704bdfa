"""Defines the object that Spark calls first. This object tells Spark the name and the columns of
the data source, and makes the readers."""

from __future__ import annotations

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader
from pyspark.sql.types import StructType

from skidway.errors import SkidwayError
from skidway.loader.datasource import subscription
from skidway.loader.datasource.batch_reader import BatchReader
from skidway.loader.datasource.columns import all_columns
from skidway.loader.datasource.options import Options
from skidway.loader.datasource.schemas import schemas_of
from skidway.loader.datasource.spark_types import spark_schema


class SkidwaySource(DataSource):
    """Spark's entry point to the data source. Spark pickles this object, and sends it to the
    processes that plan and read.
    """

    @classmethod
    def name(cls) -> str:
        """Returns the name for `format(...)`."""
        return "skidway"

    def schema(self) -> StructType:
        """Returns the columns of a query that does not list its columns. Raises SkidwayError if a
        subscribed topic does not exist, if the pattern matches no topic, if a topic has no schema
        that can become columns, or if the columns of the topics contradict each other. If the query
        has no registry, returns `key`, `value` and the loader's columns, and asks no broker."""
        options = Options.of(self.options)
        schemas = _schemas(options) if options.registry.urls else {"any topic": ""}
        found = all_columns(
            schemas, with_places=options.with_places, with_headers=options.with_headers
        )
        return spark_schema(found)

    def reader(self, schema: StructType) -> DataSourceReader:
        """Returns the reader of one query. Raises UsageError for an invalid option."""
        options = Options.of(self.options)
        options.check_batch()
        return BatchReader(options, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        """Returns the reader of one stream. Raises SkidwayError if this Spark is too old, and
        UsageError for an invalid option."""
        try:
            from skidway.loader.datasource.stream_reader import StreamReader
        except ImportError as error:
            raise SkidwayError("format skidway needs Spark 4.2 or newer for streams") from error
        options = Options.of(self.options)
        options.check_stream()
        return StreamReader(options, schema)


def _schemas(options: Options) -> dict[str, str]:
    with options.kafka.client() as client:
        topics = subscription.subscribed(client, options)
    if not topics:
        raise SkidwayError(f"no topic matches the pattern {options.pattern}")
    return schemas_of(options, topics)
