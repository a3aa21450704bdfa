"""Tests logs that were read, moved to a directory that no pattern matches, and moved back."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from skidway.agent.files.tracking import FORGET_AFTER_S, HIDDEN_S
from skidway.agent.values.tracked import FileState
from support.agent_world import World, raw, settings
from support.promises import promise

APP, OTHER, ASIDE = "/log/app.log", "/log/b.log", "/aside/app.log"
LINES = [f"line {number}" for number in range(80)]
DAY_S = 86_400.0


def read_and_let_go() -> World:
    """Returns an agent that has read a log whole, and does not have the log open."""
    world = World(settings(raw("logs", "/log/*.log*"), max_open_files=1))
    world.files.append(APP, "".join(f"{line}\n" for line in LINES).encode())
    world.files.append(OTHER, b"x\n")
    world.start()
    world.settle()
    world.files.append(OTHER, b"y\n")
    world.settle()
    world.clock.advance(120)
    world.settle(3)
    return world


def wait(world: World, seconds: float) -> None:
    for _ in range(round(seconds / 900)):
        world.clock.advance(900)
        world.settle(2)


def assert_each_came_once(world: World) -> None:
    assert [value for value in world.values() if value.startswith("line")] == LINES
    assert world.losses() == []


def restart(world: World) -> None:
    world.kill()
    world.clock.advance(5)
    world.start()
    world.settle(20)


def wait_for_hours(world: World) -> None:
    wait(world, 3 * FORGET_AFTER_S)


@promise("1 same file")
@pytest.mark.parametrize("meanwhile", [restart, wait_for_hours])
def test_a_log_that_was_moved_away_and_back_is_not_read_again(
    meanwhile: Callable[[World], None],
) -> None:
    """If a log that was read whole and is not held open is moved away and back, the agent
    recognizes the log. The log may be away for hours, and the agent may be restarted meanwhile."""
    world = read_and_let_go()
    world.files.rename(APP, ASIDE)
    world.settle(60)
    meanwhile(world)
    world.files.rename(ASIDE, APP)
    world.settle(60)
    assert_each_came_once(world)


@promise("1 same file")
def test_a_log_that_was_closed_long_ago_may_be_moved_away_and_back() -> None:
    """The day for which the agent remembers a closed log begins when the log is first found gone,
    however long ago the log was closed."""
    world = read_and_let_go()
    world.files.rename(APP, f"{APP}.1")
    world.settle(60)
    world.clock.advance(10 * DAY_S)
    world.settle(3)
    world.files.rename(f"{APP}.1", ASIDE)
    wait_for_hours(world)
    world.files.rename(ASIDE, f"{APP}.1")
    world.settle(60)
    assert_each_came_once(world)


def test_a_log_that_is_gone_for_a_day_is_forgotten() -> None:
    """If a closed log is gone, the agent remembers it for a day after it was found gone. But if the
    agent saw that a log was deleted, it forgets the log at the next hourly search."""
    world = read_and_let_go()
    world.files.rename(APP, ASIDE)
    world.settle(3)
    wait(world, HIDDEN_S - 2 * FORGET_AFTER_S)
    assert len(world.agent.tracker.files) == 2
    world.files.delete(OTHER)  # the agent has it open
    wait(world, FORGET_AFTER_S)
    assert [each.birth.path for each in world.agent.tracker.files.values()] == [APP]
    wait(world, 3 * FORGET_AFTER_S)
    assert world.agent.tracker.files == {}


def test_a_log_that_is_back_beside_its_path_is_not_forgotten() -> None:
    """A rotated log that no pattern matches may be moved away and back, too. Once the log is back,
    the agent remembers it as long as it stays at its path."""
    world = World(settings(raw("logs", APP)))
    world.files.append(APP, b"1\n")
    world.start()
    world.settle()
    world.files.rename(APP, f"{APP}.1")
    world.files.append(APP, b"2\n")
    world.settle(60)
    world.files.rename(f"{APP}.1", ASIDE)
    wait(world, 2 * FORGET_AFTER_S)
    world.files.rename(ASIDE, f"{APP}.1")
    wait(world, HIDDEN_S + FORGET_AFTER_S)
    (closed,) = (x for x in world.agent.tracker.files.values() if x.state is FileState.CLOSED)
    assert closed.length == 2


def test_an_agent_that_is_started_every_day_forgets_what_is_gone_for_a_week() -> None:
    """An agent that is started more often than once a day never finds a log gone for a whole day.
    At a start, it forgets logs that are gone and that were closed more than a week ago. So its
    state does not grow without end."""
    world = read_and_let_go()
    world.files.rename(APP, ASIDE)
    world.settle()
    for day in range(8):
        assert len(world.agent.tracker.files) == 2, day
        world.clock.advance(DAY_S - 60)
        world.kill()
        world.start()
        world.settle(10)
    assert [each.birth.path for each in world.agent.tracker.files.values()] == [OTHER]
