"""The real mirror runs with a model of its source, under random schedules of events and faults.

The tests run the mirror's real code: the connections to its source, the rounds of fetching, the
copying of each partition, the fetch positions, the logs with their recovery, and the named gaps
(ranges of missing offsets that the topics' configs list). The source appends and flushes batches,
crashes, and loses batches that were not flushed. The source's records expire, even up to the middle
of a batch, and offsets are missing in its log. Connections end, and answers come late. The mirror's
disk is full, or its ZooKeeper cannot be reached. The mirror is killed, or its machine loses power
and so loses the unflushed bytes.

Whatever happens, every batch of the mirror is byte for byte the source's batch at the same offset.
If an offset between two offsets of the mirror's log is missing, this offset is in a named gap of
the topic. No named gap contains an offset that is in the mirror's log. After the faults have ended,
the mirror gets all records that the source still has."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from skidway.broker.log.config import LogConfig
from skidway.kafka import gaps
from skidway.kafka.batch import read_header
from skidway.kafka.types import TopicPartition
from support.mirror_world import MirrorWorld, SourceLog

PARTITIONS = 2
SEEDS = 150
STEPS = 120


class Model:
    """A mirror and its source, to which random events happen. Remembers every batch that was ever
    visible in the source's log."""

    def __init__(self, seed: int, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.random = random.Random(seed)
        segment_bytes = self.random.choice([1 << 20, 1024])
        self.world = MirrorWorld(
            folder, monkeypatch, defaults=LogConfig(segment_bytes=segment_bytes),
            jitter=self.random.random,
        )  # fmt: skip
        self.world.source.max_bytes = self.random.choice([100, 400, 1000])
        self.world.source.create("logs", PARTITIONS)
        self.history: list[dict[int, bytes]] = [{} for _ in range(PARTITIONS)]
        self.world.follow()

    def step(self) -> None:
        actions = [
            (12, self.append), (24, self.proceed), (4, self.wait), (2, self.lose),
            (1, self.source_crashes), (2, self.expire), (1, self.hole), (1, self.disk),
            (1, self.zookeeper), (1, self.mirror_crashes),
        ]  # fmt: skip
        weights = [weight for weight, _ in actions]
        [(_, action)] = self.random.choices(actions, weights)
        action()
        self.remember()
        self.check()

    def log(self) -> SourceLog:
        return self.world.source.log("logs", self.random.randrange(PARTITIONS))

    # The events of a run.

    def append(self) -> None:
        log = self.log()
        log.stage(self.random.randint(1, 4))
        if self.random.random() < 0.7:
            log.flush()

    def proceed(self) -> None:
        """Lets the mirror, the source, ZooKeeper and the clock continue for a while, each at its
        own speed."""
        world = self.world
        steps = [world.client.serve, world.client.deliver, world.local.work, world.turn, self.tick]
        for _ in range(self.random.randint(1, 12)):
            for step in steps:
                if self.random.random() < 0.8:
                    step()
        if self.random.random() < 0.1:
            world.mirror.begin_round()

    def tick(self) -> None:
        self.world.clock.advance(0.03)

    def wait(self) -> None:
        self.world.clock.advance(self.random.choice([0.05, 0.3, 1.0, 8.0]))

    def lose(self) -> None:
        self.world.client.lose(after_last_answer=self.random.random() < 0.5)

    def source_crashes(self) -> None:
        for number in range(PARTITIONS):
            self.world.source.log("logs", number).crash()
        self.lose()

    def expire(self) -> None:
        log = self.log()
        if log.end > log.start:
            log.expire(self.random.randint(log.start, log.end))

    def hole(self) -> None:
        log = self.log()
        log.flush()
        log.append(self.random.randint(1, 3), skip=self.random.randint(1, 5))

    def disk(self) -> None:
        self.world.disk.is_full = not self.world.disk.is_full

    def zookeeper(self) -> None:
        self.world.local.zookeeper_is_away = not self.world.local.zookeeper_is_away

    def mirror_crashes(self) -> None:
        """Kills the mirror's process, or simulates a power loss, after which only a part of the
        unflushed bytes is left."""
        local = self.world.local
        if self.random.random() < 0.5:
            local.work()  # ZooKeeper performs the mirror's request, but the answer is lost
        local.jobs.clear()
        local.posted.clear()
        for tp, replica in list(local.replicas.items()):
            if self.random.random() < 0.5:
                self.flush(tp)
            if self.random.random() < 0.3:
                self.lose_power(tp)
            local.reopen(tp, replica.log.flushed.offset)
        self.world.start()

    def flush(self, tp: TopicPartition) -> None:
        log = self.world.local.replicas[tp].log
        flush = log.begin_flush()
        if flush is not None:
            log.finish_flush(flush)

    def lose_power(self, tp: TopicPartition) -> None:
        log = self.world.local.replicas[tp].log
        path = log.active.path
        least = log.flushed.position if log.flushed.segment == log.active.base_offset else 0
        size = path.stat().st_size
        if size > least:
            os.truncate(path, self.random.randint(least, size))

    # The checks.

    def remember(self) -> None:
        for number, known in enumerate(self.history):
            for raw in self.world.source.log("logs", number).batches:
                base = read_header(raw).base_offset
                assert known.setdefault(base, raw) == raw, "the model changes what was visible"

    def check(self) -> None:
        for number in range(PARTITIONS):
            if TopicPartition("dc1.logs", number) in self.world.local.replicas:
                self.check_partition(number)

    def check_partition(self, number: int) -> None:
        named = self.world.local.named("dc1.logs")
        end = 0
        for raw in self.world.local.batches("dc1.logs", number):
            header = read_header(raw)
            assert raw == self.history[number].get(header.base_offset), "not the source's batch"
            assert header.base_offset >= end
            missing = (end, header.base_offset)
            assert gaps.covers(named, number, *missing), f"{missing} is missing and not named"
            end = header.last_offset + 1
            for gap in named:
                if gap.partition == number:
                    here = (header.base_offset, end)
                    assert gap.end <= here[0] or gap.first >= here[1], f"{gap} named, {here} here"

    def heal(self) -> None:
        """Ends all faults. Asserts that the mirror then gets all records that the source has."""
        self.world.disk.is_full = self.world.local.zookeeper_is_away = False
        for number in range(PARTITIONS):
            self.world.source.log("logs", number).flush()
        self.remember()
        for _ in range(4):
            self.world.round(3)
        self.check()
        assert self.world.stopped() == {}
        assert self.world.status["waiting"] == {}
        for number in range(PARTITIONS):
            log = self.world.source.log("logs", number)
            tp = TopicPartition("dc1.logs", number)
            ours = {read_header(raw).base_offset for raw in self.world.local.batches(*tp)}
            assert {read_header(raw).base_offset for raw in log.batches} <= ours
            end = self.world.local.replicas[tp].log.log_end_offset
            named = self.world.local.named("dc1.logs")
            assert end == log.end or gaps.covers(named, number, end, log.end)


@pytest.mark.parametrize("seed", range(SEEDS), indirect=True)
def test_a_mirror_is_its_source_with_every_hole_named(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever faults the source, the connections, the mirror, its disk and ZooKeeper have, the
    mirror is a copy of its source, and every missing offset is in a named gap. After the faults
    have ended, the mirror gets all records that the source still has."""
    model = Model(seed, tmp_path, monkeypatch)
    for _ in range(STEPS):
        model.step()
    model.heal()


@pytest.mark.parametrize("seed", range(SEEDS), indirect=True)
def test_another_history_is_never_mixed_in(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the source loses records and then appends different records at their offsets, the mirror's
    log never contains lost batches together with the source's new batches."""
    model = Model(seed, tmp_path, monkeypatch)
    world, chance = model.world, model.random
    for _ in range(chance.randint(20, STEPS)):
        model.step()
    world.disk.is_full = world.local.zookeeper_is_away = False
    for number in range(PARTITIONS):
        log = world.source.log("logs", number)
        log.crash()
        log.cut(chance.randint(log.start, log.end))
        for _ in range(chance.randint(0, 12)):
            log.append(chance.randint(1, 4), salt=100_000)
    model.lose()
    for _ in range(4):
        world.round(3)
    for number, known in enumerate(model.history):
        log = world.source.log("logs", number)
        ours = world.local.batches("dc1.logs", number)
        old = set(known.values())
        if any(raw not in old for raw in ours):
            still = [raw for raw in ours if read_header(raw).last_offset >= log.start]
            assert set(still) <= set(log.batches), "two histories in one log"
        reached = world.local.replicas[TopicPartition("dc1.logs", number)].log.log_end_offset
        if f"dc1.logs-{number}" not in world.stopped():
            named = world.local.named("dc1.logs")
            assert reached == log.end or gaps.covers(named, number, reached, log.end)
