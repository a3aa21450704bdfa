"""Faults of the agent and on its way to the broker: none loses a line, none doubles one."""

from __future__ import annotations

import random

import pytest

from support.pipeline import Writer, seed
from support.proxy import Fault, produces
from support.trials import Stage, Stories, Story, Told, Trial

pytestmark = pytest.mark.e2e
STORIES = Stories()
KILLS = 3


@pytest.mark.parametrize("story", STORIES, ids=str)
def test_no_line_is_lost_or_doubled(stage: Stage, story: Story) -> None:
    """Each story's promise holds: see its docstring."""
    stage.result(story)


@STORIES.add()
def agent_killed_while_it_sends(trial: Trial) -> Told:
    """kill -9 in the middle of sending, again and again, while lines go on being written."""
    chance = random.Random(seed())
    with Writer(trial.oracle, "app.log"):
        for _ in range(KILLS):
            before = trial.appended()
            trial.wait_appended(before + chance.randrange(1, 3000))
            trial.pipeline.restart("agent")
    trial.settle()
    yield
    trial.expect_exactly()
    trial.expect_complete()


@STORIES.add()
def agent_killed_between_intent_and_send(trial: Trial) -> Told:
    """What was promised and never reached the broker is sent once, after the restart."""
    trial.write("app.log", 10)
    trial.settle()
    held = trial.proxy.inject(Fault.HOLD_REQUEST, produces(trial.topic))
    trial.write("app.log", 1000)
    held.wait_for_hit()
    trial.pipeline.kill("agent")
    held.drop()
    assert trial.appended() == 10
    trial.pipeline.start("agent")
    trial.settle()
    yield
    trial.expect_exactly()
    assert trial.loaded()["repeats"] == 0
    trial.expect_complete()


@STORIES.add()
def agent_killed_between_send_and_acknowledgement(trial: Trial) -> Told:
    """What the broker has and the agent does not know of is sent again, and counts once."""
    held = trial.proxy.inject(Fault.HOLD_ANSWER, produces(trial.topic))
    trial.write("app.log", 1000)
    held.wait_for_hit()
    trial.pipeline.kill("agent")
    held.drop()
    appended = trial.appended()
    assert appended > 0
    trial.pipeline.start("agent")
    trial.settle()
    assert trial.appended() == 1000 + appended
    yield
    trial.expect_exactly()
    assert trial.loaded()["repeats"] == appended
    trial.expect_complete()
