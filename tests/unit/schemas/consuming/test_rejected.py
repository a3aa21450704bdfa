from __future__ import annotations

import argparse
import json
from contextlib import nullcontext
from typing import Any

import pytest

from skidway.schemas.consuming import rejected
from skidway.schemas.consuming.rejected import _document, _table_row
from support.rejected_topic import RejectedTopic

REJECTED: dict[str, Any] = {
    "reason": "encoding", "detail": "", "host": "web1", "path": "/var/log/a.log", "first": 40,
}  # fmt: skip


def row(line: bytes) -> dict[str, Any]:
    return {"timestamp": 0, "offset": 3, **_document(REJECTED | {"line": line})}


def test_a_line_that_is_not_utf_8_is_shown_as_text() -> None:
    """`skidway rejected show` prints a rejected line as text, with escapes for the bytes that are
    not UTF-8. With --json, such a line is base64, and its key says so."""
    assert _table_row(row(b"bad utf8 \xff\xfe here"))["line"] == r"bad utf8 \xff\xfe here"
    assert row(b"bad utf8 \xff\xfe here")["line_base64"] == "YmFkIHV0Zjgg//4gaGVyZQ=="
    assert _table_row(row("caf\u00e9\t1".encode()))["line"] == "caf\u00e9\N{REPLACEMENT CHARACTER}1"
    assert "line_base64" not in row(b"one")
    assert _table_row(row(b""))["line"] == ""


def test_only_lines_that_were_rejected_since_the_time_are_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With `--since`, `skidway rejected show` leaves out each line that was rejected before this
    time, as `skidway rejected export` does. It leaves out such a line even if its record comes
    after the record of a line that was rejected later."""
    topic = RejectedTopic("logs.rejected", monkeypatch)
    monkeypatch.setattr(rejected, "read_ranges", topic.read)
    monkeypatch.setattr(rejected, "connect", lambda _: nullcontext(topic.client()))
    for time_ms, line in ((100, b"early"), (2_000, b"new"), (900, b"late"), (1_000, b"at once")):
        topic.reject(time_ms, line)
    commands = argparse.ArgumentParser()
    rejected.register(commands.add_subparsers())
    words = ["rejected", "show", "logs", "--since", "1970-01-01T00:00:01Z", "--json"]
    args = commands.parse_args([*words, "--bootstrap-server", "k1:9092"])
    assert args.run(args) == 0
    shown = [each["line"] for each in json.loads(capsys.readouterr().out)]
    assert shown == ["at once", "new"]
