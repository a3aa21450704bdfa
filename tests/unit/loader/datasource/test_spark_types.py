"""The columns' Arrow types correspond to their Spark types in every supported version of Spark."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import StructType

from skidway.loader.datasource import spark_types
from skidway.loader.datasource.spark_types import arrow_schema, spark_schema

COLUMNS = StructType().add("at", "timestamp", nullable=False).add("local", "timestamp_ntz")


def test_timestamps_are_in_utc() -> None:
    """Columns of timestamps have microseconds as unit and the time zone UTC, as Spark needs them.
    Columns of Avro's local timestamps have no time zone."""
    found = arrow_schema(COLUMNS)
    assert found.field("at").type == pa.timestamp("us", "UTC")
    assert found.field("local").type == pa.timestamp("us")
    assert spark_schema(found) == COLUMNS


def test_an_older_spark_names_no_time_zone(monkeypatch: pytest.MonkeyPatch) -> None:
    """In Spark 4.1 and 4.2, to_arrow_schema has no parameter for the time zone and always uses UTC.
    So no time zone is passed to it."""
    asked = []

    def older(schema: StructType, timestamp_utc: bool = True) -> Any:
        asked.append((schema, timestamp_utc))

    monkeypatch.setattr(spark_types, "to_arrow_schema", older)
    arrow_schema(COLUMNS)
    assert asked == [(COLUMNS, True)]
