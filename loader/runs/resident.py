"""Does `load run --every`: run after run in one process.

The runs share the Spark session, which only large loads need (spark/runner.py). The runs also share
what earlier runs have read from the audit topics, so each run reads only new audit messages. If a
run fails, the process logs the error, and begins the next run as scheduled. So the process survives
a restart of a broker. The only error that ends the process is a refused configuration. If Spark
dies, the next run that needs Spark starts it again. If no run needs Spark for a while, Spark is
stopped.
After SIGTERM, the process cancels the tasks that run on Spark, starts no new tasks, and ends. The
process discards the load whose tasks it cancelled.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Final

from skidway import log, systemd
from skidway.clock import Clock
from skidway.errors import ConfigurationRefused, SkidwayError
from skidway.loader.audit_topic.feed import Feed
from skidway.loader.runs.outcome import Report
from skidway.loader.runs.run import run_on
from skidway.loader.runs.textfile import Recorded
from skidway.loader.settings import LoaderSettings
from skidway.loader.spark.runner import Interrupted, SparkRunner
from skidway.service import Shutdown
from skidway.telemetry import Health

LEAST_EVERY_S: Final = 1.0

Run = Callable[[LoaderSettings, SparkRunner, Feed], Report]
"""A function that makes one run."""

_log = log.get(__name__)


class ResidentLoader:
    """Owns the Spark session, the feed (the messages that were read from the audit topics) and the
    schedule of the runs.
    """

    def __init__(
        self,
        settings: LoaderSettings,
        every_s: float,
        clock: Clock,
        shutdown: Shutdown,
        run: Run = run_on,
    ) -> None:
        self._settings, self._every_s = settings, every_s
        self._clock, self._shutdown, self._run = clock, shutdown, run
        self._feed = Feed()
        self._runs, self._problem = 0, ""

    def run(self) -> None:
        """Makes runs until a signal asks the program to end. A run begins `every_s` seconds after
        the previous run began. If the previous run took longer, the next run begins as soon as the
        previous run has ended. Raises ConfigurationRefused.

        Tells the service manager at once that the program is ready. The program does not wait for
        the first run, which may take hours.
        """
        systemd.ready("the first run has not ended yet")
        with (
            suppress(Interrupted),
            SparkRunner(self._settings, lambda: self._shutdown.requested) as spark,
        ):
            while not self._shutdown.requested:
                begin = self._clock.monotonic()
                self._one(spark)
                left_s = begin + self._every_s - self._clock.monotonic()
                self._shutdown.wait(max(0.0, left_s))

    def health(self) -> Health:
        """Returns whether the last run ended without a problem, and how many runs have ended."""
        return Health(not self._problem, {"runs": self._runs, "problem": self._problem or None})

    def _one(self, spark: SparkRunner) -> None:
        try:
            with Recorded(self._settings.metrics_textfile, self._clock) as recorded:
                try:
                    report = self._run(self._settings, spark, self._feed)
                except Interrupted:
                    recorded.told_to_end()
                    raise
                recorded.ended(report)
            sentences = report.sentences()
            problems = [str(x) for each in report.outcomes for x in each.problems]
        except (Interrupted, ConfigurationRefused):
            raise
        except SkidwayError as error:
            sentences = problems = [str(error)]
        spark.end_run()
        self._runs += 1
        self._problem = problems[0] if problems else ""
        for sentence in sentences:
            _log.warning("run_reported", sentence=sentence)
        systemd.ready(self._problem or "loads")
