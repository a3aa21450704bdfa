"""The tasks of small loads run in the loader's own process, not on Spark. Their results are the
same as on Spark."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from skidway.errors import ConfigurationRefused, SkidwayError, Unreachable
from skidway.loader.planning.plan import Slice
from skidway.loader.settings import LoaderSettings
from skidway.loader.spark import task
from skidway.loader.spark.failures import TaskFailed, failure
from skidway.loader.spark.own_process import FIRST_ATTEMPT, Interrupted, OwnProcess
from skidway.loader.spark.runner import UNUSED_RUNS_MAX, SparkRunner
from skidway.loader.store import StoreConnection
from support.loading import job
from support.promises import promise


def told(_done: int, _total: int) -> None: ...


def settings(above: int) -> LoaderSettings:
    return LoaderSettings(
        bootstrap_servers="x:1", schema_registry_url="http://x", topics=["t"], output_url="/out",
        spark_above_offsets=above,
    )  # fmt: skip


class Places(SparkRunner):
    """A runner that runs no tasks. It only records where each task would run: in its own process
    ("here") or on Spark."""

    def __init__(self, above: int) -> None:
        super().__init__(settings(above), lambda: False)
        self.ran: list[str] = []
        self._own_process.run = self._noted("here")  # type: ignore[method-assign]
        self._run_on_spark = self._noted("spark")  # type: ignore[method-assign]

    def _noted(self, place: str) -> Callable[..., list[Any]]:
        def run(work: Sequence[Any], _progress: object) -> list[Any]:
            self.ran += [place] * len(work)
            return []

        return run


@pytest.mark.parametrize(
    ("above", "ends", "places"),
    [
        (10, (4, 10), ["here"] * 2),
        (10, (5, 10), ["here"] * 2),
        (10, (6, 10), ["spark"] * 2),
        (0, (1, 6), ["spark"] * 2),
    ],
)
def test_the_offsets_of_all_slices_decide(
    above: int, ends: tuple[int, int], places: list[str]
) -> None:
    """A load whose slices together have at most `spark.above.offsets` offsets runs in the loader's
    own process. A larger load runs on Spark. If the setting is 0, every load runs on Spark."""
    runner = Places(above)
    runner.run(job(), [(Slice(0, 0, ends[0]), {}), (Slice(1, 5, ends[1]), {})], told)
    assert runner.ran == places


def test_the_rows_of_rewritten_files_decide() -> None:
    """If the files to rewrite have together at most `spark.above.offsets` rows, the loader's own
    process rewrites them. Otherwise Spark does."""
    runner = Places(10)
    for rows in (10, 11):
        runner.run_work([lambda _attempt: None], told, rows)
    assert runner.ran == ["here", "spark"]


def test_tasks_run_in_order_and_are_counted() -> None:
    """In the loader's own process the results come in the order of the tasks, and each finished
    task is shown as progress."""
    seen: list[tuple[int, int]] = []
    results = OwnProcess(lambda: False).run(
        [lambda _: "a", lambda _: "b"], lambda *each: seen.append(each)
    )
    assert results == ["a", "b"]
    assert seen == [(0, 2), (1, 2), (2, 2)]


@promise("5 slices")
def test_no_two_attempts_have_the_same_number() -> None:
    """One load may run tasks both on Spark and in the loader's own process. For example, some
    slices of a load on Spark must run again, and they are few enough for the loader's own process.
    No two attempts at a task have the same number, so no attempt writes to the file of another
    attempt."""
    here, attempts = OwnProcess(lambda: False), [lambda attempt: attempt] * 2
    found = here.run(attempts, told) + here.run(attempts, told)
    assert len(set(found)) == 4
    assert min(found) > FIRST_ATTEMPT > 1 << 31


def test_the_request_to_end_counts_before_each_task() -> None:
    """If a shutdown is requested while a task runs in the loader's own process, this task is
    completed, and no other task begins."""
    ran: list[int] = []

    def ask(_attempt: int) -> None:
        ran.append(_attempt)

    with pytest.raises(Interrupted):
        OwnProcess(lambda: bool(ran)).run([ask, ask], told)
    assert len(ran) == 1


@pytest.mark.parametrize(
    "error",
    [
        Unreachable("no broker answers"),
        SkidwayError("the disk is full"),
        ConfigurationRefused("output: no"),
    ],
)
def test_an_error_is_the_same_as_from_spark(error: SkidwayError) -> None:
    """If a task in the loader's own process fails, its error has the same class, exit status and
    message as an error that comes back through Spark."""

    def fails(_attempt: int) -> None:
        raise error

    with pytest.raises(SkidwayError) as raised:
        OwnProcess(lambda: False).run([fails], told)
    through_spark = failure(RuntimeError(str(TaskFailed(error))), "/tmp")
    assert (type(raised.value), str(raised.value)) == (type(through_spark), str(through_spark))


def test_an_unexpected_error_ends_only_its_load() -> None:
    """If a task raises an unexpected exception, the load fails with an error message, as it would
    on Spark. The process and the other topics continue."""

    def fails(_attempt: int) -> None:
        raise MemoryError("64 GB are too much")

    with pytest.raises(SkidwayError, match="a task failed: MemoryError: 64 GB"):
        OwnProcess(lambda: False).run([fails], told)


def test_connections_are_not_used_again_after_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    """A resident loader (a process that makes one run after another) keeps its connections to the
    output and to the registry between loads. After a task has failed, the next task opens new
    connections."""
    opened: list[str] = []
    monkeypatch.setattr(StoreConnection, "store", lambda self: opened.append(self.url))

    def uses(_attempt: int) -> None:
        task._store(StoreConnection("memory:"))

    def fails(attempt: int) -> None:
        uses(attempt)
        raise SkidwayError("broken pipe")

    task.forget()
    here = OwnProcess(lambda: False)
    here.run([uses, uses], told)
    assert len(opened) == 1
    with pytest.raises(SkidwayError):
        here.run([fails], told)
    here.run([uses], told)
    assert len(opened) == 2
    task.forget()


def test_spark_ends_when_runs_do_not_need_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A resident loader (a process that makes one run after another) stops Spark after several
    consecutive runs without a task for Spark. A run that needs Spark sets the count of these runs
    back to zero."""
    runner, stopped = SparkRunner(settings(0), lambda: False), []

    def stop() -> None:
        stopped.append(runner._session)
        runner._session = None

    monkeypatch.setattr(runner, "_stop", stop)
    monkeypatch.setattr(runner, "_rows", lambda *_: [])
    monkeypatch.setattr("skidway.loader.spark.session.is_alive", lambda _: True)
    for _ in range(2):
        runner._session = "a session"
        runner.run_work([lambda _: None], told, 1)
        runner.end_run()
        for _ in range(UNUSED_RUNS_MAX - 1):
            runner.end_run()
        assert stopped == []
    runner.end_run()
    runner.end_run()
    assert stopped == ["a session"]
