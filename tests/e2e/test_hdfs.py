"""The loader can write its output to a real HDFS with a NameNode and a DataNode of Apache
Hadoop."""

from __future__ import annotations

import pytest

from support.hdfs import Hdfs
from support.pipeline import Pipeline
from support.proxy import Fault, produces
from support.trials import Stage, Stories, Story, Told, Trial, chosen

pytestmark = [pytest.mark.e2e, pytest.mark.java]
STORIES = Stories(stage="hdfs")


@pytest.fixture(scope="module")
def stage(request: pytest.FixtureRequest, pipeline: Pipeline, hdfs: Hdfs) -> Stage:
    """A stage on which the loader writes its output to HDFS."""
    return Stage(pipeline, chosen(request, "hdfs"), f"{hdfs.url}/skidway").tell()


@pytest.mark.parametrize("story", STORIES, ids=str)
def test_rows_on_hdfs_are_the_lines(stage: Stage, story: Story) -> None:
    """Runs one story. A story is a function of this module that sends lines, and then checks that
    the rows are as its docstring says."""
    stage.result(story)


@STORIES.add()
def one_load_after_the_other_on_hdfs(trial: Trial) -> Told:
    """After each load, the rows on HDFS are exactly the written lines."""
    trial.write("app.log", 5000)
    trial.settle()
    yield
    trial.expect_exactly()
    trial.write("app.log", 5000)
    trial.settle()
    yield
    trial.expect_exactly()
    trial.expect_complete()


@STORIES.add()
def batch_of_a_dead_agent_after_its_lines_are_on_hdfs(trial: Trial) -> Told:
    """If a batch of a killed agent arrives after its lines were loaded, the loader drops the
    repeated lines. It recognizes these lines by its marks, which it reads from HDFS. The marks say
    which lines are already loaded."""
    held = trial.proxy.inject(Fault.HOLD_REQUEST, produces(trial.topic), times=1)
    trial.write("app.log", 1000)
    held.wait_for_hit()
    trial.pipeline.restart("agent")
    trial.settle()
    yield
    trial.expect_exactly()
    held.release()
    trial.wait_appended(1001)
    trial.write("app.log", 100)
    trial.settle()
    yield
    trial.expect_exactly()
    assert trial.loaded()["repeats"] > 0
    trial.expect_complete()
    trial.expect_recounted()
