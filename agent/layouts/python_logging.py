r"""Compiles the formats of Python's logging to the settings of a regex parser.

    %(asctime)s %(levelname)-8s %(name)s: %(message)s
    {asctime} {levelname:<8} {name}: {message}

Each attribute becomes a group; `_ATTRIBUTES` has the groups' names. The rules are those of the
module `log4j`: if an attribute may be any text, it ends where the format's next literal text
begins, and the message takes the rest of the record. `%(asctime)s` is in the format that
`parser.date_format` names.
"""

from __future__ import annotations

import re
from typing import Final

from skidway.agent.layouts.java_dates import escaped
from skidway.agent.layouts.layout import (
    TEXT,
    WORD,
    Groups,
    Layout,
    Piece,
    check_order,
    padded,
    settled,
    start_of,
)

_ATTRIBUTES: Final = {
    "levelname": ("level", r"\w+?", "string"),
    "levelno": ("level_number", r"\d+", "int"),
    "name": ("logger", WORD, "string"),
    "message": ("message", TEXT, "string"),
    "process": ("pid", r"\d+", "long"),
    "processName": ("process", TEXT, "string"),
    "thread": ("thread_id", r"\d+", "long"),
    "threadName": ("thread", TEXT, "string"),
    "taskName": ("task", TEXT, "string"),
    "module": ("module", WORD, "string"),
    "filename": ("file", TEXT, "string"),
    "pathname": ("path", TEXT, "string"),
    "funcName": ("function", WORD, "string"),
    "lineno": ("line", r"\d+", "int"),
    "msecs": ("milliseconds", r"\d{3}", "string"),
    "created": ("created", r"\d+(?:\.\d+)?", "double"),
    "relativeCreated": ("elapsed", r"\d+(?:\.\d+)?", "double"),
}
_DATES: Final = {
    "Y": r"\d{4}", "y": r"\d{2}", "m": r"\d{2}", "d": r"\d{2}", "j": r"\d{3}", "H": r"\d{2}",
    "I": r"\d{2}", "M": r"\d{2}", "S": r"\d{2}", "p": r"[AaPp]\.?[Mm]\.?",
    "z": r"[+-]\d{4}", "Z": r"(?:[A-Z]{1,6}|[+-]\d{2}(?:\d{2})?)",
    "b": r"[A-Za-z]{3,4}\.?", "B": "[A-Za-z]+", "a": "[A-Za-z]{3}", "A": "[A-Za-z]+", "%": "%",
}  # fmt: skip
_DEFAULT: Final = r"\d{4}-\d{2}-\d{2} \d{2}:\d{2}:\d{2},\d{3}"
_PERCENT: Final = re.compile(r"%\((\w+)\)([-#0+ ]*+)(\d{0,4})(?:\.\d+)?[sdf]|(%%)")
_BRACE: Final = re.compile(r"\{(\w+)(?::([^{}]*?[<>^])?0?(\d{0,4})(?:\.\d+)?[sdf]?)?\}|(\{\{|\}\})")


def compiled(pattern: str, date_format: str | None = None) -> Layout:
    """Compiles a format. date_format: the format of the times, in strptime's directives; None if
    the times have Python's default format. Raises ConfigurationRefused.
    """
    groups = Groups(pattern)
    pieces = _pieces(groups, pattern, date_format)
    check_order(groups, pieces)
    pieces = settled(pieces)
    if not groups.names:
        groups.refuse(0, "the pattern has no attribute such as %(message)s")
    if pieces[-1].name == "message":
        last = pieces[-1]
        pieces[-1] = Piece(last.at, last.name, last.regex.replace(TEXT, ".*"), last.kind)
    regex = "".join(each.regex for each in pieces)
    start = start_of(pieces, ("message",), ("asctime", "created"))
    return Layout(regex, groups.types, _time(groups, date_format), start=start)


def _pieces(groups: Groups, pattern: str, date_format: str | None) -> list[Piece]:
    syntax = _PERCENT if "%(" in pattern else _BRACE
    found: list[Piece] = []
    at = 0
    while at < len(pattern):
        match = syntax.match(pattern, at)
        if match is None:
            if pattern[at] in ("%" if syntax is _PERCENT else "{}"):
                groups.refuse(at, "here is no attribute that can be read back")
            found.append(Piece(at, pattern[at], escaped(pattern[at]), "literal"))
            at += 1
            continue
        if match[1] is None:
            found.append(Piece(at, match[0][0], escaped(match[0][0]), "literal"))
        else:
            found += _attribute(groups, match, at, date_format)
        at = match.end()
    return found


def _attribute(
    groups: Groups, match: re.Match[str], at: int, date_format: str | None
) -> list[Piece]:
    name = match[1]
    if name == "asctime":
        piece = Piece(at, name, groups.named("time", _date(groups, date_format)), "fixed")
    elif name in _ATTRIBUTES:
        group, regex, kind = _ATTRIBUTES[name]
        is_text = regex in (TEXT, WORD) or (kind == "string" and name != "msecs")
        text = groups.named(group, regex, kind)
        piece = Piece(at, name, text, "text" if is_text else "fixed")
    else:
        groups.refuse(at, f"{name} is no attribute of Python's logging")
    padding = match[2] or ""
    if not match[3]:
        return [piece]
    is_left = padding.endswith("<") or (match[0][0] == "%" and "-" in padding)
    is_left = is_left or (match[0][0] == "{" and not padding)
    return padded(piece, int(match[3]), is_left=is_left)


def _date(groups: Groups, date_format: str | None) -> str:
    if date_format is None:
        return _DEFAULT
    regex, at = "", 0
    while at < len(date_format):
        if date_format[at] != "%":
            regex, at = regex + escaped(date_format[at]), at + 1
            continue
        letter = date_format[at + 1 : at + 2]
        if letter not in _DATES:
            groups.refuse_setting("date_format", f"%{letter} cannot be read back", date_format, at)
        regex, at = regex + _DATES[letter], at + 2
    return regex


def _time(groups: Groups, date_format: str | None) -> tuple[tuple[str, ...], str] | None:
    if "time" not in groups.names:
        return (("created",), "epoch") if "created" in groups.names else None
    if date_format is None:
        return ("time",), "%Y-%m-%d %H:%M:%S,%f"
    directives = set(re.findall("%(.)", date_format))
    if not ("j" in directives or ("d" in directives and directives & {"m", "b", "B"})):
        return None
    form = re.sub("%(.)", lambda found: "%z" if found[1] == "Z" else found[0], date_format)
    if "milliseconds" in groups.names and "S" in directives:
        return ("time", "milliseconds"), f"{form} %f"
    return ("time",), form
