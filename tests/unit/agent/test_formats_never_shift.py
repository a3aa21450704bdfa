"""A format may reject a line, but never moves a text to another field.

The tests change the sample lines of every format of the catalog: they insert a text at every
boundary of a token, drop a token, or double a separator. All changed lines of a format are parsed
in one call."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import pyarrow as pa
import pytest

from skidway.agent.batches.parsers import build_parser
from skidway.agent.batches.source_recipes import derived_schema
from skidway.agent.cluster.connection import compiled
from skidway.agent.formats import catalog
from skidway.agent.recipe import Schema
from skidway.agent.settings import SourceSettings
from skidway.agent.shaping.kinds import mask_ips
from skidway.agent.validation.preview import preview
from skidway.schemas.codec import Codec

NAMES = sorted(catalog.formats())
NOW_MS = 1_796_083_200_000  # 2026-12-01
ADDRESS = "198.51.100.77"
INSERTED = (
    "word", ADDRESS, '"a quoted text"', "[a pair]", "key: value", f"{ADDRESS}, 10.9.8.7",
)  # fmt: skip
OF_TIME = ("at", "timestamp", "timestamp_replaced")
_TOKEN = re.compile(r"[^\W_]+|\s+|[^\w\s]|_", re.ASCII)
_GROUP = re.compile(r"\(\?P<(\w+)>")


@dataclass(frozen=True)
class Allowed:
    """Columns that may change although the change is elsewhere in the line. In the changed row,
    `whole` is a part of the line (the end of the line if `whole` is the message), and those of
    `parts` that have changed are empty. why: the reason, for readers."""

    formats: str
    whole: str
    parts: str
    why: str

    def allows(self, moved: set[str], row: dict[str, Any], line: str) -> bool:
        text = row.get(self.whole)
        is_there = bool(text) and (line.endswith(text) if self.whole == "message" else text in line)
        changed = moved - {self.whole}
        return is_there and changed <= {*self.parts.split()} and not any(map(row.get, changed))


ALLOWED = (
    Allowed(
        "access access_vhost access_forwarded", "request", "method path protocol",
        "a request that is no method, path and protocol is kept as a whole",
    ),
    Allowed(
        "access access_vhost access_forwarded", "more", "",
        'a third quoted text is what nginx\'s format "main" writes: addresses, or "-"',
    ),
    Allowed(
        "nginx_error", "message", "connection",
        "lines without a connection have only a message there",
    ),
    Allowed(
        "apache_error apache22_error", "message", "error client",
        "lines without a client have only a message there",
    ),
    Allowed(
        "sshd sshd_iso", "message", "result method unknown user client port rest",
        "each of sshd's other messages is a message as a whole",
    ),
    Allowed(
        "syslog syslog_iso syslog_busybox", "message", "program pid",
        "lines such as `-- MARK --` have no program; a word and a colon are a program",
    ),
    Allowed("syslog_relay", "message", "pid", "a word and a colon are a program"),
    Allowed("mysql_error", "message", "code subsystem", "MariaDB writes neither of these"),
    Allowed("hadoop hdfs spark python_basic", "message", "", "a colon ends the logger"),
    Allowed("log4j1", "ndc", "", "the context is any text behind the logger"),
)  # fmt: skip


@dataclass(frozen=True)
class Changed:
    """A changed line. first, end: the part of the old line that the change touches; a column that
    is in this part, or begins or ends there, may change. inserted: the inserted text, if any."""

    text: str
    first: int
    end: int
    inserted: str = ""


class Line:
    """A line of which the columns' places are known. The other characters are separators, and a
    change in a separator touches the columns on both sides of it."""

    def __init__(self, text: str, columns: Collection[tuple[int, int]]) -> None:
        inside = {at for first, end in columns for at in range(first, end)}
        self.text = text
        self.is_separator = [
            char == " " or not (at in inside or char.isalnum()) for at, char in enumerate(text)
        ]

    def changed(self, inserted: str, first: int, end: int, shown: str = "") -> Changed:
        """Returns the line with a text in place of the characters from `first` to `end`."""
        text = self.text[:first] + inserted + self.text[end:]
        while first > 0 and self.is_separator[first - 1]:
            first -= 1
        while end < len(self.text) and self.is_separator[end]:
            end += 1
        return Changed(text, first, end, shown)

    def changes(self) -> Iterator[Changed]:
        tokens = [token.span() for token in _TOKEN.finditer(self.text)]
        for at in [first for first, _ in tokens] + [len(self.text)]:
            for each in INSERTED:
                for text in (each, f" {each} "):
                    yield self.changed(text, at, at, each)
            for text in (f"{INSERTED[0]} ", f" {INSERTED[0]}"):
                yield self.changed(text, at, at, INSERTED[0])
        for first, end in tokens:
            if self.text[first].isalnum():  # then a column that ends where it begins is the same
                yield Changed(self.text[:first] + self.text[end:], first + 1, end - 1)
            else:
                yield self.changed("", first, end)
                yield self.changed(self.text[first:end] * 2, first, end)


@cache
def columns_of(name: str, record: str) -> dict[str, tuple[int, int]]:
    """Returns where a record has the format's columns. (-1, -1) stands for a column that the record
    does not have."""
    form = catalog.formats()[name]
    if form.type == "csv":
        values = re.finditer(r'((?:"(?:[^"]|"")*"|[^",])*)(?:,|$)', record)
        return dict(zip(form.columns, [each.span(1) for each in values], strict=False))
    if form.type == "logfmt":
        pairs = re.finditer(r'(\w+)=("(?:[^"\\]|\\.)*"|\S*)', record)
        return dict.fromkeys(form.fields, (-1, -1)) | {each[1]: each.span() for each in pairs}
    assert form.pattern is not None
    # Python's expressions cannot have two groups of the same name
    names = [
        (found[1], f"group_{index}") for index, found in enumerate(_GROUP.finditer(form.pattern))
    ]
    numbers = iter(names)
    pattern = _GROUP.sub(lambda _: f"(?P<{next(numbers)[1]}>", form.pattern)
    match = re.fullmatch(pattern, record, re.ASCII | (re.DOTALL if form.start else 0))
    assert match is not None
    return {
        name: max(match.span(group) for other, group in names if other == name)
        for name in form.fields
    }


@cache
def records(name: str) -> list[str]:
    """The records of a format's sample."""
    sample = catalog.formats()[name].sample.encode()
    made = preview(source(name), sample, "/a", now_ms=NOW_MS)
    return [
        sample[each.first : each.first + each.length].decode().rstrip("\n") for each in made.rows
    ]


def source(name: str) -> SourceSettings:
    return catalog.of_source(SourceSettings(topic="logs", paths=["/a"], format=name))


def parsed(name: str, texts: list[str]) -> list[dict[str, Any] | None]:
    """Returns the row of each record; None for a reject."""
    made = source(name)
    schema = derived_schema(made)
    recipe = compiled(made, Schema(0, schema), 1 << 20).recipe
    found = build_parser(recipe, Codec(schema)).parse(
        pa.array([text.encode() for text in texts], pa.binary()), NOW_MS
    )
    rows: list[dict[str, Any] | None] = [None] * len(texts)
    for at, row, moment in zip(
        found.rows.tolist(), found.batch.to_pylist(), found.event_ms.tolist(), strict=True
    ):
        rows[at] = {**row, "at": moment}
    return rows


def tries(name: str) -> Iterator[tuple[str, dict[str, Any], Changed, dict[str, Any] | None]]:
    """Yields the record, its row, the change and the changed record's row, for all changes of all
    records of a format's sample."""
    for record in records(name):
        line = Line(record, columns_of(name, record).values())
        changed = {each.text: each for each in line.changes() if each.text != record}.values()
        old, *rows = parsed(name, [record, *(each.text for each in changed)])
        assert old is not None
        for each, row in zip(changed, rows, strict=True):
            yield record, old, each, row


def moved(
    form: catalog.Format, record: str, old: dict[str, Any], change: Changed, row: dict[str, Any]
) -> set[str]:
    """Returns the columns that have changed although the change does not touch them."""
    found = set()
    columns = columns_of(form.name, record)
    for name, value in row.items():
        if value == old[name] or name == "_extra":  # has what no column has
            continue
        names = form.time[0] if name in OF_TIME and form.time else [name]
        places = [columns.get(each, (-1, -1)) for each in names]
        if any(0 <= first <= change.end and end >= change.first for first, end in places):
            continue
        # A column that the record did not have may take the inserted text.
        is_new = places == [(-1, -1)] and change.inserted and isinstance(value, str | int)
        if is_new and (str(value) in change.inserted or change.inserted in str(value)):
            continue
        found.add(name)
    return found


@pytest.mark.parametrize("name", NAMES)
def test_a_changed_line_is_rejected_or_keeps_its_other_columns(name: str) -> None:
    """If a text is inserted in a line, a token is missing or a separator is there twice, the line
    is rejected, or becomes a row in which only the columns beside the change differ; ALLOWED lists
    all exceptions. Rules `mask ... for ips` for all text columns mask every inserted address. What
    is inserted in the free text at the end of a line never rejects the line."""
    form = catalog.formats()[name]
    allowed = [each for each in ALLOWED if name in each.formats.split()]
    shifted, unmasked, refused = [], [], []
    count = 0
    for record, old, change, row in tries(name):
        if row is None:
            refused += [change.text] if is_in_free_text(form, record, change) else []
            continue
        count += 1
        columns = moved(form, record, old, change, row)
        if columns and not any(each.allows(columns, row, change.text) for each in allowed):
            shifted.append((change.text, {each: row[each] for each in columns}))
        if passes_masks(change, row):
            unmasked.append(change.text)
    assert (shifted, unmasked, refused) == ([], [], [])
    assert count > 50


def passes_masks(change: Changed, row: dict[str, Any]) -> bool:
    """Whether the inserted address is in the masked row. An address that became a part of a word or
    of a number does not count, because no mask finds it in the line either."""
    if not change.inserted.startswith(ADDRESS) or ADDRESS in mask_ips(change.text, ""):
        return False
    pairs = [part for pair in row.get("_extra", []) for part in pair]
    texts = [value for value in (*row.values(), *pairs) if isinstance(value, str)]
    return any(ADDRESS in mask_ips(text, "") for text in texts)


def is_in_free_text(form: catalog.Format, record: str, change: Changed) -> bool:
    """Whether a text was inserted in the format's last column, which is at the end of the line."""
    first, end = columns_of(form.name, record)[form.fields[-1]]
    is_last = form.pattern is not None and end == len(record)
    return bool(change.inserted) and is_last and 0 <= first < change.first


def test_the_exceptions_are_few() -> None:
    """At most 20 kinds of changes move a text to another column."""
    assert len(ALLOWED) <= 20
