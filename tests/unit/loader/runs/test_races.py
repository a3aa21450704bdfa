"""Two loads at once: who was slower ends well where nothing is left to do."""

from __future__ import annotations

import pytest

from skidway.loader.runs.outcome import Outcome, Report
from skidway.loader.runs.topic_load import LostRace
from skidway.loader.runs.topic_run import RACES_MAX
from support.memory_loading import MemoryLoading
from support.promises import promise

LINES = 700
STEP = LINES // RACES_MAX


@pytest.fixture
def loading() -> MemoryLoading:
    made = MemoryLoading()
    made.write(LINES, batch_records=10)
    return made


def raced(loading: MemoryLoading, step: int) -> Outcome:
    """A run to the end of the topic. Whenever its tasks run another loader commits the next `step`
    offsets."""
    ends = iter(range(step, LINES + 1, step))
    return loading.run_beside(lambda: loading.run(until=next(ends)))


@promise("5 race")
def test_who_lost_every_race_is_good_once_all_is_loaded(loading: MemoryLoading) -> None:
    """The other one has loaded what there was at this run's start: status 0, and a sentence."""
    outcome = raced(loading, STEP)
    report = Report([outcome])
    assert (report.exit_code, outcome.loads) == (0, [])
    (note,) = report.document()["topics"][0]["notes"]
    assert "logs: another loader was faster and has loaded what was left" in note


@promise("5 race")
def test_who_loses_every_race_with_work_left_fails(loading: MemoryLoading) -> None:
    """It has tried as often as it may; the next run goes on."""
    outcome = raced(loading, 10)
    (problem,) = outcome.problems
    assert isinstance(problem, LostRace)
    assert "there is more to load" in str(problem)
    assert (Report([outcome]).exit_code, outcome.notes) == (1, [])


def test_who_was_alone_has_nothing_to_say(loading: MemoryLoading) -> None:
    """Neither where it loads nor where nothing has come."""
    assert [loading.run().notes, loading.run().notes] == [[], []]
