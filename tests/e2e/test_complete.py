"""A job that asks `skidway audit complete` before it reads the rows of a topic."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from support.promises import promise
from support.trials import Stage, Stories, Story, Told, Trial

pytestmark = pytest.mark.e2e
STORIES = Stories()


@promise("6 complete before a time")
@pytest.mark.parametrize("story", STORIES, ids=str)
def test_a_job_asks(stage: Stage, story: Story) -> None:
    """Each story (a function of this module that asks before and after a load) keeps its promise,
    which is the story's docstring."""
    stage.result(story)


def asked(trial: Trial, until: datetime, wait: str) -> dict[str, Any]:
    """The answer for the ten minutes before a time."""
    since = until - timedelta(minutes=10)
    options = ["--since", since.isoformat(), "--until", until.isoformat(), "--wait", wait]
    return trial.pipeline.audit("complete", "--topic", trial.topic, *options)


@STORIES.add()
def rows_that_are_asked_for_before_and_after_the_load(trial: Trial) -> Told:
    """As long as rows are not loaded, the answer is no, and says how many are missing in the
    output. After the load it is yes, and counts exactly the rows in the files."""
    trial.write("app.log", 200)
    trial.settle()
    until = datetime.fromtimestamp(time.time() + 1, UTC)
    trial.pipeline.wait_mirrored(trial.topics)
    before = asked(trial, until, "5s")
    assert not before["ok"]
    assert {"tier": "hdfs"}.items() <= before["topics"][0]["lacking"][0].items(), before
    yield
    after = asked(trial, until, "60s")
    assert after["ok"], after["sentences"]
    assert sum(each["records"] for each in after["topics"]) == trial.rows().num_rows == 200
