"""Tests what Spark first asks the data source for: the columns of a query, and a reader for a batch
query or a stream."""

from __future__ import annotations

import sys

import pytest
from pyspark.sql.types import BinaryType, LongType, StringType, StructType

from skidway.errors import SkidwayError, UsageError
from skidway.loader.datasource.source import SkidwaySource
from support.memory_query import OPTIONS, Queried

LINE = StructType().add("line", "string")


def test_columns_without_a_registry_need_no_broker() -> None:
    """A query without the option schema.registry.url has the columns key and value as bytes. It
    needs no broker to find its columns."""
    raw = {key: text for key, text in OPTIONS.items() if key != "schema.registry.url"}
    fields = SkidwaySource(raw).schema()
    assert [fields[0].dataType, fields[1].dataType] == [BinaryType(), BinaryType()]
    assert fields.fieldNames()[:3] == ["key", "value", "_agent"]


def test_columns_on_request(queried: Queried) -> None:
    """Host, file and headers are columns only if an option asks for them; the order of the columns
    is fixed. The columns have Spark's types."""
    fields = queried.source(includeHostAndFile="true", includeHeaders="true").schema()
    assert fields.fieldNames() == [
        "line", "_agent", "_file_id", "_offset", "_length", "_host", "_file", "_timestamp",
        "_topic", "_partition", "_kafka_offset", "_headers",
    ]  # fmt: skip
    assert (fields["line"].dataType, fields["_agent"].dataType) == (StringType(), LongType())
    assert fields["_timestamp"].dataType.simpleString() == "timestamp"
    headers = "array<struct<key:string,value:binary>>"
    assert fields["_headers"].dataType.simpleString() == headers


def test_an_old_spark_has_no_streams(queried: Queried, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a Spark version that is too old for the data source's streams, a stream is refused. The
    error says which version is needed."""
    monkeypatch.setitem(sys.modules, "skidway.loader.datasource.stream_reader", None)
    with pytest.raises(SkidwayError, match=r"needs Spark 4\.2 or newer for streams"):
        queried.source().streamReader(LINE)


def test_queries_and_streams_have_their_own_options(queried: Queried) -> None:
    """A batch query ignores options that are only for streams. A stream is refused if it has an
    option that says where to end."""
    queried.source(maxOffsetsPerTrigger="5").reader(LINE)
    with pytest.raises(UsageError, match="endingTimestamp: a stream has no end"):
        queried.source(endingTimestamp="5").streamReader(LINE)
