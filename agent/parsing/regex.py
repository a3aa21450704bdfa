r"""Parses lines with a regular expression (RE2). The expression must match the whole line, and its
named groups are the fields.

Groups are strings, and `text_fields` converts them to the types of the schema's fields. If an
optional group matches nothing in a line, the group's string is empty. Several alternatives of the
expression may have a group of the same name. Then the field takes the text of the alternative that
matched. A line in which two such groups have a text is rejected.

A group may begin with `(?!.*A)`, as in `(?P<message>(?!.*A).*)`. Then lines in whose group A is
found are rejected. RE2 has no such lookahead, so A is searched in the groups' texts.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skidway.agent.parsing import delimited
from skidway.agent.parsing import (
    lines as line_columns,
)
from skidway.agent.parsing.delimited import Found
from skidway.agent.parsing.lines import slices, spans
from skidway.agent.parsing.parser import ENCODING, NO_MATCH, Parsed, Reject
from skidway.agent.parsing.text_fields import TextFields, TextTimes
from skidway.agent.parsing.timestamps import TimeFormat
from skidway.dataclass import dataclass
from skidway.errors import ConfigurationRefused

GROUPS_MAX: Final = 100
"""Groups may be nested, and each is a copy of its part of the line."""


def groups_of(pattern: str) -> list[str]:
    """Returns the named groups of a pattern, in order. Raises ConfigurationRefused if RE2 refuses
    the pattern, or if it has no group, a group without a name, or groups of the same name that are
    not in different alternatives."""
    nothing = pa.array([""], pa.string())
    plain, refusals = _divided(pattern)
    try:
        # Does not use `anchored`, so that RE2's error message quotes the pattern as it is in the
        # settings.
        pc.extract_regex(nothing, plain)
        extracted = pc.extract_regex(nothing, anchored(pattern))
        for refused in refusals.values():
            pc.match_substring_regex(nothing, refused)
    except pa.ArrowInvalid as error:
        raise ConfigurationRefused(f"parser.pattern {pattern!r}: {_sentence(error)}") from error
    names = list(dict.fromkeys(field.name for field in extracted.type))
    if not names:
        raise ConfigurationRefused(
            f"parser.pattern {pattern!r} has no named group such as (?P<message>.*)"
        )
    if len(names) > GROUPS_MAX:
        raise ConfigurationRefused(f"parser.pattern has more than {GROUPS_MAX} named groups")
    if _has_twins(pattern):
        raise ConfigurationRefused(f"parser.pattern {pattern!r} has two groups of the same name")
    return names


def anchored(pattern: str) -> str:
    """Returns the same pattern for RE2, extended so that it matches whole lines only."""
    return rf"\A(?:{_divided(pattern)[0]})\z"


class RegexParser:
    """Parses lines with one compiled regular expression. Raises ConfigurationRefused if `groups_of`
    refuses the expression, or if the schema and the groups do not fit together.
    """

    def __init__(
        self,
        pattern: str,
        schema: pa.Schema,
        has_default: frozenset[str],
        time_fields: Sequence[str] = (),
        time_format: TimeFormat | None = None,
        *,
        is_multiline: bool = False,
        keeps_unreadable: bool = False,
    ) -> None:
        """is_multiline: whether a record may have several lines; `.` then matches line ends.
        keeps_unreadable: whether a line whose time cannot be read becomes a row without an event
        time, instead of a reject.
        """
        self._pattern = anchored(f"(?s){pattern}" if is_multiline else pattern)
        plain, self._refusals = _divided(pattern)
        self._delimited = delimited.compiled(plain, dot_all=is_multiline)
        self._headed = _headed(plain, is_multiline=is_multiline)
        times = TextTimes(tuple(time_fields), time_format, keeps_unreadable)
        self._fields = TextFields(
            schema, groups_of(pattern), has_default, times, source="group of parser.pattern"
        )

    def parse(self, lines: pa.BinaryArray, now_ms: int) -> Parsed:
        """Makes rows of the lines that match and whose groups can be converted."""
        strings, not_utf8 = line_columns.text(lines)
        rejects = [Reject(int(row), ENCODING, "the line is not UTF-8") for row in not_utf8]
        found = self._find(strings)
        matched = found.matched
        for name, refused in self._refusals.items():
            odd = pc.match_substring_regex(found.columns[name], refused).fill_null(False)
            matched = matched & ~np.asarray(odd)
        if not matched.all():
            unmatched = np.flatnonzero(~matched & np.asarray(strings.is_valid()))
            rejects += [Reject(int(row), NO_MATCH, _NO_MATCH_DETAIL) for row in unmatched]
        return self._fields.rows(found.columns, matched, now_ms, rejects)

    def _find(self, lines: pa.StringArray) -> Found:
        if self._delimited is not None and len(lines):
            return self._delimited.find(lines)
        if self._headed is not None and (self._headed.has_all or not _has_line_feed(lines)):
            return self._headed.find(lines)
        return _extracted(lines, self._pattern)


@dataclass(frozen=True, slots=True)
class _Headed:
    """A pattern whose last group is the rest of the line. So RE2 only has to find the head, which
    is often the smaller part. pattern: that of the head, all of which is the group `head`. has_all:
    whether the rest may have line feeds."""

    pattern: str
    head: str
    rest: str
    has_all: bool

    def find(self, lines: pa.StringArray) -> Found:
        """Finds the groups in each line. A null never matches."""
        found = _extracted(lines, self.pattern)
        data, first, end = spans(lines)
        head = pc.binary_length(found.columns.pop(self.head)).fill_null(0)
        begin = np.where(found.matched, first + np.asarray(head), end)
        rest = slices(data, begin, end).view(pa.string())
        return Found({**found.columns, self.rest: rest}, found.matched)


_REST: Final = re.compile(r"\(\?P?<(?P<name>\w+)>\.\*\)\$?\Z", re.ASCII)
_NO_LINE_FEEDS: Final = re.compile(r"\(\?\w*-\w*s")


def _headed(pattern: str, *, is_multiline: bool) -> _Headed | None:
    rest = _REST.search(pattern)
    if rest is None or "\\Q" in pattern or _NO_LINE_FEEDS.search(pattern):
        return None
    head = pattern[: rest.start()]
    if _has_alternatives(head) or f"<{rest['name']}>" in head:
        return None
    name = "head_" + "".join(found["name"] or "" for found in _GROUP.finditer(head))
    flags = "(?s)" if is_multiline else ""
    return _Headed(rf"\A{flags}(?P<{name}>{head})", name, rest["name"], is_multiline)


def _has_line_feed(lines: pa.StringArray) -> bool:
    data, _, _ = spans(lines)
    return data.find(b"\n") < len(data) - 1


def _extracted(lines: pa.StringArray, pattern: str) -> Found:
    found = pc.extract_regex(lines, pattern)
    columns: dict[str, pa.StringArray] = {}
    matched = np.asarray(found.is_valid())
    for index, field in enumerate(found.type):
        column = found.field(index)
        if field.name in columns:
            column, is_one = _either(columns[field.name], column)
            matched = matched & is_one
        columns[field.name] = column
    return Found(columns, matched)


_REFUSAL: Final = re.compile(r"\(\?P?<(?P<group>\w+)>(?P<refusal>\(\?!\.\*)", re.ASCII)
_BRACKET: Final = re.compile(
    r"\\.|\[\^?\]?(?:\\.|\[:\^?\w+:\]|[^\]\\])*\]|(?P<bracket>[()|])", re.DOTALL
)
_DEPTHS: Final = {"(": 1, ")": -1}


def _divided(pattern: str) -> tuple[str, dict[str, str]]:
    """Returns the pattern without lookaheads, and what they refuse, by group (see the module's
    docstring)."""
    refusals: dict[str, str] = {}
    while (found := _REFUSAL.search(pattern)) is not None:
        end = _closing(pattern, found.end())
        if end < 0:
            break  # RE2 refuses the pattern
        refusals[found["group"]] = pattern[found.end() : end]
        pattern = pattern[: found.start("refusal")] + pattern[end + 1 :]
    return pattern, refusals


def _closing(pattern: str, at: int) -> int:
    depth = 1
    for found in _BRACKET.finditer(pattern, at):
        depth += _DEPTHS.get(found["bracket"], 0)
        if not depth:
            return found.start()
    return -1


def _has_alternatives(pattern: str) -> bool:
    """Whether the pattern has a `|` outside of brackets, or brackets that are not closed."""
    depth = 0
    for found in _BRACKET.finditer(pattern):
        if found["bracket"] == "|" and not depth:
            return True
        depth += _DEPTHS.get(found["bracket"], 0)
    return depth != 0


_GROUP: Final = re.compile(r"\\.|(?P<alternative>\|)|\(\?P?<(?P<name>\w+)>", re.DOTALL | re.ASCII)


def _has_twins(pattern: str) -> bool:
    """Whether two groups have the same name without a `|` between them. Such groups are not in
    different alternatives, so both could match."""
    names: set[str] = set()
    for found in _GROUP.finditer(pattern):
        if found["alternative"]:
            names.clear()
        elif found["name"] in names:
            return True
        elif found["name"]:
            names.add(found["name"])
    return False


def _either(
    first: pa.StringArray, second: pa.StringArray
) -> tuple[pa.StringArray, np.ndarray | bool]:
    """Returns for each line the text of the group that matched, of two groups of the same name, and
    whether only one of them did."""
    has_first, has_second = (pc.greater(pc.binary_length(each), 0) for each in (first, second))
    if not pc.any(has_second).as_py():
        return first, True
    if not pc.any(has_first).as_py():
        return second, True
    both = pc.fill_null(pc.and_(has_first, has_second), False)
    return pc.if_else(has_first, first, second), ~np.asarray(both)


_NO_MATCH_DETAIL = "the record does not match the pattern of format or parser"


def _sentence(error: pa.ArrowInvalid) -> str:
    text = str(error)
    if "unnamed groups" in text:
        return "a group without a name; write (?:...) for a group that is no field"
    return text
