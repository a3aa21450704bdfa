"""A loader that drops the marks of closed files loads the same rows as a loader that keeps all
marks forever. Only the tables of the second loader grow without limit. A mark says up to which byte
a log file is loaded. A file is closed when its agent has announced the file's final length.

The tests run the loader's real code: it reads the audit topic (the feed), decides which marks to
drop, keeps the loader's tables, and writes these tables to files. Agents, partitions, a mirror and
clocks are simulated. Each schedule contains late copies of records, a loader that lags behind, and
audit messages that are sent again. An old connection delivers late copies up to LATE_MS after the
file was closed. In the first test, each schedule also has one of three faults. Either the agents'
clocks are wrong, or the loader's clock is wrong, or the topic is a mirror that lags behind the
mirrored audit topic. The rules for closed files do not hold if several of these faults occur at
once.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import pytest

from skidway.audit.counts.marks import FileKey
from skidway.audit.topic.messages import Announcement, Message, Seal, Sender, Tier
from skidway.audit.topic.seal_columns import SealedTopic
from skidway.errors import Unreachable
from skidway.kafka.types import TopicPartition
from skidway.loader.audit_topic.endings import Place
from skidway.loader.audit_topic.feed import Feed
from skidway.loader.planning.topic import SourceTopic
from skidway.loader.runs.closing import Closing
from skidway.loader.state.layout import LoadId
from skidway.loader.state.manifest import Manifest, PartitionRange
from skidway.loader.state.table_file import TableStaging
from skidway.loader.state.tables import Changes, read_tables, stage
from support.loading import SOURCE, START_MS, TOPIC, WHOLE
from support.memory_store import MemoryStore
from support.promises import promise

MINUTE_MS = 60_000
LATE_MS = 150_000
AGENTS, PARTITIONS = (7, 8), (0, 1)

Sent = tuple[FileKey, int]
"""Identifies a record by its log file and the position of its first byte. In this model, every
record is one byte long."""


def partition_of(sent: Sent) -> int:
    """Returns the number of the partition to which an agent sends a record. The records of one file
    go to several partitions."""
    (_, file), at = sent
    return (file + at // 4) % len(PARTITIONS)


@dataclass
class Agent:
    """A simulated agent: its open files with their present lengths, the number of its last message,
    and its clock."""

    id: int
    ends: dict[FileKey, int] = field(default_factory=dict)
    offsets: dict[int, int] = field(default_factory=dict)
    number: int = 0
    skew_ms: int = 0
    unsent: list[Message] = field(default_factory=list)


class World:
    """A simulated site with agents, a log for each partition, the audit topic, and a loader with
    its output."""

    def __init__(self, choose: random.Random, kind: str) -> None:
        self.choose, self.kind = choose, kind
        self.now = START_MS
        self.loader_skew_ms = 0
        self.files = 0
        self.agents = [Agent(each) for each in AGENTS]
        self.logs: dict[int, list[Sent]] = {each: [] for each in PARTITIONS}
        self.times: dict[int, list[int]] = {each: [] for each in PARTITIONS}
        self.late: list[tuple[int, int, Sent]] = []
        self.audit: list[Message] = []
        self.store = MemoryStore()
        self.newest: Manifest | None = None
        self.rows: list[Sent] = []
        self.kept: dict[tuple[int, FileKey], int] = {}
        self.wanted: list[Sent] = []
        self.most = 0

    # --- the agents ---------------------------------------------------------------------------

    def pass_time(self) -> None:
        """Lets time pass. Appends the late copies of records that arrive in this time."""
        steps = (1_000, 20_000, MINUTE_MS, 10 * MINUTE_MS, 70 * MINUTE_MS)
        until = self.now + self.choose.choices(steps, (5, 5, 5, 5, 2))[0]
        for due, partition, sent in sorted(self.late):
            if due <= until:
                self.now = max(self.now, due)
                self.append(partition, sent)
        self.late = [each for each in self.late if each[0] > until]
        self.now = until

    def append(self, partition: int, sent: Sent) -> int:
        self.logs[partition].append(sent)
        self.times[partition].append(self.now)
        return len(self.logs[partition]) - 1

    def write(self, agent: Agent) -> None:
        """Lets an agent send records of a file. For some records, a second copy arrives later over
        an old connection."""
        if not agent.ends or self.choose.random() < 0.3:
            self.files += 1
            agent.ends[agent.id, self.files] = 0
            self.say(agent, self.announcement(agent, self.files))
        key = self.choose.choice(list(agent.ends))
        for _ in range(self.choose.randint(1, 3)):
            sent = (key, agent.ends[key])
            agent.ends[key] += 1
            partition = partition_of(sent)
            agent.offsets[partition] = self.append(partition, sent)
            if self.choose.random() < 0.3:
                self.send_late(sent)

    def send_late(self, sent: Sent) -> None:
        due = self.now + self.choose.randint(0, LATE_MS)
        self.late.append((due, partition_of(sent), sent))

    def close(self, agent: Agent) -> None:
        if agent.ends:
            key = self.choose.choice(list(agent.ends))
            length = agent.ends.pop(key)
            self.say(agent, self.announcement(agent, key[1], length=length))
            if self.choose.random() < 0.5:
                self.send_late((key, length - 1))

    def seal(self, agent: Agent) -> None:
        agent.number += 1
        sender = Sender(Tier.AGENT, "dc1", str(agent.id), "h", 1)
        time_ms = self.now + agent.skew_ms
        sealed = SealedTopic(SOURCE, time_ms, agent.number, tuple(agent.offsets.items()))
        self.say(agent, Seal(sender, agent.number, time_ms, (sealed,)))

    def announcement(self, agent: Agent, file: int, **more: Any) -> Announcement:
        time_ms = self.now + agent.skew_ms
        known: Any = ("h", f"/{file}", 1, file, b"", 0, SOURCE)
        return Announcement(time_ms, agent.id, file, *known, **more)

    def say(self, agent: Agent, message: Message) -> None:
        """Appends a message to the audit topic. Sometimes appends the agent's last messages again,
        as after a crash."""
        self.audit.append(message)
        agent.unsent = [*agent.unsent, message][-3:]
        if self.choose.random() < 0.1:
            self.audit += agent.unsent

    def wrong_clock(self) -> None:
        skew = self.choose.choice((0, -1, 1)) * self.choose.choice((MINUTE_MS, 180 * MINUTE_MS))
        if self.kind == "agents' clocks":
            self.choose.choice(self.agents).skew_ms = skew
        elif self.kind == "loader's clock":
            self.loader_skew_ms = skew

    # --- the loader ---------------------------------------------------------------------------

    def watermark(self, partition: int) -> int:
        """Returns the offset after the partition's last visible record. If the topic is a mirror,
        records become visible up to half an hour late."""
        times = self.times[partition]
        if self.kind != "a mirror":
            return len(times)
        before = self.newest_end(partition)
        lag = self.choose.choice((0, 5, 30)) * MINUTE_MS
        return max(before, sum(1 for time in times if time <= self.now - lag))

    def newest_end(self, partition: int) -> int:
        parts = self.newest.partitions if self.newest else ()
        return next((each.end for each in parts if each.partition == partition), 0)

    def load(self, *, whole: bool = False) -> None:
        """Runs one load. If `whole` is false, the load may stop at an offset before the high
        watermark."""
        ends = {each: self.watermark(each) for each in PARTITIONS}
        feed, log = Feed(), "audit"
        # The newest manifest of each topic has a position in the audit topic. The loader reads the
        # audit topic once for all its topics, from the lowest of these positions on. So it may
        # begin before the position of this topic.
        position = self.newest.audit_positions.get(log, 0) if self.newest else 0
        for offset in range(max(0, position - self.choose.choice((0, 40))), len(self.audit)):
            feed.take(self.audit[offset], Place(log, offset))
        feed.positions = {log: len(self.audit)}
        tables = read_tables(self.store, self.newest)
        marks: dict[int, dict[FileKey, int]] = {each: {} for each in PARTITIONS}
        ranges = []
        known = feed.locations_of(SOURCE).keys() | tables.locations.keys()
        for partition in PARTITIONS:
            first = self.newest_end(partition)
            end = ends[partition] if whole else self.choose.randint(first, ends[partition])
            ranges.append(PartitionRange(partition, first, end))
            for key, at in self.logs[partition][first:end]:
                mark = marks[partition].get(key, tables.marks.get(partition, {}).get(key, -1))
                if at + 1 > mark:
                    assert key in known, "a record that is no repeat has no name any more"
                    self.rows.append((key, at))
                    marks[partition][key] = at + 1
                if at + 1 > self.kept.get((partition, key), -1):
                    self.wanted.append((key, at))
                    self.kept[partition, key] = at + 1
        self.newest = self.commit(feed, tables, marks, ranges)

    def commit(
        self, feed: Feed, tables: Any, marks: Mapping[int, Any], ranges: list[PartitionRange]
    ) -> Manifest:
        new = feed.new_locations(SOURCE, self.newest.audit_positions if self.newest else {})
        added = Changes(marks, {key: at for key, at in new.items() if key not in tables.locations})
        tables.add(added)
        parts: Any = SimpleNamespace(feed=feed, client=self, clock=self)
        topic = SourceTopic(TOPIC, "", SOURCE, ())
        closed = Closing(parts, topic, self.newest).changes(tables, ranges)
        tables.add(closed)
        number = self.newest.number + 1 if self.newest else 1
        staging = TableStaging(self.store, LoadId(TOPIC, number, "c" * 32))
        side = stage(staging, self.newest.side if self.newest else {}, tables, added.then(closed))
        for file in staging.files:
            assert self.store.rename(file.staged, file.path)
        self.most = max(self.most, sum(len(each) for each in tables.marks.values()))
        return replace(
            WHOLE, number=number, side=side, audit_positions=feed.positions,
            partitions=tuple(ranges),
        )  # fmt: skip

    def time_ms(self) -> int:
        return self.now + self.loader_skew_ms

    def list_offsets_now(
        self, times: Mapping[TopicPartition, int], _isolation_level: int
    ) -> tuple[Any, Any]:
        if self.choose.random() < 0.05:
            return {}, {next(iter(times)): Unreachable("no leader")}
        return {tp: SimpleNamespace(offset=self.watermark(tp.partition)) for tp in times}, {}


def schedule(world: World, steps: int) -> None:
    for _ in range(steps):
        agent = world.choose.choice(world.agents)
        world.pass_time()
        what = world.choose.choices(("write", "close", "seal", "load", "clock"), (6, 3, 4, 4, 2))[0]
        if what in ("write", "close", "seal"):
            getattr(world, what)(agent)
        elif what == "load":
            world.load(whole=world.choose.random() < 0.5)
        else:
            world.wrong_clock()


@promise("5 closed files")
@pytest.mark.parametrize("kind", ["agents' clocks", "loader's clock", "a mirror"])
@pytest.mark.parametrize("seed", range(8), indirect=True)
def test_dropped_marks_give_the_same_rows(seed: int, kind: str) -> None:
    """A loader that drops the marks of closed files loads the same rows as a loader that keeps all
    marks. A mark says up to which byte a file is loaded. The loader also drops the name of a file,
    but only when no new record of this file can come. The rows are the same whatever records arrive
    late, whenever the loads run, and whichever clock is wrong."""
    world = World(random.Random(seed), kind)
    schedule(world, 120)
    world.now += LATE_MS
    world.pass_time()
    world.load(whole=True)
    assert world.rows == world.wanted, f"seed {seed}"


@promise("5 closed files")
@pytest.mark.parametrize("seed", range(3), indirect=True)
def test_the_tables_keep_open_files_only(seed: int) -> None:
    """The loader waits some time for late records of closed files. Afterwards its tables contain
    marks and names of open files only, and no closures (announced final lengths), even if many more
    files were loaded."""
    world = World(random.Random(seed), "")
    schedule(world, 120)
    for _ in range(8):
        world.now += 61 * MINUTE_MS
        world.pass_time()
        for agent in world.agents:
            world.seal(agent)
        world.load(whole=True)
    tables = read_tables(world.store, world.newest)
    still_open = {key for agent in world.agents for key in agent.ends}
    assert tables.locations.keys() == still_open
    assert {key for each in tables.marks.values() for key in each} <= still_open
    assert not tables.closures.files
    assert world.files > 2 * len(still_open)
    assert world.rows == world.wanted
