"""Tests the commands `skidway unit list` and `skidway unit show`."""

from __future__ import annotations

import json

import pytest

from skidway import units
from skidway.cli import unit
from skidway.cli.commands import NOUNS, Parser
from skidway.errors import UsageError


def run(*arguments: str) -> int:
    parser = Parser()
    unit.register(parser.add_subparsers())
    args = parser.parse_args(["unit", *arguments])
    return int(args.run(args))


def test_show_prints_the_file_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    """`skidway unit show` prints the unit file byte for byte, so that the output can be written to
    /etc/systemd/system."""
    assert run("show", "broker") == 0
    assert capsys.readouterr().out == units.text("skidway-broker.service")


def test_list_names_every_unit(capsys: pytest.CaptureFixture[str]) -> None:
    """`skidway unit list` lists every unit, in a table or as JSON."""
    assert run("list") == 0
    table = capsys.readouterr().out
    assert run("list", "--json") == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["unit"] for row in rows] == units.names()
    assert all(row["unit"] in table and row["description"] in table for row in rows)


def test_an_unknown_unit_is_a_usage_error() -> None:
    """An unknown unit name is refused with a usage error that repeats the name."""
    with pytest.raises(UsageError, match="there is no unit skidway-mirror"):
        run("show", "mirror")
    assert "unit" in NOUNS
