"""In a scan, the agent searches for the files that match the patterns of its sources. With
`start_at: end`, it skips the lines that the files of a pattern contain at its first scan for this
pattern."""

from __future__ import annotations

import pytest

from skidway.audit.topic.messages import Announcement
from support.agent_press import rejected_rows
from support.agent_world import World, raw, settings
from support.promises import promise

PATH = "/log/a.log"


def world_of(*paths: str, **source: object) -> World:
    return World(settings(raw("logs", *paths, start_at="end", **source)))


def started(world: World) -> World:
    world.start()
    world.settle()
    return world


@promise("1 start at the end")
@pytest.mark.parametrize("rest", [b"", b"part"])
def test_what_was_written_before_the_first_look_is_skipped_and_said(rest: bytes) -> None:
    """With `start_at: end`, if a file exists at the first scan, the agent begins to read after the
    file's last whole line. The file's announcement to the audit and the agent's state give the
    number of skipped bytes, and no loss is declared."""
    world = world_of()
    world.files.append(PATH, b"old\n" * 100 + rest)
    started(world)
    world.files.append(PATH, b"new\n")
    world.settle()
    assert world.values() == [*([rest.decode()] if rest else []), "new"]
    entry = world.only()
    assert (entry["begin"], entry["skipped"]) == (400, 400)
    assert (entry["acknowledged"], entry["bytes"]) == (4 + len(rest), 4 + len(rest))
    announced = world.of(Announcement)
    assert {(each.begin, each.predecessor) for each in announced} == {(400, None)}
    assert world.losses() == []


@promise("1 start at the end")
def test_files_that_appear_later_are_read_whole() -> None:
    """If a file appears after the first scan, the agent reads the file from its beginning, whether
    or not the agent ran when the file appeared. The setting `start_at: end` does not change
    this."""
    world = started(world_of())
    world.files.append("/log/b.log", b"one\n")
    world.settle()
    world.kill()
    world.files.append("/log/c.log", b"two\n")
    started(world)
    assert sorted(world.values()) == ["one", "two"]


@promise("1 start at the end")
def test_a_rotation_and_a_truncation_begin_at_the_beginning() -> None:
    """If a file whose old lines were skipped is rotated or truncated, the agent reads everything
    that is later written to the log's path."""
    world = world_of()
    world.files.append(PATH, b"old\n")
    started(world)
    world.files.rename(PATH, "/log/a.log.1")
    world.files.append(PATH, b"one\n")
    world.settle()
    world.files.truncate(PATH)
    world.settle()
    world.files.append(PATH, b"x\n")
    world.settle()
    assert world.values() == ["one", "x"]


@promise("1 start at the end")
def test_a_kill_before_the_first_transaction_changes_nothing() -> None:
    """One transaction stores both the position in a file and the fact that the agent has scanned
    for the pattern. So after a kill at any moment, each line after the stored position is delivered
    once. If the agent is killed before this transaction, the scan after the next start counts as
    the first scan."""
    for turns in range(8):
        world = world_of()
        world.files.append(PATH, b"old\n" * 3)
        world.start()
        world.hold(turns)
        world.files.append(PATH, b"middle\n")
        world.kill()
        world.files.append(PATH, b"new\n")
        started(world)
        expected = ["middle", "new"] if turns else []
        assert world.values() == expected
        assert world.only()["begin"] + world.only()["bytes"] == 12 + 7 + 4


@promise("1 start at the end")
def test_a_pattern_that_is_added_later_is_looked_at_for_the_first_time() -> None:
    """If a pattern is added to a source with `start_at: end`, the agent skips the lines that the
    files of this pattern already have. It continues to read the files of the other patterns."""
    world = world_of()
    world.files.append(PATH, b"a old\n")
    world.files.append("/srv/b.log", b"b old\n")
    started(world)
    world.files.append(PATH, b"a new\n")
    world.kill()
    world.settings = settings(raw("logs", "/log/*.log", "/srv/*.log", start_at="end"))
    started(world)
    world.files.append("/srv/b.log", b"b new\n")
    world.settle()
    assert sorted(world.values()) == ["a new", "b new"]


@promise("1 start at the end")
def test_start_at_does_not_change_what_was_looked_at() -> None:
    """If `start_at` is changed to `end` later, the agent skips nothing, because it has already
    scanned for the files of this pattern."""
    world = World(settings(raw()))
    started(world)
    world.kill()
    world.files.append(PATH, b"one\n")
    world.settings = settings(raw(start_at="end"))
    started(world)
    assert world.values() == ["one"]


@promise("1 start at the end")
@pytest.mark.parametrize("is_killed", [False, True])
def test_a_file_that_cannot_be_opened_at_first_begins_where_it_ended_then(is_killed: bool) -> None:
    """With `start_at: end`, if a file cannot be opened at the first scan, the agent still skips
    only the bytes that the file has at this scan. It reads later bytes as soon as it can open the
    file, even if the agent was restarted in between."""
    world = world_of()
    world.files.append(PATH, b"old\n").unreadable = True
    started(world)
    if is_killed:
        world.kill()
    world.files.append(PATH, b"new\n")
    world.files.by_path[PATH].unreadable = False
    if is_killed:
        world.start()
    world.settle()
    assert world.values() == ["new"]
    assert world.only()["skipped"] == 4


@promise("1 start at the end")
def test_a_file_that_was_cut_before_it_could_be_opened_is_read_whole() -> None:
    """With `start_at: end`, if a file cannot be opened at the first scan and is then truncated, the
    agent reads the new content of the file from the beginning as soon as it can open the file."""
    world = world_of()
    world.files.append(PATH, b"old old old\n").unreadable = True
    started(world)
    world.files.truncate(PATH)
    world.files.append(PATH, b"new\n")
    world.settle()
    world.files.by_path[PATH].unreadable = False
    world.files.append(PATH, b"more than before\n")
    world.settle()
    assert world.values() == ["new", "more than before"]


@promise("1 start at the end")
def test_compressed_files_are_skipped_whole() -> None:
    """With `start_at: end`, if a compressed file exists at the first scan, the agent skips the
    whole file and closes its file id (announces the file's final length). If a compressed file
    appears later, the agent reads it."""
    world = world_of("/log/*")
    world.files.append("/log/old", b"old\n")
    world.files.compress("/log/old")
    started(world)
    assert world.values() == []
    entry = world.only()
    assert (entry["state"], entry["begin"], entry["bytes"]) == ("closed", 4, 0)
    announced = [(each.begin, each.length) for each in world.of(Announcement)]
    assert announced == [(4, None), (4, 4)]
    world.files.append("/log/new", b"new\n")
    world.files.compress("/log/new")
    world.settle()
    world.kill()
    started(world)
    assert world.values() == ["new"]


@promise("1 start at the end")
def test_a_link_begins_at_the_end_of_its_file() -> None:
    """With `start_at: end`, if a link matches the pattern at the first scan, the agent skips the
    lines that the link's target already has."""
    world = world_of("/log/*.log")
    world.files.append("/data/x", b"old\n")
    world.files.link("/log/x.log", "/data/x")
    started(world)
    world.files.append("/data/x", b"new\n")
    world.settle()
    assert world.values() == ["new"]


@promise("1 start at the end")
def test_a_skipped_file_is_recognised_after_a_restart() -> None:
    """If a file whose old lines were skipped grows while no agent runs, the agent recognizes the
    file at its next start and reads only the new lines. No line is sent twice, however often the
    agent is killed."""
    world = world_of()
    world.files.append(PATH, b"old\n" * 5)
    started(world)
    for number in range(3):
        world.files.append(PATH, b"line %d\n" % number)
        world.settle()
        world.kill()
        world.files.append(PATH, b"late %d\n" % number)
        started(world)
    assert world.values() == [f"{word} {n}" for n in range(3) for word in ("line", "late")]
    assert world.losses() == []


@promise("1 start at the end")
def test_a_skipped_file_that_is_rewritten_is_read_whole() -> None:
    """If a file whose old lines were skipped is truncated and written again while no agent runs,
    the agent reads all bytes that were written after the truncation."""
    world = world_of()
    world.files.append(PATH, b"old\n" * 5)
    started(world)
    world.files.append(PATH, b"line\n")
    world.settle()
    world.kill()
    world.files.truncate(PATH)
    world.files.append(PATH, b"new\n" * 9)
    started(world)
    assert world.values() == ["line", *["new"] * 9]


@promise("1 start at the end")
def test_a_big_endian_file_begins_at_a_line() -> None:
    """With `start_at: end`, the agent begins to read a UTF-16 file after a line feed in the file's
    own byte order. A character whose bytes would be a line feed in the other byte order does not
    count as a line feed."""
    world = world_of(encoding="utf-16")
    world.files.append(PATH, "\ufeff\u000a\u0a00ol\u0a00\nd\u0a00".encode("utf-16-be"))
    started(world)
    world.files.append(PATH, "new\n".encode("utf-16-be"))
    world.hold(3)
    world.settle()
    assert "".join(world.values()) == "d\u0a00new"


@promise("1 start at the end")
def test_a_long_line_at_the_end_never_becomes_another_line() -> None:
    """To skip the lines of a file with `start_at: end`, the agent searches the file's last MiB for
    a line feed. If there is none, the file ends with a long unfinished line. When the rest of this
    line is written, the agent rejects the last MiB of the file together with the rest, so that the
    rest does not become a record of the data topic."""
    world = world_of()
    world.files.append(PATH, b"x" * (3 << 20))
    world.start()
    world.hold(4)
    world.files.append(PATH, b"y\nnew\n")
    world.settle()
    assert world.values() == ["new"]
    (row,) = rejected_rows(world.brokers)
    assert (row["reason"], row["first"], row["length"]) == ("too-long", 2 << 20, (1 << 20) + 2)
