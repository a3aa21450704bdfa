"""Old files are ignored and counted (`ignore.older.ms`), and idle files are closed
(`close.inactive.ms`). The agent scans directories for files again and again."""

from __future__ import annotations

import pytest

from skidway.agent.files.ignored import Left
from skidway.agent.files.tracking import HIDDEN_S
from skidway.errors import ConfigurationRefused
from support.agent_world import MemoryFile, World, raw, settings
from support.promises import promise

HOUR_MS = 3_600_000
PATH = "/log/a.log"


def world_of(*paths: str, **source: object) -> World:
    return World(settings(raw("logs", *paths, ignore_older_ms=2 * HOUR_MS, **source)))


def started(world: World) -> World:
    world.start()
    world.settle()
    return world


def old_file(world: World, data: bytes = b"old\n", path: str = PATH) -> None:
    world.files.append(path, data)
    world.clock.advance(3 * HOUR_MS / 1000)


@promise("1 old files")
def test_an_old_file_is_counted_and_read_whole_when_it_changes() -> None:
    """If a file is too old when the agent first finds it, the agent counts the file but does not
    read it. When a program writes to the file, the agent reads the file from the first byte."""
    world = world_of()
    old_file(world)
    started(world)
    assert world.values() == []
    assert world.agent.tracker.ignored.by_topic == {"logs": Left(1, 4, PATH)}
    world.kill()
    started(world)
    assert world.values() == []
    world.files.append(PATH, b"new\n")
    world.settle()
    assert world.values() == ["old", "new"]
    assert world.agent.tracker.ignored.by_topic == {}


@promise("1 old files")
def test_a_known_file_is_never_too_old() -> None:
    """If the agent has read a file before, it never ignores the file as too old, however old the
    file becomes, and however often the agent is started."""
    world = world_of()
    world.files.append(PATH, b"one\n")
    started(world)
    world.kill()
    world.files.append(PATH, b"two\n")
    world.clock.advance(9 * HOUR_MS / 1000)
    started(world)
    assert world.values() == ["one", "two"]
    assert world.agent.tracker.ignored.by_topic == {}


@promise("1 old files")
@pytest.mark.parametrize("was_there", [False, True])
def test_a_file_that_changed_after_the_last_look_is_never_too_old(was_there: bool) -> None:
    """If a program writes to a file while the agent is down, the agent reads the file after the
    agent's next start, however long the agent was down. This is true for new files, and for files
    that were too old at the last scan."""
    world = world_of("/log/*")
    if was_there:
        old_file(world)
    started(world)
    world.kill()
    old_file(world, b"new\n")
    old_file(world, b"next\n", "/log/a.log.1")
    started(world)
    assert sorted(world.values()) == ["new", "next", *(["old"] if was_there else [])]
    assert world.agent.tracker.ignored.by_topic == {}


@promise("1 old files")
def test_a_clock_that_was_set_back_makes_no_old_file_new() -> None:
    """If the clock was set back since the last scan, the agent cannot know which files changed
    after this scan. So only a file's time of last change decides whether the agent ignores the file
    as too old."""
    world = world_of()
    old_file(world)
    started(world)
    world.kill()
    world.clock.set_time_ms(world.clock.time_ms() - HOUR_MS // 2)
    started(world)
    assert world.values() == []


@promise("1 old files")
def test_rotated_files_are_never_too_old() -> None:
    """If a log was rotated while no agent ran, its rotated files are read, even if the rotation was
    long ago."""
    world = world_of("/log/a.log")
    world.files.append(PATH, b"one\n")
    started(world)
    world.kill()
    world.files.append(PATH, b"two\n")
    world.files.rename(PATH, PATH + ".1")
    world.files.append(PATH, b"three\n")
    world.files.rename(PATH + ".1", PATH + ".2")
    world.files.rename(PATH, PATH + ".1")
    world.clock.advance(9 * HOUR_MS / 1000)
    world.files.append(PATH, b"four\n")
    started(world)
    assert sorted(world.values()) == ["four", "one", "three", "two"]


@promise("1 old files")
def test_a_compressed_generation_of_a_known_file_is_never_too_old() -> None:
    """If a known file was compressed while no agent ran, its unread lines are read, even if the
    compressed file has an old time of change."""
    world, long = world_of("/log/*"), "x" * 1100
    world.files.append(PATH, long.encode() + b"\n")
    started(world)
    world.kill()
    world.files.append(PATH, b"two\n")
    world.files.compress(PATH)
    world.clock.advance(9 * HOUR_MS / 1000)
    started(world)
    assert world.values() == [long, "two"]


@promise("1 old files")
def test_a_compressed_generation_that_was_read_is_no_ignored_file() -> None:
    """If a known file is compressed long after its last change, the compressed file counts as the
    known file, and not as a file that is too old."""
    world = world_of("/log/*")
    world.files.append(PATH, b"x" * 1100 + b"\n")
    started(world)
    world.clock.advance(9 * HOUR_MS / 1000)
    world.settle()
    world.kill()
    world.files.compress(PATH)
    started(world)
    assert len(world.values()) == 1
    assert world.agent.tracker.ignored.by_topic == {}
    assert world.only()["path"] == PATH + ".gz"
    assert world.losses() == []


@promise("1 old files")
def test_a_file_that_could_not_be_opened_does_not_become_too_old() -> None:
    """If a file was not too old when it was found, but could not be opened, it is read as soon as
    it can be opened."""
    world = world_of()
    world.files.append(PATH, b"one\n").unreadable = True
    started(world)
    world.clock.advance(9 * HOUR_MS / 1000)
    world.settle()
    world.files.by_path[PATH].unreadable = False
    world.settle()
    assert world.values() == ["one"]


def test_with_start_at_end_an_old_file_begins_at_its_end() -> None:
    """With `start_at: end`, the agent treats an old file like every other file, and begins to read
    at the file's end."""
    world = world_of(start_at="end")
    old_file(world)
    started(world)
    world.files.append(PATH, b"new\n")
    world.settle()
    assert world.values() == ["new"]
    assert world.only()["skipped"] == 4


def test_an_event_before_the_first_look_reads_no_old_file() -> None:
    """If the kernel reports an old file to the agent before the agent's first scan, the agent still
    does not read the file."""
    world = world_of()
    old_file(world)
    world.start()
    world.agent.touch([PATH])
    world.settle()
    assert world.values() == []


def test_the_time_must_be_longer_than_a_look_takes() -> None:
    """If `ignore.older.ms` is less than twice `reconcile.interval.ms` (the time between two scans),
    the settings are refused. The error names both settings."""
    with pytest.raises(ConfigurationRefused, match=r"ignore\.older\.ms .* reconcile\.interval\.ms"):
        settings(raw(ignore_older_ms=HOUR_MS), reconcile_interval_ms=HOUR_MS).check()


def inactive() -> World:
    world = World(settings(raw(), close_inactive_ms=2_000, close_rotated_ms=9_000))
    world.files.append(PATH, b"one\n")
    world.start()
    world.hold(2)
    return world


@promise("1 closed early")
def test_a_file_is_closed_when_it_is_read_and_idle() -> None:
    """If a file gets no new bytes for `close.inactive.ms`, the agent closes its file descriptor.
    When the file grows, the agent continues to read it."""
    world = inactive()
    world.settle(5)
    assert world.files.open_count == 1
    world.settle(20)
    assert world.files.open_count == 0
    world.files.append(PATH, b"two\n")
    world.settle(3)
    assert world.values() == ["one", "two"]


@promise("1 closed early")
def test_a_file_with_unread_bytes_or_without_a_name_stays_open() -> None:
    """The agent keeps an idle file open in two cases: some of its bytes are not acknowledged yet,
    or the file was deleted less than `close.rotated.ms` ago. Only with an open descriptor can the
    agent still read a deleted file."""
    world = inactive()
    world.hold(80)
    assert world.files.open_count == 1
    world = inactive()
    world.settle(2)
    world.files.delete(PATH)
    world.settle(12)
    assert world.files.open_count == 1
    world.settle(30)
    assert world.files.open_count == 0
    assert world.values() == ["one"]
    assert world.losses() == []


@promise("1 closed early")
def test_bytes_of_a_file_that_was_deleted_after_it_was_closed_are_declared() -> None:
    """If the agent has closed the descriptor of an idle file, and the file is then written to and
    deleted before the next scan, the agent declares a loss."""
    world = inactive()
    world.settle(30)
    world.files.append(PATH, b"two\n")
    world.files.delete(PATH)
    world.settle()
    assert world.values() == ["one"]
    assert len(world.losses()) == 1


@promise("1 old files")
@pytest.mark.parametrize("pattern", ["/log/*.log", "/log/a.log", "/log/*"])
def test_an_old_file_that_goes_away_is_no_loss(pattern: str) -> None:
    """If a file that the agent ignores as too old is deleted or rotated, no loss is declared, and
    the next file at its path is read whole."""
    world = world_of(pattern)
    old_file(world)
    old_file(world, path="/log/b.log")
    started(world)
    world.files.delete("/log/b.log")
    world.settle()
    world.files.rename(PATH, PATH + ".1")
    world.files.append(PATH, b"new\n")
    world.settle()
    world.files.delete(PATH + ".1")
    world.settle()
    assert world.values() == ["new"]
    assert world.losses() == []


def opened(close_rotated_ms: int = 9_000) -> tuple[World, MemoryFile]:
    """Returns a simulated host with a running agent, and a log. The agent has read this log, and no
    program has written to the log for a minute. A program still has the log open."""
    world = World(settings(raw(), close_rotated_ms=close_rotated_ms))
    file = world.files.append(PATH, b"one\n")
    started(world)
    world.settle(60, 1)
    return world, file


@promise("1 still written")
def test_a_quiet_log_that_is_deleted_is_read_on_for_a_while() -> None:
    """A program may still write to a log that was deleted. The agent reads such a log until the log
    has not grown for `close.rotated.ms`. The time before the deletion does not count."""
    world, file = opened()
    world.files.delete(PATH)
    world.settle(5, 1)
    world.files.write(file, b"two\n")
    world.settle(5, 1)
    assert world.values() == ["one", "two"]
    world.settle(15, 1)
    assert world.files.open_count == 0
    assert world.losses() == []


@promise("1 still written")
def test_a_log_that_no_look_finds_stays_open_while_it_has_a_name() -> None:
    """A log may have only a name that no scan of the agent finds. Such a name is a hard link in
    another directory, or is in a directory on which another file system was mounted. The agent
    keeps such a log open for a day, because only the open file shows whether the log grows. If the
    log then loses its last name, the agent closes the file."""
    world, file = opened()
    world.files.hide(PATH)
    world.settle(120, 1)
    world.files.write(file, b"two\n")
    world.settle(5, 1)
    assert world.values() == ["one", "two"]
    assert world.files.open_count == 1
    file.names.clear()
    world.settle(20, 1)
    assert world.files.open_count == 0
    assert world.losses() == []


def test_a_log_that_no_look_finds_is_closed_after_a_day() -> None:
    """If no scan finds a log's name, the agent keeps the log open for a day (HIDDEN_S) and then
    closes the log."""
    world, _ = opened()
    world.files.hide(PATH)
    world.settle(5, 1)
    assert world.files.open_count == 1
    world.clock.advance(HIDDEN_S)
    world.settle(15, 1)
    assert world.files.open_count == 0
    assert world.losses() == []
