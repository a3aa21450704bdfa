"""Tests which files a turn (one pass of the agent's loop) reads, and how much of each file."""

from __future__ import annotations

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
