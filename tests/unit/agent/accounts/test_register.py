"""Closures: the final length of a file is said once the state stands there, and not before."""

import pytest

from skidway.agent.state.database import State
from skidway.agent.values.tracked import FileState
from skidway.audit.topic.messages import Announcement, decode
from support.agent_world import World, raw, settings
from support.promises import promise

A = "/log/a.log"


@pytest.fixture
def world() -> World:
    return World(settings(raw("logs", "/log/*.log", "/log/*.1")))


def closures(world: World) -> list[int]:
    """The final lengths that are durable, whether the cluster has them or not."""
    waiting = [decode(message.value) for message in State(world.connection).outbox()]
    found = [*world.of(Announcement), *waiting]
    return [m.length for m in found if isinstance(m, Announcement) and m.length is not None]


def silently(world: World, turns: int) -> None:
    """Time passes and nothing is acknowledged but announcements."""
    for _ in range(turns):
        world.clock.advance(0.5)
        world.publish()
        world.turn()
        assert closures(world) == [], "closed while its records are on their way"


def ended(world: World) -> None:
    """A rotated file that stood still and was read to its end; its records are on their way."""
    world.files.append(A, b"one\ntwo\n")
    world.start()
    silently(world, 6)
    world.files.rename(A, "/log/a.log.1")
    silently(world, 25)
    (tracked,) = world.agent.tracker.files.values()
    assert (tracked.state, tracked.length) == (FileState.ENDED, 8)
    assert tracked.flights


@promise("1 announcement")
def test_a_file_is_closed_once_its_records_are_acknowledged(world: World) -> None:
    """Not when it was read to its end: the closure says that nothing of it comes any more."""
    ended(world)
    world.settle(3)
    assert closures(world) == [8]


@promise("2 checkpoint")
def test_the_closure_is_in_the_transaction_in_which_the_position_stands_there(
    world: World,
) -> None:
    """Whatever is killed after any turn, no state has the one without the other."""
    ended(world)
    deliveries = world.producer.deliver_all()
    for _ in range(4):
        world.clock.advance(0.5)
        world.turn(deliveries)
        deliveries = []
        (file,) = State(world.connection).files()
        assert (file.position == 8) == (closures(world) == [8])
        assert (file.position == 8) == (file.state is FileState.CLOSED)
    assert closures(world) == [8]


@promise("1 announcement")
def test_a_file_is_not_closed_before_its_promises_are_kept_after_a_start(world: World) -> None:
    """It has ended and nothing is on its way, because it cannot be opened right now."""
    ended(world)
    world.kill()
    world.files.by_path["/log/a.log.1"].unreadable = True
    world.start()
    silently(world, 8)
    (tracked,) = world.agent.tracker.files.values()
    assert (tracked.state, tracked.flights) == (FileState.ENDED, [])
    world.files.by_path["/log/a.log.1"].unreadable = False
    world.settle(20)
    assert world.values() == ["one", "two"]
    assert closures(world) == [8]
