"""Converts the types of columns between Arrow and Spark."""

from __future__ import annotations

from inspect import signature
from typing import Any

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType


def spark_schema(columns: pa.Schema) -> StructType:
    """Returns the columns in Spark's types. A timestamp without a time zone becomes Spark's
    timestamp without a time zone."""
    return from_arrow_schema(columns, prefer_timestamp_ntz=True)


def arrow_schema(columns: StructType) -> pa.Schema:
    """Returns the columns in the Arrow types that Spark accepts in rows from Python. Timestamps
    with a time zone are in UTC."""
    # Spark 4.3 and later require the argument `timezone`; older versions do not have it.
    names_zone = "timezone" in signature(to_arrow_schema).parameters
    zone: dict[str, Any] = {"timezone": "UTC"} if names_zone else {}
    return to_arrow_schema(columns, **zone)
