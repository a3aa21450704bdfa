"""The Java with which tests start programs, and its options.

It is looked for only once, because the search starts a JVM.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping

from skidway.java import find

FAST: tuple[str, ...] = ("-XX:+UseG1GC",)
"""Options where the speed of the program is measured."""
BRIEF: tuple[str, ...] = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
"""Options for short runs, which take half the CPU without the optimizing compiler."""
SPARK: Mapping[str, str] = {"spark.driver.defaultJavaOptions": " ".join(BRIEF)}
"""The same options for a Spark that is not our loader's."""


@functools.cache
def command() -> str:
    """The path of the java command."""
    return str(find().command)
