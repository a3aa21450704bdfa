"""Proposals for text without a known format: lines that begin with a time, and stack traces.

A record of several lines is recognized by the time at the beginning of each record or, if records
do not begin with times, by the lines of a stack trace (`multiline.type: python`) or by indented
lines.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from skidway.agent.parsing.joins import TIMED
from skidway.agent.unknown_logs import written_times
from skidway.agent.unknown_logs.time_forms import Form
from skidway.agent.unknown_logs.written_times import Reading

INDENTED_LEAST: Final = 0.05
"""If at least this share of the lines is indented, the proposal joins each indented line to the
line before it.
"""

TIMED_LEAST: Final = 0.1
"""A log has times if at least this share of its lines begins with a time. All other lines may be
lines of stack traces.
"""

BEHIND_LEAST: Final = 0.8
"""Of the lines that are not indented, at least this share must have a time after a short text. If
fewer of these lines have such a time, `guess` does not propose it, because it may be a part of the
messages. For logs with stack traces, TIMED_LEAST applies instead.
"""

_SIGNS: Final = {
    "python": r"Traceback \(most recent call last\):",
    "dotnet": r"[ \t]+at .* in .*:line \d+",
    "java": r"[ \t]+at [\w.$<>/]+\(.*\)",
    "go": r"goroutine \d+ \[.*\]:",
    "ruby": r"[ \t]+from .*:\d+:in ",
}
"""For each language, a pattern that only lines of this language's stack traces match."""

_LEVEL: Final = "(?P<level>(?i:TRACE|DEBUG|INFO|NOTICE|WARN(?:ING)?|ERROR|CRITICAL|FATAL|SEVERE))"
_APART: Final = r"[ \t:,;|-]*"
_BEHIND: Final = (
    rf"\]?(?:{_APART}[ \t;|](?P<message>.*))?",
    r"\]?(?:[:,-](?P<message>[^\s\d].*))?",
    r"\](?P<message>.*)",
    r"(?P<message>[^\w.,:+/\x{2212}-].*)?",
)
"""What may be between a time and the message, so that the message never begins with a digit, a sign
or a dot that belongs to the time: blanks, a sign and a letter, a bracket that is closed, or
anything that is no part of a time."""


def traces(texts: Sequence[str]) -> str | None:
    """Returns the language of the stack traces in these lines of a log; None if the lines have no
    stack trace."""
    for language, sign in _SIGNS.items():
        pattern = re.compile(sign)
        if any(pattern.match(text) for text in texts):
            return language
    return None


def joined(texts: Sequence[str]) -> dict[str, Any]:
    """Returns the settings for a log whose times are not read: `multiline` if some records have
    several lines, and nothing if each line is a record."""
    timed = sum(re.match(TIMED, text) is not None for text in texts)
    if timed >= TIMED_LEAST * len(texts):
        start = {"type": "start", "pattern": f"^{TIMED}"}
        return {"multiline": start} if timed < len(texts) else {}
    language = traces(texts)
    indented = sum(text[:1] in (" ", "\t") for text in texts)
    if language is None and indented >= INDENTED_LEAST * len(texts):
        language = "indented"
    return {} if language is None else {"multiline": {"type": language}}


def behind(texts: Sequence[str]) -> list[dict[str, Any]]:
    """Returns proposals of settings for lines with a time after a short text, such as `[INFO]
    2026/11/23 08:15:01 up`, the most exact one first. Returns an empty list if too few lines have
    such a time.
    """
    found = written_times.inside(texts)
    if found is None:
        return []
    begin = rf"{written_times.BEFORE}{found.form.pattern}"
    begins = re.compile(begin)
    count = sum(begins.match(text) is not None for text in texts)
    records = sum(text[:1] not in ("", " ", "\t") for text in texts)
    if count < (BEHIND_LEAST * records if traces(texts) is None else TIMED_LEAST * len(texts)):
        return []
    start = {"type": "start", "pattern": rf"^(?:{begin}|{TIMED})"}
    rule = {"multiline": start} if count < len(texts) else {}
    time = rf"(?P<before>{written_times.BEFORE}){found.group}"
    patterns = [rf"{time}[)}}]?{each}" for each in _BEHIND]
    return _proposals(found, patterns, rule)


def timed(texts: Sequence[str]) -> list[dict[str, Any]]:
    """Returns several proposals of settings for lines that begin with a time, the most exact one
    first. Returns an empty list if too few lines begin with a time.
    """
    found = written_times.leading(texts)
    if found is None:
        return []
    time = rf"\[?{found.group}"
    begins = [match for match in map(re.compile(time).match, texts) if match is not None]
    if len(begins) < TIMED_LEAST * len(texts):
        return []
    rule: dict[str, Any] = {}
    if len(begins) < len(texts):
        rule = {"multiline": {"type": "start", "pattern": _start(found.form, begins)}}
    level = rf"{time}\]?{_APART}\[? *{_LEVEL}\b *\]?{_APART}(?P<message>.*)"
    return _proposals(found, [level, *(f"{time}{each}" for each in _BEHIND)], rule)


def _start(form: Form, begins: Sequence[re.Match[str]]) -> str:
    is_known = all(re.match(TIMED, match["time"]) for match in begins)
    return f"^{TIMED}" if is_known else rf"^(?:\[?{form.pattern}|{TIMED})"


def _proposals(
    found: Reading, patterns: Sequence[str], rule: dict[str, Any]
) -> list[dict[str, Any]]:
    return [
        {
            "parser": {"type": "regex", "pattern": pattern},
            "timestamp": found.settings(["time"]),
            **rule,
        }
        for pattern in patterns
    ]
