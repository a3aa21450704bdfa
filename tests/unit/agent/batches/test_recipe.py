"""A recipe consists of the settings by which lines become records, and of the versions of the code
that makes the records. If a setting or a version changes in a way that can change these records,
the recipe changes too."""

from __future__ import annotations

import hashlib
import zoneinfo
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from skidway.agent import recipe as recipes
from skidway.agent.batches import program_versions as versions
from skidway.agent.batches.program_versions import PRESS_VERSION, at_present, program_of
from skidway.agent.parsers.settings import ParserSettings
from skidway.agent.parsing.framing import FRAMING_VERSION
from skidway.agent.settings import MultilineSettings, TimestampSettings
from support.agent_press import press, reading, recipe, records, regex
from support.promises import promise

KNOWN = "10f1e39432d6ab5507599ceb417015270a956fd9320c06c5f60f87af4ad80323"
"""The expected result of `digest`: SHA-256 over the records that the agent makes from `LINES`. If a
change of the code changes this digest, increase the code's version, PRESS_VERSION or
FRAMING_VERSION."""

LINES = (
    b"2023-11-14 23:13:20 as far ahead as is believed\n2023-11-14 23:13:21 and more\n"
    b"2024-02-29 12:00:00 a=1\r\n\nno match\nFeb 30 x\n2038-01-19 03:14:08 a=\xff\n"
    b'1999-12-31 23:59:60 key=word\n{}\n\x1b[31ma\x1b[0m=1 b="\\u001b[1mx"\nlast without end'
)


def digest() -> str:
    found = hashlib.sha256()
    time = TimestampSettings(fields=["time"], format="%Y-%m-%d %H:%M:%S", timezone="UTC")
    pattern = r"(?P<time>\S+ \S+) (?P<rest>.*)"
    made = [
        recipe(partitions=3),
        recipe(partitions=3, partitioning="spread"),
        recipe(partitions=3, timestamp=time, key="rest", **regex(pattern)),
        recipe(partitions=3, max_line_bytes=64, parser=ParserSettings(type="raw")),
        recipe(partitions=3, parser=ParserSettings(type="logfmt", columns=["a"])),
    ]
    for each in made:
        pressed = press(each, reading(LINES, first=(1 << 20) - 40), reading(b"x" * 70 + b"\n"))
        for topic in ("logs", "logs.rejected"):
            found.update(repr(records(pressed, topic)).encode())
        found.update(repr(sorted({batch.tp for batch in pressed.batches})).encode())
    return found.hexdigest()


@promise("2 another program")
def test_known_lines_become_known_records() -> None:
    """The lines of `LINES` always become the same records. If a change of the code changes these
    records, PRESS_VERSION or FRAMING_VERSION must be increased."""
    assert (FRAMING_VERSION, PRESS_VERSION, digest()) == (2, 3, KNOWN)


def program(parser: str = "raw", timezone: str | None = None, **source: Any) -> str:
    """Returns the field `program` of a recipe with these settings."""
    pattern = "(?P<line>.*)" if parser == "regex" else None
    time = timezone and TimestampSettings(fields=["line"], format="%Y", timezone=timezone)
    kind = ParserSettings(type="raw" if pattern is None else "regex", pattern=pattern)
    made = recipe(parser=kind, timestamp=time or None, **source)
    return program_of(replace(made, parser=parser))


@promise("2 another program")
def test_what_a_program_is_named_by(monkeypatch: pytest.MonkeyPatch) -> None:
    """The field `program` of a recipe identifies the code that makes the records. For JSON sources
    and Docker's logs, it contains the version of Python. For regex and JSON sources, logs of
    containers and `path.pattern`, it contains the version of pyarrow. For a time zone other than
    UTC, it contains a text that identifies the rules of this zone."""
    assert program() == versions.program_version()
    assert "pyarrow-" in program("regex")
    assert "python-" not in program("regex")
    assert "python-" in program("json")
    assert "pyarrow-" in program("json")
    assert "python-" in program(container="docker")
    for option in ({"container": "cri"}, {"path_pattern": "(?P<app>[^/]+)"}):
        assert "python-" not in program(**option)
        assert "pyarrow-" in program(**option)
    assert "zone-" not in program("regex", "utc")
    assert "zone-" in program("regex", "Europe/Berlin")
    assert program("regex", "Europe/Berlin") != program("regex", "Asia/Tokyo")
    monkeypatch.setattr(versions.platform, "python_version", lambda: "9.9.9")
    monkeypatch.setattr(versions, "_version", lambda name: f"{name}-9")
    made = recipe(**regex("(?P<line>.*)"))
    assert made.program.endswith("pyarrow-pyarrow-9")
    assert at_present(made) == made


@promise("2 intent")
def test_a_recipe_of_an_older_version_is_still_the_same() -> None:
    """A field that a recipe of an older version does not have has its default. Then the recipe has
    the fingerprint under which the older version has stored it."""
    old = recipe()
    assert "colours" not in old.to_json()
    assert recipes.from_json(old.to_json()).colours == recipes.KEEP
    new = recipe(colours="strip")
    assert recipes.from_json(new.to_json()) == new
    assert new.fingerprint != old.fingerprint


@promise("2 intent")
def test_a_recipe_says_how_lines_are_joined() -> None:
    """A stored recipe contains the rule by which lines are joined to records. RE2, which is a part
    of pyarrow, decides which lines are joined, so `program` contains the version of pyarrow."""
    joined = MultilineSettings(type="java", max_lines=7)
    made = recipe(multiline=joined, parser=ParserSettings(type="raw"))
    assert recipes.from_json(made.to_json()) == made
    assert made.multiline is not None
    assert (made.multiline.kind, made.multiline.lines_max) == ("continuation", 7)
    assert "pyarrow-" in made.program
    assert at_present(made) == made


def test_new_rules_of_a_zone_are_another_program(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The recipe's `program` identifies the code that makes the records. If the machine gets new
    rules for a time zone, `program` changes, because the rules may change a line's event time."""
    zone = tmp_path / "Nowhere" / "City"
    zone.parent.mkdir()
    monkeypatch.setattr(zoneinfo, "TZPATH", (str(tmp_path / "none"), str(tmp_path)))
    names = set()
    for rules in (b"one", b"two"):
        versions._zone_rules.cache_clear()
        zone.write_bytes(rules)
        names.add(program("regex", "Nowhere/City"))
    versions._zone_rules.cache_clear()
    assert len(names) == 2
