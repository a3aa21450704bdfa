"""The real agent runs under random schedules with rules that leave out records (`drop`, `keep` and
`sample`). After a restart, the agent may have other rules.

The agent's press (the code that makes record batches from lines) says which records a rule left
out. The model remembers these records when the agent gets the batches from the press. At the end,
every line either is in the brokers' logs once, or was left out once. For each rule, the agent's
deltas (messages with counts) count exactly the records that the rule left out."""

from __future__ import annotations

import collections
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from skidway.agent.batches.press import Pressed
from skidway.agent.delivery.outbound import Outbound
from skidway.audit.topic.messages import Seal
from support.agent_schedule import BUCKET_MS, TOPIC, Schedule, run_traced, source
from support.agent_world import World, settings
from support.promises import promise
from support.randomness import Seeds

SHAPES = (
    'drop line starts with "a" as a',
    "sample 1/2 as half",
    'keep not line matches "^[bc].*[02468]$" as odd\nsample 1/3 where line contains "y" as third',
    'drop line matches "." as all',
    None,
)


PATTERNS = (r"(?P<line>[^x].*)", r"(?P<line>[^xy].*)")


class Filtering(Schedule):
    """One random run, in which the agent may get other rules at each start."""

    steps = 160

    def __init__(self, seed: int, partitioning: str) -> None:
        self.left_out: dict[tuple[int, int, int], str] = {}
        first = replace(source(PATTERNS[0], partitioning), shape=SHAPES[seed % len(SHAPES)])
        world = World(settings(first), partitions=2)
        super().__init__(seed, partitioning, frozenset(), world, kills=4)

    # --- events -------------------------------------------------------------------------------

    def actions(self) -> Iterator[tuple[Any, float]]:
        yield self.write, 10
        yield self.rotate, 1
        yield self.pass_time, 3
        yield self.grow, 0.2
        if any(self.world.brokers.late.values()):
            yield self.arrive_late, 3
        yield from self.of_agent()

    def write(self) -> None:
        self.write_cells(4, 0.7)

    def start(self) -> None:
        if self.random.random() < 0.7:
            pattern = self.random.choice(PATTERNS)
            made = source(pattern, self.partitioning)
            self.world.settings = settings(replace(made, shape=self.random.choice(SHAPES)))
        super().start()
        self.say(f"start with {self.world.settings.sources[0].shape!r}")

    def finish(self) -> None:
        self.settle()
        self.check_rows()

    # --- records that rules left out ----------------------------------------------------------

    def note(self, pressed: Pressed) -> None:
        found = pressed.filtered
        if found is None:
            return
        columns = (found.file, found.first, found.length, found.rule)
        for file, first, length, rule in zip(*(x.tolist() for x in columns), strict=True):
            assert (
                self.left_out.setdefault((file, first, length), found.rules[rule])
                == (found.rules[rule])
            ), "two rules for one record"

    @property
    def cells_left_out(self) -> set[str]:
        return {
            cell
            for file, first, length in self.left_out
            for cell in self.cells_between(file, first, first + length)
        }

    def read_message(self, message: Any) -> None:
        """Checks seals. A seal gives a time, and says that all lines that were written before this
        time are counted. Asserts that each of these lines has arrived or was left out by a rule."""
        if not isinstance(message, Seal):
            return
        known = self.cells_there() | self.cells_left_out
        for topic in message.topics:
            if topic.source.topic == TOPIC:
                missing = self.written_before(topic.sealed_until) - known
                assert not missing, f"sealed until {topic.sealed_until} without {missing}"

    def check_rows(self) -> None:
        rows, straddles, sums = self.load()
        out = self.cells_left_out
        for cell in self.written:
            assert rows[cell] + (cell in out) == 1, f"{cell}: {rows[cell]} rows, {cell in out}"
        assert not self.world.losses()
        assert not straddles
        found = {key: each for key, each in self.agent_sums().items() if each != [0, 0, 0]}
        assert found == sums, "the equation does not hold"
        self.check_filtered()

    def check_filtered(self) -> None:
        counted: dict[str, list[int]] = collections.defaultdict(lambda: [0, 0])
        for delta in self.world.deltas():
            for count in delta.counts:
                assert count.bucket_ms == BUCKET_MS
                for each in count.filtered:
                    assert count.source.topic == TOPIC
                    counted[each.rule][0] += each.records
                    counted[each.rule][1] += each.bytes
        expected: dict[str, list[int]] = collections.defaultdict(lambda: [0, 0])
        for (_, _, length), rule in self.left_out.items():
            expected[rule][0] += 1
            expected[rule][1] += length
        assert counted == expected, "what was left out is not counted once"


@promise("2 filtered")
@pytest.mark.parametrize("partitioning", ["file", "key", "spread"])
def test_every_line_is_a_row_or_was_left_out_and_counted_once(
    partitioning: str, seeds: Seeds, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever kills, rotations, new partitions and changed rules occur, each line is either
    delivered once, or left out by one rule. For each line that a rule left out, the agent adds
    exactly one to the count of this rule."""
    for seed in seeds(range(6000, 6012)):
        run(seed, partitioning, monkeypatch)


def run(seed: int, partitioning: str, monkeypatch: pytest.MonkeyPatch) -> None:
    schedule = Filtering(seed, partitioning)
    add = Outbound.add

    def noted(self: Outbound, pressed: Pressed, *args: Any) -> None:
        schedule.note(pressed)
        add(self, pressed, *args)

    with monkeypatch.context() as patch:
        patch.setattr(Outbound, "add", noted)
        run_traced(schedule, seed)
