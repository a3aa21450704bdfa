"""Tests how long an answer of the HDFS client is waited for."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from skidway.audit.output.hdfs import answer
from skidway.audit.output.hdfs.answer import Answers
from support.processes import eventually


def test_an_answer_or_an_error_is_passed_on() -> None:
    """A call that ends has its result or its error, whatever class the error has."""

    def failing() -> None:
        raise SystemExit(7)

    assert Answers().get(lambda: None) is None
    with pytest.raises(SystemExit, match="7"):
        Answers().get(failing)


def test_a_call_without_an_answer_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """A call that never ends is left after the given time, or else after the usual time."""
    ended = threading.Event()
    with pytest.raises(TimeoutError, match="no answer within 0 s"):
        Answers().get(ended.wait, 0.01)
    monkeypatch.setattr(answer, "ANSWER_S", 0.01)
    with pytest.raises(TimeoutError):
        Answers().get(ended.wait)
    ended.set()


def test_a_silent_client_is_waited_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """If a client has not answered in the usual time, nobody waits for it again, also those who
    wait at this moment. An hsync that takes long says nothing about the client."""
    ended, answers = threading.Event(), Answers()
    monkeypatch.setattr(answer, "LOOK_S", 0.01)
    with pytest.raises(TimeoutError):
        answers.get(ended.wait, 0.01)
    assert answers.get(lambda: 7) == 7
    with ThreadPoolExecutor(1) as other:
        waiting = other.submit(answers.get, ended.wait)
        eventually(lambda: waiting.running())
        monkeypatch.setattr(answer, "ANSWER_S", 0.05)
        with pytest.raises(TimeoutError, match=r"no answer within 0 s"):
            answers.get(ended.wait)
        assert isinstance(waiting.exception(60), TimeoutError)
    with pytest.raises(TimeoutError, match="no answer to an earlier request"):
        answers.get(lambda: 7)
    ended.set()
