"""From a format of Python's logging, the agent derives how to read the lines that programs write
with this format."""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skidway.agent.formats.catalog import of_source
from skidway.agent.parsers.settings import ParserSettings
from skidway.agent.settings import SourceSettings
from skidway.agent.validation.preview import Preview, preview
from skidway.errors import ConfigurationRefused


def source(pattern: str, date_format: str | None = None, **more: Any) -> SourceSettings:
    parser = ParserSettings(type="python", pattern=pattern, date_format=date_format)
    parser.check()
    made = SourceSettings(topic="logs", paths=["/a"], parser=parser, **more)
    made.check()
    return of_source(made)


def read(pattern: str, line: str, date_format: str | None = None, **more: Any) -> Preview:
    return preview(source(pattern, date_format, **more), f"{line}\n".encode(), "/a")


ATTRIBUTES = {"levelname": "level", "name": "logger", "threadName": "thread", "lineno": "line"}
TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z")), max_size=20)


@given(
    st.sampled_from(
        [
            "%(asctime)s %(levelname)-8s [%(threadName)s] %(name)s:%(lineno)d: %(message)s",
            "%(asctime)s - %(name)20s - %(levelname)s - %(message)s",
            "%(levelname)s|%(asctime)s.%(msecs)03d|%(lineno)05d|%(message)s",
            "{asctime} {levelname:<8} {name:>12} {lineno:d} {{}} {message}",
        ]
    ),
    st.sampled_from(["main", "Thread-1 (work)"]),
    st.sampled_from([logging.DEBUG, logging.ERROR]),
    st.text("abcXYZ._", min_size=1, max_size=12),
    st.lists(TEXTS, max_size=3).map(" ".join),
    st.integers(0, 1_767_225_600_999),
)
def test_what_logging_writes_is_read_back(
    pattern: str, thread: str, level: int, name: str, message: str, ms: int
) -> None:
    """If Python's logging writes records as lines of a format, the agent reads the records' times
    and fields from these lines."""
    record = logging.LogRecord(name, level, "/a.py", 7, "%s", (message,), None)
    record.created, record.msecs, record.threadName = ms / 1000, ms % 1000, thread
    date_format = "%d.%m.%Y %H:%M:%S" if "msecs" in pattern else None
    formatter = logging.Formatter(pattern, date_format, "%" if "%(" in pattern else "{")
    formatter.converter = lambda _: datetime.fromtimestamp(ms // 1000, UTC).timetuple()  # type: ignore[assignment]
    (row,) = read(pattern, formatter.format(record), date_format).rows
    assert row.time is not None
    assert round(row.time.timestamp() * 1000) == ms
    values = {"level": record.levelname, "logger": name, "thread": thread, "line": 7}
    for attribute, group in ATTRIBUTES.items():
        if f"({attribute})" in pattern or f"{{{attribute}" in pattern:
            assert row.row[group] == values[group]
    assert row.row["message"] == message


@pytest.mark.parametrize(
    ("pattern", "date_format", "sentence"),
    [
        ("%(what)s %(message)s", None, "what is no attribute of Python's logging"),
        ("%(name)s%(message)s", None, "there must be some text between name and message"),
        ("%s", None, "no attribute"),
        ("%(message)s %d", None, "here is no attribute that can be read back"),
        ("%(asctime)s %(message)s", "%Y %c", "parser.date_format: %c cannot be read back"),
        ("", None, "no attribute"),
    ],
)
def test_formats_that_nobody_can_read_back_are_refused(
    pattern: str, date_format: str | None, sentence: str
) -> None:
    """If the agent could not divide the lines of a format into fields, it refuses the format with
    one sentence, and a caret marks the place in the format that causes the refusal."""
    with pytest.raises(ConfigurationRefused, match=sentence) as caught:
        source(pattern, date_format)
    assert str(caught.value).endswith("^")
