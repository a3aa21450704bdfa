"""Tests file systems that are mounted only after the agent's start, and files that the agent has no
right to access for a while."""

from __future__ import annotations

import pytest

from skidway.agent.files.endings import VANISHED
from skidway.agent.files.mounts import MOUNT_WAIT_S, UNMOUNTED
from skidway.audit.topic.messages import Delta, Loss, Seal
from support.agent_world import World, raw, settings
from support.promises import promise

APP, READ = "/log/app.log", "/log/read.log"


@pytest.fixture
def world() -> World:
    """An agent that has read two files. The file `READ` has not changed since the agent's first
    scan."""
    made = World(settings(raw("logs", APP, READ)))
    made.files.append(READ, b"read\n")
    made.start()
    made.settle()
    made.files.append(APP, b"first\n")
    made.settle()
    return made


def losses(world: World) -> list[Loss]:
    return [loss for delta in world.of(Delta) for loss in delta.losses]


def sealed(world: World) -> int:
    """Returns the time (ms) in the topic's newest seal. The seal says that all earlier lines are
    counted."""
    return max(
        each.sealed_until
        for seal in world.of(Seal)
        for each in seal.topics
        if each.source.topic == "logs"
    )


def rotate(world: World) -> None:
    if f"{APP}.1" in world.files.by_path:
        world.files.rename(f"{APP}.1", f"{APP}.2")
    world.files.rename(APP, f"{APP}.1")


def go_on(world: World) -> None:
    """Writes a line to the log, then rotates the log twice, and writes a line to each new log.
    Tests call this function while the agent cannot access the files."""
    world.files.append(APP, b"second\n")
    for line in (b"third\n", b"fourth\n"):
        world.clock.advance(60)
        rotate(world)
        world.files.append(APP, line)
    world.clock.advance(60)


@promise("6 unreadable")
@pytest.mark.parametrize("is_renumbered", [False, True])
def test_files_whose_file_system_is_not_mounted_yet_are_waited_for(
    world: World, is_renumbered: bool
) -> None:
    """If a file system is not mounted at the agent's start, no line is lost or doubled. The agent
    sends no seal until the file system is mounted, because a seal says that all earlier lines are
    counted. After the mount, the agent reads all rotated files, even files that it never saw
    before."""
    world.kill()
    go_on(world)
    world.files.is_mounted = False
    world.start()
    before = sealed(world)
    world.settle()
    assert world.agent.tracker.unreadable == {"logs": {"/log": UNMOUNTED}}
    assert sealed(world) == before
    world.files.is_mounted = True
    world.files.device += is_renumbered
    world.settle()
    assert sorted(world.values()) == ["first", "fourth", "read", "second", "third"]
    assert losses(world) == []
    assert sealed(world) > before


def test_a_file_system_that_never_comes_is_declared(world: World) -> None:
    """If a file system is not mounted for an hour, its files count as gone. The agent declares one
    loss for all files with possibly unread bytes. In this test, both files may have unread
    bytes."""
    world.files.append(APP, b"second\n")
    world.kill()
    world.files.is_mounted = False
    world.start()
    world.settle()
    assert losses(world) == []
    world.clock.advance(MOUNT_WAIT_S)
    world.settle()
    (loss,) = losses(world)
    assert (loss.end, loss.reason) == (None, f"{VANISHED}; 1 more file likewise")
    assert world.agent.tracker.unreadable == {}


@promise("6 unreadable")
@pytest.mark.parametrize("is_running", [False, True])
def test_what_was_read_is_known_again_however_late_its_file_system_comes(is_running: bool) -> None:
    """If a file system is mounted again after a day, the agent does not read the files on it a
    second time."""
    world = World(settings(raw("logs", "/log/*.log")))
    world.files.append(APP, b"read\n")
    world.start()
    world.settle()
    world.clock.advance(86_400)
    world.settle()
    if not is_running:
        world.kill()
    world.files.is_mounted = False
    if not is_running:
        world.start()
    for _ in range(60):
        world.settle(4)
        world.clock.advance(1_800)
    world.files.is_mounted = True
    world.settle()
    assert world.values() == ["read"]


def test_a_directory_that_was_deleted_is_not_waited_for(world: World) -> None:
    """The agent does not wait for the files of a deleted directory, but declares them gone, with
    one loss for both files. It knows that no file system is missing, because the files were on the
    device of the directory above the deleted one, and not on a device of their own."""
    world.kill()
    world.files.delete(APP)
    world.files.delete(READ)
    world.start()
    world.settle()
    (loss,) = losses(world)
    assert (loss.end, loss.reason) == (None, f"{VANISHED}; 1 more file likewise")
    assert world.agent.tracker.unreadable == {}


@promise("6 unreadable")
def test_what_was_rotated_while_nobody_might_look_is_read(world: World) -> None:
    """While the agent has the right to list the names in a directory, but not to access the files,
    it counts no file as history (too old to be read). It reads the files when it has the right to
    access them again."""
    world.files.may_search = False
    world.settle(4)
    go_on(world)
    world.settle()
    world.clock.advance(60)
    world.files.may_search = True
    world.settle()
    assert sorted(world.values()) == ["first", "fourth", "read", "second", "third"]
    assert losses(world) == []
