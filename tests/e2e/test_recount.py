"""A recount counts the rows in the output's files. So it checks the audit's verdict without
trusting what the loader has counted."""

from __future__ import annotations

import pytest

from support.trials import Stage, Stories, Story, Told, Trial

STORIES = Stories()


@pytest.mark.parametrize("story", STORIES, ids=str)
def test_the_recount_agrees(stage: Stage, story: Story) -> None:
    """Runs one story. A story is a function of this module. It sends lines, and then checks that
    the rows are as its docstring says."""
    stage.result(story)


@STORIES.add()
def rows_of_all_stories_counted_again(trial: Trial) -> Told:
    """This story runs after the stories of the other modules, which cause faults. Still, a recount
    of the output's files finds exactly as many rows as every tier (agent, broker, mirror and HDFS)
    has counted."""
    trial.write("app.log", 100)
    trial.settle()
    yield
    trial.write("app.log", 100)
    trial.settle()
    yield
    trial.expect_exactly()
    trial.expect_complete()
    trial.expect_recounted()
