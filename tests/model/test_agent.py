"""The real agent under random schedules: writes, rotations, kills, late batches, growth, settings.

Everything that decides is the agent's own code, over a real SQLite database; the host, the cluster
and the clock are the test's (support.agent_world). The loader's walk over marks consumes the logs.
The oracle knows every cell (six characters) that was ever written, and when, and where.
"""

from __future__ import annotations

import collections
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from agent.settings import ParserSettings, SourceSettings
from audit import bucket, checksum, marks
from audit.messages import Announcement, Certainty, Delta, Loss, Seal
from schemas.codec import Codec
from schemas.single_object import schema_text
from support import agent_world
from support.agent_world import Brokers, Record, World, datum_text, records_of, settings
from support.randomness import Seeds

pytestmark = pytest.mark.model

TOPIC, REJECTED = "logs", "logs.rejected"
CELL = 6
STEPS = 160
GENERATIONS = 2
PATTERNS = (r"(?P<line>[^x].*)", r"(?P<line>[^y].*)", r"(?P<line>[^xy].*)")
REJECTED_CODEC = Codec(schema_text("Rejected"))


def source(pattern: int, partitioning: str, path: str = "/log/a*") -> SourceSettings:
    """What is written under it; which lines it rejects depends on the pattern."""
    return SourceSettings(
        topic=TOPIC,
        paths=[path],
        parser=ParserSettings(type="regex", pattern=PATTERNS[pattern]),
        key="line" if partitioning == "key" else None,
        partitioning=partitioning,
    )


class Schedule:
    """One random run. `faults`: which of the rarer events may happen."""

    def __init__(self, seed: int, partitioning: str, faults: frozenset[str]) -> None:
        self.random = random.Random(seed)
        self.faults = faults
        self.partitioning = partitioning
        self.path = "/log/a" if "narrow" in faults else "/log/a*"
        self.world = World(settings(source(0, partitioning, self.path)), partitions=2)
        self.world.brokers = Watched(self)
        self.world.brokers.partitions = {TOPIC: 2, REJECTED: 1}
        self.kills = 4
        self.cells = 0
        self.rotations = 0
        self.written: dict[str, tuple[int, int]] = {}  # cell: (wall ms, inode)
        self.gone: set[str] = set()
        self.uncertain: set[str] = set()
        self.announced: set[int] = set()
        self.closed: dict[int, int] = {}
        self.content: dict[int, bytes] = {}  # file id: the bytes that it stood for, as last seen
        self.trace: list[str] = []

    # --- what happens -------------------------------------------------------------------------

    def run(self) -> None:
        if "narrow" in self.faults:  # what was rotated before the agent came is not its own
            self.start()
            self.turn()
        for _ in range(STEPS):
            actions = list(self.actions())
            weights = [weight for _, weight in actions]
            action = self.random.choices([action for action, _ in actions], weights)[0]
            action()
            self.check_always()
        self.finish()

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
        if self.world.loop is None:
            yield self.start, 8
            return
        yield self.turn, 14
        yield self.arrive, 12
        yield self.answer, 10
        yield self.publish, 6
        if self.kills:
            yield self.kill, 2
            if "power" in self.faults:
                yield self.lose_power, 2

    def write(self) -> None:
        text = ""
        for _ in range(self.random.randint(1, 3)):
            self.cells += 1
            cell = f"{self.random.choice('abcxy')}{self.cells:05d}"
            text += cell
            if self.random.random() < 0.6:
                text += self.random.choice(["\n", "\n", "\r\n", "\n\n"])
        file = self.world.files.append("/log/a", text.encode())
        for cell in cells_of(text):
            self.written[cell] = (self.world.clock.time_ms(), file.inode)
        self.say(f"write {text!r}")

    def rotate(self) -> None:
        if "/log/a" not in self.world.files.by_path:
            return
        if "narrow" in self.faults:
            for _ in range(self.random.choice([1, 1, 2, 5])):
                self.shift()
                self.write()
            return
        self.rotations += 1
        self.world.files.rename("/log/a", f"/log/a.{self.rotations}")
        self.say(f"rotate to a.{self.rotations}")

    def shift(self) -> None:
        """Every generation gets the next number; with the fault `oldest` there are only two."""
        files = self.world.files
        last = 1
        while f"/log/a.{last}" in files.by_path:
            last += 1
        if "oldest" in self.faults and last > GENERATIONS:
            last -= 1
            self.lose_content(files.by_path[f"/log/a.{last}"].data)
        for number in range(last, 1, -1):
            files.rename(f"/log/a.{number - 1}", f"/log/a.{number}")
        files.rename("/log/a", "/log/a.1")
        self.say("shift")

    def truncate(self) -> None:
        file = self.world.files.by_path.get("/log/a")
        if file is not None:
            self.lose_content(file.data)
            self.world.files.truncate("/log/a")
            self.say("truncate")

    def delete(self) -> None:
        rotated = [path for path in self.world.files.by_path if path != "/log/a"]
        if rotated:
            path = self.random.choice(rotated)
            self.lose_content(self.world.files.by_path[path].data)
            self.world.files.delete(path)
            self.say(f"delete {path}")

    def lose_content(self, data: bytearray) -> None:
        self.remember()
        self.gone.update(cells_of(data.decode()))

    def sync(self) -> None:
        self.world.files.sync()

    def pass_time(self) -> None:
        self.world.clock.advance(self.random.choice([0.05, 0.3, 1.5]))

    def grow(self) -> None:
        partitions = self.world.brokers.partitions
        for topic in (TOPIC, REJECTED):
            partitions[topic] = min(partitions[topic] + 1, 4)
        if self.world.loop is not None and self.random.random() < 0.5:
            self.world.loop.update(self.world.destinations())
        self.say("grow")

    def start(self) -> None:
        if "settings" in self.faults and self.random.random() < 0.5:
            mine = source(self.random.randrange(3), self.partitioning, self.path)
            self.world.settings = settings(mine)
        self.world.start()
        self.say("start")

    def turn(self) -> None:
        self.world.turn()
        self.remember()

    def arrive(self) -> None:
        waiting = [tp for tp, sent in self.world.producer.sent.items() if sent]
        if waiting:
            self.world.producer.arrive(self.random.choice(waiting))

    def answer(self) -> None:
        self.world.turn(self.world.producer.answer())
        self.remember()

    def publish(self) -> None:
        before = len(self.world.published)
        self.world.publish()
        for message in self.world.published[before:]:
            self.read_message(message)

    def kill(self) -> None:
        self.kills -= 1
        self.world.kill(self.random.randint(0, 5))
        self.say("KILL")

    def lose_power(self) -> None:
        """The state is durable, the tails of the logs are not; nothing is late after that."""
        self.kill()
        self.remember()
        for file in self.world.files.by_path.values():
            kept = self.random.randint(min(file.durable, len(file.data)), len(file.data))
            while kept < len(file.data) and not self.is_boundary(file.data, kept):
                kept += 1
            self.gone.update(cells_of(bytes(file.data[kept:]).decode()))
            del file.data[kept:]
            file.durable = kept
            file.changed_ns += 1
        self.say("POWER LOSS")

    @staticmethod
    def is_boundary(data: bytearray, at: int) -> bool:
        """Whether a cut there splits no cell."""
        behind = bytes(data[at:]).decode()
        return not behind or behind[0] in "abcxy\r\n"

    def arrive_late(self) -> None:
        waiting = [tp for tp, sent in self.world.brokers.late.items() if sent]
        self.world.brokers.arrive_late(self.random.choice(waiting))

    # --- what must hold -----------------------------------------------------------------------

    def remember(self) -> None:
        """Which bytes each file id stands for, while its file is there to be looked at."""
        if self.world.loop is None:
            return
        by_inode = {f.inode: f for f in self.world.files.by_path.values()}
        for tracked in self.world.loop.tracker.files.values():
            file = by_inode.get(tracked.birth.key.inode)
            if file is not None and tracked.state == "open":
                self.content[tracked.file] = bytes(file.data)

    def check_always(self) -> None:
        if self.world.loop is None:
            return
        for tracked in self.world.loop.tracker.files.values():
            tally, begin = tracked.tally, tracked.birth.begin
            settled = tally.acknowledged + tally.rejected + tally.filtered + tally.uncertain
            lost = tracked.position - begin - settled  # after it was promised
            assert 0 <= lost <= tally.lost, "the ledger does not add up"
            assert begin <= tracked.position <= tracked.read_position <= tracked.promised

    def read_message(self, message: Any) -> None:
        if isinstance(message, Announcement):
            self.announced.add(message.file)
            if message.length is not None:
                self.closed[message.file] = message.length
        if isinstance(message, Delta):
            for loss in message.losses:
                if loss.certainty is Certainty.UNCERTAIN:
                    content = self.content.get(loss.file, b"")
                    self.uncertain.update(cells_of(content[loss.first : loss.end].decode()))
        if isinstance(message, Seal):
            self.check_seal(message)

    def check_seal(self, seal: Seal) -> None:
        """All that lay in the files at W is in the logs, or was set apart by name."""
        there = {cell for record in self.all_records() for cell in record_cells(record)}
        for topic in seal.topics:
            if topic.source.topic == TOPIC:
                before = {c for c, (wall, _) in self.written.items() if wall < topic.sealed_until}
                missing = before - there - self.gone - self.uncertain
                assert not missing, f"sealed until {topic.sealed_until} without {missing}"

    def check_append(self, record: Record) -> None:
        assert record.file in self.announced, "a record before its file's announcement"
        if record.file in self.closed:
            assert record.end <= self.closed[record.file], "a record behind its file's end"

    def all_records(self) -> Iterator[tuple[str, Record]]:
        for tp, log in self.world.brokers.logs.items():
            for record in log:
                yield tp.topic, record

    def finish(self) -> None:
        self.kills = 0
        if self.world.loop is None:
            self.start()
        for _ in range(40):
            self.world.clock.advance(0.4)
            self.publish()
            self.world.turn(self.world.producer.deliver_all())
            self.remember()
            self.check_always()
        while any(self.world.brokers.late.values()):
            self.arrive_late()
        self.publish()
        self.check_rows()

    def check_rows(self) -> None:
        rows, straddles, sums = self.load()
        losses = [loss for delta in self.world.of(Delta) for loss in delta.losses]
        doubt = bool(losses)
        if self.faults.isdisjoint({"truncate", "delete", "power"}):  # they leave no trace at times
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
        """What nobody read belongs to buckets of which a loss speaks."""
        late_ms = self.world.settings.lateness_ms
        for cell in missing:
            written = bucket.start_of(self.written[cell][0], 1_000)
            assert any(
                (loss.from_bucket or 0) - late_ms <= written <= (loss.to_bucket or 0)
                for loss in losses
            ), f"{cell} is gone and no loss says so"

    def load(self) -> tuple[collections.Counter[str], int, dict[Any, list[int]]]:
        """What the loader makes of the logs: cells in rows and rejects, straddles, sums."""
        rows: collections.Counter[str] = collections.Counter()
        sums: dict[Any, list[int]] = collections.defaultdict(lambda: [0, 0, 0])
        straddles = 0
        for tp, log in self.world.brokers.logs.items():
            if not log:
                continue
            columns = [
                np.array([getattr(r, name) for r in log], np.int64)
                for name in ("agent", "file", "first", "length")
            ]
            walked = marks.walk(*columns, {})
            straddles += int(walked.straddle.sum())
            hashes = checksum.record_hash(*columns)
            for record, keep, hash_ in zip(
                log, (walked.keep | walked.straddle).tolist(), hashes.tolist(), strict=True
            ):
                if keep:
                    rows.update(record_cells((tp.topic, record)))
                    entry = sums[tp.topic, bucket.start_of(record.timestamp, 1_000)]
                    entry[0] += 1
                    entry[1] += record.length
                    entry[2] = checksum.signed(entry[2] + hash_)
        return rows, straddles, dict(sums)

    def agent_sums(self) -> dict[Any, list[int]]:
        sums: dict[Any, list[int]] = collections.defaultdict(lambda: [0, 0, 0])
        numbers = set()
        for delta in self.world.of(Delta):
            if delta.number in numbers:
                continue  # the same key has the same content
            numbers.add(delta.number)
            for count in delta.counts:
                entry = sums[count.source.topic, count.bucket]
                entry[0] += count.count
                entry[1] += count.bytes
                entry[2] = checksum.signed(entry[2] + count.checksum)
        return dict(sums)

    def say(self, what: str) -> None:
        self.trace.append(what)


class Watched(Brokers):
    """Tells the schedule of every append."""

    def __init__(self, schedule: Schedule) -> None:
        super().__init__()
        self._schedule = schedule

    def append(self, sent: agent_world.Sent) -> int:
        for record in records_of(sent.encoded):
            self._schedule.check_append(record)
        return super().append(sent)


def cells_of(text: str) -> list[str]:
    joined = text.replace("\r", "").replace("\n", "")
    return [joined[at : at + CELL] for at in range(0, len(joined), CELL)]


def record_cells(pair: tuple[str, Record]) -> list[str]:
    topic, record = pair
    if topic == TOPIC:
        return cells_of(datum_text(record.value))
    datum = agent_world.pa_binary([record.value[5:]])
    row = REJECTED_CODEC.decode(datum).batch.to_pylist()[0]
    return cells_of(row["line"].decode())


EVERYTHING_SURE = frozenset({"growth", "settings"})


@pytest.mark.parametrize("partitioning", ["file", "key", "spread"])
@pytest.mark.parametrize("block", range(3))
def test_kills_growth_and_new_settings_lose_and_double_nothing(
    partitioning: str, block: int, seeds: Seeds
) -> None:
    """Every line arrives exactly once, and the agent's counts are the rows', whatever is killed."""
    for seed in seeds(range(block * 7, block * 7 + 7)):
        run(seed, partitioning, EVERYTHING_SURE)


@pytest.mark.parametrize("block", range(3))
def test_what_the_host_destroys_is_named_and_nothing_else_suffers(block: int, seeds: Seeds) -> None:
    """Truncation, deletion and power loss cost what they destroyed, and that is set apart."""
    for seed in seeds(range(1000 + block * 10, 1000 + block * 10 + 10)):
        run(seed, "key", EVERYTHING_SURE | {"truncate", "delete", "power"})


@pytest.mark.parametrize("block", range(2))
def test_rotations_out_of_the_pattern_lose_and_double_nothing(block: int, seeds: Seeds) -> None:
    """A pattern that means no rotated name: every generation is found, whatever is killed when."""
    for seed in seeds(range(3000 + block * 10, 3000 + block * 10 + 10)):
        run(seed, "file", EVERYTHING_SURE | {"narrow"})


@pytest.mark.parametrize("block", range(2))
def test_generations_that_were_deleted_unread_are_declared(block: int, seeds: Seeds) -> None:
    """With two generations kept and rotations faster than looks: lost, and said so."""
    for seed in seeds(range(4000 + block * 10, 4000 + block * 10 + 10)):
        run(seed, "file", EVERYTHING_SURE | {"narrow", "oldest"})


def run(seed: int, partitioning: str, faults: frozenset[str]) -> None:
    guarded(Schedule(seed, partitioning, faults), seed)


def guarded(schedule: Schedule, seed: int) -> None:
    try:
        schedule.run()
    except AssertionError as error:
        trace = "\n".join(schedule.trace[-60:])
        raise AssertionError(f"seed {seed}: {error}\n{trace}") from error
