"""Tests which hours the loader chooses in a run. The loader asks the audit's collector whether the
chosen hours are complete."""

from __future__ import annotations

from skidway.loader.complete_hours import choice
from skidway.loader.complete_hours.collector import Answer
from skidway.loader.state import layout

NOW = 1_000_000 * layout.HOUR_MS + 5
GOOD, BAD = Answer(True, 10), Answer(False, 10)


def text(back: int) -> str:
    """Returns, as text, the hour that began `back` hours before the current hour."""
    return layout.hour_text(1_000_000 - back)


def test_the_hours_that_are_over_end_with_the_last_one() -> None:
    """The newest hour that counts as over is the hour before the current hour."""
    assert choice.over(NOW, 2) == [text(2), text(1)]
    assert choice.over(NOW - 5, 1) == [text(1)], "an hour is over when the next one begins"


def test_it_asks_about_hours_that_are_over() -> None:
    """The loader asks the audit's collector about two kinds of hours: hours with rows that have no
    success file (`_SUCCESS`) yet, and other hours whose success file the run has looked for and not
    found (it may have been deleted). A run asks about each hour only once. The run leaves out hours
    that are not over, and older hours that the collector has found incomplete."""
    judged = {text(90): BAD, text(2): GOOD}
    found = choice.asked([text(9), text(90), text(0), text(-1)], [text(9), text(2)], judged, NOW)
    assert found == [text(9), text(2)]


def test_recent_hours_that_were_incomplete_are_asked_about_in_turn() -> None:
    """Each run asks the collector about all recent hours without a `_SUCCESS`, except those that
    the collector has judged incomplete. Such a judgement may be old. So each run also asks again
    about a few of these incomplete hours, drawn at random."""
    judged = {text(back): BAD for back in range(2, 25)}
    hours, seen = [*judged, text(1)], set[str]()
    for run in range(100):
        found = choice.asked(hours, (), judged, NOW + 1_000 * run)
        assert len(found) == 1 + choice.DRAWN_MAX
        assert text(1) in found
        seen |= set(found)
    assert seen == set(hours)


def test_old_hours_hold_back_neither_new_hours_nor_each_other() -> None:
    """If no hour has been judged, every run asks about all recent hours and about a few older
    hours, which are drawn at random. So each older hour is drawn in some run, even if the other
    hours stay incomplete. The order of the questions also changes from run to run, because a slow
    collector may answer only the first questions of a run."""
    hours = {text(back) for back in range(1, 200)}
    recent = set(choice.over(NOW, choice.RECENT_HOURS))
    seen: set[str] = set()
    first: set[str] = set()
    for run in range(200):
        found = choice.asked(hours, (), {}, NOW + 1_000 * run)
        assert recent <= set(found)
        assert len(found) == choice.RECENT_HOURS + choice.DRAWN_MAX
        first.add(found[0])
        seen |= set(found)
    assert seen == hours
    assert len(first) > 50


def test_hours_with_rows_come_first() -> None:
    """A run asks the audit's collector first about hours with rows, and then about hours without
    rows."""
    hours = {text(3), text(9)}
    found = choice.asked(hours, choice.over(NOW, choice.RECENT_HOURS), {}, NOW)
    assert set(found[:2]) == hours
    assert len(found) == choice.RECENT_HOURS


def test_it_looks_at_recent_hours_and_at_some_that_are_complete() -> None:
    """A run checks whether the recent hours have their success file (`_SUCCESS`). It also checks a
    few older complete hours, drawn at random, so that a deleted success file is noticed in some
    run."""
    judged = {text(back): GOOD if back % 2 else BAD for back in range(30, 160)}
    seen: set[str] = set()
    for run in range(100):
        found = choice.looked(judged, NOW + 1_000 * run)
        assert set(choice.over(NOW, choice.RECENT_HOURS)) <= set(found)
        assert len(found) == choice.RECENT_HOURS + choice.DRAWN_MAX
        seen |= set(found)
    good = {hour for hour in judged if judged[hour] is GOOD}
    assert seen == {*choice.over(NOW, choice.RECENT_HOURS), *good}
    assert choice.incomplete(judged) == [hour for hour in judged if judged[hour] is BAD]
