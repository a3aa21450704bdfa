"""`skidway agent state show` distinguishes file ids that have the same path."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from skidway.agent.commands.state import entries, rows
from skidway.agent.files import nameless
from skidway.agent.state.database import StateDatabase
from skidway.agent.values.found import FileKey
from skidway.files import DirectoryLock
from support.agent_world import World, raw, settings

PATH = "/log/a.log"


def paths(world: World) -> list[str]:
    """Returns the column `path` of the table that `agent state show` prints."""
    files = entries(StateDatabase(world.connection).files(), {}, world.files, {})
    table, _ = rows({"files": files, "declared": []})
    return [each["path"] for each in table]


def a_world() -> World:
    world = World(settings(raw("logs", PATH)))
    world.files.append(PATH, b"one\n")
    world.start()
    world.settle(rounds=5)
    return world


def test_a_single_file_id_needs_no_distinction() -> None:
    """The table of `agent state show` gives only the path of a file id, if no other file id has
    this path."""
    assert paths(a_world()) == [PATH]


def test_a_deleted_file_and_the_file_at_its_path_are_told_apart() -> None:
    """If a file was deleted, and another file is now at its path, `agent state show` lists both
    files with their inodes, and marks the deleted file as deleted."""
    world = a_world()
    world.files.delete(PATH)
    world.files.append(PATH, b"two\n")
    world.settle(rounds=5)
    assert paths(world) == [
        f"{PATH} (inode 1, deleted)",
        f"{PATH} (inode 2, at this path now)",
    ]


def test_a_file_that_was_renamed_since_the_last_look_is_named() -> None:
    """If the agent's state has two files at a path, and one of these files was renamed after the
    agent's last scan, `agent state show` gives the new name of the renamed file."""
    world = a_world()
    world.files.delete(PATH)
    world.files.append(PATH, b"two\n")
    world.settle(rounds=5)
    world.kill()
    world.files.rename(PATH, "/log/a.log.1")
    assert paths(world) == [
        f"{PATH} (inode 1, deleted)",
        f"{PATH} (inode 2, renamed to a.log.1)",
    ]


def test_contents_of_one_file_are_told_apart() -> None:
    """If a file was truncated, its earlier content and its present content have different file ids,
    and `agent state show` says which id belongs to which content."""
    world = a_world()
    world.files.truncate(PATH)
    world.clock.advance(1)
    world.files.append(PATH, b"2\n")
    world.settle(rounds=5)
    assert paths(world) == [
        f"{PATH} (inode 1, an earlier content of the file)",
        f"{PATH} (inode 1, at this path now)",
    ]


def test_an_entry_tells_which_file_it_is_about() -> None:
    """An entry in the list of files has the device, the inode and the time of birth of its file.
    These three values together distinguish the file from every other file of the host."""
    world = World(settings(raw("logs", PATH)))
    world.files.append(PATH, b"one\n")
    world.start()
    world.settle(rounds=5)
    (found,) = entries(StateDatabase(world.connection).files(), {}, world.files, {})
    there = world.files.look(PATH)
    assert there is not None
    assert (found["device"], found["inode"], found["born_ns"]) == (*there.key, there.born_ns)
    assert there.born_ns is not None


def test_the_bytes_of_a_deleted_file_that_the_agent_has_open_are_pending() -> None:
    """If a file is deleted while brokers are away, the agent still has it open. `agent state show`
    then counts the file's bytes, and calls its state "deleted, held". The numbers add up."""
    world = a_world()
    there = world.files.look(PATH)
    assert there is not None
    world.files.delete(PATH)
    (gone,) = entries(StateDatabase(world.connection).files(), {}, world.files, {})
    assert (gone["bytes"], gone["is_held"]) == (gone["acknowledged"], False)
    held = {there.key: there.size + 105}
    files = entries(StateDatabase(world.connection).files(), {}, world.files, held)
    table, _ = rows({"files": files, "declared": []})
    assert (table[0]["bytes"], table[0]["pending"]) == (there.size + 105, 105)
    assert table[0]["state"] == "deleted, held"


@pytest.mark.parametrize("is_deleted", [True, False])
def test_the_files_without_a_name_that_an_agent_has_open_are_found(
    tmp_path: Path, *, is_deleted: bool
) -> None:
    """The size of a file without a name is read from the process that holds the lock on the state.
    Files that have a name are left out, and so is everything if no agent runs."""
    log = tmp_path / "a.log"
    log.write_bytes(b"x" * 105)
    with log.open("rb") as opened:
        status = os.fstat(opened.fileno())
        if is_deleted:
            log.unlink()
        with DirectoryLock(tmp_path / "state"):
            found = nameless.sizes(tmp_path / "state")
        key = FileKey(status.st_dev, status.st_ino)
        assert found.get(key) == (105 if is_deleted else None)
        assert nameless.sizes(tmp_path / "state") == {}
