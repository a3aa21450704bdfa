"""Upgrades at random moments with intents pending: the agent reads back what the brokers have.

The agent's own code over a real SQLite database; host, cluster and clock are the test's
(support.agent_world, support.agent_schedule). Every line is a cell. Four things are failures: a
cell that is in no log and in no loss (silent loss), one that readers count twice (silent doubling),
one declared lost that a log has (false loss), and one declared uncertain although nothing was
hidden from the agent, or although the log still has it (false uncertainty).

What an earlier process had sent arrives until `read.back.wait.ms` after the start of the next: that
is the assumption which agent/delivery/search.py gives reasons for.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
import pytest

from agent import identity
from agent.delivery import recipe as recipes
from agent.delivery.progress import Progress
from agent.delivery.recipe import Recipe
from agent.parsing.regex import RegexParser
from agent.state.changes import Changes
from audit.messages import Certainty, Delta, Loss, Seal
from support.agent_schedule import TOPIC, Schedule, cells_in, run_traced, source
from support.agent_world import World, settings
from support.randomness import Seeds

pytestmark = pytest.mark.model

WAIT_MS = 1_000
PATTERNS = (r"(?P<line>[^x].*)", r"(?P<line>[^y].*)")
SUCCESSOR = "may have been delivered as those of file"


class Upgrades(Schedule):
    """One random run of an agent that is killed, and begun again as another version."""

    steps = 140

    def __init__(self, seed: int, partitioning: str, faults: set[str]) -> None:
        self.wait_ms = 0 if "impatient" in faults else WAIT_MS
        configured = settings(source(PATTERNS[0], partitioning), read_back_wait_ms=self.wait_ms)
        super().__init__(seed, partitioning, faults, World(configured, partitions=2), kills=5)
        self.version = 0
        self.started_at = 0.0
        self.losses: list[Loss] = []

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
        yield from self.crashes()

    # --- what happens -------------------------------------------------------------------------

    def write(self) -> None:
        for _ in range(self.random.randint(1, 4)):
            cell = self.new_cell()
            end = "" if self.random.random() < 0.1 else self.random.choice(["\n", "\r\n"])
            self.append(cell + end)

    def pass_time(self) -> None:
        seconds = self.random.choice([0.05, 0.3, 0.9])
        past_at = self.started_at + WAIT_MS / 1000
        if self.world.loop is not None and self.world.clock.monotonic() + seconds >= past_at:
            self.arrive_all_late()
        self.world.clock.advance(seconds)

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
            mine = source(PATTERNS[self.random.randrange(2)], self.partitioning)
            self.world.settings = settings(mine, read_back_wait_ms=self.wait_ms)
        self.world.brokers.away = False
        super().start()
        self.started_at = self.world.clock.monotonic()
        self.say(f"start version {self.version}")

    def turn_away(self) -> None:
        self.world.brokers.away = not self.world.brokers.away

    def lose_power(self) -> None:
        self.remember()
        super().lose_power()

    def finish(self) -> None:
        self.kills = 0
        self.world.brokers.away = False
        if self.world.loop is None:
            self.start()
        for _ in range(50):
            self.arrive_all_late()
            self.go_on()
        self.publish()
        self.check_end()

    def saw(self, file: int, data: bytes) -> None:
        """What lies in the file may be others' bytes already, which the agent has not noticed."""
        if data.startswith(self.content.get(file, b"")):
            super().saw(file, data)

    def read_message(self, message: Any) -> None:
        if isinstance(message, Delta):
            self.losses += message.losses
        if isinstance(message, Seal):
            self.check_seal(message)

    # --- what must hold -----------------------------------------------------------------------

    def declared(self, certainty: Certainty) -> set[str]:
        """Cells of the ranges that were set apart, with their ends."""
        found: set[str] = set()
        for loss in self.losses:
            if (
                loss.certainty is certainty
                and loss.end is not None
                and SUCCESSOR not in loss.reason
            ):
                found |= set(self.cells_between(loss.file, loss.first, loss.end))
        return found

    def check_seal(self, seal: Seal) -> None:
        known = self.cells_there() | self.gone
        known |= self.declared(Certainty.LOST) | self.declared(Certainty.UNCERTAIN)
        for topic in seal.topics:
            if topic.source.topic == TOPIC:
                before = self.written_before(topic.sealed_until)
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
            counted = {key: entry for key, entry in self.agent_sums().items() if any(entry)}
            assert counted == sums, "the equation does not hold"

    def cells_of_successors(self) -> set[str]:
        """Declared to be possibly delivered twice, by the file id that follows a doubtful one."""
        found: set[str] = set()
        for loss in self.losses:
            if SUCCESSOR in loss.reason:
                found |= set(self.cells_between(loss.file, loss.first, loss.end))
        return found


def other_program(recipe: Recipe, schema: pa.Schema, version: int) -> RegexParser:
    """A library that matches otherwise: odd versions reject what begins with b, too."""
    assert recipe.pattern is not None
    pattern = recipe.pattern.replace("[^", "[^b") if version % 2 else recipe.pattern
    return RegexParser(pattern, schema, frozenset())


def run(
    monkeypatch: pytest.MonkeyPatch, seed: int, partitioning: str, faults: set[str]
) -> Upgrades:
    ids = random.Random(seed)
    monkeypatch.setattr(identity, "new_id", lambda: ids.randrange(1, 1 << identity.ID_BITS))
    schedule = Upgrades(seed, partitioning, faults)
    monkeypatch.setattr(recipes, "program_version", lambda: f"v{schedule.version}")
    if "behaviour" in faults:
        build = lambda recipe, codec: other_program(recipe, codec, schedule.version)  # noqa: E731
        monkeypatch.setitem(recipes._BUILDERS, "regex", build)
    run_traced(schedule, seed)
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
