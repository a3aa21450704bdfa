"""The agent declares each loss exactly once, even if it crashes or restarts."""

import pytest

from skidway.agent.state.database import StateDatabase
from skidway.agent.values.set_apart import SetApart
from skidway.audit.topic.messages import Certainty
from support.agent_world import World, raw, settings
from support.promises import promise

BEGIN_MS = 1_700_000_040_000
"""A time at which buckets of 30 s and of 60 s begin."""
A = "/log/a.log"


@pytest.fixture
def world() -> World:
    return World(settings(raw()))


@promise("6 losses")
def test_a_range_is_declared_once(world: World) -> None:
    """If the agent finds a declared loss again, it does not declare the loss a second time. There
    is one exception: if the agent declared bytes uncertain (perhaps lost), and now knows that these
    bytes are lost, it also declares the loss."""
    world.files.append(A, b"1\n2\n")
    world.start()
    world.settle(5)
    (tracked,) = world.agent.tracker.files.values()
    for certainty in (Certainty.UNCERTAIN, Certainty.UNCERTAIN, Certainty.LOST):
        found = SetApart(tracked, 0, 2, certainty, "found by a test")
        world.agent.tracker.news.set_apart.append(found)
        world.settle(3)
    assert [(x.first, x.end, x.certainty) for x in world.losses()] == [
        (0, 2, Certainty.UNCERTAIN), (0, 2, Certainty.LOST)
    ]  # fmt: skip


@promise("6 losses")
def test_a_loss_that_a_start_finds_again_is_not_declared_again(world: World) -> None:
    """The agent declares a loss once, even if it is killed several times after it stored the loss
    and before the file's checkpoint is past the lost bytes."""
    world.files.append(A, b"1\n")
    world.start()
    world.settle(5)
    world.kill_in_flight(b"2\n")
    (promise,) = StateDatabase(world.connection).intents()
    world.files.overwrite(A, 2, b"x")
    for _ in range(3):
        world.start()
        (tracked,) = (x for x in world.agent.tracker.files.values() if x.file == promise.file)
        for _ in range(100):
            world.hold(1, 5)
            if any(flight.lost_bytes for flight in tracked.flights):
                break
        assert len(StateDatabase(world.connection).losses()) == 1
        assert tracked.position == promise.first
        world.publish()
        world.kill()
    world.start()
    world.settle()
    mine = [x for x in world.losses() if x.file == promise.file]
    assert [(x.first, x.end) for x in mine if x.end is not None] == [(2, 4)]


@promise("clocks reach of a loss")
def test_a_clock_that_was_set_back_hides_no_lost_line() -> None:
    """A loss names the buckets to which the lost lines may belong. If the clock was set back, these
    buckets reach up to the latest time that the clock showed before it was set back, because a lost
    line may have been written at that time."""
    world = World(settings(raw(), max_open_files=1))
    world.files.append(A, b"1\n")
    world.start()
    world.settle()
    world.files.append("/log/b.log", b"x\n")
    world.settle()
    ahead_ms = world.clock.time_ms()
    world.files.append(A, b"2\n")
    world.clock.set_time_ms(ahead_ms - 3_600_000)
    world.files.delete(A)
    world.settle()
    [loss] = world.losses()
    assert loss.end is None
    assert loss.to_bucket == ahead_ms


@promise("6 complete")
def test_a_loss_reaches_the_buckets_of_an_earlier_size() -> None:
    """If `audit.bucket.ms` is raised at a restart, new buckets are longer. A declared loss then
    ends at the time up to which lines may be lost, and not at the start of the longer bucket that
    contains this time. So the loss also affects a shorter, old bucket that begins between that
    start and this time."""
    world = World(settings(raw("logs", A), audit_bucket_ms=30_000))
    world.clock.set_time_ms(BEGIN_MS + 20_000)
    world.files.append(A, b"read\n")
    world.start()
    world.settle(20)
    world.kill()
    world.clock.set_time_ms(BEGIN_MS + 45_000)
    world.files.append(A, b"lost\n")
    world.files.delete(A)
    world.settings = settings(raw("logs", A), audit_bucket_ms=60_000)
    world.clock.set_time_ms(BEGIN_MS + 52_000)
    world.start()
    world.settle(10)
    [loss] = world.losses()
    assert loss.from_bucket is not None
    assert loss.to_bucket is not None
    assert loss.from_bucket <= BEGIN_MS < BEGIN_MS + 45_000 <= loss.to_bucket
