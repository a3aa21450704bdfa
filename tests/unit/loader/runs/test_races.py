"""When two loaders load the same topic at once, the slower loader ends with success if the other
loader has loaded everything."""

from __future__ import annotations

import pytest

from skidway.loader.runs.attempt import LostRace
from skidway.loader.runs.outcome import Report, TopicOutcome
from skidway.loader.runs.topic_loads import RACES_MAX
from support.memory_loading import MemoryLoading
from support.promises import promise

LINES = 700
STEP = LINES // RACES_MAX


@pytest.fixture
def loading() -> MemoryLoading:
    made = MemoryLoading()
    made.write(LINES, batch_records=10)
    return made


def raced(loading: MemoryLoading, step: int) -> TopicOutcome:
    """Makes a run that loads to the end of the topic, and returns its outcome. Whenever the run's
    tasks run, another loader commits the next `step` offsets."""
    ends = iter(range(step, LINES + 1, step))
    return loading.run_beside(lambda: loading.run(until=next(ends)))


@promise("5 race")
def test_who_lost_every_race_is_good_once_all_is_loaded(loading: MemoryLoading) -> None:
    """Another loader may commit first at every attempt of a run. If that loader has loaded
    everything that was in the topic when the run started, the run ends with exit status 0 and a
    note."""
    outcome = raced(loading, STEP)
    report = Report([outcome])
    assert (report.exit_code, outcome.loads) == (0, [])
    (note,) = report.document()["topics"][0]["notes"]
    assert "logs: another loader was faster and has loaded what was left" in note


@promise("5 race")
def test_who_loses_every_race_with_work_left_fails(loading: MemoryLoading) -> None:
    """If another loader commits first at every attempt of a run, and records are left to load, the
    run fails after the allowed number of attempts. The next run loads the rest."""
    outcome = raced(loading, 10)
    (problem,) = outcome.problems
    assert isinstance(problem, LostRace)
    assert "there is more to load" in str(problem)
    assert (Report([outcome]).exit_code, outcome.notes) == (1, [])
    left = LINES - len(loading.rows())
    assert left > 0
    outcome = loading.run()
    assert (Report([outcome]).exit_code, outcome.rows) == (0, left)
    assert [row["line"] for row in loading.rows()] == [f"line {at}" for at in range(LINES)]


def test_who_was_alone_has_nothing_to_say(loading: MemoryLoading) -> None:
    """If no other loader commits during a run, the outcome of the run contains no note about
    another loader, whether the run loads records or finds nothing new."""
    assert [loading.run().notes, loading.run().notes] == [[], []]
