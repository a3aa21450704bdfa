"""A closure is a message that announces a file's final length. The agent sends a file's closure
only when all records of the file are acknowledged."""

import pytest

from skidway.agent.state.database import StateDatabase
from skidway.agent.values.tracked import FileState
from skidway.audit.topic.messages import Announcement, decode
from support.agent_world import World, raw, settings
from support.promises import promise

A = "/log/a.log"


@pytest.fixture
def world() -> World:
    return World(settings(raw("logs", "/log/*.log", "/log/*.1")))


def closures(world: World) -> list[int]:
    """Returns the final lengths in all closures (messages with a file's final length) that are in
    the outbox or were published."""
    waiting = [decode(message.value) for message in StateDatabase(world.connection).outbox()]
    found = [*world.of(Announcement), *waiting]
    return [m.length for m in found if isinstance(m, Announcement) and m.length is not None]


def silently(world: World, turns: int) -> None:
    """Runs some turns of the agent, and checks that no file is closed (that no message announces a
    file's final length). Audit messages are published, but no record is acknowledged."""
    for _ in range(turns):
        world.clock.advance(0.5)
        world.publish()
        world.turn()
        assert closures(world) == [], "closed while its records are on their way"


def ended(world: World) -> None:
    """Makes a rotated file. The agent has read the file to its end, but no record of the file is
    acknowledged yet."""
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
    """The agent closes a file by a message with the file's final length, which says that no more
    records of the file will come. So it closes a file that it has read to its end only when all
    records of the file are acknowledged."""
    ended(world)
    world.settle(3)
    assert closures(world) == [8]


@promise("2 checkpoint")
def test_the_closure_is_in_the_transaction_in_which_the_position_stands_there(
    world: World,
) -> None:
    """One transaction stores a file's closure (the message with its final length) and the agent's
    final position in the file. So a kill after any turn leaves both of them in the database, or
    neither."""
    ended(world)
    deliveries = world.producer.deliver_all()
    for _ in range(4):
        world.clock.advance(0.5)
        world.turn(deliveries)
        deliveries = []
        (file,) = StateDatabase(world.connection).files()
        assert (file.position == 8) == (closures(world) == [8])
        assert (file.position == 8) == (file.state is FileState.CLOSED)
    assert closures(world) == [8]


@promise("1 announcement")
def test_a_file_is_not_closed_before_its_promises_are_kept_after_a_start(world: World) -> None:
    """After a start, the agent does not close a file (announce its final length) while intents
    (stored promises to send bytes) of this file have undelivered records. If the agent cannot open
    a file, it cannot send the file's records again, and therefore does not close the file
    either."""
    ended(world)
    world.kill()
    world.files.by_path["/log/a.log.1"].unreadable = True
    world.start()
    silently(world, 8)
    (tracked,) = world.agent.tracker.files.values()
    assert (tracked.state, tracked.flights) == (FileState.ENDED, ())
    world.files.by_path["/log/a.log.1"].unreadable = False
    world.settle(20)
    assert world.values() == ["one", "two"]
    assert closures(world) == [8]
