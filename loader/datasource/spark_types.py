"""Columns in Arrow's types and in Spark's types."""

from __future__ import annotations

from inspect import signature
from typing import Any

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType


def spark_schema(columns: pa.Schema) -> StructType:
    """The columns in Spark's types. A timestamp without time zone stays a timestamp without time
    zone."""
    return from_arrow_schema(columns, prefer_timestamp_ntz=True)


def arrow_schema(columns: StructType) -> pa.Schema:
    """The columns in Arrow's types in which Spark takes rows from Python. Timestamps with time zone
    are in UTC."""
    # Spark 4.3 and later require the argument `timezone`; older versions do not have it.
    names_zone = "timezone" in signature(to_arrow_schema).parameters
    zone: dict[str, Any] = {"timezone": "UTC"} if names_zone else {}
    return to_arrow_schema(columns, **zone)
