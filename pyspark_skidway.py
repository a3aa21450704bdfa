"""Lets Spark find `format("skidway")`, because Spark looks for `DefaultSource` in the module
`pyspark_skidway`."""

from skidway.loader.datasource.source import SkidwaySource as DefaultSource

__all__ = ["DefaultSource"]
