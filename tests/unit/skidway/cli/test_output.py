from __future__ import annotations

import json

import pytest

from skidway.cli import output


def test_table_aligns_columns() -> None:
    """In a table, numbers are aligned right and have commas between thousands. Strings are aligned
    left. Null is shown as a dash."""
    rows = [
        {"topic": "hdfs-logs", "records": 1234567, "complete": True, "why": None},
        {"topic": "x", "records": 5, "complete": False, "why": ["a", "b"]},
    ]
    assert output.render_table(rows, ["topic", "records", "complete", "why"]) == (
        "TOPIC        RECORDS  COMPLETE  WHY\n"
        "hdfs-logs  1,234,567  yes       -\n"
        "x                  5  no        a, b\n"
    )


def test_table_without_rows_is_its_head() -> None:
    """A table without rows still shows its head. An underscore in a column's name is shown as a
    space."""
    assert output.render_table([], ["base_offset", "size"]) == "BASE OFFSET  SIZE\n"


def test_control_characters_are_escaped() -> None:
    """Control characters in a cell, for example in the name of a file, change neither the table nor
    the colors of the terminal. Letters of all languages stay."""
    rows = [{"path": "/log/\x1b[31mred\n\udcff.log"}, {"path": "/log/größe.log"}]
    assert output.render_table(rows, ["path"]) == (
        "PATH\n/log/\\x1b[31mred\\n\\udcff.log\n/log/größe.log\n"
    )


def test_rows_as_json_hold_the_same_columns(capsys: pytest.CaptureFixture[str]) -> None:
    """With --json each row is an object with exactly the table's columns."""
    output.print_rows([{"a": 1, "hidden": 2}], ["a", "b"], as_json=True)
    assert json.loads(capsys.readouterr().out) == [{"a": 1, "b": None}]
    output.print_rows([{"a": 1}], ["a"], as_json=False)
    assert capsys.readouterr().out == "A\n1\n"


def test_progress_line_tells_how_far_it_is() -> None:
    """A progress line has a bar (if there is room for it), a percentage of at most 100, the count
    and the total. If the total is unknown, the line has only the count."""
    half = output.progress_line("loading", 500, 1000, "x")
    assert half == "loading  [##########..........]  50%  500 of 1,000  x"
    bare = output.progress_line("loading", 500, 1000, "x", has_bar=False)
    assert bare == "loading   50%  500 of 1,000  x"
    assert "100%" in output.progress_line("loading", 2000, 1000)
    assert output.progress_line("loading", 2000, 0) == "loading  2,000"


def test_progress_without_terminal_is_a_line_now_and_then(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """If the output is not a terminal, only a few progress lines are printed, but always the last
    one. These lines have no control characters."""
    with output.Progress("loading", 1000, plain_every_s=3600) as progress:
        for done in range(0, 1001, 10):
            progress.show(done)
    err = capsys.readouterr().err
    assert "\r" not in err
    assert err.count("\n") == 2
    assert "1,000 of 1,000" in err


def test_without_a_terminal_nothing_is_said_twice(capsys: pytest.CaptureFixture[str]) -> None:
    """If the output is not a terminal, a long wait prints one line whenever its state changes, and
    no other lines."""
    with output.Progress("hosts proven", 2, plain_every_s=0) as progress:
        for done, note in [(0, "a, b"), (0, "a, b"), (1, "b"), (1, "b"), (1, "b"), (1, "a")]:
            progress.show(done, note)
    assert [line.split("2  ")[1] for line in capsys.readouterr().err.splitlines()] == [
        "a, b", "b", "a",
    ]  # fmt: skip
