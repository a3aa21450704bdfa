"""Tests the load that other producers put on the broker while the benchmark `neighbours` measures a
client."""

from __future__ import annotations

import io
import sys
from typing import Self

import pytest

from bench import neighbours_load


class FakeProducer:
    """A producer that never delivers its last messages. `left` is their number."""

    left = 0

    def __init__(self, *_: object) -> None:
        pass

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def send(self, payload: bytes, count: int) -> None:
        pass

    def flush(self, within_s: float) -> int:
        return self.left


@pytest.mark.parametrize("left", [0, 7])
def test_messages_that_are_never_delivered_are_no_figure(
    monkeypatch: pytest.MonkeyPatch, left: int
) -> None:
    """The load consists of other producers that write to the broker during the benchmark. If one of
    them cannot deliver all its messages, the program that runs them ends with an error and prints
    no figure."""
    monkeypatch.setattr(neighbours_load, "Producer", FakeProducer)
    monkeypatch.setattr(FakeProducer, "left", left)
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    if left:
        with pytest.raises(RuntimeError, match=r"14 of \d+ messages were not delivered"):
            neighbours_load.produce("a:1", "t", 2)
    else:
        assert neighbours_load.produce("a:1", "t", 2)["requests_per_s"] >= 0
