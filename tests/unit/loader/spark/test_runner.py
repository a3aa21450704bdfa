"""Tests the runner that runs the loader's tasks on Spark: its start, its progress, and its end on
request."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Event, Semaphore
from types import SimpleNamespace
from typing import Any

import pytest
from py4j.protocol import Py4JError

from skidway.errors import SkidwayError
from skidway.loader.settings import LoaderSettings
from skidway.loader.spark import session
from skidway.loader.spark.runner import Interrupted, SparkRunner


def settings(**more: object) -> LoaderSettings:
    given = {"bootstrap_servers": "x:1", "schema_registry_url": "http://x", "topics": ["t"]}
    return LoaderSettings(**given, output="/out", spark_above_offsets=0, **more)  # type: ignore[arg-type]


def test_an_interruption_that_comes_before_the_job_still_ends_it() -> None:
    """Spark cancels only jobs that have already been submitted. So the runner, which runs the
    loader's tasks on Spark, repeats its request to cancel until the job has ended. Otherwise a
    SIGTERM that comes just before a long job would have no effect."""
    cancelled = Semaphore(0)
    runner = SparkRunner(settings(), lambda: True)
    runner._session = SimpleNamespace(
        sparkContext=SimpleNamespace(
            cancelAllJobs=cancelled.release,
            statusTracker=lambda: SimpleNamespace(getActiveStageIds=list),
        )
    )

    def collect() -> None:
        for _ in range(3):  # the runner cancels several times, first before Spark has the job
            if not cancelled.acquire(timeout=60):
                return
        raise RuntimeError("Job 0 cancelled as part of cancellation of all jobs")

    with pytest.raises(Interrupted):
        runner._collect(SimpleNamespace(collect=collect), 1, lambda _done, _total: None)


def test_the_last_progress_is_the_whole() -> None:
    """When all tasks on Spark have ended, the loader shows that all of them are finished, even if
    some were still running when it last asked Spark for the progress."""
    runner, told = SparkRunner(settings(), lambda: False), list[tuple[int, int]]()
    tracker = SimpleNamespace(getActiveStageIds=list)
    runner._session = SimpleNamespace(sparkContext=SimpleNamespace(statusTracker=lambda: tracker))
    frame = SimpleNamespace(collect=lambda: ["row"])
    assert runner._collect(frame, 3, lambda done, of: told.append((done, of))) == ["row"]
    assert told[-1] == (3, 3)


class Dying:
    """A fake Spark session, which is alive until the test sets `alive` to False."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.started = self.stopped = 0
        self.alive = False
        self.cancelled = Semaphore(0)
        for name in ("start", "warming", "is_alive", "stop"):
            monkeypatch.setattr(session, name, getattr(self, name))

    def start(self, *_args: object) -> Any:
        self.started += 1
        self.alive = True
        context = SimpleNamespace(
            statusTracker=lambda: SimpleNamespace(getActiveStageIds=list),
            cancelAllJobs=self.cancelled.release,
        )
        return SimpleNamespace(sparkContext=context)

    def warming(self, _session: object) -> Any:
        return SimpleNamespace(collect=self.warm)

    def warm(self) -> None:
        """Does nothing. The real method makes Spark ready for the first task."""

    def is_alive(self, _session: object) -> bool:
        return self.alive

    def stop(self, _session: object) -> None:
        self.stopped += 1


@pytest.fixture
def spark(monkeypatch: pytest.MonkeyPatch) -> Dying:
    return Dying(monkeypatch)


@pytest.fixture
def runner(monkeypatch: pytest.MonkeyPatch) -> Iterator[SparkRunner]:
    """Yields a runner with a fake Spark. The fake executes only the first task that it is given."""
    with SparkRunner(settings(), lambda: False) as made:
        monkeypatch.setattr(made, "_rows", lambda _session, work, _progress: work[0](0))
        yield made


def told(_done: int, _total: int) -> None: ...


def test_spark_is_started_again_after_it_died(runner: SparkRunner, spark: Dying) -> None:
    """If Spark has died since the loader's last tasks ended, the loader starts Spark again for the
    next tasks."""
    for _ in range(2):
        assert runner.run_work([lambda _attempt: []], told, 1) == []
    assert (spark.started, spark.stopped) == (1, 0)
    spark.alive = False
    assert runner.run_work([lambda _attempt: []], told, 1) == []
    assert (spark.started, spark.stopped) == (2, 1)


def test_work_during_which_spark_dies_says_so(runner: SparkRunner, spark: Dying) -> None:
    """If Spark dies while it runs tasks, the error says so, and the next tasks start Spark again.
    If a task fails while Spark is alive, its own error is reported."""

    def dies(_attempt: int) -> Any:
        spark.alive = False
        raise Py4JError("Connection refused")

    with pytest.raises(SkidwayError, match="Java process ended"):
        runner.run_work([dies], told, 1)
    assert runner.run_work([lambda _attempt: []], told, 1) == []
    assert (spark.started, spark.stopped) == (2, 1)

    def fails(_attempt: int) -> Any:
        raise SkidwayError("the disk is full")

    with pytest.raises(SkidwayError, match="the disk is full"):
        runner.run_work([fails], told, 1)
    assert spark.started == 2


def test_spark_that_has_no_room_yet_can_be_interrupted(
    monkeypatch: pytest.MonkeyPatch, spark: Dying
) -> None:
    """A run waits as long as the Spark cluster has no room for an executor. If a shutdown is
    requested meanwhile, the run ends."""
    waits = Event()

    def warm() -> None:
        waits.set()
        assert spark.cancelled.acquire(timeout=60)
        raise RuntimeError("Job 0 cancelled as part of cancellation of all jobs")

    monkeypatch.setattr(spark, "warm", warm)
    with SparkRunner(settings(), waits.is_set) as made, pytest.raises(Interrupted):
        made.run_work([lambda _attempt: []], told, 1)
    assert spark.stopped == 1
