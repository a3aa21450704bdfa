"""How a Spark run ends when it is asked to."""

from __future__ import annotations

from threading import Semaphore
from types import SimpleNamespace

import pytest

from skidway.loader.settings import LoaderSettings
from skidway.loader.spark.runner import Interrupted, SparkRunner


def settings(**more: object) -> LoaderSettings:
    given = {"bootstrap_servers": "x:1", "schema_registry_url": "http://x", "topics": ["t"]}
    return LoaderSettings(**given, output="/out", **more)  # type: ignore[arg-type]


def test_an_interruption_that_comes_before_the_job_still_ends_it() -> None:
    """Spark cancels only jobs that it knows already, so the runner repeats its request to cancel
    until the job has ended. Otherwise a SIGTERM just before hours of work would be forgotten."""
    cancelled = Semaphore(0)
    runner = SparkRunner(settings(), lambda: True)
    runner._session = SimpleNamespace(
        sparkContext=SimpleNamespace(
            cancelAllJobs=cancelled.release,
            statusTracker=lambda: SimpleNamespace(getActiveStageIds=list),
        )
    )

    def collect() -> None:
        for _ in range(3):  # the first requests come before Spark knows the job
            if not cancelled.acquire(timeout=30):
                return
        raise RuntimeError("Job 0 cancelled as part of cancellation of all jobs")

    with pytest.raises(Interrupted):
        runner._collect(SimpleNamespace(collect=collect), 1, lambda _done, _total: None)
