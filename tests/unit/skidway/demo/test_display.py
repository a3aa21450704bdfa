from __future__ import annotations

import io

import pytest

from skidway.demo.display import Display


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Time:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def test_a_file_gets_plain_lines() -> None:
    """If the demo's output is a file, it gets one line for each state (the counts of all tiers) and
    one for each event, without carriage returns and escape codes."""
    out = io.StringIO()
    display = Display(out, Time())
    display.say("begun")
    display.state(["written 1"])
    display.say("kill -9 7: agent")
    display.state(["written 2"])
    display.end_state()
    assert (
        out.getvalue() == "0:00  begun\n0:00  written 1\n0:00  kill -9 7: agent\n0:00  written 2\n"
    )


def test_a_file_gets_few_states() -> None:
    """If the output is a file, a demo of ten minutes on a slow machine prints at most a dozen
    lines, and prints no state (content of the demo's table) twice."""
    out, time = io.StringIO(), Time()
    display = Display(out, time)
    for second in range(600):
        time.now_s = float(second)
        if display.is_due():
            display.state([f"written {second}"])
            display.state([f"written {second}"])
    lines = out.getvalue().splitlines()
    assert 3 <= len(lines) <= 12
    assert len(set(lines)) == len(lines)


def test_a_terminal_sees_one_table_in_its_place() -> None:
    """On a terminal, the demo erases its table and draws it again, so that the table stays below
    the events."""
    out = Terminal()
    display = Display(out, Time())
    display.state(["head", "row 1"])
    display.say("event")
    display.state(["head", "row 2"])
    assert screen(out.getvalue()) == ["0:00  event", "head", "row 2"]


def test_the_last_table_stays() -> None:
    """After a call of `end_state`, the demo's table stays on the terminal, and later events are
    written below the table."""
    out = Terminal()
    display = Display(out, Time())
    display.state(["head", "row"])
    display.end_state()
    display.say("event")
    assert screen(out.getvalue()) == ["head", "row", "0:00  event"]


def test_an_empty_state_leaves_nothing_behind() -> None:
    """If a state (the content of the demo's table) is empty, the demo erases the table from a
    terminal. If the output is a file, the demo writes nothing."""
    for out in (Terminal(), io.StringIO()):
        display = Display(out, Time())
        if out.isatty():
            display.state(["  agent ..."])
        display.state([])
        display.say("all are healthy")
        assert screen(out.getvalue()) == ["0:00  all are healthy"]


def test_a_narrow_terminal_wraps_no_line_of_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """The lines of the demo's table are cut to the terminal's width. Otherwise a part of a wrapped
    line would stay when the table is erased."""
    monkeypatch.setenv("COLUMNS", "20")
    out = Terminal()
    display = Display(out, Time())
    display.state(["x" * 100])
    display.state(["y" * 100])
    assert screen(out.getvalue()) == ["y" * 19]


def screen(written: str) -> list[str]:
    """Returns the lines that a terminal shows after it got `written`. The terminal supports the
    escape sequences \x1b[nF and \x1b[J."""
    lines: list[str] = [""]
    for at, part in enumerate(written.split("\x1b[")):
        if at and part.startswith("J"):
            lines, text = [*lines[:-1], ""], part[1:]
        elif at:
            up, text = part.split("F", 1)
            assert not text
            lines = [*lines[: -int(up) - 1], ""]
        else:
            text = part
        first, *more = text.split("\n")
        lines = [*lines[:-1], lines[-1] + first, *more]
    return lines[:-1]
