"""The Java that tests start programs with, looked for once because that starts one; its options."""

from __future__ import annotations

import functools
from collections.abc import Mapping

from skidway.java import find

FAST: tuple[str, ...] = ("-XX:+UseG1GC",)
"""Where the speed of the program is measured."""
BRIEF: tuple[str, ...] = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
"""A short life takes half the CPU without the compiler that optimizes."""
SPARK: Mapping[str, str] = {"spark.driver.defaultJavaOptions": " ".join(BRIEF)}
"""What tells the same to a Spark that is not our loader's."""


@functools.cache
def command() -> str:
    """The java to start."""
    return str(find().command)
