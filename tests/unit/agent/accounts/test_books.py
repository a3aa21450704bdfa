"""Losses: each is declared once, and stays declared."""

import pytest

from agent.files.news import SetApart
from agent.state.database import State
from audit.messages import Certainty, Delta, Loss
from support.agent_world import World, raw, settings

A = "/log/a.log"


@pytest.fixture
def world() -> World:
    return World(settings(raw()))


def losses(world: World) -> list[Loss]:
    """By the numbers of their deltas: what is published again is no second declaration."""
    deltas = {delta.number: delta for delta in world.of(Delta)}
    return [loss for delta in deltas.values() for loss in delta.losses]


def test_a_range_is_declared_once(world: World) -> None:
    """Also when it is found again; another certainty is another declaration."""
    world.files.append(A, b"1\n2\n")
    world.start()
    world.settle(5)
    (tracked,) = world.agent.tracker.files.values()
    for certainty in (Certainty.UNCERTAIN, Certainty.UNCERTAIN, Certainty.LOST):
        found = SetApart(tracked, 0, 2, certainty, "found by a test")
        world.agent.tracker.news.set_apart.append(found)
        world.settle(3)
    assert [(x.first, x.end, x.certainty) for x in losses(world)] == [
        (0, 2, Certainty.UNCERTAIN), (0, 2, Certainty.LOST)
    ]  # fmt: skip


def test_a_loss_that_a_start_finds_again_is_not_declared_again(world: World) -> None:
    """Killed after the loss was written and before the position passed it, as often as you like."""
    world.files.append(A, b"1\n")
    world.start()
    world.settle(5)
    world.files.append(A, b"2\n")
    for _ in range(5):
        world.clock.advance(0.1)
        world.publish()
        world.turn()
    world.kill()
    (promise,) = State(world.connection).intents()
    world.files.overwrite(A, 2, b"x")
    for _ in range(3):
        world.start()
        world.turn()
        world.publish()
        world.kill()
    world.start()
    world.settle()
    mine = [x for x in losses(world) if x.file == promise.file]
    assert [(x.first, x.end) for x in mine if x.end is not None] == [(2, 4)]
