"""After an upgrade or a refused retry, the agent reads the brokers' logs to find out which of its
batches arrived. In these tests, upgrades and refused retries happen at random moments.

The agent's own code runs with a real SQLite database. The host, the cluster and the clock are
simulated (support.agent_world, support.agent_schedule). Every line consists of cells, which are
pieces of text that occur nowhere else. The tests fail in four cases. Silent loss: a cell is in no
broker's log and in no declared loss. Silent doubling: readers count a cell twice. False loss: a
broker's log contains a cell that the agent declared lost. False uncertainty: the agent declared a
cell uncertain although no record can have expired, or although a broker's log still contains the
cell.

A batch is late if it reaches the broker after the agent's process was killed, or after the agent
lost the connection over which it had sent the batch. The model assumes that a late batch arrives
within `read.back.wait.ms`. After a kill, this time begins when the next process starts. After a
lost connection, this time begins when the connection is lost. agent/delivery/search.py gives the
reasons for this assumption."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import Any

import pyarrow as pa
import pytest

from skidway.agent.batches import program_versions
from skidway.agent.delivery import inquiry
from skidway.agent.delivery.outbound import Departure, Refusal
from skidway.agent.delivery.presses import Presses
from skidway.agent.delivery.progress import Progress
from skidway.agent.delivery.read_back import Bools, Int64s, Marks, Part, Rows, split
from skidway.agent.delivery.refused import Refused, Sought
from skidway.agent.parsers.regex import Regex
from skidway.agent.parsing.regex import RegexParser
from skidway.agent.recipe import Recipe
from skidway.agent.state.changes import Changes
from skidway.agent.values import identity
from skidway.agent.values.set_apart import SetApart
from skidway.agent.values.tracked import TrackedFile
from skidway.audit.topic.messages import Certainty, Delta, Loss, Seal
from support.agent_schedule import TOPIC, Schedule, cells_in, run_traced, source
from support.agent_world import World, settings
from support.promises import promise
from support.randomness import Seeds

WAIT_MS = 1_000
PARTS = 5
PATTERNS = (r"(?P<line>[^x].*)", r"(?P<line>[^y].*)")
SUCCESSOR = "may have been delivered as those of file"


class Upgrades(Schedule):
    """One random run of an agent that is killed and then started again with another version of the
    program."""

    steps = 140

    def __init__(self, seed: int, partitioning: str, faults: set[str]) -> None:
        self.wait_ms = 0 if "impatient" in faults else WAIT_MS
        configured = settings(source(PATTERNS[0], partitioning), read_back_wait_ms=self.wait_ms)
        super().__init__(seed, partitioning, faults, World(configured, partitions=2), kills=5)
        self.version = 0
        self.started_at = 0.0
        # Batches may arrive after their connection broke. This is the time at which the first
        # connection with such batches broke. It is None if all these batches have arrived.
        self.interrupted_at: float | None = None
        self.refused: set[int] = set()
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
        if "refuse" in self.faults:
            yield self.interrupt, 3
            yield self.tighten, 0.5
            yield self.loosen, 2
        yield from self.crashes()

    # --- events -------------------------------------------------------------------------------

    def write(self) -> None:
        for _ in range(self.random.randint(1, 4)):
            cell = self.new_cell()
            end = "" if self.random.random() < 0.1 else self.random.choice(["\n", "\r\n"])
            self.append(cell + end)

    def pass_time(self) -> None:
        seconds = self.random.choice([0.05, 0.3, 0.9])
        begun = [self.started_at] if self.world.loop is not None else []
        begun += [self.interrupted_at] if self.interrupted_at is not None else []
        past_at = min(begun, default=math.inf) + WAIT_MS / 1000
        if self.world.clock.monotonic() + seconds >= past_at:
            self.arrive_all_late()
            self.interrupted_at = None
        self.world.clock.advance(seconds)

    def interrupt(self) -> None:
        """Breaks a connection while batches are in flight. Up to two of these batches still arrive.
        Sometimes the batches are sent again with a new producer id."""
        producer = self.world.producer
        waiting = {tp for tp, sent in producer.sent.items() if sent}
        waiting |= {sent.tp for sent, _ in producer.appended}
        if waiting:
            tp = self.random.choice(sorted(waiting))
            is_known = self.random.random() < 0.7
            # Readers drop a batch that arrives after later lines of its file. If these later lines
            # have expired, the agent cannot see that readers drop the batch. So if lines can
            # expire, the model lets no batch arrive after its connection broke.
            survivors = 0 if "expire" in self.faults else self.random.randint(0, 2)
            producer.interrupt(tp, survivors, is_known=is_known)
            if self.interrupted_at is None:
                self.interrupted_at = self.world.clock.monotonic()
            self.say(f"interrupt {tp}, {is_known=}")
            if self.random.random() < 0.5:
                self.tighten()

    def arrive(self) -> None:
        """Lets a batch arrive at its broker. With the fault `refuse`, often lets ten more batches
        arrive, because the agent splits a refused batch step by step into single records."""
        super().arrive()
        if "refuse" in self.faults and self.random.random() < 0.3:
            for _ in range(10):
                super().arrive()
                self.turn()

    def tighten(self) -> None:
        """From now on, the brokers refuse some of the records. Which records they refuse depends on
        the positions of the records' first bytes."""
        remainder = self.random.randrange(PARTS)
        self.world.brokers.refuses = lambda record: record.first % PARTS == remainder
        self.refused.add(remainder)
        self.say(f"tighten {remainder}")

    def loosen(self) -> None:
        self.world.brokers.refuses = lambda record: False
        self.say("loosen")

    def expire(self) -> None:
        logs = [tp for tp, log in self.world.brokers.logs.items() if log]
        if logs:
            tp = self.random.choice(logs)
            start = self.random.randint(0, len(self.world.brokers.logs[tp]))
            starts = self.world.brokers.starts
            starts[tp] = max(start, starts.get(tp, 0))
            self.say(f"expire {tp} below {starts[tp]}")

    def start(self) -> None:
        if self.random.random() < 0.7 and "steady" not in self.faults:
            self.version += 1
        if self.random.random() < 0.3:
            mine = source(PATTERNS[self.random.randrange(2)], self.partitioning)
            self.world.settings = settings(mine, read_back_wait_ms=self.wait_ms)
        self.world.brokers.away = False
        super().start()
        self.remember()  # remembers the files' bytes, because a power loss may have changed some
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
        # the agent divides refused batches again and again, so it may need many more turns
        if "refuse" in self.faults:
            self.settle()
        self.publish()
        self.check_end()

    def settle(self) -> None:
        """Runs the agent until it has no batch in flight and looks for no records on the
        brokers."""
        for _ in range(500):
            if not self.world.agent.tracker.flying and self.world.agent.reading_back is None:
                return
            self.arrive_all_late()
            self.go_on()
        raise AssertionError("something is never decided")

    def saw(self, tracked: TrackedFile, data: bytes) -> None:
        """An intent is a durable row in the agent's state that says which bytes to send. Remembers
        a file's present bytes, if the bytes up to the end of the file's last intent have not
        changed. Only the bytes after the last intent can change while the file keeps its id."""
        if data.startswith(self.content.get(tracked.file, b"")[: tracked.promised]):
            super().saw(tracked, data)

    def read_message(self, message: Any) -> None:
        if isinstance(message, Delta):
            self.losses += message.losses
        if isinstance(message, Seal):
            self.check_seal(message)

    # --- checks -------------------------------------------------------------------------------

    def declared(self, certainty: Certainty) -> set[str]:
        """Returns the cells (unique pieces of text) in all losses that the agent declared with this
        certainty (lost or uncertain). Leaves out losses that do not say at which byte they end, and
        the cells that `cells_of_successors` returns."""
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

    def check_refused(self) -> None:
        """Asserts that the brokers refused, at some time in this run, every record that the agent
        declared lost.
        """
        for loss in self.losses:
            assert loss.certainty is Certainty.LOST, loss
            assert loss.end is not None
            lines = self.content[loss.file][loss.first : loss.end].splitlines(keepends=True)
            begins = accumulate(map(len, lines[:-1]), initial=loss.first)
            assert {begin % PARTS for begin in begins} <= self.refused, loss

    def cells_of_successors(self) -> set[str]:
        """Returns the cells (unique pieces of text) that the agent declared as possibly delivered
        twice, because it may have delivered them already as bytes of another file."""
        found: set[str] = set()
        for loss in self.losses:
            if SUCCESSOR in loss.reason:
                found |= set(self.cells_between(loss.file, loss.first, loss.end))
        return found


def other_program(recipe: Recipe, schema: pa.Schema, version: int) -> RegexParser:
    """Returns the parser that the program has in the given version. In odd versions the parser also
    rejects lines that begin with the letter b."""
    assert recipe.pattern is not None
    pattern = recipe.pattern.replace("[^", "[^b") if version % 2 else recipe.pattern
    return RegexParser(pattern, schema, frozenset())


def run(
    monkeypatch: pytest.MonkeyPatch, seed: int, partitioning: str, faults: set[str]
) -> Upgrades:
    ids = random.Random(seed)
    monkeypatch.setattr(identity, "new_id", lambda: ids.randrange(1, 1 << identity.ID_BITS))
    schedule = Upgrades(seed, partitioning, faults)
    monkeypatch.setattr(program_versions, "program_version", lambda: f"v{schedule.version}")
    if "behaviour" in faults:
        build = lambda _, recipe, schema: other_program(recipe, schema, schedule.version)  # noqa: E731
        monkeypatch.setattr(Regex, "parser", build)
    run_traced(schedule, seed)
    return schedule


@promise("2 read back")
@pytest.mark.parametrize("partitioning", ["file", "key", "spread"])
def test_upgrades_lose_double_and_doubt_nothing(
    monkeypatch: pytest.MonkeyPatch, partitioning: str, seeds: Seeds
) -> None:
    """Every line arrives once and the agent declares no loss, whatever upgrades, changed settings,
    kills, unreachable brokers and late batches occur."""
    for seed in seeds(range(25)):
        schedule = run(monkeypatch, seed, partitioning, {"growth"})
        assert not schedule.losses, f"seed {seed}: {schedule.losses}"


@promise("2 read back")
@pytest.mark.parametrize("partitioning", ["file", "key"])
def test_what_the_host_has_no_more_is_lost_only_where_no_broker_has_it(
    monkeypatch: pytest.MonkeyPatch, partitioning: str, seeds: Seeds
) -> None:
    """An intent is a durable row in the agent's state that says which bytes to send. A truncation
    or a power loss may destroy the bytes of pending intents. If a broker has a destroyed line, the
    agent counts this line as delivered. It declares all other destroyed lines lost."""
    for seed in seeds(range(1000, 1025)):
        run(monkeypatch, seed, partitioning, {"growth", "truncate", "power"})


@promise("2 read back")
@pytest.mark.parametrize("partitioning", ["file", "key"])
def test_only_what_expired_unread_is_uncertain(
    monkeypatch: pytest.MonkeyPatch, partitioning: str, seeds: Seeds
) -> None:
    """After an upgrade, the agent declares a line uncertain only if the line's record expired
    before the agent could read it from the brokers."""
    for seed in seeds(range(2000, 2025)):
        run(monkeypatch, seed, partitioning, {"expire"})


@promise("2 found or sent")
@pytest.mark.parametrize("partitioning", ["file", "key"])
def test_a_program_that_rejects_other_lines_doubles_nothing(
    monkeypatch: pytest.MonkeyPatch, partitioning: str, seeds: Seeds
) -> None:
    """A new version of the program may reject lines that the old version accepted, and so send them
    to another topic. Still, no line arrives in both topics, and no line is lost without a
    declaration."""
    for seed in seeds(range(3000, 3025)):
        run(monkeypatch, seed, partitioning, {"growth", "behaviour"})


@promise("2 refused record")
@pytest.mark.parametrize("partitioning", ["file", "key", "spread"])
def test_what_is_refused_on_a_retry_is_lost_only_where_no_attempt_arrived(
    monkeypatch: pytest.MonkeyPatch, partitioning: str, seeds: Seeds
) -> None:
    """If a broker refuses a record on a retry, the agent looks for the record in the brokers' logs.
    If the record is there, the agent counts it as delivered. In these runs, brokers refuse some
    records, connections break, and producer ids are forgotten. The agent declares a record lost
    only if a broker refused this record."""
    for seed in seeds(range(6000, 6025)):
        schedule = run(monkeypatch, seed, partitioning, {"growth", "refuse"})
        schedule.check_refused()


@pytest.mark.parametrize("partitioning", ["file", "key"])
def test_refused_retries_of_bytes_that_are_gone_or_hidden(
    monkeypatch: pytest.MonkeyPatch, partitioning: str, seeds: Seeds
) -> None:
    """Even after refused retries, truncations and power losses, the agent declares a line uncertain
    only if the line's record expired before the agent could read it from the brokers."""
    for seed in seeds(range(7000, 7015)):
        run(monkeypatch, seed, partitioning, {"refuse", "truncate", "power"})
        run(monkeypatch, seed, partitioning, {"refuse", "expire"})


@promise("2 floor")
def test_the_model_sees_the_last_acknowledged_offset_as_a_floor(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The model notices if the agent uses the last acknowledged offset as the floor. The floor is
    the offset at which the agent begins to look for its records. Records of pending intents may
    have lower offsets. The agent would not find these records, and would send them again or declare
    them lost."""

    def raise_floors(self: Progress, passed: Iterable[int], changes: Changes) -> None:
        self.floors = {tp: last + 1 for tp, last in self.offsets.items()}
        changes.put_floors((tp, f"id-{tp.topic}", floor) for tp, floor in self.floors.items())

    monkeypatch.setattr(Progress, "_raise_floors", raise_floors)
    assert fails(monkeypatch, range(4030, 4040), {"truncate", "power", "behaviour"})


def test_the_model_sees_who_does_not_wait_for_late_batches(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The model notices if the agent does not wait for late batches (batches that arrive after the
    agent was killed or lost its connection). Such an agent declares the lines of these batches
    lost, or sends them a second time to another topic."""
    assert fails(monkeypatch, range(5000, 5010), {"truncate", "power", "impatient"})


def test_the_model_sees_refused_retries_that_are_not_read_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The model notices if the agent declares records lost at once when a broker refuses a retry.
    The broker may have these records from an earlier attempt. A correct agent declares records lost
    at once only if the broker refuses the first attempt."""
    for certainty in Certainty:

        def take(self: Refused, refusals: Iterable[Refusal], now: float) -> None:
            for each in refusals:
                self._set_apart(each, certainty, "")  # noqa: B023 - called in the same round

        monkeypatch.setattr(Refused, "take", take)
        assert fails(monkeypatch, range(6100, 6110), {"refuse"})


def test_the_model_sees_who_does_not_wait_for_attempts_under_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The model notices if the agent looks for records on the brokers while earlier requests with
    these records are still in flight. The agent would declare records lost that arrive later."""
    assert fails(monkeypatch, range(6400, 6415), {"refuse", "impatient", "steady"})


def test_the_model_sees_floors_that_follow_what_was_sent_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The floor is the offset at which the agent begins to look for its records. The model notices
    if a record that was sent again raises the floor. The agent would then not find the record's
    first copy, which has a lower offset, and would declare the record lost."""

    def sent(self: Progress, departures: Iterable[Departure]) -> None:
        return

    monkeypatch.setattr(Progress, "sent", sent)
    assert fails(monkeypatch, range(6300, 6320), {"refuse"})


@promise("2 refused record")
def test_the_model_sees_refused_records_that_are_sent_behind_later_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """If a broker refuses a record, the agent writes the refusal into the record's intent (the
    durable row that says which bytes to send). The model notices if the agent does not write the
    refusal. After a crash, the agent would then send the refused record after later records."""
    monkeypatch.setattr(Presses, "mark_refused", lambda self, changes, intents: None)
    assert fails(monkeypatch, range(6400, 6420), {"refuse", "steady"})


def test_the_model_sees_neighbours_that_are_lost_with_refused_records(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The model notices if the agent declares a whole range lost because of one refused record,
    although the range's other records could still be sent."""

    def whole(part: Part, bounds: Int64s, is_dropped: Bools) -> Iterator[tuple[Part, bool]]:
        yield part, any(would_be for _, would_be in split(part, bounds, is_dropped))

    monkeypatch.setattr(inquiry, "split", whole)
    schedule = run(monkeypatch, 20_282, "key", {"growth", "refuse"})
    with pytest.raises(AssertionError, match="cannot be sent behind"):
        schedule.check_refused()


@promise("2 refused record")
def test_the_model_sees_losses_that_are_declared_before_the_checkpoint(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The model notices if the agent declares a record lost before the agent's checkpoint has moved
    beyond the record. After a crash the agent would send the record again, and a broker could
    accept the record although the agent had declared it lost."""
    apart: list[SetApart] = []
    set_apart = Refused._set_apart

    def declare(self: Refused, refusal: Refusal, certainty: Certainty, more: str) -> None:
        set_apart(self, refusal, certainty, more)
        apart.extend(self._apart.pop(refusal.flight.intent.sequence))

    def passed(self: Refused, intents: Iterable[int]) -> list[SetApart]:
        found = apart.copy()
        apart.clear()
        return found

    monkeypatch.setattr(Refused, "_set_apart", declare)
    monkeypatch.setattr(Refused, "passed", passed)
    assert fails(monkeypatch, range(6500, 6530), {"refuse"})


def test_the_model_sees_what_readers_drop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Readers drop a record that arrives after later records of its file. The model notices if the
    agent nevertheless counts such a record as delivered."""
    add = Sought.add

    def forgetful(self: Sought, rows: Rows) -> None:
        for at in range(len(rows.first)):
            self._marks = Marks()
            columns = (rows.agent, rows.file, rows.first, rows.length, rows.times)
            add(self, Rows(rows.tp, *(column[at : at + 1] for column in columns)))

    monkeypatch.setattr(Sought, "add", forgetful)
    assert fails(monkeypatch, range(6625, 6640), {"refuse", "steady"})


def fails(monkeypatch: pytest.MonkeyPatch, seeds: Iterable[int], faults: set[str]) -> bool:
    for seed in seeds:
        try:
            run(monkeypatch, seed, "key", faults)
        except AssertionError:
            return True
    return False
