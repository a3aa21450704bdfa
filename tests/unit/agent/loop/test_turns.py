"""Tests which files a turn (one pass of the agent's loop) reads, and how much of each file."""

from __future__ import annotations

import pytest

from skidway.agent.files import reading
from skidway.agent.files.reading import TURN_BYTES
from skidway.agent.parsing.framing import READ_BYTES
from skidway.agent.state.database import StateDatabase
from support.agent_world import World, raw, settings

BUSY, QUIET = "/log/busy.log", "/log/quiet.log"


def test_a_turn_reads_a_busy_file_again_after_every_other_file() -> None:
    """A turn first reads from each file that has new bytes, and then again from files that still
    have unread bytes, until it has read TURN_BYTES."""
    line = b"x" * 1023 + b"\n"
    world = World(settings(raw()))
    world.files.append(BUSY, line * (8 * READ_BYTES // len(line)))
    world.files.append(QUIET, b"one\ntwo\n")
    world.start()
    world.hold_until_sent()
    intents = StateDatabase(world.connection).intents()
    lengths = [intent.length for intent in intents]
    assert sorted(lengths[:2]) == [8, READ_BYTES]
    assert lengths[2:] == [READ_BYTES] * (TURN_BYTES // READ_BYTES - 1)
    world.settle(60, 0.3)
    assert world.only(BUSY)["acknowledged"] == 8 * READ_BYTES
    assert world.only(QUIET)["acknowledged"] == 8


def test_many_files_of_one_topic_delay_no_other_topic(monkeypatch: pytest.MonkeyPatch) -> None:
    """Topics take turns: the file of one topic is read in the first turn, and again in the next
    turn after it has grown, although another topic has more new files than some turns read."""
    monkeypatch.setattr(reading, "TURN_FILES", 4)
    world = World(settings(raw("many", "/log/many/*"), raw("one", "/log/quiet.log")))
    for number in range(100):
        world.files.append(f"/log/many/{number}", b"line\n")
    world.files.append(QUIET, b"one\n")
    world.start()
    world.hold_until_sent()
    world.files.append(QUIET, b"two\n")
    for _ in range(5):
        world.tick()
    assert world.only(QUIET)["acknowledged"] == 8
    assert sum(file["acknowledged"] > 0 for file in world.ledger()) < 50
    world.settle(60, 0.3)
    assert {file["bytes"] - file["acknowledged"] for file in world.ledger()} == {0}
