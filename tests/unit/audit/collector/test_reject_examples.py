"""Tests the thread of the collector that reads, with few requests, the examples of rejected lines
that pages show."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from skidway.audit.collector import reject_examples
from skidway.audit.collector.reject_examples import RejectExamples, reading
from skidway.audit.judgement.standing import Standing, judged
from skidway.audit.topic.count_columns import Count
from skidway.audit.topic.messages import Delta, Range
from skidway.errors import Unreachable
from support.audit_senders import AGENT, BROKER, REJECTED
from support.fold import Fold
from support.one_bucket import POLICY, SIZE, START
from support.processes import eventually
from support.rejected_topic import RejectedTopic

NOW = START + 9 * SIZE


class World:
    """A topic with rejects in some buckets. opened: how many clients the thread has opened to read
    examples."""

    def __init__(self, topic: RejectedTopic) -> None:
        self.topic = topic
        self.opened = 0
        self.is_away = False
        self.counts: list[Count] = []
        self.source = REJECTED

    def count(self, bucket: int, lines: int = 2) -> None:
        self.counts.append(Count(self.source, 7, bucket, SIZE, lines, 10, 1))

    def standing(self) -> Standing:
        ranges = (Range(self.source, 0, 0, 9),)
        said = [
            Delta(AGENT, 1, START, counts=tuple(self.counts)),
            Delta(BROKER, 1, START, ranges=ranges, counts=tuple(self.counts)),
        ]
        return judged(Fold(said).evidence(), POLICY, NOW)

    @contextmanager
    def connect(self) -> Iterator[Any]:
        self.opened += 1
        if self.is_away:
            raise Unreachable("no broker answers")
        yield self.topic.client()


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    return World(RejectedTopic("dc1.logs.rejected", monkeypatch))


@pytest.fixture
def examples(world: World) -> RejectExamples:
    return RejectExamples(world.connect, world.standing)  # type: ignore[arg-type]


def texts(examples: RejectExamples) -> list[str]:
    return [x.text for x in examples.found.values()]


def test_the_example_is_of_the_newest_bucket_with_rejects(
    world: World, examples: RejectExamples
) -> None:
    """The example is a line of the newest bucket with rejects. As long as no newer bucket has
    rejects, the thread does not read an example again."""
    examples.look()
    assert (texts(examples), world.opened) == ([], 0)
    world.topic.reject(START + 5, b"old")
    world.topic.reject(START + SIZE + 5, b"new")
    world.count(START)
    world.count(START + SIZE)
    for _ in range(3):
        examples.look()
        assert (texts(examples), world.opened) == (["new"], 1)
    world.topic.reject(START + 2 * SIZE, b"newer")
    world.count(START + 2 * SIZE)
    examples.look()
    assert (texts(examples), world.opened) == (["newer"], 2)


def test_while_the_brokers_are_away_the_earlier_example_stays(
    world: World, examples: RejectExamples
) -> None:
    """If the brokers cannot be reached, pages continue to show the earlier example, and the thread
    tries again in its next pass."""
    world.topic.reject(START, b"one")
    world.count(START)
    examples.look()
    world.topic.reject(START + SIZE, b"two")
    world.count(START + SIZE)
    world.is_away = True
    examples.look()
    assert texts(examples) == ["one"]
    world.is_away = False
    examples.look()
    assert texts(examples) == ["two"]


def test_an_example_that_has_expired_is_looked_for_once(
    world: World, examples: RejectExamples
) -> None:
    """If the records of a bucket have expired, or if the cluster has no such topic, there is no
    example. The thread does not ask again for this bucket."""
    world.count(START)
    world.source = replace(REJECTED, topic="other.rejected")
    world.count(START)
    for _ in range(3):
        examples.look()
    assert (texts(examples), world.opened) == ([], 1)


def test_the_topics_that_are_read_are_bounded(
    world: World, examples: RejectExamples, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The thread reads examples of at most TOPICS_MAX topics: those with most rejects. It drops
    examples of other topics."""
    world.topic.reject(START, b"one")
    world.count(START)
    examples.look()
    assert texts(examples) == ["one"]
    monkeypatch.setattr(reject_examples, "TOPICS_MAX", 1)
    world.source = replace(REJECTED, topic="more.rejected")
    world.count(START, lines=9)
    examples.look()
    assert texts(examples) == []


def test_the_thread_looks_again_and_ends(
    world: World, examples: RejectExamples, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The thread repeats its pass over the topics until the program ends, and then ends, too."""
    monkeypatch.setattr(reject_examples, "FIRST_LOOK_S", 0.0)
    monkeypatch.setattr(reject_examples, "LOOK_EVERY_S", 0.01)
    world.topic.reject(START, b"one")
    with reading(examples, threading.Event()):
        world.count(START)
        eventually(lambda: texts(examples) == ["one"])
    assert "reject-examples" not in {x.name for x in threading.enumerate()}
