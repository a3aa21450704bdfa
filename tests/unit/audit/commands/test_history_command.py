"""Tests `skidway audit report --history`, which asks a collector for the history of verdicts. The
tests use no sockets."""

from __future__ import annotations

import io
import json
import urllib.error
from email.message import Message
from typing import Any

import pytest

from skidway.audit.commands import history
from skidway.audit.commands.history import bucket_history
from skidway.cli.commands import main

ANSWER: dict[str, Any] = {
    "since": "2026-01-20T08:00:00Z",
    "more": False,
    "buckets": [
        {
            "topic": "dc1.logs", "bucket": "2026-02-01T10:04:00Z", "left_out": 0,
            "changes": [
                {"time": "2026-02-01T10:15:02Z", "word": "complete", "complete": True,
                 "cause": "", "reasons": []},
                {"time": "2026-02-01T11:30:07Z", "word": "open", "complete": False,
                 "cause": "12 more records of web7 at agent", "reasons": []},
            ],
        }
    ],
}  # fmt: skip


def _answering(monkeypatch: pytest.MonkeyPatch, answer: bytes | Exception) -> list[str]:
    asked: list[str] = []

    def open_url(url: str, timeout_s: float) -> Any:
        asked.append(url)
        if isinstance(answer, Exception):
            raise answer
        return io.BytesIO(answer)

    monkeypatch.setattr(history, "open_url", open_url)
    return asked


def test_the_command_prints_the_collectors_history(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`skidway audit report --history` asks the collector for the history of a topic, and prints a
    line for each change of a verdict."""
    asked = _answering(monkeypatch, json.dumps(ANSWER).encode())
    assert (
        main(["audit", "report", "--history", "--topic", "logs", "--collector", "http://c:1"]) == 0
    )
    assert asked == ["http://c:1/history.json?topic=logs"]
    assert capsys.readouterr().out.splitlines() == [
        "dc1.logs 2026-02-01T10:04:00Z",
        "  2026-02-01T10:15:02Z complete",
        "  2026-02-01T11:30:07Z reopened by 12 more records of web7 at agent",
        "The history remembers since 2026-01-20T08:00:00Z.",
    ]


def test_a_bucket_that_the_history_does_not_have_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """If the collector's history does not have the bucket, `skidway audit report --history` says
    so."""
    _answering(monkeypatch, json.dumps(ANSWER | {"buckets": []}).encode())
    assert main(["audit", "report", "--history", "--bucket", "2026-02-01T10:04:30Z"]) == 0
    assert "The history has no such bucket" in capsys.readouterr().out


def test_the_history_of_a_bucket_is_not_that_of_a_bucket_around_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """If several buckets contain the time in a request, the collector may answer with all of them.
    `bucket_history` returns only the history of the bucket that begins at this time, and None if no
    bucket begins then."""
    _answering(monkeypatch, json.dumps(ANSWER).encode())
    found = bucket_history("http://c:1", "dc1.logs", "2026-02-01T10:04:00Z")
    assert found == ANSWER["buckets"][0]
    _answering(monkeypatch, json.dumps(ANSWER).encode())
    assert bucket_history("http://c:1", "dc1.logs", "2026-02-01T10:04:10Z") is None


def test_control_characters_of_names_are_escaped(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """If a path contains control characters, `skidway audit report --history` prints escapes in
    their place, so that the terminal does not interpret these characters."""
    answer = json.dumps(ANSWER).replace("web7", "/log/\\u001b[2J\\u0007a\\nb")
    _answering(monkeypatch, answer.encode())
    assert main(["audit", "report", "--history", "--collector", "http://c:1"]) == 0
    printed = capsys.readouterr().out
    assert r"12 more records of /log/\x1b[2J\x07a\nb at agent" in printed
    assert printed.replace("\n", "").isprintable()


@pytest.mark.parametrize(
    ("answer", "status", "words"),
    [
        (OSError("refused"), 3, "cannot be asked for its history: refused"),
        (
            urllib.error.HTTPError("", 400, "", Message(), io.BytesIO(b"topic 'x' is unknown")),
            2,
            "topic 'x' is unknown.",
        ),
    ],
)
def test_who_cannot_answer_is_named(
    answer: Exception,
    status: int,
    words: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """If the collector cannot be reached, `skidway audit report --history` ends with status 3. If
    the collector refuses the request, the command ends with status 2."""
    _answering(monkeypatch, answer)
    assert main(["audit", "report", "--history"]) == status
    assert words in capsys.readouterr().err
