"""Lets Spark find `format("skidway")`: Spark looks in `pyspark_skidway` for `DefaultSource`."""

from skidway.loader.datasource.source import SkidwaySource as DefaultSource

__all__ = ["DefaultSource"]
