"""Tests the exit status with which a run of the loader ends."""

from __future__ import annotations

from skidway.errors import SkidwayError, StateRefused
from skidway.kafka.errors import BrokerUnreachable
from skidway.loader.runs.outcome import Report, TopicOutcome


def test_the_gravest_problem_is_the_status() -> None:
    """The most serious problem of a run gives the exit status. For example, if one topic is missing
    and another topic's broker is unreachable, the exit status is that of the unreachable broker. A
    state that the loader refuses (StateRefused), for example because a topic was created again, is
    more serious than both."""
    missing, away = SkidwayError("there is no topic"), BrokerUnreachable("nobody answered")
    report = Report([TopicOutcome("a", problems=[missing]), TopicOutcome("b", problems=[away])])
    assert report.exit_code == 3
    report.outcomes.append(TopicOutcome("c", problems=[StateRefused("made again"), away]))
    assert report.exit_code == 65
    assert Report([TopicOutcome("a", problems=[missing])]).exit_code == 1
    assert Report([TopicOutcome("a")]).exit_code == 0
