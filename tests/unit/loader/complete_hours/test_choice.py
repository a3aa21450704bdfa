"""Which hours the loader asks the collector about."""

from __future__ import annotations

from skidway.loader.complete_hours import choice
from skidway.loader.complete_hours.collector import Answer
from skidway.loader.state import layout

NOW = 1_000_000 * layout.HOUR_MS + 5
GOOD, BAD = Answer(True, 10), Answer(False, 10)


def text(back: int) -> str:
    """The hour that began so many hours before the current one."""
    return layout.hour_text(1_000_000 - back)


def test_the_hours_that_are_over_end_with_the_last_one() -> None:
    """The current hour is not over."""
    assert choice.over(NOW, 2) == [text(2), text(1)]
    assert choice.over(NOW - 5, 1) == [text(1)], "an hour is over when the next one begins"


def test_it_asks_about_hours_that_are_over_and_not_known_to_be_incomplete() -> None:
    """Hours with rows and recent hours without rows are asked about, each once. An hour that is not
    over, or that the collector has found incomplete, is not asked about."""
    judged = {text(3): BAD, text(2): GOOD}
    found = choice.asked([text(9), text(3), text(0), text(-1)], [text(9), text(2)], judged, NOW)
    assert found == [text(9), text(2)]


def test_no_hour_waits_for_ever_behind_others() -> None:
    """If there are too many hours for one run, every hour comes in some run, although the others
    stay."""
    hours = {text(back) for back in range(1, 200)}
    seen: set[str] = set()
    for run in range(100):
        found = choice.asked(hours, (), {}, NOW + 60_000 * run)
        assert len(found) == choice.ASKED_MAX
        assert found == sorted(found)
        seen |= set(found)
    assert seen == hours


def test_a_mark_goes_only_by_a_later_judgement() -> None:
    """An hour loses its mark if the collector found it incomplete after it had found it complete;
    an older judgement says nothing against the mark."""
    judged = {text(4): BAD, text(3): BAD, text(2): GOOD, text(1): BAD}
    marks = {text(4): 9, text(3): 10, text(2): 9}
    assert list(choice.reopened(judged, marks)) == [text(4)]
    assert choice.incomplete(judged) == [text(4), text(3), text(1)]
