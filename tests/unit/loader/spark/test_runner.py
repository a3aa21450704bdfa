"""Tests the runner that runs the loader's tasks on Spark: its start, its progress, and its end on
request."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pickle import PicklingError
from threading import Event, Semaphore
from types import SimpleNamespace
from typing import Any

import pytest
from py4j.protocol import Py4JError, Py4JNetworkError

from skidway.errors import SkidwayError
from skidway.loader.settings import LoaderSettings
from skidway.loader.spark import jvm, session
from skidway.loader.spark import runner as runner_module
from skidway.loader.spark.patience import Patience
from skidway.loader.spark.runner import Interrupted, SparkRunner


def settings(**more: object) -> LoaderSettings:
    given = {"bootstrap_servers": "x:1", "schema_registry_url": "http://x", "topics": ["t"]}
    return LoaderSettings(**given, output_url="/out", spark_above_offsets=0, **more)  # type: ignore[arg-type]


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
    runner._session = SimpleNamespace(
        sparkContext=SimpleNamespace(statusTracker=lambda: tracker, cancelAllJobs=None)
    )
    frame = SimpleNamespace(collect=lambda: ["row"])
    assert runner._collect(frame, 3, lambda done, of: told.append((done, of))) == ["row"]
    assert told[-1] == (3, 3)


class Dying:
    """A fake Spark session, which is alive until the test sets `alive` to False."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.started = self.stopped = 0
        self.alive = False
        self.cancelled = Semaphore(0)
        for name in ("begin", "start", "warming", "is_alive", "stop", "end"):
            monkeypatch.setattr(session, name, getattr(self, name))

    def begin(self, *_args: object) -> Any:
        return None

    def end(self, _process: object) -> None: ...

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


def test_tasks_for_which_the_disk_has_no_room_are_one_sentence(
    monkeypatch: pytest.MonkeyPatch, runner: SparkRunner, spark: Dying
) -> None:
    """If pyspark cannot write the tasks to the disk of Spark's temporary files, the error says so
    in one sentence, and where to make room. Tasks that cannot be pickled at all are a bug."""

    def write(*_args: object) -> None:
        raised = PicklingError(f"Could not serialize: {refusal}")
        raised.__context__ = refusal  # pyspark raises it while it handles this error
        raise raised

    monkeypatch.setattr(runner, "_rows", write)
    refusal: Exception = OSError(28, "No space left on device")
    with pytest.raises(SkidwayError, match=r"No space left .* in /\S+ \(spark.local.dir\)$"):
        runner.run_work([lambda _attempt: []], told, 1)
    refusal = TypeError("cannot pickle a lock")
    with pytest.raises(PicklingError):
        runner.run_work([lambda _attempt: []], told, 1)


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


class Refusing(Dying):
    """A Spark that does not start."""

    def start(self, *_args: object) -> Any:
        self.started += 1
        raise self.error

    error: Exception = ValueError("no master")


@pytest.mark.parametrize(
    ("error", "words", "status"),
    [
        (ValueError("no master"), "no master", 1),
        (TypeError("'JavaPackage' object is not callable"), "'JavaPackage' object", 1),
        (Py4JNetworkError("Answer from Java side is empty"), "its Java process has ended", 1),
        (ConnectionRefusedError(111, "Connection refused"), "its Java process has ended", 1),
        (FileNotFoundError(2, "No such file", "/x/spark-submit"), "'/x/spark-submit'", 1),
        (AssertionError(), "AssertionError", 1),
        (RuntimeError("Connection timed out: h/10.0.0.1:7077"), "timed out", 3),
    ],
)
def test_whatever_ends_a_start_is_one_error_with_the_master(
    monkeypatch: pytest.MonkeyPatch, error: Exception, words: str, status: int
) -> None:
    """Whatever error ends a start of Spark, the runner raises an error of one sentence with the
    master and the cause. In the same run it does not try again; in the next run it does."""
    spark = Refusing(monkeypatch)
    spark.error = error
    with SparkRunner(settings(spark_master="spark://h:7077"), lambda: False) as runner:
        for runs in (1, 2):
            for _ in range(2):
                with pytest.raises(SkidwayError, match=r"^Spark did not start on spark://h") as got:
                    runner.run_work([lambda _attempt: []], told, 1)
                assert words in str(got.value)
                assert got.value.exit_code == status
            assert spark.started == runs
            runner.end_run()
        assert runner.run_work([], told, 0) == []


def test_a_start_whose_workers_fail_names_the_master(
    monkeypatch: pytest.MonkeyPatch, spark: Dying
) -> None:
    """If Spark starts, but its workers cannot run a task, the start has failed, and Spark is
    stopped."""

    def warm() -> None:
        raise RuntimeError('java.io.IOException: Cannot run program "/opt/python"')

    monkeypatch.setattr(spark, "warm", warm)
    with (
        SparkRunner(settings(), lambda: False) as made,
        pytest.raises(SkidwayError, match=r'^Spark did not start on local\[\*\]: .* "/opt/python"'),
    ):
        made.run_work([lambda _attempt: []], told, 1)
    assert spark.stopped == 1


def test_a_start_can_be_interrupted(monkeypatch: pytest.MonkeyPatch, spark: Dying) -> None:
    """If a shutdown is requested while Spark starts, the runner kills the JVM, so that the start
    ends, and the run ends as interrupted."""
    begun, killed = Event(), Event()

    def start(*_args: object) -> Any:
        begun.set()
        assert killed.wait(60)
        raise Py4JNetworkError("Answer from Java side is empty")

    monkeypatch.setattr(session, "start", start)
    monkeypatch.setattr(jvm, "kill", lambda _process: killed.set())
    with SparkRunner(settings(), begun.is_set) as made, pytest.raises(Interrupted):
        made.run_work([lambda _attempt: []], told, 1)


def tracker(*active: int | None) -> Any:
    """A fake status tracker of Spark. `active` has the number of running tasks of each stage; None
    is a stage that Spark has already forgotten."""
    infos = [x if x is None else SimpleNamespace(numActiveTasks=x) for x in active]
    for info in filter(None, infos):
        info.numCompletedTasks = 0
    return SimpleNamespace(
        getActiveStageIds=lambda: range(len(infos)), getStageInfo=infos.__getitem__
    )


@pytest.mark.parametrize(
    ("active", "is_said"), [((0,), True), ((0, 2), False), ((None,), False), ((), False)]
)
def test_a_job_without_an_executor_is_named(
    monkeypatch: pytest.MonkeyPatch, active: tuple[int | None, ...], is_said: bool
) -> None:
    """If a job of Spark has tasks, and none of them runs for a while, the log says that there is no
    executor, once."""
    said: list[str] = []
    looks = Semaphore(0)

    class Impatient(Patience):
        def ends(self, is_moving: bool) -> bool:
            looks.release()
            return super().ends(is_moving)

    seconds = count(0, 20)
    monkeypatch.setattr(runner_module, "Patience", lambda: Impatient(lambda: float(next(seconds))))
    warns = SimpleNamespace(warning=lambda event, **_: said.append(event))
    monkeypatch.setattr(runner_module, "_log", warns)
    runner = SparkRunner(settings(), lambda: False)
    runner._session = SimpleNamespace(
        sparkContext=SimpleNamespace(statusTracker=lambda: tracker(*active), cancelAllJobs=None)
    )

    def collect() -> None:
        for _ in range(6):
            assert looks.acquire(timeout=60)

    runner._collect(SimpleNamespace(collect=collect), 1, told)
    assert said == (["no_executor"] if is_said else [])
