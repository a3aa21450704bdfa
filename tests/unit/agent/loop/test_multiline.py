"""Tests how the running agent handles records of several lines. The tests check how long the agent
waits for a record's last line, and what happens to such a record at a crash, a rotation or a
drain."""

from __future__ import annotations

from typing import Any

import pytest

from skidway.agent.batches.source_recipes import derived_schema
from skidway.agent.cluster.connection import compiled
from skidway.agent.parsing.framing import READ_BYTES
from skidway.agent.recipe import Schema
from skidway.agent.settings import MultilineSettings
from skidway.agent.validation import trial
from support.agent_world import Files, World, datum_text, raw, settings
from support.clock import ManualClock
from support.promises import promise

A = "/log/a.log"
START = MultilineSettings(type="start", pattern="^[A-Z]", timeout_ms=3_000)


def made(multiline: MultilineSettings | None = START, **others: Any) -> World:
    return World(settings(raw(multiline=multiline, **others)))


@pytest.fixture
def world() -> World:
    return made()


def positions(world: World) -> list[tuple[str, int, int]]:
    """Returns the value of each record, its position in the file, and its length."""
    found = world.brokers.records("logs")
    return [(datum_text(each.value), each.first, each.length) for each in found]


@promise("2 framing")
def test_a_record_waits_for_its_last_line(world: World) -> None:
    """The lines of a record arrive together, as soon as the next record begins. The last record
    arrives when the file has not changed for `multiline.timeout.ms`, which is longer than
    `idle.flush.ms`. The origin of a record covers all its lines."""
    world.files.append(A, b"A\n at b\n")
    world.start()
    world.settle(8)
    assert world.values() == []
    world.files.append(A, b" at c\nB\n")
    world.settle(4)
    assert positions(world) == [("A\n at b\n at c", 0, 14)]
    world.settle()
    assert positions(world) == [("A\n at b\n at c", 0, 14), ("B", 14, 2)]
    assert (world.only(A)["acknowledged"], world.only(A)["pending"]) == (16, 0)


@promise("2 framing")
def test_lines_after_the_time_out_are_a_record_of_their_own(world: World) -> None:
    """If further lines of a record come after `multiline.timeout.ms`, they become a record of their
    own. After a crash, the agent sends this record again with the same origin."""
    world.files.append(A, b"A\n at b\n")
    world.start()
    world.settle()
    world.kill_in_flight(b" at c\nB\n", arrives=next(iter(world.brokers.logs)))
    world.start()
    world.settle()
    sure = [("A\n at b", 0, 8), (" at c", 8, 6)]
    assert positions(world) == [*sure, sure[1], ("B", 14, 2)]


@promise("2 re-send")
def test_a_killed_agent_sends_the_same_records_again_under_other_settings(world: World) -> None:
    """The agent is killed while records are in flight, and its settings are changed before its next
    start. The agent then sends the same records again. The new settings apply only to later
    lines."""
    world.kill_in_flight(b"A\n at b\nB\n")
    world.settings = made(None).settings
    world.files.append(A, b" at c\n")
    world.start()
    world.settle()
    assert positions(world) == [("A\n at b", 0, 8), ("B", 8, 2), (" at c", 10, 6)]


@promise("1 generations")
def test_a_record_is_held_together_across_a_rotation(world: World) -> None:
    """If a log is rotated while one of its records is being written, the record is not divided, and
    no line of the new log is added to it."""
    world.files.append(A, b"A\n at b\n")
    world.start()
    world.settle(3)
    world.files.rename(A, "/log/a.log.1")
    world.files.append(A, b" at x\nX\n")
    world.settle(2)
    world.files.append("/log/a.log.1", b" at c\n")
    world.settle()
    assert sorted(world.values()) == [" at x", "A\n at b\n at c", "X"]


@promise("2 ledger")
def test_a_line_that_is_too_long_is_rejected_alone() -> None:
    """A line that is longer than `max.line.bytes` is rejected alone. The record before this line is
    complete, and the lines after this line become another record."""
    world = made(max_line_bytes=64)
    world.files.append(A, b"A\n at b\n" + b"x" * 100 + b"\n at c\nB\n")
    world.start()
    world.settle()
    assert positions(world) == [("A\n at b", 0, 8), (" at c", 109, 6), ("B", 115, 2)]
    assert world.only(A)["rejected"] == 101


def test_validate_tries_whole_records() -> None:
    """`validate` joins lines as the agent does. It tries the last record of a file, too, although
    this record may still grow. If `validate` reads only the end of a file, it leaves out the record
    whose beginning it did not read."""
    files = Files(ManualClock())
    files.append(A, b"".join(b"A%d\n at b\n" % number for number in range(10)))
    source = raw(multiline=START)
    press = compiled(source, Schema(0, derived_schema(source)), 900_000)
    found, sample = trial.find(source, files, {})
    trial.run(press, found, sample, files, 3)
    assert (sample.lines, sample.rejected) == (6, 0)
    files.append(A, b"B\n\xff\n")
    found, sample = trial.find(source, files, {})
    trial.run(press, found, sample, files, 3)
    assert (sample.lines, sample.rejected) == (6, 1)
    long = Files(ManualClock())
    long.append(A, b"A\n" + b" at b\n" * (READ_BYTES // 4))
    found, sample = trial.find(source, long, {})
    trial.run(press, found, sample, long, 3)
    assert sample.lines == 3 + 3
