"""Upgrades at random moments with intents pending: the agent reads back what the brokers have.

The agent's own code over a real SQLite database (support.agent_world); host, cluster and clock are
the test's. The oracle knows every cell (a line of six characters) that was written, where, and what
each file id stood for. Four things are failures: a cell that is in no log and in no loss (silent
loss), one that readers count twice (silent doubling), one declared lost that a log has (false
loss), and one declared uncertain although nothing was hidden from the agent, or although the log
still has it (false uncertainty).

What an earlier process had sent arrives until `read.back.wait.ms` after the start of the next: that
is the assumption which agent/delivery/search.py gives reasons for.
"""

from __future__ import annotations

import collections
import random
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from agent import identity
from agent.delivery import recipe as recipes
from agent.delivery.progress import Progress
from agent.delivery.recipe import Recipe
from agent.parsing.regex import RegexParser
from agent.settings import ParserSettings, SourceSettings
from agent.state.changes import Changes
from audit import bucket, checksum, marks
from audit.messages import Certainty, Delta, Loss, Seal
from schemas.codec import Codec
from schemas.single_object import schema_text
from skidway.kafka.types import TopicPartition
from support.agent_world import Record, World, datum_text, pa_binary, settings
from support.randomness import Seeds

pytestmark = pytest.mark.model

TOPIC, REJECTED, PATH = "logs", "logs.rejected", "/log/a"
CELL = 6
STEPS = 140
WAIT_MS = 1_000
PATTERNS = (r"(?P<line>[^x].*)", r"(?P<line>[^y].*)")
REJECTED_CODEC = Codec(schema_text("Rejected"))
SUCCESSOR = "may have been delivered as those of file"


def source(pattern: int, partitioning: str) -> SourceSettings:
    return SourceSettings(
        topic=TOPIC,
        paths=["/log/a*"],
        parser=ParserSettings(type="regex", pattern=PATTERNS[pattern]),
        key="line" if partitioning == "key" else None,
        partitioning=partitioning,
    )


class Schedule:
    """One random run; `faults`: which of the rarer events happen."""

    def __init__(self, seed: int, partitioning: str, faults: set[str]) -> None:
        self.random = random.Random(seed)
        self.partitioning, self.faults = partitioning, faults
        self.wait_ms = 0 if "impatient" in faults else WAIT_MS
        configured = settings(source(0, partitioning), read_back_wait_ms=self.wait_ms)
        self.world = World(configured, partitions=2)
        self.world.brokers.partitions = {TOPIC: 2, REJECTED: 1}
        self.version = self.cells = self.rotations = 0
        self.kills = 5
        self.started_at = 0.0
        self.written: dict[str, int] = {}  # cell: wall ms
        self.gone: set[str] = set()
        self.content: dict[int, bytes] = {}  # file id: the bytes that it stood for
        self.losses: list[Loss] = []
        self.trace: list[str] = []

    def run(self) -> None:
        for _ in range(STEPS):
            actions = list(self.actions())
            weights = [weight for _, weight in actions]
            self.random.choices([action for action, _ in actions], weights)[0]()
            self.check_ledger()
        self.finish()
        self.check_end()

    def actions(self) -> Iterator[tuple[Any, float]]:
        yield self.write, 8
        yield self.rotate, 0.5
        yield self.pass_time, 3
        yield self.sync, 2
        if any(self.world.brokers.late.values()):
            yield self.arrive_late, 3
        if "growth" in self.faults:
            yield self.grow, 0.3
        if "truncate" in self.faults:
            yield self.truncate, 0.4
        if "expire" in self.faults:
            yield self.expire, 1
        if self.world.loop is None:
            yield self.start, 8
            return
        yield self.turn, 14
        yield self.turn_away, 1
        if not self.world.brokers.away:
            yield self.arrive, 9
            yield self.answer, 7
            yield self.publish, 6
        if self.kills:
            yield self.kill, 2
            if "power" in self.faults:
                yield self.lose_power, 2

    # --- what happens -------------------------------------------------------------------------

    def write(self) -> None:
        for _ in range(self.random.randint(1, 4)):
            self.cells += 1
            cell = f"{self.random.choice('abcxy')}{self.cells:05d}"
            end = "" if self.random.random() < 0.1 else self.random.choice(["\n", "\r\n"])
            self.world.files.append(PATH, (cell + end).encode())
            self.written[cell] = self.world.clock.time_ms()

    def rotate(self) -> None:
        if PATH in self.world.files.by_path:
            self.rotations += 1
            self.world.files.rename(PATH, f"{PATH}.{self.rotations}")
            self.say("rotate")

    def sync(self) -> None:
        self.world.files.sync()

    def pass_time(self) -> None:
        seconds = self.random.choice([0.05, 0.3, 0.9])
        past_at = self.started_at + WAIT_MS / 1000
        if self.world.loop is not None and self.world.clock.monotonic() + seconds >= past_at:
            self.arrive_all_late()
        self.world.clock.advance(seconds)

    def grow(self) -> None:
        for topic in (TOPIC, REJECTED):
            partitions = self.world.brokers.partitions
            partitions[topic] = min(partitions[topic] + 1, 4)
        if self.world.loop is not None and self.random.random() < 0.5:
            self.world.loop.update(self.world.destinations())
        self.say("grow")

    def truncate(self) -> None:
        file = self.world.files.by_path.get(PATH)
        if file is not None:
            self.remember()
            self.gone.update(cells_of(file.data))
            self.world.files.truncate(PATH)
            self.say("truncate")

    def expire(self) -> None:
        logs = [tp for tp, log in self.world.brokers.logs.items() if log]
        if logs:
            tp = self.random.choice(logs)
            start = self.random.randint(0, len(self.world.brokers.logs[tp]))
            starts = self.world.brokers.starts
            starts[tp] = max(start, starts.get(tp, 0))
            self.say(f"expire {tp} below {starts[tp]}")

    def start(self) -> None:
        if self.random.random() < 0.7:
            self.version += 1
        if self.random.random() < 0.3:
            mine = source(self.random.randrange(2), self.partitioning)
            self.world.settings = settings(mine, read_back_wait_ms=self.wait_ms)
        self.world.brokers.away = False
        self.world.start()
        self.started_at = self.world.clock.monotonic()
        self.say(f"start version {self.version}")

    def turn_away(self) -> None:
        self.world.brokers.away = not self.world.brokers.away

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
            if isinstance(message, Delta):
                self.losses += message.losses
            if isinstance(message, Seal):
                self.check_seal(message)

    def kill(self) -> None:
        self.kills -= 1
        self.world.kill(self.random.randint(0, 5))
        self.say("KILL")

    def lose_power(self) -> None:
        self.remember()
        self.kill()
        for file in self.world.files.by_path.values():
            kept = self.random.randint(min(file.durable, len(file.data)), len(file.data))
            while kept < len(file.data) and bytes(file.data[kept:])[:1] not in b"abcxy\r\n":
                kept += 1
            self.gone.update(cells_of(file.data[kept:]))
            del file.data[kept:]
            file.durable = kept
            file.changed_ns += 1
        self.say("POWER LOSS")

    def arrive_late(self) -> None:
        waiting = [tp for tp, sent in self.world.brokers.late.items() if sent]
        self.world.brokers.arrive_late(self.random.choice(waiting))

    def arrive_all_late(self) -> None:
        while any(self.world.brokers.late.values()):
            self.arrive_late()

    def finish(self) -> None:
        self.kills = 0
        self.world.brokers.away = False
        if self.world.loop is None:
            self.start()
        for _ in range(50):
            self.arrive_all_late()
            self.world.clock.advance(0.4)
            self.publish()
            self.world.turn(self.world.producer.deliver_all())
            self.remember()
            self.check_ledger()
        self.publish()

    def remember(self) -> None:
        """Which bytes each file id stands for, while its file is there to be looked at."""
        if self.world.loop is None:
            return
        by_inode = {f.inode: f for f in self.world.files.by_path.values()}
        for tracked in self.world.loop.tracker.files.values():
            file = by_inode.get(tracked.birth.key.inode)
            if file is None or tracked.state != "open":
                continue
            known = self.content.get(tracked.file, b"")
            if bytes(file.data).startswith(known):
                self.content[tracked.file] = bytes(file.data)

    def say(self, what: str) -> None:
        self.trace.append(what)

    # --- what must hold -----------------------------------------------------------------------

    def check_ledger(self) -> None:
        if self.world.loop is None:
            return
        for tracked in self.world.loop.tracker.files.values():
            tally, begin = tracked.tally, tracked.birth.begin
            settled = tally.acknowledged + tally.rejected + tally.filtered + tally.uncertain
            lost = tracked.position - begin - settled
            assert 0 <= lost <= tally.lost, "the ledger does not add up"
            assert begin <= tracked.position <= tracked.read_position <= tracked.promised

    def declared(self, certainty: Certainty) -> set[str]:
        """Cells of the ranges that were set apart, with their ends."""
        found: set[str] = set()
        for loss in self.losses:
            if (
                loss.certainty is certainty
                and loss.end is not None
                and SUCCESSOR not in loss.reason
            ):
                found |= set(cells_of(self.content.get(loss.file, b"")[loss.first : loss.end]))
        return found

    def check_seal(self, seal: Seal) -> None:
        there = {cell for tp, log in self.world.brokers.logs.items() for cell in cells_in(tp, log)}
        known = there | self.gone
        known |= self.declared(Certainty.LOST) | self.declared(Certainty.UNCERTAIN)
        for topic in seal.topics:
            if topic.source.topic == TOPIC:
                before = {c for c, wall in self.written.items() if wall < topic.sealed_until}
                assert before <= known, f"sealed without {before - known}"

    def check_end(self) -> None:
        rows, straddles, sums = self.load()
        kept = {
            cell
            for tp, log in self.world.brokers.logs.items()
            for cell in cells_in(tp, log[self.world.brokers.starts.get(tp, 0) :])
        }
        lost, uncertain = self.declared(Certainty.LOST), self.declared(Certainty.UNCERTAIN)
        twice = self.cells_of_successors()
        for cell in self.written:
            if cell in twice:
                continue
            count = rows[cell]
            assert count <= 1, f"silent doubling: {cell} {count} times"
            if cell in lost:
                assert not count, f"false loss: {cell}"
            elif cell in uncertain:
                assert "expire" in self.faults, f"false uncertainty: {cell}, nothing was hidden"
                assert cell not in kept, f"false uncertainty: {cell} is there"
            elif cell not in self.gone:
                assert count == 1, f"silent loss: {cell}"
        assert set(rows) <= set(self.written)
        assert not straddles
        if not uncertain:
            assert self.agent_sums() == sums, "the equation does not hold"

    def cells_of_successors(self) -> set[str]:
        """Declared to be possibly delivered twice, by the file id that follows a doubtful one."""
        found: set[str] = set()
        for loss in self.losses:
            if SUCCESSOR in loss.reason:
                found |= set(cells_of(self.content.get(loss.file, b"")[loss.first : loss.end]))
        return found

    def load(self) -> tuple[collections.Counter[str], int, dict[Any, list[int]]]:
        """What the loader makes of the logs: cells, straddles, sums."""
        rows: collections.Counter[str] = collections.Counter()
        sums: dict[Any, list[int]] = collections.defaultdict(lambda: [0, 0, 0])
        straddles = 0
        for tp, log in self.world.brokers.logs.items():
            names = ("agent", "file", "first", "length")
            columns = [np.array([getattr(r, name) for r in log], np.int64) for name in names]
            walked = marks.walk(*columns, {})
            straddles += int(walked.straddle.sum())
            hashes = checksum.record_hash(*columns).tolist()
            for record, keep, hash_ in zip(log, walked.keep.tolist(), hashes, strict=True):
                if keep:
                    rows.update(cells_in(tp, [record]))
                    entry = sums[tp.topic, bucket.start_of(record.timestamp, 1_000)]
                    entry[0] += 1
                    entry[1] += record.length
                    entry[2] = checksum.signed(entry[2] + hash_)
        return rows, straddles, dict(sums)

    def agent_sums(self) -> dict[Any, list[int]]:
        sums: dict[Any, list[int]] = collections.defaultdict(lambda: [0, 0, 0])
        for delta in {delta.number: delta for delta in self.world.of(Delta)}.values():
            for count in delta.counts:
                entry = sums[count.source.topic, count.bucket]
                entry[0] += count.count
                entry[1] += count.bytes
                entry[2] = checksum.signed(entry[2] + count.checksum)
        return {key: entry for key, entry in sums.items() if any(entry)}


def cells_of(data: bytes | bytearray) -> list[str]:
    joined = bytes(data).decode().replace("\r", "").replace("\n", "")
    return [joined[at : at + CELL] for at in range(0, len(joined), CELL)]


def cells_in(tp: TopicPartition, log: list[Record]) -> list[str]:
    if tp.topic == TOPIC:
        return [cell for record in log for cell in cells_of(datum_text(record.value).encode())]
    if not log:
        return []
    rows = REJECTED_CODEC.decode(pa_binary([r.value[5:] for r in log])).batch.to_pylist()
    return [cell for row in rows for cell in cells_of(row["line"])]


def other_program(recipe: Recipe, schema: pa.Schema, version: int) -> RegexParser:
    """A library that matches otherwise: odd versions reject what begins with b, too."""
    assert recipe.pattern is not None
    pattern = recipe.pattern.replace("[^", "[^b") if version % 2 else recipe.pattern
    return RegexParser(pattern, schema, frozenset())


def run(
    monkeypatch: pytest.MonkeyPatch, seed: int, partitioning: str, faults: set[str]
) -> Schedule:
    ids = random.Random(seed)
    monkeypatch.setattr(identity, "new_id", lambda: ids.randrange(1, 1 << identity.ID_BITS))
    schedule = Schedule(seed, partitioning, faults)
    monkeypatch.setattr(recipes, "program_version", lambda: f"v{schedule.version}")
    if "behaviour" in faults:
        build = lambda recipe, codec: other_program(recipe, codec, schedule.version)  # noqa: E731
        monkeypatch.setitem(recipes._BUILDERS, "regex", build)
    try:
        schedule.run()
    except AssertionError as error:
        trace = "\n".join(schedule.trace[-40:])
        raise AssertionError(f"seed {seed}: {error}\n{trace}") from error
    return schedule


@pytest.mark.parametrize("partitioning", ["file", "key", "spread"])
def test_upgrades_lose_double_and_doubt_nothing(
    monkeypatch: pytest.MonkeyPatch, partitioning: str, seeds: Seeds
) -> None:
    """New versions and settings, kills, brokers away, late batches: every cell once, none apart."""
    for seed in seeds(range(25)):
        schedule = run(monkeypatch, seed, partitioning, {"growth"})
        assert not schedule.losses, f"seed {seed}: {schedule.losses}"


@pytest.mark.parametrize("partitioning", ["file", "key"])
def test_what_the_host_has_no_more_is_lost_only_where_no_broker_has_it(
    monkeypatch: pytest.MonkeyPatch, partitioning: str, seeds: Seeds
) -> None:
    """Truncation and power loss with intents pending: found ones count, others are lost by name."""
    for seed in seeds(range(1000, 1025)):
        run(monkeypatch, seed, partitioning, {"growth", "truncate", "power"})


@pytest.mark.parametrize("partitioning", ["file", "key"])
def test_only_what_expired_unread_is_uncertain(
    monkeypatch: pytest.MonkeyPatch, partitioning: str, seeds: Seeds
) -> None:
    """Log starts that move past the floors hide records: those alone can be uncertain."""
    for seed in seeds(range(2000, 2025)):
        run(monkeypatch, seed, partitioning, {"expire"})


@pytest.mark.parametrize("partitioning", ["file", "key"])
def test_a_program_that_rejects_other_lines_doubles_nothing(
    monkeypatch: pytest.MonkeyPatch, partitioning: str, seeds: Seeds
) -> None:
    """Lines go to another topic in the new version: none is sent twice, none dropped in silence."""
    for seed in seeds(range(3000, 3025)):
        run(monkeypatch, seed, partitioning, {"growth", "behaviour"})


def test_the_model_sees_the_last_acknowledged_offset_as_a_floor(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Records of an intent that is not passed may lie below it: sent again then, or lost."""

    def raise_floors(self: Progress, passed: Iterable[int], changes: Changes) -> None:
        self.floors = {tp: last + 1 for tp, last in self.offsets.items()}
        changes.put_floors((tp, f"id-{tp.topic}", floor) for tp, floor in self.floors.items())

    monkeypatch.setattr(Progress, "_raise_floors", raise_floors)
    assert fails(monkeypatch, range(4030, 4040), {"truncate", "power", "behaviour"})


def test_the_model_sees_who_does_not_wait_for_late_batches(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What arrives behind the reading would be declared lost, or sent to another topic as well."""
    assert fails(monkeypatch, range(5000, 5010), {"truncate", "power", "impatient"})


def fails(monkeypatch: pytest.MonkeyPatch, seeds: Iterable[int], faults: set[str]) -> bool:
    for seed in seeds:
        try:
            run(monkeypatch, seed, "key", faults)
        except AssertionError:
            return True
    return False
