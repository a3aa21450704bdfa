"""Proposes settings for JSON objects after a prefix."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, Final

from skidway.agent.unknown_logs import written_times
from skidway.agent.unknown_logs.shares import LOOKED_AT_MAX, SHARE_LEAST
from skidway.agent.unknown_logs.time_neighbours import continued

MIXED_LEAST: Final = 0.2
"""If less than this share of the lines has a JSON object after a prefix, `guess` treats these
objects as parts of the messages."""

_MEMBERS = re.compile(r"^([^{}]*?)(\{.*\})\s*$", re.DOTALL)
LEVEL: Final = r"(?P<level>TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|CRITICAL|FATAL)"
LEVEL_AND_JSON: Final = "JSON behind a time and a level"
_OBJECT: Final = r"(?P<json>\{.*\})\s*"
_MIXED: Final = r'(?P<json>\{\s*(?:".*)?\})\s*'
_TEXT: Final = r"(?:\s+(?P<text>.*))?"
_PREFIX: Final = "(?P<prefix>.*?)"
_PREFIX_BEHIND_TIME: Final = r"(?P<prefix>(?:[^\w.,:+/\x{2212}-].*?)?)"
"""A prefix that does not begin with what may be a part of the time before it."""


def proposed(texts: Sequence[str]) -> list[tuple[str, dict[str, Any]]]:
    """Returns several proposals of settings for JSON objects after a prefix, each with a
    description of the lines, the most exact one first. The result is empty if the log does not have
    such objects. If some lines have other text in place of an object, there are also proposals
    whose patterns have a group for this text. If fewer than SHARE_LEAST of the lines have an
    object, there are only these proposals.
    """
    lines = texts[:LOOKED_AT_MAX]
    good = sum(_has_object(line) for line in lines)
    if not lines or good < MIXED_LEAST * len(lines):
        return []
    heads = _heads(lines)
    found = [
        (what, _json_behind(f"{time}{prefix}{_OBJECT}", stamp))
        for what, time, prefix, stamp in heads
    ]
    found.append(("JSON behind a prefix", _json_behind(f"{_PREFIX}{_OBJECT}", {})))
    if good < len(lines):
        mixed = [
            (f"{what}, or text", _json_behind(rf"{time}(?:{prefix}{_MIXED}|{_TEXT})", stamp))
            for what, time, prefix, stamp in heads
        ]
        found = mixed if good < SHARE_LEAST * len(lines) else [*found, *mixed]
    return found


def _heads(lines: Sequence[str]) -> list[tuple[str, str, str, dict[str, Any]]]:
    """Returns what may stand before the objects if the lines begin with a time. For each: what it
    is, regular expressions for the time with what follows and for the rest, and the settings of
    the time."""
    found = written_times.leading(lines)
    if found is None:
        return []
    is_word = written_times.is_rfc3339(lines[0].split(" ")[0])
    time = rf"\[?{found.group}\]?"
    time = rf"(?P<time>\S+{continued(found.format)})" if is_word else time
    stamp = {"timestamp": found.settings(["time"])}
    return [
        (LEVEL_AND_JSON, f"{time} {LEVEL}", _PREFIX, stamp),
        ("JSON behind a time", time, _PREFIX if is_word else _PREFIX_BEHIND_TIME, stamp),
    ]


def _json_behind(pattern: str, stamp: dict[str, Any]) -> dict[str, Any]:
    return {"parser": {"type": "regex", "pattern": pattern, "json_field": "json"}, **stamp}


def _has_object(line: str) -> bool:
    found = _MEMBERS.match(line)
    if found is None or not found[1].strip():
        return False
    try:
        return isinstance(json.loads(found[2]), dict)
    except (ValueError, RecursionError):
        return False
