"""The Java with which tests start programs, and its options.

The module looks for Java only once, because the search starts a JVM.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping

from skidway.java import find

FAST: tuple[str, ...] = ("-XX:+UseG1GC",)
"""Options for programs whose speed is measured."""
BRIEF: tuple[str, ...] = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
"""Options for short runs. Such runs take half the CPU time without the optimizing compiler."""
SPARK: Mapping[str, str] = {"spark.driver.defaultJavaOptions": " ".join(BRIEF)}
"""BRIEF as a setting for Spark, for tests that start Spark without our loader."""


@functools.cache
def command() -> str:
    """The path of the java command."""
    return str(find().command)
