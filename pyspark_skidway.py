"""Where Spark finds `format("skidway")`: it looks for modules named so, with a `DefaultSource`."""

from skidway.loader.datasource import SkidwaySource as DefaultSource

__all__ = ["DefaultSource"]
