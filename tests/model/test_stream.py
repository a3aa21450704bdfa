"""A stream writes each record into its sink (the target of the stream's rows) once, even if Spark's
engine is killed at any point.

The engine is simulated, and stores the same data as Spark's engine. Before it reads a batch, it
writes the end positions of the batch to the stream's checkpoint (a checkpoint of Spark, not of an
agent). When the sink has the batch, the engine commits the batch. After a kill, the engine asks a
new reader for the batch that is in the checkpoint but not committed. The sink keeps each batch
once, because a repeated batch replaces its first copy. Meanwhile records are written and partitions
are added. Topics with names that the stream's pattern matches are created. Records expire, but only
after the sink has got them.
"""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest

from support.loading import START_MS, Record
from support.memory_kafka import MemoryLog
from support.memory_query import Queried, queries
from support.promises import promise
from support.randomness import Seeds

Place = tuple[str, int, int]
"""The topic, partition and offset of a record."""
STEPS = 60
TOPICS_MAX, PARTITIONS_MAX = 3, 4


class Killed(Exception):
    """Raised to simulate that Spark's driver is killed at this point."""


class Engine:
    """Acts like Spark's engine for one stream. `first` contains the positions at which the first
    batch begins. `ends` (the end positions of all batches) and `committed` (the number of committed
    batches) survive a kill. `repeated` contains True if the first batch was repeated after the sink
    had got its rows, and False if this happened to a later batch."""

    def __init__(self, queried: Queried, random: Random, options: dict[str, str]) -> None:
        self._queried, self._random, self._options = queried, random, options
        self.first: dict[str, Any] | None = None
        self.ends: list[dict[str, Any]] = []
        self.committed = 0
        self.sink: dict[int, list[Place]] = {}
        self.repeated: set[bool] = set()
        self._reader: Any = None

    def trigger(self, *, may_die: bool = True) -> bool:
        """Runs one batch if there are new records. If `may_die` is true, the engine may be killed
        meanwhile. Returns False if there were no new records, and otherwise True, even if the
        engine was killed."""
        self._may_die = may_die
        try:
            return self._trigger()
        except Killed:
            self._reader = None
            return True

    def _trigger(self) -> bool:
        if self._reader is None:
            source = self._queried.source(**self._options)
            self._reader = source.streamReader(source.schema())
        reader = self._reader
        if self.committed == len(self.ends):
            start = self.ends[-1] if self.ends else self._passed(reader.initialOffset())
            self._die()
            end = self._passed(reader.latestOffset(start, reader.getDefaultReadLimit()))
            if end == start:
                return False
            self._die()
            self.first = start if self.first is None else self.first
            self.ends.append(end)
        self._die()
        self._run_batch(reader)
        return True

    def _run_batch(self, reader: Any) -> None:
        number = self.committed
        start = self.ends[number - 1] if number else self._passed(reader.initialOffset())
        rows: list[Place] = []
        for part in reader.partitions(start, self.ends[number]):
            self._die()
            found = self._queried.read(reader, part)
            rows += [(r["_topic"], r["_partition"], r["_kafka_offset"]) for r in found]
        if self.sink.get(number):
            self.repeated.add(number == 0)
        self.sink[number] = rows
        self._die()
        self.committed += 1
        if self._random.random() < 0.5:
            reader.commit(self.ends[number])

    def _die(self) -> None:
        if self._may_die and self._random.random() < 0.12:
            raise Killed

    def _passed(self, positions: dict[str, Any]) -> dict[str, Any]:
        """Returns the positions as Spark reads them from its checkpoint: converted to JSON and
        back."""
        return dict(json.loads(json.dumps(positions)))


class World:
    """A simulated cluster with topics, and an engine whose stream reads these topics."""

    def __init__(self, queried: Queried, seed: int) -> None:
        self.random = Random(seed)
        self.queried = queried
        options = {"subscribe": "", "subscribePattern": "logs.*", "schema.registry.url": ""}
        options["startingOffsets"] = self.random.choice(["earliest", "latest"])
        if self.random.random() < 0.7:
            options["maxOffsetsPerTrigger"] = str(self.random.randint(1, 12))
        options["maxRecordsPerPartition"] = str(self.random.randint(1, 9))
        self.engine = Engine(queried, self.random, options)

    def run(self) -> None:
        actions = [self.write] * 4 + [self.engine.trigger] * 6 + [self.expire, self.grow]
        for _ in range(STEPS):
            self.random.choice(actions)()
        self.write()
        while self.engine.trigger(may_die=False):
            pass

    def write(self) -> None:
        topic = self.random.choice(sorted(self.queried.cluster.topics))
        partition = self.random.randrange(len(self.queried.cluster.topics[topic].logs))
        count = self.random.randint(1, 5)
        records = [Record(first=10 * each, time_ms=START_MS + each) for each in range(count)]
        self.queried.send(*records, topic=topic, partition=partition)

    def grow(self) -> None:
        topics = self.queried.cluster.topics
        name = self.random.choice(sorted(topics))
        if len(topics[name].logs) < PARTITIONS_MAX:
            topics[name].logs.append(MemoryLog())
        elif len(topics) < TOPICS_MAX:
            self.queried.cluster.create(f"logs-{len(topics)}")

    def expire(self) -> None:
        """Deletes records from the topics, but only records that the sink already has."""
        done = self.engine.ends[self.engine.committed - 1] if self.engine.committed else {}
        for topic, document in done.items():
            for number, log in enumerate(self.queried.cluster.topics[topic].logs):
                below = document.get(str(number), 0)
                if log.start < below:
                    log.expire(self.random.randint(log.start, below))


@promise("5 stream")
@pytest.mark.parametrize("block", range(4))
def test_a_killed_stream_gives_each_record_once(block: int, seeds: Seeds) -> None:
    """Each record after the stream's initial positions is written into the sink exactly once, even
    if Spark's driver is killed at any moment. Meanwhile, records are written, partitions are added
    and records expire."""
    for seed in seeds(range(25 * block, 25 * block + 25)):
        with queries() as queried:
            world = World(queried, seed)
            world.run()
            found = [place for rows in world.engine.sink.values() for place in rows]
            assert len(found) == len(set(found)), seed
            assert set(found) == wanted(world), seed


def wanted(world: World) -> set[Place]:
    first = world.engine.first
    if first is None:
        return set()  # the engine never planned a batch
    return {
        (name, number, offset)
        for name, topic in world.queried.cluster.topics.items()
        for number, log in enumerate(topic.logs)
        for offset in range(first.get(name, {}).get(str(number), 0), log.end)
    }


def test_schedules_kill_and_repeat() -> None:
    """The schedules really repeat batches whose rows the sink already has: the first batch of a
    stream, and later batches."""
    repeated: set[bool] = set()
    for seed in range(40):
        with queries() as queried:
            world = World(queried, seed)
            world.run()
            repeated |= world.engine.repeated
    assert repeated == {False, True}
