"""Proposals for logs that have no name in the catalog: values with a delimiter, key=value pairs,
and JSON objects after a prefix.

Each function looks at the first lines of a log and returns the settings of a source, or nothing if
the log is not in the format that the function recognizes. `as_prefixed_json` returns several
proposals. The module `guessing` tries the settings.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

from skidway.agent.commands import written_times
from skidway.agent.commands.time_neighbours import continued
from skidway.agent.commands.written_times import Reading
from skidway.agent.parsing import csv_lines, key_values
from skidway.schemas.inference.naming import RESERVED

LOOKED_AT_MAX: Final = 200
"""The functions examine at most this many lines of the log."""

SHARE_LEAST: Final = 0.8
"""A log counts as values with a delimiter, as pairs, or as JSON objects after a prefix, if at least
this share of its lines has that form.
"""

MIXED_LEAST: Final = 0.2
"""If less than this share of the lines has a JSON object after a prefix, `guess` treats these
objects as parts of the messages."""

COLUMNS_LEAST: Final = 3
PAIRS_LEAST: Final = 2
DELIMITERS: Final = ("\t", ";", ",", "|")
TIME_KEYS: Final = ("time", "ts", "timestamp", "at", "t", "date", "datetime", "event_time")

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_CLOCK = re.compile(r"\d:\d\d")
_NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?")
_MEMBERS = re.compile(r"^([^{}]*?)(\{.*\})\s*$", re.DOTALL)
_SPELLINGS: Final = str.maketrans(
    {"ä": "ae", "ö": "oe", "ü": "ue", "Ä": "Ae", "Ö": "Oe", "Ü": "Ue", "ß": "ss"}
)
LEVEL: Final = r"(?P<level>TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|CRITICAL|FATAL)"
LEVEL_AND_JSON: Final = "JSON behind a time and a level"
_OBJECT: Final = r"(?P<json>\{.*\})\s*"
_MIXED: Final = r'(?P<json>\{\s*(?:".*)?\})\s*'
_TEXT: Final = r"(?:\s+(?P<text>.*))?"
_PREFIX: Final = "(?P<prefix>.*?)"
_PREFIX_BEHIND_TIME: Final = r"(?P<prefix>(?:[^\w.,:+/\x{2212}-].*?)?)"
"""A prefix that does not begin with what may be a part of the time before it."""


def as_csv(texts: Sequence[str]) -> dict[str, Any] | None:
    """Returns settings for values with a delimiter. A log has such values if at least SHARE_LEAST
    of the lines have the same number of values, and this number is at least COLUMNS_LEAST.
    """
    lines = texts[:LOOKED_AT_MAX]
    best: tuple[bool, int, str] | None = None
    time = written_times.first_time(lines)
    for delimiter in DELIMITERS:
        if delimiter in time:
            continue
        cut = [csv_lines.split(line, delimiter) for line in lines]
        counts = Counter(len(each) for each in cut if isinstance(each, list))
        count, lines_of_count = counts.most_common(1)[0] if counts else (0, 0)
        is_regular = lines_of_count >= SHARE_LEAST * len(lines)
        # Prefer a delimiter by which the first line has as many values as the other lines. The
        # other lines may have decimal commas, which look like delimiters. If the first line is a
        # header, it has no decimal commas.
        found = len(cut[0]) == count if cut else False, count, delimiter
        if count >= COLUMNS_LEAST and is_regular and (best is None or found[:2] > best[:2]):
            best = found
    if best is None:
        return None
    _, count, delimiter = best
    rows = [csv_lines.split(line, delimiter) for line in lines]
    whole = [row for row in rows if isinstance(row, list) and len(row) == count]
    header = lines[0] if rows[0] == whole[0] else None
    parser: dict[str, Any] = {"type": "csv", **_columns(whole[0], header)}
    if delimiter != ",":
        parser["delimiter"] = "tab" if delimiter == "\t" else delimiter
    named = parser["columns"][0] != "column_1"
    stamp = written_times.of_columns(parser["columns"], whole[1:], delimiter, are_named=named)
    return {"parser": parser} | ({} if stamp is None else {"timestamp": stamp})


def as_logfmt(texts: Sequence[str]) -> dict[str, Any] | None:
    """Returns settings for key=value pairs. A log has such pairs if at least SHARE_LEAST of the
    lines have at least PAIRS_LEAST pairs, and no more words without `=` than pairs.
    """
    keys: Counter[str] = Counter()
    good = 0
    times: dict[str, Reading] = {}
    lines = texts[:LOOKED_AT_MAX]
    for line in lines:
        pairs = key_values.split(line)
        count = line.count("=")
        if isinstance(pairs, str) or count < PAIRS_LEAST or len(pairs) > 2 * count:
            continue
        good += 1
        keys.update(list(dict.fromkeys(key for key, _ in pairs if _NAME.fullmatch(key))))
        for key, value in pairs:
            if key in TIME_KEYS and key not in times:
                form = written_times.of_value([value])
                times |= {} if form is None else {key: form}
    if good < SHARE_LEAST * len(lines):
        return None
    time = next((key for key in TIME_KEYS if key in times), None)
    columns = [key for key, count in keys.items() if count > good / 2 and key != time]
    stamp = {} if time is None else {"timestamp": times[time].settings([time])}
    return {"parser": {"type": "logfmt", "columns": columns}, **stamp}


def as_prefixed_json(texts: Sequence[str]) -> list[tuple[str, dict[str, Any]]]:
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


def _columns(first: Sequence[str], header: str | None) -> dict[str, Any]:
    """Returns the settings that name the columns. If the first line looks like a header, it gives
    the names; otherwise the names are `column_1`, `column_2` and so on. header: the text of the
    first line; None if the first line cannot be a header.
    """
    texts = first[:-1] if first[-1] == "" else first  # no value follows the last delimiter
    has_time = any(map(_CLOCK.search, texts))
    is_header = (
        header is not None
        and not has_time
        and all(
            len(value) <= 40
            and not _NUMBER.fullmatch(value)
            and not written_times.is_rfc3339(value)
            and _name(value)
            for value in texts
        )
    )
    if not is_header:
        return {"columns": [f"column_{number}" for number in range(1, len(first) + 1)]}
    names: list[str] = []
    for number, value in enumerate(first, 1):
        name = _name(value) or f"column_{number}"
        is_taken = name in names or name.lower() in RESERVED
        names.append(f"{name}_{number}" if is_taken else name)
    return {"columns": names} | ({} if names == list(first) else {"header": header})


def _name(text: str) -> str:
    plain = unicodedata.normalize("NFKD", text.strip().translate(_SPELLINGS))
    plain = "".join(char for char in plain if not unicodedata.combining(char))
    name = re.sub(r"[^A-Za-z0-9_]+", "_", plain).strip("_")
    return name if re.match(r"[A-Za-z]", name) and len(name) * 2 > len(text) else ""
