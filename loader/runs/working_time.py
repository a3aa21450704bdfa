"""Measures how long the loader's work took, not counting the time that Spark took to start."""

from __future__ import annotations

from skidway.clock import Clock
from skidway.loader.spark.runner import SparkRunner


class WorkingTime:
    """Measures the time since this object was created, not counting the time that Spark took to
    start."""

    def __init__(self, clock: Clock, spark: SparkRunner) -> None:
        self._clock, self._spark = clock, spark
        self._begin_s, self._started_s = clock.monotonic(), spark.started_s

    def seconds(self) -> float:
        """Returns the measured time, not counting the time that Spark took to start."""
        passed_s = self._clock.monotonic() - self._begin_s
        return passed_s - (self._spark.started_s - self._started_s)
