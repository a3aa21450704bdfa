"""Lets Spark find `format("skidway")`. For this format, Spark imports the module `pyspark_skidway`
and uses its class `DefaultSource`."""

from skidway.loader.datasource.source import SkidwaySource as DefaultSource

__all__ = ["DefaultSource"]
