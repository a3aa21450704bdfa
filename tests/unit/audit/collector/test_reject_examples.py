"""Tests the collector's thread that reads, for each topic, one rejected line as an example for the
pages. The thread sends few requests to the brokers."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from skidway.audit.collector import loader_rejects, reject_examples
from skidway.audit.collector.reject_examples import RejectExamples, reading
from skidway.audit.judgement.standing import Standing, judged
from skidway.audit.topic.count_columns import Count
from skidway.audit.topic.load_note import KIND, Load, RejectedRecord, body_of
from skidway.audit.topic.messages import Delta, Range
from skidway.audit.topic.notes import Note
from skidway.errors import Unreachable
from skidway.kafka import columns
from skidway.kafka.batch import read_header
from skidway.kafka.columns import DecodedRecords, Origins
from skidway.kafka.types import TopicPartition
from support.audit_senders import AGENT, BROKER, LOGS, REJECTED
from support.fold import Fold
from support.one_bucket import HDFS, POLICY, SIZE, START
from support.processes import eventually
from support.rejected_topic import RejectedTopic

NOW = START + 9 * SIZE


class World:
    """A topic of rejected lines, the counts of its buckets, and brokers that may be unreachable.
    opened: how many clients the thread has opened to read examples."""

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
    """As an example of a topic's rejects, the collector reads a line of the newest bucket with
    rejects. It reads the next example only when a newer bucket has rejects."""
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
    """If the brokers cannot be reached, the pages continue to show the earlier example of a
    rejected line. The collector's thread that reads examples tries again in its next pass over the
    topics."""
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
    """The collector reads one rejected line of each topic as an example. If the rejects of the
    newest bucket have expired, or if the cluster does not have the topic of rejects, there is no
    example. The collector does not ask the brokers again for this bucket."""
    world.count(START)
    world.source = replace(REJECTED, topic="other.rejected")
    world.count(START)
    for _ in range(3):
        examples.look()
    assert (texts(examples), world.opened) == ([], 1)


def test_the_topics_that_are_read_are_bounded(
    world: World, examples: RejectExamples, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The collector reads examples of rejected lines of at most TOPICS_MAX topics: those with most
    rejects. It forgets the example of a topic that is no longer among them."""
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
    """The collector's thread that reads examples of rejected lines passes over the topics again and
    again. When the collector ends, the thread ends, too."""
    monkeypatch.setattr(reject_examples, "FIRST_LOOK_S", 0.0)
    monkeypatch.setattr(reject_examples, "LOOK_EVERY_S", 0.01)
    world.topic.reject(START, b"one")
    with reading(examples, threading.Event()):
        world.count(START)
        eventually(lambda: texts(examples) == ["one"])
    assert "reject-examples" not in {x.name for x in threading.enumerate()}


HOUR = 3_600_000
AT = START - START % HOUR
"""The records that the loader rejected have event times in the hour that begins at this time."""


class Loaded:
    """The topic dc1.logs, which also has a topic of rejects, and the notes (audit messages) in
    which the loader reports its loads of dc1.logs."""

    def __init__(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        self.world = world
        self.notes: list[Note] = []
        self.rejects = 2
        self.log = world.topic.cluster
        self.log.create("dc1.logs")
        self.tp = TopicPartition("dc1.logs", 0)
        monkeypatch.setattr(loader_rejects, "read_batches", self._read)
        self.examples = RejectExamples(
            world.connect, self.standing, lambda: loader_rejects.newest(self.notes)
        )  # type: ignore[arg-type]

    def append(self, *values: bytes, is_of_agent: bool = True) -> None:
        """Appends a batch of records to dc1.logs. The origin of each record says that its line has
        10 bytes."""
        count = len(values)
        full = np.ones(count, np.int64)
        origins = Origins(7 * full, 3 * full, 10 * np.arange(count), 10 * full)
        encoded = columns.encode(
            pa.array(values, pa.binary()), START * full, origins=origins if is_of_agent else None
        )
        self.log.log(self.tp).append(encoded)

    def load(self, *record: int) -> None:
        """Adds the note of a load that has rejected the given record. record: its hour, partition
        and offset."""
        number = len(self.notes) + 1
        body = body_of(Load(number, LOGS, rejects=2, rejected=RejectedRecord(*record)))
        self.notes.append(Note(KIND, "/out", "l1", "dc1", 1, number, number, body))

    def standing(self) -> Standing:
        counts = (Count(LOGS, 7, START, SIZE, 2, 10, 1, rejects=self.rejects),)
        said = [Delta(HDFS, 1, START, ranges=(Range(LOGS, 0, 0, 9),), counts=counts)]
        return judged(Fold(said).evidence(), POLICY, NOW)

    def shown(self) -> dict[str, tuple[str, int]]:
        self.examples.look()
        return {x.topic: (y.text, y.offset) for x, y in self.examples.found.items()}

    def _read(self, _: Any, ranges: Any, __: int) -> Iterator[Any]:
        for tp, (first, end) in ranges.items():
            for data in self.log.log(tp).batches:
                header = read_header(data)
                if header.last_offset >= first and header.base_offset < end:
                    yield tp, header, memoryview(data)


@pytest.fixture
def loaded(world: World, monkeypatch: pytest.MonkeyPatch) -> Loaded:
    return Loaded(world, monkeypatch)


def test_a_record_that_the_loader_rejected_is_shown(loaded: Loaded) -> None:
    """The loader reports each load in a note. If the load has rejects, the note names one of them.
    As an example, the collector reads the record that the newest of these notes names. It reads
    another record only when a newer load has rejects."""
    loaded.append(b"one", b"t\x1bwo", b"three")
    assert loaded.shown() == {}
    loaded.load(AT, 0, 1)
    for _ in range(2):
        assert (loaded.shown(), loaded.world.opened) == ({"logs": ("t\\x1bwo", 1)}, 1)
    [found] = loaded.examples.found.values()
    assert (found.tp, found.first, found.reason) == (loaded.tp, 10, "rejected by the loader")
    loaded.load(AT, 0, 2)
    assert (loaded.shown(), loaded.world.opened) == ({"logs": ("three", 2)}, 2)


def test_a_record_that_no_agent_has_sent_is_never_shown(
    loaded: Loaded, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A record without origin is never shown as an example of rejects, even if its batch also has a
    record of an agent. Another program has sent this record, so no rule of an agent has masked
    passwords in it."""
    loaded.append(b"password=1", is_of_agent=False)
    loaded.load(AT, 0, 0)
    assert loaded.shown() == {}

    def mixed(raw: memoryview) -> DecodedRecords:
        return replace(columns.decode(raw), has_origin=np.array([True, False]))

    monkeypatch.setattr(loader_rejects, "decode", mixed)
    loaded.append(b"masked", b"password=2")
    loaded.load(AT, 0, 2)
    assert loaded.shown() == {}
    loaded.load(AT, 0, 1)
    assert loaded.shown() == {"logs": ("masked", 1)}


@pytest.mark.parametrize("record", [(AT, 0, 9), (AT, 5, 0), (AT + HOUR, 0, 0)])
def test_a_record_that_is_not_there_has_no_example(
    loaded: Loaded, record: tuple[int, int, int]
) -> None:
    """The note about a load names a record that the loader rejected. The pages show no example of
    rejects if this record has expired, or if the topic lacks the record's partition. They also show
    none if another record has this offset now, because the topic was created again."""
    loaded.append(b"one")
    loaded.load(*record)
    assert loaded.shown() == {}


def test_without_rejects_no_record_is_read(loaded: Loaded) -> None:
    """The note about a load names a record that the loader rejected. If a reload has made rows of
    all rejected records, the pages do not show the record that the note names."""
    loaded.append(b"one")
    loaded.load(AT, 0, 0)
    loaded.rejects = 0
    assert (loaded.shown(), loaded.world.opened) == ({}, 0)
