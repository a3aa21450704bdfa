"""The real agent runs under random schedules. A turn (one pass of the agent's loop) reads several
times from one file, and the file changes between two of these readings.

The model is that of test_agent, with readings of a few lines instead of a MiB. So programs write
more bytes than one reading covers, and the agent makes batches from several readings together.
Kills happen while the records of several intents (durable rows that say which bytes to send) of one
file are in flight.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from model.test_agent import EVERYTHING_SURE, Growing
from skidway.agent.accounts import register
from skidway.agent.delivery import evidence, inquiry, presses, replay
from skidway.agent.files import first_looks, reading, same_file
from skidway.agent.loop import loop
from skidway.agent.parsing.framing import HOLE_BYTES
from skidway.agent.values import identity
from support.agent_schedule import run_traced
from support.agent_world import Files, MemoryHandle
from support.promises import promise
from support.randomness import Seeds

SIZES = (
    ("READ_BYTES", 100, (reading, first_looks, inquiry, evidence)),
    ("TURN_BYTES", 250, (reading, inquiry, replay)),
    ("TOGETHER_BYTES", 100, (presses,)),
    ("FINGERPRINT_BYTES", 64, (identity, same_file, loop, register)),
    ("GUARD_BYTES", 32, (identity, reading)),
)
"""The constants that the tests make smaller, each with its new value and the modules that use it.
READ_BYTES, the size of a reading, must be at least the length of the longest line, and at least
FINGERPRINT_BYTES (the length of the beginning of a file by which the agent recognizes the file)."""

OF_HOLES = 600
"""READ_BYTES (the size of one reading) for files with NUL bytes. The agent treats a run of at least
HOLE_BYTES NUL bytes inside a line as a hole. It can recognize a hole only if a reading is longer
than HOLE_BYTES.
"""


class Crowded(Growing):
    """One random run, in which programs often write more bytes than one reading covers. `share` is
    the probability that the log grows or is rotated just before the agent reads from a file."""

    share = 0.02

    def __init__(self, seed: int, partitioning: str, faults: frozenset[str]) -> None:
        super().__init__(seed, partitioning, faults)
        assert "holes" not in faults or reading.READ_BYTES > HOLE_BYTES, "see OF_HOLES"
        self.several = 0
        self.world.files = Changing(self)

    def write(self) -> None:
        for _ in range(self.random.choice([1, 1, 6])):
            self.write_cells(3, 0.75)

    def between(self) -> None:
        """Sometimes lets the log grow or be rotated. Is called before each of the agent's reads
        from a file."""
        if self.random.random() < self.share:
            self.say("while the agent reads:")
            self.random.choice([self.write, self.write, self.rotate])()

    def settle(self) -> None:
        self.share = 0.0  # else the log could still grow when a look reads holes again
        super().settle()

    def turn(self, deliveries: Any = ()) -> None:
        super().turn(deliveries)
        for tracked in self.world.agent.tracker.files.values():
            self.several += len(tracked.flights) > 1


class Changing(Files):
    """The host's files. They may change just before the agent reads from one of them."""

    def __init__(self, schedule: Crowded) -> None:
        super().__init__(schedule.world.clock)
        self.schedule = schedule

    def open(self, path: str) -> MemoryHandle:
        return ChangingHandle(self, super().open(path)._file)


class ChangingHandle(MemoryHandle):
    """An open file of `Changing`. Calls `between` before each read."""

    _host: Changing

    def read(self, count: int, position: int) -> bytes:
        self._host.schedule.between()
        return super().read(count, position)


@promise("2 intent")
@pytest.mark.parametrize(
    ("partitioning", "more"), [("file", "reload"), ("key", "narrow"), ("spread", "utf-16")]
)
def test_a_turn_that_reads_a_file_several_times_loses_and_doubles_nothing(
    partitioning: str, more: str, seeds: Seeds, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a turn reads several times from one file, no line is lost or doubled. This is so even if
    the file grows or is rotated between two of these readings and the agent is killed
    afterwards."""
    read_little(monkeypatch)
    run(partitioning, EVERYTHING_SURE | {more}, seeds(range(9000, 9008)))


@promise("2 nul bytes")
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_holes_that_several_readings_divide_lose_and_double_no_line(
    encoding: str, seeds: Seeds, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a run of NUL bytes between the lines is longer than one reading, no line is lost or
    doubled. This is so even if kills and rotations happen between two of these readings."""
    read_little(monkeypatch, READ_BYTES=OF_HOLES, TURN_BYTES=3 * OF_HOLES)
    run("file", EVERYTHING_SURE | {"holes", encoding}, seeds(range(9100, 9108)))


def read_little(monkeypatch: pytest.MonkeyPatch, **others: int) -> None:
    """Sets each constant in SIZES to its value in `others`, or to its value in SIZES if `others`
    does not have the constant."""
    for name, size, modules in SIZES:
        for module in modules:
            monkeypatch.setattr(module, name, others.get(name, size))


def run(partitioning: str, faults: frozenset[str], seeds: Iterable[int]) -> None:
    several = 0
    for seed in seeds:
        schedule = Crowded(seed, partitioning, faults)
        run_traced(schedule, seed)
        several += schedule.several
    assert several, "no file had several intents on their way"
