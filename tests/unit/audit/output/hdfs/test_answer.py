"""Tests how long an answer of the HDFS client is waited for."""

from __future__ import annotations

import threading

import pytest

from skidway.audit.output.hdfs import answer
from skidway.audit.output.hdfs.answer import in_time


def test_an_answer_or_an_error_is_passed_on() -> None:
    """A call that ends has its result or its error, whatever class the error has."""

    def failing() -> None:
        raise SystemExit(7)

    assert in_time(lambda: None) is None
    with pytest.raises(SystemExit, match="7"):
        in_time(failing)


def test_a_call_without_an_answer_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """A call that never ends is left after the given time, or else after the usual time."""
    ended = threading.Event()
    with pytest.raises(TimeoutError, match="no answer within 0 s"):
        in_time(ended.wait, 0.01)
    monkeypatch.setattr(answer, "ANSWER_S", 0.01)
    with pytest.raises(TimeoutError):
        in_time(ended.wait)
    ended.set()
