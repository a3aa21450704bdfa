"""Skidway loads logs of real systems. Every line becomes a row with the right fields and the right
time."""

from __future__ import annotations

import csv
import re
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from support.trials import Stage, Stories, Story, Told, Trial

LOGS = Path(__file__).parents[1] / "data" / "logs"
FORMATS: dict[str, tuple[str, list[str], str]] = {
    "apache": (
        r"\[(?P<Time>[^\]]*)\] \[(?P<Level>[a-z]+)\] (?P<Content>.*)",
        ["Time"],
        "%a %b %d %H:%M:%S %Y",
    ),
    "hadoop": (
        r"(?P<Date>\S+) (?P<Time>\S+) (?P<Level>[A-Z]+) \[(?P<Process>.*?)\] "
        r"(?P<Component>[^ ]*): (?P<Content>.*)",
        ["Date", "Time"],
        "%Y-%m-%d %H:%M:%S,%f",
    ),
    "hdfs": (
        r"(?P<Date>\d{6}) (?P<Time>\d{6}) (?P<Pid>\d+) (?P<Level>[A-Z]+) "
        r"(?P<Component>[^:]+): (?P<Content>.*)",
        ["Date", "Time"],
        "%y%m%d %H%M%S",
    ),
    "linux": (
        r"(?P<Month>[A-Z][a-z]+) +(?P<Day>\d+) (?P<Time>\S+) (?P<Host>\S+) "
        r"(?P<Component>[^:\[]*)(?:\[(?P<Pid>\d+)\])?: (?P<Content>.*)",
        ["Month", "Day", "Time"],
        "%b %d %H:%M:%S",
    ),
    "openssh": (
        r"(?P<Date>[A-Z][a-z]+) +(?P<Day>\d+) (?P<Time>\S+) (?P<Component>\S+) "
        r"sshd\[(?P<Pid>\d+)\]: (?P<Content>.*)",
        ["Date", "Day", "Time"],
        "%b %d %H:%M:%S",
    ),
    "spark": (
        r"(?P<Date>\S+) (?P<Time>\S+) (?P<Level>[A-Z]+) (?P<Component>[^:]+): (?P<Content>.*)",
        ["Date", "Time"],
        "%y/%m/%d %H:%M:%S",
    ),
    "zookeeper": (
        r"(?P<Date>\S+) (?P<Time>\S+) - (?P<Level>[A-Z]+) +\[(?P<Thread>.*):"
        r"(?P<Class>[^:@]*)@(?P<Line>\d+)\] - (?P<Content>.*)",
        ["Date", "Time"],
        "%Y-%m-%d %H:%M:%S,%f",
    ),
}


def told(trial: Trial) -> Told:
    """Every line of the log becomes a row. The row's fields and time are those that other parsers
    find in the line."""
    name = trial.story.name
    log = trial.folder / f"{name}.log"
    shutil.copyfile(LOGS / log.name, log)
    trial.oracle.bytes = log.stat().st_size
    trial.settle()
    yield
    rows = sorted(trial.rows().to_pylist(), key=lambda row: int(row["_offset"]))
    lines = log.read_bytes().splitlines(keepends=True)
    expect_tiled(rows, [len(line) for line in lines])
    pattern, time_fields, time_format = FORMATS[name]
    for row, line in zip(rows, lines, strict=True):
        match = re.fullmatch(pattern, line.decode().rstrip("\r\n"))
        assert match is not None, line
        assert {field: row[field] for field in match.groupdict()} == match.groupdict(default="")
        expect_time(row["_timestamp"], " ".join(match[field] for field in time_fields), time_format)
    expect_truth(name, rows)
    trial.expect_complete()


def expect_tiled(rows: list[dict[str, Any]], lengths: list[int]) -> None:
    """Asserts that the rows' byte ranges follow each other without gaps and cover the whole file,
    whose lines have these lengths in bytes."""
    begins = [sum(lengths[:at]) for at in range(len(lengths))]
    assert [(row["_offset"], row["_length"]) for row in rows] == list(
        zip(begins, lengths, strict=True)
    )


def expect_time(found: datetime, text: str, format: str) -> None:
    """Asserts that `found`, a row's time, is the time in `text`. If `format` has no year, `text` is
    read as a time in the year of `found`."""
    if "%y" in format.lower():
        assert found == datetime.strptime(text, format).replace(tzinfo=UTC)
    else:
        wanted = datetime.strptime(f"{found.year} {text}", f"%Y {format}").replace(tzinfo=UTC)
        assert found == wanted


def expect_truth(name: str, rows: list[dict[str, Any]]) -> None:
    """Asserts that the rows' fields equal the fields that an independent parser found. Does nothing
    if there are no results of such a parser for this log."""
    path = LOGS / f"{name}.truth.csv"
    if not path.exists():
        return
    with path.open(newline="") as file:
        truth = list(csv.DictReader(file))
    fields = re.compile(FORMATS[name][0]).groupindex
    for row, wanted in zip(rows, truth, strict=True):
        for field in fields:
            assert row[field].strip() == wanted[field].strip()


def source_of(name: str) -> dict[str, Any]:
    pattern, time_fields, time_format = FORMATS[name]
    return {
        "parser": {"type": "regex", "pattern": pattern},
        "timestamp": {"fields": time_fields, "format": time_format},
    }


STORIES = Stories(Story(name, told, source_of(name)) for name in FORMATS)


@pytest.mark.parametrize("story", STORIES, ids=str)
def test_every_line_of_a_real_log_is_a_row(stage: Stage, story: Story) -> None:
    """Every line of a real log becomes a row, with the fields that independent parsers found in the
    line."""
    stage.result(story)
