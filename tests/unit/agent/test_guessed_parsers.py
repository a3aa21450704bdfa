"""`skidway agent guess` proposes parsers for logs whose format is not in the catalog of formats."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from skidway import settings
from skidway.agent.commands.guess_report import render
from skidway.agent.commands.guessing import guess
from skidway.agent.commands.proposals import Guess
from skidway.agent.formats import catalog
from skidway.agent.settings import AgentSettings
from skidway.agent.unknown_logs.time_neighbours import continued
from skidway.agent.validation.checks import check_settings

CONFIG = """
bootstrap.servers: 127.0.0.1:9
schema.registry.url: http://127.0.0.1:9
state.dir: /nowhere
"""


def guessed(tmp_path: Path, *lines: str) -> Guess:
    """Guesses the format of lines, and checks that the agent accepts the settings that `guess`
    proposes."""
    log = tmp_path / "shop.log"
    log.write_text("".join(f"{line}\n" for line in lines))
    found = guess(log, 1_000)
    config = tmp_path / "agent.yml"
    config.write_text(CONFIG + found.yaml)
    check_settings(catalog.applied(settings.load(AgentSettings, config)))
    return found


@pytest.mark.parametrize(
    ("lines", "parser", "time"),
    [
        (
            ["id,name,price", '1,"a, b",2.5', "2,c,", "3,d,1", "4,e,7"],
            {"type": "csv", "columns": ["id", "name", "price"]},
            None,
        ),
        (
            ["User Id;At;Price (EUR)", *["7;2026-11-23 08:15:01;2,5"] * 5],
            {
                "type": "csv", "columns": ["User_Id", "At", "Price_EUR"],
                "header": "User Id;At;Price (EUR)", "delimiter": ";",
            },
            "At",
        ),
        (
            ["dt,hour,n", *["a,b,1"] * 5],
            {"type": "csv", "columns": ["dt_1", "hour_2", "n"], "header": "dt,hour,n"},
            None,
        ),
        (
            ["2026-11-23T08:15:01Z\t7\tx y", "2026-11-23T08:15:02Z\t8\tz"],
            {
                "type": "csv", "columns": ["column_1", "column_2", "column_3"], "delimiter": "tab"
            },
            "column_1",
        ),
        (
            ['ts=2026-11-23T08:15:01.5Z level=info msg="a b" user=7', "level=warn msg=x"],
            {"type": "logfmt", "columns": ["level", "msg"]},
            "ts",
        ),
        (
            ['2026-11-23T08:15:01Z INFO shop: {"user": "ann", "deep": {"a": 1}}'] * 3,
            {
                "type": "regex",
                "pattern": rf"(?P<time>\S+{continued('rfc3339')}) "
                    r"(?P<level>TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|"
                r"CRITICAL|FATAL)(?P<prefix>.*?)(?P<json>\{.*\})\s*",
                "json_field": "json",
            },
            "time",
        ),
        (
            ['shop[7]: {"user": "ann"}', "shop[8]: {}", "shop[9]: {}"],
            {
                "type": "regex", "pattern": r"(?P<prefix>.*?)(?P<json>\{.*\})\s*",
                "json_field": "json",
            },
            None,
        ),
    ],
)  # fmt: skip
def test_logs_without_a_name_are_guessed(
    lines: list[str], parser: dict[str, Any], time: str | None, tmp_path: Path
) -> None:
    """`guess` recognizes values with a delimiter, key=value pairs, and JSON after a prefix. It also
    finds the field that contains the time. The block of settings that it proposes works without
    changes."""
    found = guessed(tmp_path, *lines)
    assert found.block["parser"] == parser
    wanted = None if time is None else {"fields": [time], "format": "rfc3339"}
    assert found.block.get("timestamp") == wanted
    assert len(found.preview.rejects) <= 1
    assert "parser" in render(found)


@pytest.mark.parametrize(
    "lines",
    [
        ["alpha, beta", "gamma", "delta, epsilon, zeta"],
        ["user ann logged in from a=b", "user bob logged out after a long day"],
        ["a {b} c", "{}x", "x {1, 2}"],
        ["plain text"] * 5,
    ],
)
def test_text_is_no_table(lines: list[str], tmp_path: Path) -> None:
    """If lines contain some commas, equal signs or brackets, but have none of these formats,
    `guess` proposes plain text."""
    assert guessed(tmp_path, *lines).what == "text"


def test_a_format_with_a_name_goes_first(tmp_path: Path) -> None:
    """If a log has a format of the catalog, `guess` proposes this format, even if the log's
    messages contain JSON objects or key=value pairs."""
    lines = [
        "2026-11-21T08:15:01.123456+01:00 web7 shop[1]: " + json.dumps({"a": number, "b=c": "d=e"})
        for number in range(5)
    ]
    assert guessed(tmp_path, *lines).block["format"] == "syslog_iso"


def test_a_header_is_explained(tmp_path: Path) -> None:
    """If a log has a header, `guess` says that the header is left out. It mentions `_extra` only if
    rows have this field."""
    table = guessed(tmp_path, "id,name,price", *["1,a,2"] * 5)
    assert any("Each header is left out" in note for note in table.notes)
    assert not any("_extra" in note for note in table.notes)
    pairs = guessed(tmp_path, *["level=info msg=x user=7"] * 5)
    assert any("_extra" in note for note in pairs.notes)
    assert not any("header" in note for note in pairs.notes)


@pytest.mark.parametrize(
    ("line", "fields"),
    [
        ("2026-11-23 08:15:00,123 | INFO | worker-0 | up", ["column_1"]),
        ("INFO | 2026-11-23T08:15:00Z | up", ["column_2"]),
        ("INFO; 23.11.2026 ; 08:15:00 ; up", ["column_2", "column_3"]),
        ("[INFO] 2026/11/23 08:15:00 | worker-0 | up", ["time"]),
    ],
)
def test_a_time_between_blanks_and_delimiters(line: str, fields: list[str], tmp_path: Path) -> None:
    """`guess` finds a time in columns with blanks around them or, if the time is only a part of a
    column, as text around a time. A line with a time is no header."""
    found = guessed(tmp_path, line, *[line.replace(":00", f":0{n}") for n in range(1, 7)])
    assert found.block["timestamp"]["fields"] == fields
    times = [each.time for each in found.preview.rows]
    assert [time.isoformat()[:19] for time in times if time] == [
        f"2026-11-23T08:15:0{n}" for n in range(7)
    ]


@pytest.mark.parametrize("time", ["07/11/2026,09:15:10", "07/11/2026,09:15:10 AM"])
def test_columns_that_are_not_read_as_times_are_named(time: str, tmp_path: Path) -> None:
    """If no columns of a csv log are read as times, `guess` says so, also why if day and month may
    be exchanged."""
    found = guessed(tmp_path, *[f"a,{time},text {n}" for n in range(9)])
    assert "timestamp" not in found.block
    notes = " ".join(found.notes)
    assert "No columns are read as times" in notes
    assert "%d/%m/%Y" in notes
    assert "%m/%d/%Y" in notes
    assert "read as times" not in " ".join(
        guessed(tmp_path, *["2026-11-23T08:15:00Z,a,b"] * 5).notes
    )


def test_unknown_text_in_a_container_has_the_time_of_its_runtime(tmp_path: Path) -> None:
    """For text of no known format, `guess` says which time its records have: in a container's log,
    the runtime's time; otherwise, the time of reading."""
    found = guessed(tmp_path, *["2026-11-28T08:15:01.5Z stdout F plain text"] * 3)
    assert all(each.time for each in found.preview.rows)
    assert "the time that its runtime wrote" in found.notes[0]
    assert "has the time of reading" in guessed(tmp_path, *["plain text"] * 3).notes[0]
