"""Tests files without a file id: empty logs, and logs that `ignore.older.ms` leaves out. The agent
scans directories for files again and again."""

import pytest

from skidway.agent.state.database import StateDatabase
from support.agent_world import World, raw, settings
from support.promises import promise

LOG = "/log/error.log"
OLD = f"{LOG}.1"
DAY_MS = 86_400_000


def make(*, is_ignored: bool = False, knows_births: bool = True) -> World:
    """An agent that has looked at a log without a file id. The log is ten days old. If `is_ignored`
    is true, the log has one line; otherwise the log is empty."""
    world = World(settings(raw("logs", "/log/*.log", ignore_older_ms=DAY_MS)))
    world.files.knows_births = knows_births
    log = world.files.append(LOG, b"old\n" if is_ignored else b"")
    log.changed_ns = (world.clock.time_ms() - 10 * DAY_MS) * 1_000_000
    if knows_births:
        log.born_ns = log.changed_ns
    world.files.append("/log/other.log", b"other\n")
    world.start()
    world.settle(rounds=20)
    assert world.values() == ["other"]
    return world


def stop(world: World) -> None:
    world.kill()
    world.clock.advance(60)


def copy_and_truncate(world: World) -> None:
    """Rotates a log as logrotate's `copytruncate` does."""
    world.files.append(OLD, bytes(world.files.by_path[LOG].data))
    world.files.truncate(LOG)


@promise("1 generations")
@pytest.mark.parametrize("knows_births", [True, False])
@pytest.mark.parametrize("is_down", [True, False])
@pytest.mark.parametrize("is_ignored", [True, False])
@pytest.mark.parametrize("is_copied", [True, False])
def test_lines_written_and_rotated_between_two_looks(
    knows_births: bool, is_down: bool, is_ignored: bool, is_copied: bool
) -> None:
    """If lines are written to a log without a file id, and the log is rotated before the next scan,
    the agent reads the lines from the rotated file. This is so even if no agent ran meanwhile."""
    world = make(is_ignored=is_ignored, knows_births=knows_births)
    if is_down:
        stop(world)
    world.files.append(LOG, b"lines\n")
    if is_copied:
        copy_and_truncate(world)
    else:
        world.files.rename(LOG, OLD)
    world.files.append(LOG, b"new\n")
    if is_down:
        world.start()
    world.settle(rounds=20)
    old = ["old"] if is_ignored else []
    assert sorted(world.values()) == sorted(["other", "lines", "new", *old])
    assert world.losses() == []


@pytest.mark.parametrize("is_down", [True, False])
def test_a_log_that_is_empty_again_after_it_was_copied(is_down: bool) -> None:
    """If lines are written to an empty log, and the log is copied and truncated before the next
    scan, the agent reads the copy, although the log is empty again."""
    world = make()
    if is_down:
        stop(world)
    world.files.append(LOG, b"lines\n")
    copy_and_truncate(world)
    if is_down:
        world.start()
    world.settle(rounds=20)
    assert sorted(world.values()) == ["lines", "other"]


@pytest.mark.parametrize("is_down", [True, False])
def test_rotated_generations_of_an_empty_log_that_are_deleted(is_down: bool) -> None:
    """If a log without a file id gets lines and is deleted before the next scan, the agent declares
    a loss. It does so even if it finds and reads a newer rotated file of the log."""
    world = make()
    if is_down:
        stop(world)
    world.files.append(LOG, b"lines\n")
    world.files.delete(LOG)
    world.files.append(LOG, b"next\n")
    world.files.rename(LOG, OLD)
    world.files.append(LOG, b"new\n")
    if is_down:
        world.start()
    world.settle(rounds=20)
    assert sorted(world.values()) == ["new", "next", "other"]
    assert len(world.losses()) == 1


@pytest.mark.parametrize("is_down", [True, False])
@pytest.mark.parametrize("is_killed_after", [True, False])
def test_an_old_empty_log_that_is_written_after_its_rotation(
    is_down: bool, is_killed_after: bool
) -> None:
    """A log may be empty when it is renamed, and its program may write to the log afterwards. The
    agent reads these lines, even if no agent ran when the log was renamed, or when the lines were
    written."""
    world = make()
    if is_down:
        stop(world)
    world.files.rename(LOG, OLD)
    world.files.append(LOG, b"new\n")
    if is_down:
        world.start()
    world.settle(rounds=20)
    if is_killed_after:
        stop(world)
    world.files.append(OLD, b"late\n")
    if is_killed_after:
        world.start()
    world.settle(rounds=20)
    assert sorted(world.values()) == ["late", "new", "other"]
    assert world.losses() == []


def test_a_rotated_file_of_another_program_is_left_alone() -> None:
    """The agent does not read a file that existed before the agent's first start and that the agent
    never found at the log's path. This is so even if a program writes to the file while no agent
    runs."""
    world = World(settings(raw("logs", LOG)))
    world.files.append(LOG, b"")
    world.files.append(OLD, b"foreign\n")
    world.clock.advance(3_600)
    world.start()
    world.settle(rounds=20)
    stop(world)
    world.files.append(OLD, b"more\n")
    world.start()
    world.settle(rounds=20)
    world.files.append(LOG, b"first\n")
    world.settle(rounds=20)
    assert world.values() == ["first"]
    assert world.losses() == []


def test_an_empty_log_on_a_disk_with_another_number() -> None:
    """After a restart of the machine, disks may have other device numbers. An empty log stays the
    same file, so the agent reads later lines and declares no loss."""
    world = make()
    log, old = world.files.by_path[LOG], world.files.append(OLD, b"older\n")
    old.changed_ns = old.born_ns = log.changed_ns - 1
    stop(world)
    world.files.device = 99
    world.files.append(LOG, b"lines\n")
    world.start()
    world.settle(rounds=20)
    assert sorted(world.values()) == ["lines", "other"]
    assert world.losses() == []


def test_only_changes_of_files_without_an_id_are_written() -> None:
    """While the files without an id stay the same, the agent does not write their list to its
    state. It deletes a file from the list as soon as the file gets an id."""
    world = make(is_ignored=True)
    state = StateDatabase(world.connection)
    assert [each.found.path for each in state.unbegun()] == [LOG]
    written: list[str] = []
    world.connection.set_trace_callback(written.append)
    world.settle(rounds=3)
    assert written
    assert [each for each in written if "unbegun" in each] == []
    world.files.append(LOG, b"lines\n")
    world.settle(rounds=3)
    assert [each.split()[0] for each in written if "unbegun" in each] == ["DELETE"]
    assert state.unbegun() == []


@promise("1 not opened")
@pytest.mark.parametrize("is_down", [True, False])
def test_an_unopened_file_whose_source_is_removed(is_down: bool) -> None:
    """If a source is removed from the settings, the agent declares a loss for each of the source's
    files that it could not open."""
    other = settings(raw("other", "/other/*"))
    world = World(settings(raw("logs", "/log/*.log"), raw("other", "/other/*")))
    world.files.append(LOG, b"line\n").unreadable = True
    world.start()
    world.settle(rounds=5)
    if is_down:
        stop(world)
        world.settings = other
        world.start()
    else:
        world.reload(other)
    world.settle(rounds=20)
    (loss,) = world.losses()
    assert loss.end is None
    assert "no source means it any more" in loss.reason
