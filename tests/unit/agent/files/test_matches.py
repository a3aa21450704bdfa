"""Which sources have ever had a file."""

from __future__ import annotations

from skidway.agent.files.matches import Match, Matches, key_of
from skidway.agent.files.patterns import patterns_of
from skidway.agent.files.sources import TailedSource


def source() -> TailedSource:
    return TailedSource("logs", "t", tuple(patterns_of(["/log/*"])), b"")


def look(matches: Matches, *, finds: bool, now_ms: int) -> None:
    matches.begin_look()
    if finds:
        matches.found(source())
    matches.end_look([source()], lambda: (), now_ms)


def test_a_file_that_came_and_went_between_two_looks_counts() -> None:
    """A source whose file was seen by an event, and was gone at the next look through all patterns,
    has had a file; the state is told so."""
    matches = Matches()
    matches.load({}, 1)
    look(matches, finds=False, now_ms=5)
    assert matches.never_matched() == {"logs": 5}
    list(matches.take_changed())
    matches.found(source())
    assert list(matches.take_changed()) == [(key_of(source()), Match(5, 1, has_matched=True))]
    look(matches, finds=False, now_ms=9)
    assert matches.never_matched() == {}
