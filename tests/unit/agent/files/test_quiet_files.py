"""Tests how the agent scans files to which no program writes. A host may have 20,000 such files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from skidway.agent.files.host import Scan
from skidway.agent.files.operating_system import OperatingSystem
from skidway.agent.files.patterns import Pattern
from skidway.agent.files.sighting import Sighting
from support.agent_world import World, raw, settings
from support.promises import promise

PATH = "/log/a.log"


def at_rest(monkeypatch: pytest.MonkeyPatch) -> tuple[World, list[str]]:
    """Returns an agent that has completely read its only file, and a list. Each scan of the agent
    adds to the list the paths of the files that it compares with known files."""
    world = World(settings(raw("logs", "/log/*.log")))
    world.files.append(PATH, b"one\n")
    world.start()
    world.settle()
    seen: list[str] = []
    recognition = world.agent.tracker._recognition
    see = recognition.see

    def note(sighting: Sighting) -> None:
        seen.append(sighting.found.path)
        see(sighting)

    monkeypatch.setattr(recognition, "see", note)
    return world, seen


def look(world: World) -> None:
    world.clock.advance(1.0)
    world.agent.tracker.reconcile(world.clock.monotonic(), world.clock.time_ms())


def test_a_look_at_a_file_at_rest_asks_nothing_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """If a file is completely read and unchanged since the last scan, the scan does not compare the
    file with known files again."""
    world, seen = at_rest(monkeypatch)
    look(world)
    look(world)
    assert seen == []


@promise("1 same file")
def test_whatever_changes_a_file_is_found_without_an_event(monkeypatch: pytest.MonkeyPatch) -> None:
    """A scan compares a file with known files again after each of these changes: bytes were
    appended to the file, the file was truncated, it was written again after the truncation, it was
    replaced by a file of the same size, or it was rewritten in place with the same number of bytes.
    The agent reads what was written. The scan finds each change even if no file system event
    announced it."""
    world, seen = at_rest(monkeypatch)
    for change in (
        lambda: world.files.append(PATH, b"two\n"),
        lambda: world.files.truncate(PATH),
        lambda: world.files.append(PATH, b"six\n"),
        lambda: (world.files.delete(PATH), world.files.append(PATH, b"ten\n")),
        lambda: world.files.overwrite(PATH, 0, b"new\n"),
    ):
        world.clock.advance(30.0)
        change()
        seen.clear()
        look(world)
        assert seen == [PATH]
        world.settle()
    assert world.values() == ["one", "two", "six", "ten", "new"]


@promise("1 same file")
def test_another_file_with_the_same_inode_size_and_time_is_not_at_rest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A scan notices that a file was replaced even if the new file has the same inode, size and
    modification time, and only its birth time differs."""
    world, seen = at_rest(monkeypatch)
    look_at = world.files.scan

    def later(patterns: Sequence[Pattern]) -> Scan:
        scan = look_at(patterns)
        scan.found[:] = [each._replace(born_ns=(each.born_ns or 0) + 1) for each in scan.found]
        return scan

    monkeypatch.setattr(world.files, "scan", later)
    look(world)
    assert seen == [PATH]


def test_a_quiet_file_has_one_description(tmp_path: Path) -> None:
    """As long as a file does not change, each scan returns the same object that describes the file.
    So an unchanged file has only one description in memory. A file that changes, or that replaces
    another file, gets a new object."""
    host, path = OperatingSystem(), tmp_path / "a.log"
    path.write_bytes(b"one\n")
    patterns = [Pattern(f"{tmp_path}/*.log")]
    (first,) = host.scan(patterns).found
    (again,) = host.scan(patterns).found
    assert again is first
    path.write_bytes(b"one\ntwo\n")
    (grown,) = host.scan(patterns).found
    assert (grown.size, grown.key, grown.born_ns) == (8, first.key, first.born_ns)
    other = tmp_path / "other"
    other.write_bytes(b"six\nten\n")
    os.utime(other, ns=(grown.changed_ns, grown.changed_ns))
    other.rename(path)
    (replaced,) = host.scan(patterns).found
    assert (replaced.size, replaced.changed_ns) == (grown.size, grown.changed_ns)
    assert replaced.key != grown.key
    assert replaced.born_ns is not None
    assert replaced.born_ns != grown.born_ns


def test_a_link_to_another_directory_changes_the_description(tmp_path: Path) -> None:
    """If a symbolic link in a file's path is changed, the file's description contains the new real
    path, even if the new path leads to the same inode."""
    host = OperatingSystem()
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    (tmp_path / "one" / "a.log").write_bytes(b"one\n")
    (tmp_path / "two" / "a.log").hardlink_to(tmp_path / "one" / "a.log")
    link = tmp_path / "now"
    link.symlink_to(tmp_path / "one")
    path = str(link / "a.log")
    before = host.look(path)
    link.unlink()
    link.symlink_to(tmp_path / "two")
    after = host.look(path)
    assert before is not None
    assert after is not None
    assert (before.key, before.real_path) == (after.key, str(tmp_path / "one" / "a.log"))
    assert after.real_path == str(tmp_path / "two" / "a.log")
