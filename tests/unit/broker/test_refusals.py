"""Tests how the broker counts and names requests of APIs and versions that it does not offer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from skidway.broker.refusals import CLIENT_ID_MAX, Refusals
from skidway.rare_lines import LINES_MAX, REPEAT_AFTER_S
from support.clock import ManualClock

Lines = Callable[[], list[tuple[Any, ...]]]


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Lines:
    """Returns a function that returns the fields of each line that was logged."""

    def found() -> list[tuple[Any, ...]]:
        fields = [getattr(each, "skidway_fields") for each in caplog.records]  # noqa: B009
        return [tuple(each.values()) for each in fields]

    return found


def test_each_client_api_and_version_is_named_once_in_an_interval(lines: Lines) -> None:
    """Each host, client id, API and version has one line, whatever ports the client uses. After the
    interval there is another line, which says how many requests had none. All are counted."""
    clock = ManualClock()
    found = Refusals(clock.monotonic)
    for port in range(50):
        found.note(f"10.0.0.1:{port}", "old", "PRODUCE", 0)
    found.note("10.0.0.1:7", "old", "PRODUCE", 1)
    found.note("10.0.0.1:7", "old", "FETCH", 0)
    found.note("10.0.0.1:7", None, "FETCH", 0)
    found.note("10.0.0.2:7", "old", "FETCH", 0)
    assert lines() == [
        ("10.0.0.1", "old", "PRODUCE", 0, 0),
        ("10.0.0.1", "old", "PRODUCE", 1, 0),
        ("10.0.0.1", "old", "FETCH", 0, 0),
        ("10.0.0.1", None, "FETCH", 0, 0),
        ("10.0.0.2", "old", "FETCH", 0, 0),
    ]
    clock.advance(REPEAT_AFTER_S)
    found.note("10.0.0.1:99", "old", "PRODUCE", 0)
    assert lines()[5:] == [("10.0.0.1", "old", "PRODUCE", 0, 49)]
    assert found.counts == {"PRODUCE": 52, "FETCH": 3}


def test_clients_fill_neither_memory_nor_log(lines: Lines) -> None:
    """The broker remembers and names a limited number of clients and of characters of their names,
    whatever names they make up. It counts all APIs that it does not know together. When the
    interval is over, it names others."""
    clock = ManualClock()
    found = Refusals(clock.monotonic)
    for number in range(3 * LINES_MAX):
        found.note("h:1", f"{number} " + "x" * 30_000, "1000", 0)
    assert len(lines()) == LINES_MAX
    assert {len(line[1]) for line in lines()} == {CLIENT_ID_MAX}
    assert found.counts == {"unknown": 3 * LINES_MAX}
    clock.advance(REPEAT_AFTER_S)
    found.note("h:1", "later", "1000", 0)
    assert [line[1] for line in lines()[LINES_MAX:]] == ["later"]
