"""The real agent runs under random schedules of writes, rotations, kills, batches that arrive late,
new partitions and new settings.

All decisions are made by the agent's own code, which uses a real SQLite database. The host, the
cluster and the clock are simulated (support.agent_world, support.agent_schedule). The model reads
the brokers' logs and counts the records. It recognizes repeated records by marks, as the loader
does. A file's mark is the highest byte position that the file's records have reached so far. A
record that does not reach beyond the mark is a repeat. Every line consists of cells, which are
pieces of text that occur nowhere else. The model remembers when each cell was written, and which
bytes each file had.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from skidway.agent.settings import SourceSettings
from skidway.audit.counts import bucket
from skidway.audit.topic.messages import Announcement, Certainty, Delta, Loss, Seal
from skidway.kafka.types import TopicPartition
from support import agent_world
from support.agent_schedule import (
    BEGINNING,
    BUCKET_MS,
    PATH,
    TOPIC,
    Schedule,
    run_traced,
    source,
    texts_in,
)
from support.agent_world import Brokers, Record, World, records_of, settings
from support.promises import promise
from support.randomness import Seeds

GENERATIONS = 2
LINES_MAX = 4
TIGHT_BYTES = 600  # buffer.memory, so small that the agent often stops after one reading
PATTERNS = (r"(?P<line>[^x].*)", r"(?P<line>[^y].*)", r"(?P<line>[^xy].*)")


class Growing(Schedule):
    """One random run, in which an agent reads a log that grows and is rotated while random faults
    happen."""

    steps = 160

    def __init__(self, seed: int, partitioning: str, faults: frozenset[str]) -> None:
        self.path = PATH if "narrow" in faults else f"{PATH}*"
        self.lines_max = LINES_MAX if "multiline" in faults else 0
        self.encoding = "utf-16" if "utf-16" in faults else "utf-8"
        own = source(
            PATTERNS[0], partitioning, self.path, lines_max=self.lines_max, encoding=self.encoding
        )
        tight = {"buffer_memory": TIGHT_BYTES} if "tight" in faults else {}
        world = World(settings(own, **tight), partitions=2)
        world.brokers = Watched(self)
        super().__init__(seed, partitioning, faults, world, kills=4)
        self.uncertain: set[str] = set()
        self.announced: set[int] = set()
        self.closed: dict[int, int] = {}

    # --- events -------------------------------------------------------------------------------

    def run(self) -> None:
        # If no pattern matches the names of rotated files, the agent does not read files that were
        # rotated before its first start. So here the agent starts before the first line is written.
        if "narrow" in self.faults:
            self.start()
            self.turn()
        super().run()

    def actions(self) -> Iterator[tuple[Any, float]]:
        yield self.write, 10
        yield self.rotate, 1
        yield self.pass_time, 3
        yield self.sync, 2
        if any(self.world.brokers.late.values()):
            yield self.arrive_late, 3
        if "growth" in self.faults:
            yield self.grow, 0.2
        if "truncate" in self.faults:
            yield self.truncate, 0.5
        if "delete" in self.faults:
            yield self.delete, 0.5
        if "holes" in self.faults:
            yield self.leave_hole, 1
        yield from self.of_agent(*([(self.reload, 1)] if "reload" in self.faults else []))

    def write(self) -> None:
        self.write_cells(3, 0.6)

    def rotate(self) -> None:
        if "narrow" not in self.faults:
            super().rotate()
        elif PATH in self.world.files.by_path:
            for _ in range(self.random.choice([1, 1, 2, 5])):
                self.shift()
                self.write()

    def shift(self) -> None:
        """Rotates the log: renames each rotated file to the next number, and the log to number 1.
        With the fault `oldest`, deletes the oldest rotated file if there would be more than
        GENERATIONS rotated files.
        """
        files = self.world.files
        last = 1
        while f"{PATH}.{last}" in files.by_path:
            last += 1
        if "oldest" in self.faults and last > GENERATIONS:
            last -= 1
            self.lose_content(files.by_path[f"{PATH}.{last}"].data)
        for number in range(last, 1, -1):
            files.rename(f"{PATH}.{number - 1}", f"{PATH}.{number}")
        files.rename(PATH, f"{PATH}.1")
        self.say("shift")

    def delete(self) -> None:
        rotated = [path for path in self.world.files.by_path if path != PATH]
        if rotated:
            path = self.random.choice(rotated)
            self.lose_content(self.world.files.by_path[path].data)
            self.world.files.delete(path)
            self.say(f"delete {path}")

    def reload(self) -> None:
        """Reloads the running agent with settings that may have another pattern of the parser,
        another rule for joining lines, another flush interval and other sources."""
        pattern = PATTERNS[self.random.randrange(3)]
        lines_max = self.random.choice([0, 2, LINES_MAX]) if self.lines_max else 0
        own = source(pattern, self.partitioning, self.path, lines_max=lines_max)
        other = SourceSettings(topic="others", paths=["/other/*"])
        sources = self.random.choice([[own], [other, own], [own, other]])
        idle_ms = self.random.choice([100, 1_000])
        self.world.reload(settings(*sources, idle_flush_ms=idle_ms, max_open_files=8))
        self.say(f"reload {len(sources)} sources, {pattern}, {idle_ms} ms")

    def start(self) -> None:
        if "settings" in self.faults and self.random.random() < 0.5:
            pattern = PATTERNS[self.random.randrange(3)]
            lines_max = self.random.choice([0, 2, LINES_MAX]) if self.lines_max else 0
            own = source(
                pattern, self.partitioning, self.path, lines_max=lines_max, encoding=self.encoding
            )
            self.world.settings = settings(own)
        super().start()
        self.say("start")

    # --- checks -------------------------------------------------------------------------------

    def read_message(self, message: Any) -> None:
        if isinstance(message, Announcement):
            self.announced.add(message.file)
            if message.length is not None:
                self.closed[message.file] = message.length
        if isinstance(message, Delta):
            for loss in message.losses:
                if loss.certainty is Certainty.UNCERTAIN:
                    self.uncertain.update(self.cells_between(loss.file, loss.first, loss.end))
        if isinstance(message, Seal):
            self.check_seal(message)

    def check_seal(self, seal: Seal) -> None:
        """A seal says that the agent has counted all lines up to a time. Asserts that the seal is
        true: every line that was written before this time is in the brokers' logs, is gone from the
        host, or was declared uncertain."""
        known = self.cells_there() | self.gone | self.uncertain
        for topic in seal.topics:
            if topic.source.topic == TOPIC:
                missing = self.written_before(topic.sealed_until) - known
                assert not missing, f"sealed until {topic.sealed_until} without {missing}"

    def check_append(self, tp: TopicPartition, record: Record) -> None:
        assert record.file in self.announced, "a record before its file's announcement"
        if record.file in self.closed:
            assert record.end <= self.closed[record.file], "a record behind its file's end"
        inner = texts_in(tp, [record])[0].split("\n")[1:]
        assert len(inner) < max(self.lines_max, 1), "a record of too many lines"
        assert not any(re.match(BEGINNING, line) for line in inner), "two records in one"

    def finish(self) -> None:
        self.settle()
        self.check_rows()
        self.check_bytes()

    def check_bytes(self) -> None:
        """Asserts that each byte of the files on the host is accounted for under a file id, and
        that no byte is pending."""
        ledger = self.world.ledger()
        assert not any(each["pending"] for each in ledger)
        ends = {each["inode"]: each["begin"] + each["bytes"] for each in ledger}
        for path, file in self.world.files.by_path.items():
            assert ends.get(file.inode, 0) == len(file.data), path

    def check_rows(self) -> None:
        rows, straddles, sums = self.load()
        losses = self.world.losses()
        doubt = bool(losses)
        # After a truncation, a deletion or a power loss, the agent cannot know exactly which lines
        # were destroyed. So runs with these faults do not call `check_declared`.
        if self.faults.isdisjoint({"truncate", "delete", "power"}):
            self.check_declared([cell for cell in self.gone if not rows[cell]], losses)
        for cell in self.written:
            count = rows[cell]
            if cell in self.uncertain:
                continue
            if cell in self.gone:
                assert count <= 1, f"{cell} {count} times"
            else:
                assert count == 1, f"{cell} {count} times"
        assert set(rows) <= set(self.written)
        if not doubt:
            assert not straddles
            assert self.agent_sums() == sums, "the equation does not hold"

    def check_declared(self, missing: list[str], losses: list[Loss]) -> None:
        """Asserts that a declared loss covers each missing line. A loss names the buckets (time
        windows) from `from_bucket` to `to_bucket`. The line's bucket must be one of them, or start
        at most `lateness_ms` before `from_bucket`, because a line may be late."""
        late_ms = self.world.settings.lateness_ms
        for cell in missing:
            written = bucket.start_of(self.written[cell], BUCKET_MS)
            assert any(
                (loss.from_bucket or 0) - late_ms <= written <= (loss.to_bucket or 0)
                for loss in losses
            ), f"{cell} is gone and no loss says so"


class Watched(Brokers):
    """Simulated brokers. For each record that the agent appends, they call the method
    `check_append` of the present run (a `Growing` object)."""

    def __init__(self, schedule: Growing) -> None:
        super().__init__()
        self._schedule = schedule

    def append(self, sent: agent_world.Sent) -> int:
        for record in records_of(sent.encoded):
            self._schedule.check_append(sent.tp, record)
        return super().append(sent)


EVERYTHING_SURE = frozenset({"growth", "settings"})


@promise("2 intent")
@pytest.mark.parametrize("partitioning", ["file", "key", "spread"])
@pytest.mark.parametrize("block", range(3))
def test_kills_growth_and_new_settings_lose_and_double_nothing(
    partitioning: str, block: int, seeds: Seeds
) -> None:
    """No line is lost or doubled because of kills, new partitions or changed settings, and the
    agent's counts are equal to the counts of the rows."""
    for seed in seeds(range(block * 7, block * 7 + 7)):
        run(seed, partitioning, EVERYTHING_SURE)


@promise("2 silent topic")
@pytest.mark.parametrize("partitioning", ["file", "key"])
def test_a_topic_without_room_loses_and_doubles_nothing(partitioning: str, seeds: Seeds) -> None:
    """If `buffer.memory` is so small that the topic often has no room, the agent often holds back
    files and intents. Still, no line is lost or doubled, and lines keep their order."""
    for seed in seeds(range(9000, 9010)):
        run(seed, partitioning, EVERYTHING_SURE | {"tight"})


@promise("2 new settings")
@pytest.mark.parametrize("also", ["", "narrow", "multiline"])
def test_reloads_lose_and_double_nothing(also: str, seeds: Seeds) -> None:
    """A running agent may get changed settings at any moment, even shortly before it is killed. No
    line is lost or doubled, and the agent's counts are equal to the counts of the rows."""
    for seed in seeds(range(6000, 6008)):
        run(seed, "key", EVERYTHING_SURE | {"reload"} | ({also} - {""}))


@promise("2 framing")
@pytest.mark.parametrize("partitioning", ["file", "spread"])
def test_records_of_several_lines_are_neither_lost_nor_doubled(
    partitioning: str, seeds: Seeds
) -> None:
    """If the agent joins several lines to one record, no line is lost or doubled because of kills,
    rotations or changed settings. This is so even if the changed settings have another rule for
    joining lines. No record contains the first line of another record."""
    for seed in seeds(range(5000, 5010)):
        run(seed, partitioning, EVERYTHING_SURE | {"multiline"})


@promise("2 ledger")
@pytest.mark.parametrize("block", range(3))
def test_what_the_host_destroys_harms_no_other_line(block: int, seeds: Seeds) -> None:
    """If a truncation, a deletion or a power loss destroys lines, the agent delivers each of the
    other lines once. The acknowledged, rejected, filtered, uncertain and lost bytes of each file
    account for every byte before the agent's position in the file. In the end they account for all
    bytes of the files on the host, and no byte is pending."""
    for seed in seeds(range(1000 + block * 10, 1000 + block * 10 + 10)):
        run(seed, "key", EVERYTHING_SURE | {"truncate", "delete", "power"})


@promise("1 generations")
@pytest.mark.parametrize("block", range(2))
def test_rotations_out_of_the_pattern_lose_and_double_nothing(block: int, seeds: Seeds) -> None:
    """If the agent's pattern does not match the names of rotated files, the agent still finds every
    rotated file and delivers each line once, however often it is killed."""
    for seed in seeds(range(3000 + block * 10, 3000 + block * 10 + 10)):
        run(seed, "file", EVERYTHING_SURE | {"narrow"})


@promise("1 generations")
@pytest.mark.parametrize("block", range(2))
def test_generations_that_were_deleted_unread_are_declared(block: int, seeds: Seeds) -> None:
    """If a log is rotated so often that rotated files are deleted before the agent finds them, the
    agent declares the lines of the deleted files lost. Here rotation keeps only two rotated
    files."""
    for seed in seeds(range(4000 + block * 10, 4000 + block * 10 + 10)):
        run(seed, "file", EVERYTHING_SURE | {"narrow", "oldest"})


@promise("2 byte order")
def test_utf16_lines_are_neither_lost_nor_doubled(seeds: Seeds) -> None:
    """If the files are in UTF-16, each in its own byte order, no line is lost or doubled because of
    kills, rotations or changed settings."""
    for seed in seeds(range(6000, 6008)):
        joined = frozenset({"multiline"} if seed % 2 else ())
        run(seed, "file", EVERYTHING_SURE | {"utf-16"} | joined)


@promise("2 nul bytes")
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_holes_lose_and_double_no_line(encoding: str, seeds: Seeds) -> None:
    """If NUL bytes are between the lines, no line is lost or doubled because of kills, rotations or
    changed settings."""
    for seed in seeds(range(7000, 7006)):
        run(seed, "file", EVERYTHING_SURE | {"holes", encoding})


@promise("2 nul bytes")
def test_holes_that_a_power_loss_leaves_hurt_no_other_line(seeds: Seeds) -> None:
    """If a power loss puts NUL bytes in place of lines, only these lines are lost, and no line is
    doubled."""
    for seed in seeds(range(8000, 8010)):
        run(seed, "key", EVERYTHING_SURE | {"holes", "truncate", "power"})


def run(seed: int, partitioning: str, faults: frozenset[str]) -> None:
    run_traced(Growing(seed, partitioning, faults), seed)
