from __future__ import annotations

import io
import shlex
from pathlib import Path

import pytest

from skidway.demo.counts import BROKER, TIERS, Tiers
from skidway.demo.display import Display, show_addresses, show_tiers
from skidway.demo.programs import Programs
from skidway.demo.site import DEFAULT_PORTS, Site


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Time:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def test_a_file_gets_plain_lines() -> None:
    """If the demo's output is a file, it gets one line for each event, and one for the state (the
    counts of all tiers) if nothing else was printed for some seconds. These lines have no carriage
    returns and escape codes, and no state is printed twice."""
    out, time = io.StringIO(), Time()
    display = Display(out, time)
    display.say("begun")
    for second in range(30):
        time.now_s = float(second)
        display.state(["a table"], f"written {min(second, 12)}")
    assert out.getvalue() == "0:00  begun\n0:10  written 10\n0:20  written 12\n"


def test_a_terminal_sees_one_table_in_its_place() -> None:
    """On a terminal, the demo erases its table and draws it again, so that the table stays below
    the events."""
    out = Terminal()
    display = Display(out, Time())
    display.state(["head", "row 1"])
    display.say("event")
    display.state(["head", "row 2"])
    assert screen(out.getvalue()) == ["0:00  event", "head", "row 2"]


def test_an_empty_state_leaves_nothing_behind() -> None:
    """If a state (the content of the demo's table) is empty, the demo erases the table from a
    terminal. If the output is a file, the demo writes nothing."""
    for out in (Terminal(), io.StringIO()):
        time = Time()
        display = Display(out, time)
        display.state(["  agent ..."])
        time.now_s = 60.0
        display.state([])
        display.say("all are healthy")
        assert screen(out.getvalue()) == ["1:00  all are healthy"]


def test_a_narrow_terminal_wraps_no_line_of_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """The lines of the demo's table are cut to the terminal's width. Otherwise a part of a wrapped
    line would stay when the table is erased."""
    monkeypatch.setenv("COLUMNS", "20")
    out = Terminal()
    display = Display(out, Time())
    display.state(["x" * 100])
    display.state(["y" * 100])
    assert screen(out.getvalue()) == ["y" * 19]


def test_the_table_says_who_is_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The table has a line for each tier, with its lines and those that it still lacks, and marks a
    tier whose program was killed. A tier with repeated lines lacks none."""
    site = Site(tmp_path, DEFAULT_PORTS, "")
    tiers = Tiers(Programs(site, print))
    tiers.away.add(BROKER)
    counts = dict(zip(TIERS, (1_000, 900, 800, 1_020, 600, 0), strict=True))
    monkeypatch.setattr(Tiers, "measure", lambda _: counts)
    out = Terminal()
    show_tiers(Display(out, Time()), tiers)
    rows = [line.split() for line in screen(out.getvalue())[1:7]]
    assert rows[0] == ["written", "1,000"]
    assert rows[2:4] == [["broker", "800", "200", "killed"], ["mirror", "1,020", "0"]]


@pytest.mark.parametrize("is_tls", [False, True])
def test_people_are_told_how_they_reach_a_demo_with_tls(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], is_tls: bool
) -> None:
    """With TLS, the demo prints the profile and the options for people who look at what goes on
    running, so that a shell can take them. Without TLS, nobody needs them."""
    site = Site(tmp_path / "my demo", DEFAULT_PORTS, "", is_tls=is_tls)
    show_addresses(site)
    said = capsys.readouterr().out
    assert f"broker-dc1       {site.address('broker-dc1')}\n" in said
    assert ("kcat" in said) is is_tls
    if is_tls:
        *_, profile, kcat = (shlex.split(line) for line in said.splitlines())
        assert profile == ["export", f"SKIDWAY_PROFILE={site.profile}"]
        assert f"ssl.key.location={site.certificates / 'person.key'}" in kcat


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
