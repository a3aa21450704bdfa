"""Tests how the broker counts and names requests of APIs and versions that it does not offer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from skidway.broker import refusals
from skidway.broker.refusals import REPEAT_AFTER_S, Refusals
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


def test_clients_cannot_fill_the_memory(lines: Lines, monkeypatch: pytest.MonkeyPatch) -> None:
    """The broker remembers a limited number of clients and of characters of their names, and counts
    all APIs that it does not know together."""
    monkeypatch.setattr(refusals, "REMEMBERED_MAX", 3)
    found = Refusals(ManualClock().monotonic)
    for number in (1, 2, 3, 4, 1):
        found.note("h:1", "x" * 30_000, str(1000 + number), 0)
    assert [line[2] for line in lines()] == ["1001", "1002", "1003", "1004", "1001"]
    assert {len(line[1]) for line in lines()} == {refusals.CLIENT_ID_MAX}
    assert found.counts == {"unknown": 5}
