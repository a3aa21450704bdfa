"""Operators see the progress of a running load in a line on the terminal, or in events in the
log."""

from __future__ import annotations

import io
import json
import sys

import pytest

from skidway import log
from skidway.loader.runs.progress_display import (
    EVENT,
    LOG_EVERY_S,
    LoggedProgress,
    ProgressLine,
    duration,
    words,
)
from skidway.loader.runs.run_progress import LOAD, MARK, Figures
from support.clock import ManualClock

HALF = Figures("logs", LOAD, 13, 8_000_000, 20_000_000, 400_000, 30, 20, 50, 2, 7_900_000)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_the_log_has_the_figures_at_a_bounded_rate(capsys: pytest.CaptureFixture[str]) -> None:
    """If the output is not a terminal, the log gets an event when a load begins, and then at most
    one event in ten seconds. The fields of the events have the same figures as the line on a
    terminal."""
    log.configure("loader", stream=sys.stderr)
    clock = ManualClock()
    show = LoggedProgress(clock)
    for _ in range(100):
        show(HALF)
        clock.advance(LOG_EVERY_S / 50)
    show(Figures("logs", LOAD, 14, 9_000_000, 20_000_000))
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [line["event"] for line in lines] == [EVENT] * 3
    assert [line["load"] for line in lines] == [13, 13, 14]
    assert lines[0].items() >= HALF.document().items()


def test_a_line_has_all_that_an_operator_asks() -> None:
    """The loader's progress line shows the rate, the time left, which load is running, and how many
    of its slices are finished. If a value is not known, the line says so."""
    assert words(HALF) == "records, 400,000/s, 30s left, load 13: 20 of 50 slices"
    begun = Figures("logs", LOAD, 13, 0, 20_000_000, slices_total=50)
    assert words(begun) == "records, unknown rate, time left unknown, load 13: 0 of 50 slices"
    marking = Figures("logs", MARK, seconds_left=90, slices=3, slices_total=9)
    assert words(marking) == "groups of files (mark), 1m 30s left"


def test_each_topic_has_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a terminal, one line shows the progress of a topic. The loader overwrites this line during
    all loads of the topic. The next topic begins a new line. At the end the cursor moves to a new
    line."""
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("COLUMNS", "80")
    line = ProgressLine()
    for load, records in ((1, 10), (2, 20)):
        line(Figures("logs", LOAD, load, records, 20))
    line(Figures("other", LOAD, 1, 5, 5))
    line.end()
    line.end()
    shown = terminal.getvalue()
    assert shown.count("\n") == 2
    assert [part.count("\r") for part in shown.split("\n")] == [2, 1, 0]
    assert "20 of 20  records, unknown rate, time left unknown" in shown.split("\n")[0]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0s"), (59, "59s"), (60, "1m"), (200, "3m 20s"), (7_500, "2h 5m"), (349_200, "4d 1h")],
)
def test_durations_are_short(seconds: int, text: str) -> None:
    """A duration is shown with its two largest units."""
    assert duration(seconds) == text
