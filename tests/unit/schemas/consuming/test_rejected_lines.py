"""An export of rejected lines can be limited by time, reason and file. It keeps every byte of the
chosen lines."""

from __future__ import annotations

import base64
from types import SimpleNamespace
from typing import Any, cast

import pytest

from skidway.agent.batches import rejected
from skidway.agent.shaping import rejected_text
from skidway.errors import UsageError
from skidway.kafka.client import Client
from skidway.schemas.consuming.rejected_lines import (
    ENDS_MAX,
    WITHHELD,
    RejectedLines,
    Wanted,
    is_cut,
    repairable,
    topic_of_rejects,
)


def document(line: bytes = b"x", length: int = 2, **others: Any) -> dict[str, Any]:
    own = {
        "topic": "logs",
        "reason": "no-match",
        "detail": "",
        "line": line,
        "host": "web1",
        "path": "/var/log/a.log",
        "agent": 5,
        "file": 7,
        "first": 0,
        "length": length,
        "original_agent": None,
        "original_file": None,
        "original_first": None,
    }
    return {**own, **others}


class NoTopics:
    """A client whose cluster has no topic."""

    def metadata(self, names: list[str]) -> SimpleNamespace:
        return SimpleNamespace(topics={})


def test_a_topic_under_another_name_is_not_to_be_created() -> None:
    """If the cluster does not have a topic with rejected lines, the error says that another cluster
    may have the topic under another name. The error does not advise to create the topic, because
    the new topic would stay empty."""
    lines = RejectedLines(cast(Client, NoTopics()), "dc1.auth")
    with pytest.raises(UsageError, match=r"no topic dc1\.auth\.rejected in this cluster") as error:
        list(lines.read(Wanted()))
    assert "create" not in str(error.value)
    with pytest.raises(UsageError, match=r"no topic nosuch\.rejected in this cluster"):
        topic_of_rejects(cast(Client, NoTopics()), "nosuch.rejected")


@pytest.mark.parametrize(
    ("wanted", "takes"),
    [
        (Wanted(), True),
        (Wanted(since=100), True),
        (Wanted(since=101), False),
        (Wanted(until=100), False),
        (Wanted(until=101), True),
        (Wanted(reasons=("schema", "no-match")), True),
        (Wanted(reasons=("schema",)), False),
        (Wanted(files="/var/log/*"), True),
        (Wanted(files="/srv/*"), False),
    ],
)
def test_lines_are_chosen(wanted: Wanted, takes: bool) -> None:
    """A rejected line is exported only if its time of rejection, its reason and its file fit the
    options. The option `--until` is the end of the exported time span: a line that was rejected at
    exactly this time is left out."""
    assert wanted.takes(document(), 100) is takes


def test_bytes_are_exported_whole() -> None:
    """A rejected line in UTF-8 is exported as text. A line that is not ASCII, or has NUL bytes, is
    also exported as base64. Members of the exported JSON object that are null are left out."""
    assert repairable(document(b"caf\xc3\xa9", 6))["line"] == "café"
    assert "line_base64" not in repairable(document(b"cafe", 5))
    # bytes that are valid UTF-8 may mean other characters in the log's own encoding
    for line in (b"caf\xc3\xa9", b"a\0b\0"):
        assert base64.b64decode(repairable(document(line, 6))["line_base64"]) == line
    found = repairable(document(b"caf\xe9", 5))
    assert "line" not in found
    assert "original_agent" not in found
    assert base64.b64decode(found["line_base64"]) == b"caf\xe9"


@pytest.mark.parametrize(
    ("line", "length", "expected"),
    [(b"abc", 3, False), (b"abc", 5, False), (b"abc", 9, False), (b"abc", 10, True)],
)
def test_a_line_that_was_cut_is_marked(line: bytes, length: int, expected: bool) -> None:
    """If a record has only the beginning of its line, the export marks the line as cut, so that
    nobody replays it as if it were whole."""
    assert is_cut(document(line, length)) is expected
    assert repairable(document(line, length)).get("is_cut", False) is expected


def test_a_line_that_was_rejected_again_is_not_taken_for_cut() -> None:
    """A line counts as cut if it is shorter than the length in its origin, unless it is a repaired
    line that was rejected again. For such a line, the length in the origin is that of the JSON
    document in which the line was replayed. This document is longer than the line, but the line is
    whole."""
    assert not is_cut(document(b"abc", 400, original_agent=1, original_file=2, original_first=3))


def test_a_withheld_line_is_not_whole() -> None:
    """If the agent withheld the text of a rejected line, the exported line counts as cut, however
    short the line was. So nobody replays the line as if it were whole."""
    assert rejected_text.WITHHELD == WITHHELD
    assert is_cut(document(WITHHELD, 11))
    assert is_cut(document(WITHHELD, 900, original_first=4))


def test_a_run_of_nul_bytes_is_not_whole() -> None:
    """If a log file has NUL bytes, the agent sends a rejected record about them, without a line.
    This record counts as cut, even if there is only one NUL byte, because it has no line that could
    be replayed."""
    assert is_cut(document(b"", 4096, reason="nul-bytes"))
    assert is_cut(document(b"", 1, reason="nul-bytes"))
    assert not is_cut(document(b"", 1))


def test_agents_cut_so_much_that_everybody_sees_it() -> None:
    """Agents and readers use the same ENDS_MAX, so that a reader can distinguish a cut line from a
    whole line. The text of a whole line in a record may be up to ENDS_MAX bytes shorter than the
    line, because the byte order mark and the line end are left out. If an agent sends only the
    beginning of a line, it leaves out more than ENDS_MAX bytes."""
    assert rejected.ENDS_MAX == ENDS_MAX
