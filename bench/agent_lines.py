"""Writes the log files of the benchmark `agent`. Each function, except `write`, makes one record
from a number, and returns it without the line terminator. (`trace` makes one record, which may have
several lines.)

The records are real lines of tests/data/logs (its README has source and licence), in which every
digit is drawn anew: 500 lines that repeat would be compressed far better than a real log.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

Line = Callable[[int], str]

TRACED: Final = 10
"""Every TRACED-th record of `trace` has a stack trace."""

LONG_LEAST: Final = 1_000
"""A record of `long` consists of real lines, until it has at least this many characters."""

_DATA: Final = Path(__file__).resolve().parents[1] / "tests" / "data"
_MIXED: Final = ("hadoop", "hdfs", "openssh", "spark", "zookeeper")
_DIGITS: Final = re.compile(r"\d{1,9}")
_HDFS: Final = re.compile(r"(\S+) (\S+) (\S+) (\S+) ([^ ]+): (.*)")
_STEP, _ADDED, _MASK = 6_364_136_223_846_793_005, 1_442_695_040_888_963_407, (1 << 64) - 1


def hdfs(number: int) -> str:
    """A line of HDFS."""
    return _drawn(_template(("hdfs",), number), number)


def long(number: int) -> str:
    """Real lines of several programs, joined by blanks to at least LONG_LEAST characters."""
    text, at = "", number
    while len(text) < LONG_LEAST:
        text += (text and " ") + _drawn(_template(_MIXED, at), at)
        at = _next(at) >> 40
    return text


def members(number: int) -> str:
    """A JSON object with the six fields of a line of HDFS."""
    _, _, pid, level, component, message = _fields(number)
    members = {
        "time": f"2008-11-09T20:{number // 60 % 60:02d}:{number % 60:02d}.000Z", "level": level,
        "component": component, "pid": int(pid), "size": float(len(message)), "message": message,
    }  # fmt: skip
    return json.dumps(members, separators=(",", ":"))


def values(number: int) -> str:
    """The six fields of a line of HDFS, separated by commas; the last value is quoted."""
    *first, message = _fields(number)
    return f'{",".join(first)},"{message}"'


def trace(number: int) -> str:
    """A line of HDFS. Every TRACED-th line is followed by a Java stack trace."""
    line = hdfs(number)
    return line if number % TRACED else f"{line}\n{_drawn(_traces()[0], number)}"


def contained(number: int) -> str:
    """A line of HDFS, as the container runtimes of Kubernetes (CRI) write it into their logs."""
    time = f"2008-11-09T20:{number // 60 % 60:02d}:{number % 60:02d}.{_next(number) % 10**9:09d}Z"
    return f"{time} stdout F {hdfs(number)}"


def card(number: int) -> str:
    """A line of HDFS. One line in ten ends with the number of a credit card."""
    return hdfs(number) if number % 10 else f"{hdfs(number)} 4111 1111 1111 1111"


def write(path: Path, line: Line, numbers: range, end: str = "\n") -> None:
    """Writes into the file the records that `line` makes from these numbers, each followed by
    `end`."""
    with path.open("w", newline="") as out:
        out.writelines(line(number) + end for number in numbers)


@dataclass(frozen=True, slots=True)
class _Template:
    """A real text with a place for each group of digits. limits: for each group, how many values it
    can have."""

    text: str
    limits: tuple[int, ...]


def _drawn(template: _Template, number: int) -> str:
    """Returns the template's text, with digits that depend only on `number`."""
    drawn, state = [], _next(number)
    for limit in template.limits:
        state = _next(state)
        drawn.append((state >> 32) % limit)
    return template.text % tuple(drawn)


def _next(state: int) -> int:
    """Returns the next state of a linear congruential generator (Knuth's MMIX)."""
    return (state * _STEP + _ADDED) & _MASK


def _fields(number: int) -> Sequence[str]:
    found = _HDFS.fullmatch(hdfs(number))
    assert found is not None, "the logs of HDFS have six fields"
    return found.groups()


def _template(names: tuple[str, ...], number: int) -> _Template:
    found = _templates(names)
    return found[(_next(number) >> 32) % len(found)]


@cache
def _templates(names: tuple[str, ...]) -> list[_Template]:
    texts = [(_DATA / "logs" / f"{name}.log").read_text("utf-8", "replace") for name in names]
    return [_template_of(line) for text in texts for line in text.splitlines()]


@cache
def _traces() -> list[_Template]:
    """The Java stack traces of tests/data/traces, each without the line of the log before it."""
    records = (_DATA / "traces" / "java.txt").read_text().split("=== ")
    traces = (record.partition("\n")[2].rstrip("\n") for record in records)
    return [_template_of(trace) for trace in traces if "Caused by" in trace]


def _template_of(text: str) -> _Template:
    limits = tuple(10 ** len(group) for group in _DIGITS.findall(text))
    text = _DIGITS.sub(lambda group: f"%0{len(group[0])}d", text.replace("%", "%%"))
    return _Template(text, limits)
