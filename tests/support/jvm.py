"""The java command with which tests start programs, and options for it.

This module looks for Java only once in each test process, because the search starts a JVM.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping

from skidway.java import find

FAST: tuple[str, ...] = ("-XX:+UseG1GC",)
"""Options for programs whose speed is measured."""
BRIEF: tuple[str, ...] = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
"""Options for programs that run only for a short time. Without the optimizing compiler, these
programs take half the CPU time."""
SPARK: Mapping[str, str] = {"spark.driver.defaultJavaOptions": " ".join(BRIEF)}
"""The options in BRIEF as a Spark setting, for tests that start Spark without Skidway's loader."""


@functools.cache
def command() -> str:
    """Returns the path of the java command."""
    return str(find().command)
