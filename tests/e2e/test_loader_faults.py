"""If the loader is killed at any step, or two loaders run at once, each line still becomes exactly
one row."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from skidway.demo.site import DATACENTER
from support.pipeline import LOAD_WITHIN_S, ON_SPARK, lines_of, report_of
from support.processes import Program, eventually
from support.promises import promise
from support.trials import Stage, Stories, Story, Told, Trial

STORIES = Stories()
LINES = 20_000
HOURS = 400


@promise("all programs")
@pytest.mark.parametrize("story", STORIES, ids=str)
def test_no_line_is_lost_or_doubled(stage: Stage, story: Story) -> None:
    """Runs one story. A story is a function of this module. It causes a fault, and then checks that
    the rows are as its docstring says."""
    stage.result(story)


@STORIES.add()
def loader_killed_between_writing_and_committing(trial: Trial) -> Told:
    """If a load is killed after it has written its files and before its commit, none of its rows is
    visible. The next load writes all rows again. The load after that removes the killed load's
    files from `staging`, the folder of files that are not committed.
    """
    trial.write("app.log", LINES)
    trial.settle()
    loader = stopped_when(trial, lambda: bool(staged(trial)))
    eventually(lambda: staged_rows(trial) == LINES, what="the workers have written everything")
    assert not manifests(trial)
    loader.kill_session()
    assert trial.rows().num_rows == 0
    yield
    trial.expect_exactly()
    trial.expect_complete()
    assert staged(trial)
    yield
    assert not staged(trial)
    trial.expect_exactly()


@STORIES.add(
    parser={"type": "regex", "pattern": r"(?P<time>\S+) (?P<line>.*)"},
    timestamp={"fields": ["time"], "format": "rfc3339"},
)
def loader_killed_between_commit_and_moves(trial: Trial) -> Told:
    """If the loader is killed after a commit and before it has moved the committed files to their
    final places, the next run moves these files. The next run moves them even if there are no new
    records."""
    lines = [f"2026-01-{1 + n // 24 % 28:02}T{n % 24:02}:00:00Z line {n}" for n in range(HOURS)]
    trial.oracle.append("app.log", lines)
    trial.oracle.lines = [line.partition(" ")[2] for line in lines]
    trial.settle()
    loader = stopped_when(trial, lambda: bool(manifests(trial)))
    unmoved = staged(trial)
    loader.kill_session()
    assert unmoved
    seen = list(lines_of(trial.rows()))
    assert len(seen) == len(set(seen)) < HOURS
    yield
    assert not staged(trial)
    trial.expect_exactly()
    trial.expect_complete()


@STORIES.add()
def two_loads_at_once(trial: Trial) -> Told:
    """If two loads of the same records run at the same time, only the load that commits first adds
    its rows. The other load notices that it was too late, and adds no rows."""
    trial.write("app.log", LINES)
    trial.settle()
    slow = stopped_when(trial, lambda: bool(staged(trial)))
    assert not manifests(trial)
    fast = trial.loader().start()
    assert fast.wait(LOAD_WITHIN_S) == 0, fast.output()
    assert report_of(fast)[trial.topic]["rows"] == LINES
    slow.signal(signal.SIGCONT)
    assert slow.wait(LOAD_WITHIN_S) == 0, slow.output()
    assert report_of(slow)[trial.topic]["rows"] == 0
    assert '"event": "race_lost"' in slow.output()
    trial.expect_exactly()
    assert not staged(trial)
    trial.write("app.log", 100)
    trial.settle()
    yield
    trial.expect_exactly()
    trial.expect_complete()


def stopped_when(trial: Trial, happened: Callable[[], bool]) -> Program:
    """Starts a load, and suspends Spark's driver with SIGSTOP as soon as `happened` returns true.
    Spark's workers continue to run."""
    loader = trial.loader(*ON_SPARK).start()
    loader.wait_until(lambda: '"event": "spark_started"' in loader.output(), LOAD_WITHIN_S)
    loader.wait_until(happened, every_s=0.0005)
    loader.signal(signal.SIGSTOP)
    return loader


def state(trial: Trial) -> Path:
    return Path(trial.pipeline.site.output, "_skidway", f"{DATACENTER}.{trial.topic}")


def manifests(trial: Trial) -> list[Path]:
    return list(state(trial).glob("*.json"))


def staged(trial: Trial) -> list[Path]:
    """Returns the Parquet files with rows in `staging`, the folder of files that are not
    committed."""
    return list((state(trial) / "staging").glob("*/**/*.parquet"))


def staged_rows(trial: Trial) -> int:
    """Returns the number of rows in the files that `staged` returns, or -1 while one of these files
    is still being written."""
    try:
        return sum(pq.read_metadata(path).num_rows for path in staged(trial))
    except pa.ArrowInvalid:
        return -1
