"""Tests lines that are too long to be read at once. In these tests, the agent has stored an intent
(a promise to send certain bytes) for such a line before it is killed. Before the restarted agent
sends an over-long line again, it computes the checksum of all the line's bytes, and compares it
with the checksum in the intent."""

import pytest

from skidway.agent.parsing.framing import READ_BYTES
from skidway.agent.state.database import StateDatabase
from skidway.audit.topic.messages import Certainty
from support.agent_press import rejected_rows
from support.agent_world import World, raw, settings
from support.promises import promise

A = "/log/a.log"
SIZE = READ_BYTES + 500_000


@pytest.fixture
def world() -> World:
    """An agent that was killed while an over-long line was on its way."""
    world = World(settings(raw()))
    world.files.append(A, b"x" * (SIZE - 1) + b"\n")
    world.start()
    world.hold(12, 0.3)
    (intent,) = StateDatabase(world.connection).intents()
    assert (intent.first, intent.end) == (0, SIZE)
    world.kill()
    return world


@promise("2 set apart")
@pytest.mark.parametrize("at", [2_000, READ_BYTES - 1, READ_BYTES, READ_BYTES + 250_000])
def test_an_overlong_line_with_other_bytes_is_not_sent_again(world: World, at: int) -> None:
    """A line that is too long to be read at once was on its way when the agent was killed. If any
    byte of the line has changed since, the agent sends nothing under the line's old origin. In this
    test the line has reached no broker, so the agent declares the line lost."""
    (old,) = (intent.file for intent in StateDatabase(world.connection).intents())
    world.files.overwrite(A, at, b"y")
    world.start()
    world.settle()
    losses = world.losses()
    assert (old, 0, SIZE, Certainty.LOST) in [
        (loss.file, loss.first, loss.end, loss.certainty) for loss in losses
    ]
    assert old not in [row["file"] for row in rejected_rows(world.brokers)]
    assert old not in [record.file for record in world.brokers.records("logs")]


@promise("2 over-long line")
def test_an_overlong_line_with_the_same_bytes_is_sent_again(world: World) -> None:
    """A line that is too long to be read at once was on its way when the agent was killed. If the
    line has not changed since, the restarted agent sends the line once more, with the same origin,
    and declares no loss."""
    (old,) = (intent.file for intent in StateDatabase(world.connection).intents())
    world.start()
    world.settle()
    assert [(row["file"], row["first"], row["length"]) for row in rejected_rows(world.brokers)] == [
        (old, 0, SIZE)
    ]
    assert world.losses() == []
