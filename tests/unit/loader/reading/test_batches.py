"""When the loader reads the batches of a partition, only the time in which it waits for a batch
counts as the broker's silence. The time in which the loader processes a batch does not count."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from skidway.errors import Unreachable
from skidway.kafka.types import TopicPartition
from skidway.loader.reading import batches as fetch
from support.clock import ManualClock

TP = TopicPartition("logs", 0)


class Fetcher:
    """A fake fetcher, which returns prepared answers. Each poll takes half a second."""

    def __init__(self, clock: ManualClock, answers: list[list[memoryview]]) -> None:
        self._clock, self._answers = clock, answers
        self.positions = {TP: 0}
        self.removed: list[TopicPartition] = []

    def seek(self, tp: TopicPartition, offset: int) -> None:
        self.positions[tp] = offset

    def remove(self, tp: TopicPartition) -> None:
        self.removed.append(tp)

    def poll(self, _timeout_ms: int) -> list[Any]:
        self._clock.advance(0.5)
        found = self._answers.pop(0) if self._answers else []
        return [SimpleNamespace(batches=found)] if found else []


def prepared(
    monkeypatch: pytest.MonkeyPatch, answers: list[list[memoryview]]
) -> tuple[ManualClock, Fetcher]:
    clock = ManualClock()
    fetcher = Fetcher(clock, answers)
    monkeypatch.setattr(fetch, "Fetcher", lambda *_, **__: fetcher)
    monkeypatch.setattr(fetch, "time", clock)
    return clock, fetcher


def test_a_slow_consumer_is_no_silent_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the loader needs minutes to write one batch, it still gets the next batch."""
    clock, fetcher = prepared(monkeypatch, [[memoryview(b"1")], [], [memoryview(b"2")]])
    batches = fetch.batches(None, TP, 0)  # type: ignore[arg-type]
    assert next(batches) == b"1"
    clock.advance(300)
    assert next(batches) == b"2"
    batches.close()
    assert fetcher.removed == [TP]


def test_a_silent_broker_is_unreachable(monkeypatch: pytest.MonkeyPatch) -> None:
    """If no batch comes for a minute although the high watermark is not reached yet, the read ends
    with an error that names the partition and the offset reached."""
    prepared(monkeypatch, [[memoryview(b"1")]])
    batches = fetch.batches(None, TP, 7)  # type: ignore[arg-type]
    assert next(batches) == b"1"
    with pytest.raises(Unreachable, match="no batch at offset 7 for 60 s"):
        next(batches)
