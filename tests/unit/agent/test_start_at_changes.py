"""With `start_at: end`, the agent skips the lines that a file has at the first scan that could find
the file. The tests change patterns, topics and `exclude`. If a scan with the earlier settings could
have found a file, but the file did not exist then, the agent skips none of the file's lines."""

from __future__ import annotations

import pytest

from skidway.agent.settings import SourceSettings
from support.agent_world import World, raw, settings
from support.promises import promise

APP = "/log/app.log"
ROTATED = "/log/app.log.1"


def end(topic: str, *paths: str, **others: object) -> SourceSettings:
    return raw(topic, *paths, start_at="end", **others)


def looked(*sources: SourceSettings) -> World:
    """Returns an agent with these sources. If the source of app.log has `start_at: end`, the agent
    skipped the line `old` of app.log at its first scan. Then it read the line `one`."""
    world = World(settings(*sources))
    world.files.append(APP, b"old\n")
    world.start()
    world.settle(10)
    world.files.append(APP, b"one\n")
    world.settle(10)
    return world


def change(world: World, *sources: SourceSettings, is_restart: bool = False) -> None:
    if is_restart:
        world.settings = settings(*sources)
        world.start()
    else:
        world.reload(settings(*sources))
    world.settle(20)


def rotate(world: World, *lines: bytes) -> None:
    """Writes the line `two` into app.log, renames the file to app.log.1, and writes `lines` into a
    new app.log."""
    world.clock.advance(30)
    world.files.append(APP, b"two\n")
    world.files.rename(APP, ROTATED)
    world.files.append(APP, b"".join(lines))


@promise("1 start at the end")
@pytest.mark.parametrize("is_restart", [False, True])
@pytest.mark.parametrize("pattern", ["/log/*.log", "/log/*", "/**"])
def test_a_log_that_was_rotated_before_a_pattern_changed_is_read_whole(
    pattern: str, is_restart: bool
) -> None:
    """With `start_at: end`, if a pattern of the earlier settings matches the path of a new file,
    the file is read from its beginning. This is so even if the present settings find the file by
    another pattern."""
    world = looked(end("logs", APP))
    if is_restart:
        world.kill()
    rotate(world, b"three\n", b"four\n")
    change(world, end("logs", pattern), is_restart=is_restart)
    assert sorted(world.values()) == ["four", "one", "three", "two"]
    assert world.losses() == []


@promise("1 start at the end")
@pytest.mark.parametrize("is_restart", [False, True])
def test_a_file_that_appears_before_a_pattern_is_added_is_read_whole(is_restart: bool) -> None:
    """If a pattern is added to a source with `start_at: end`, the agent skips the lines of files
    that only the new pattern matches. A file that appeared since the last scan, and that an older
    pattern matches, is read whole."""
    world = looked(end("logs", "/log/*.log"))
    if is_restart:
        world.kill()
    world.files.append("/log/new.log", b"new\n")
    world.files.append("/more/old.log", b"skipped\n")
    change(world, end("logs", "/log/*.log", "/more/*.log"), is_restart=is_restart)
    assert sorted(world.values()) == ["new", "one"]
    assert world.losses() == []


@promise("1 start at the end")
def test_new_files_are_read_whole_after_the_topic_changed() -> None:
    """If only the topic of a source with `start_at: end` changes, the agent continues in the files
    that it was reading. If a file has appeared since the last scan, the agent reads this file from
    the first byte."""
    world = looked(end("logs", "/log/*.log"))
    world.files.append(APP, b"two\n")
    world.files.append("/log/new.log", b"new\n")
    change(world, end("others", "/log/*.log"))
    assert world.values() == ["one"]
    assert sorted(world.values("others")) == ["new", "two"]
    assert world.losses() == []


@promise("1 start at the end")
def test_a_divided_source_skips_nothing() -> None:
    """A source with `start_at: end` is divided into two sources, and the first of them now excludes
    the files of the second. The agent then reads new files of both sources whole."""
    world = looked(end("logs", "/log/*.log"))
    rotate(world, b"three\n")
    world.files.append("/log/b.log", b"b\n")
    parts = end("logs", "/log/*.log", exclude=["/log/app*"]), end("others", APP)
    change(world, *parts)
    assert sorted(world.values()) == ["b", "one"]
    assert sorted(world.values("others")) == ["three", "two"]


@promise("1 start at the end")
def test_a_file_that_an_early_look_did_not_exclude_is_read_whole() -> None:
    """If an early scan did not exclude a path and found no file there, a file that appears there
    later is new, and is read whole even with `start_at: end`. This is so even if later scans
    excluded the path, and even if the agent was restarted in between."""
    world = looked(end("logs", "/log/*.log"))
    later = end("logs", "/log/*.log", exclude=["/log/c*"])
    change(world, later)
    world.kill()
    world.files.append("/log/c.log", b"c\n")
    world.brokers.partitions.update({"others": 1, "others.rejected": 1})
    change(world, later, end("others", "/log/c.log"), is_restart=True)
    assert world.values("others") == ["c"]


@promise("1 start at the end")
@pytest.mark.parametrize("is_restart", [False, True])
def test_a_file_that_every_look_excluded_is_skipped(is_restart: bool) -> None:
    """If all earlier scans excluded a path, and a pattern of a new source matches this path, the
    next scan is the first that can find a file at this path. So with `start_at: end`, the agent
    skips the lines that the file already has."""
    others = end("logs", "/log/*.log", exclude=["/log/b*"])
    world = looked(others)
    world.files.append("/log/b.log", b"b old\n")
    if is_restart:
        world.kill()
    world.brokers.partitions.update({"others": 1, "others.rejected": 1})
    change(world, others, end("others", "/log/b.log"), is_restart=is_restart)
    world.files.append("/log/b.log", b"b new\n")
    world.settle(10)
    assert world.values("others") == ["b new"]


@promise("1 start at the end")
def test_another_exclusion_skips_nothing() -> None:
    """If a source with `start_at: end` keeps its pattern, and only its setting `exclude` changes,
    no file is skipped."""
    world = looked(end("logs", "/log/*.log", exclude=["/log/b*"]))
    world.files.append("/log/b.log", b"b\n")
    change(world, end("logs", "/log/*.log"))
    assert world.values() == ["one", "b"]


@promise("1 start at the end")
def test_a_wider_pattern_skips_only_rotated_files_that_are_older_than_the_last_look() -> None:
    """In this test, a pattern with `start_at: end` is changed so that it also matches rotated
    files. The agent reads a rotated file whole if the file was written after the last scan, even if
    the log was empty at that scan. It skips a rotated file that was last written before the first
    scan."""
    world = World(settings(end("logs", APP)))
    world.files.append("/log/app.log.2", b"before\n")
    world.files.append(APP, b"")
    world.clock.advance(3600)
    world.start()
    world.settle(40)
    world.kill()
    rotate(world, b"three\n")
    change(world, end("logs", "/log/*"), is_restart=True)
    assert sorted(world.values()) == ["three", "two"]
    assert world.losses() == []


@promise("1 start at the end")
def test_a_wider_pattern_after_the_clock_was_set_back_loses_no_line() -> None:
    """A pattern with `start_at: end` is changed so that it also matches rotated files of a known
    log. If the clock was set back before, the agent skips none of these files."""
    world = World(settings(end("logs", APP)))
    world.files.append(APP, b"")
    world.start()
    world.settle(40)
    world.kill()
    world.clock.set_time_ms(world.clock.time_ms() - 3_600_000)
    rotate(world, b"three\n")
    change(world, end("logs", "/log/*"), is_restart=True)
    assert sorted(world.values()) == ["three", "two"]


@promise("1 start at the end")
@pytest.mark.parametrize("is_direct_first", [False, True])
def test_a_pattern_that_goes_round_a_link_skips_no_new_file(is_direct_first: bool) -> None:
    """One pattern finds a log directly, and another pattern finds the same log through a link. If
    the settings change from one of these patterns to the other, no new file is skipped, even with
    `start_at: end`."""
    patterns = ["/data/*.log", "/srv/*.log"][:: 1 if is_direct_first else -1]
    world = World(settings(end("logs", patterns[0])))
    world.files.link("/srv/x.log", "/data/x.log")
    world.files.append("/data/x.log", b"old\n")
    world.start()
    world.settle(10)
    world.kill()
    world.files.rename("/data/x.log", "/data/x.log.1")
    world.files.append("/data/x.log", b"new\n")
    change(world, end("logs", patterns[1]), is_restart=True)
    assert world.values() == ["new"]


@promise("1 start at the end")
@pytest.mark.parametrize("is_end_first", [False, True])
def test_sources_with_overlapping_patterns(is_end_first: bool) -> None:
    """A file belongs to the first source whose pattern matches, and `start_at` of this source
    decides where reading begins. Files that appear later are read whole, even if the order of the
    sources changes."""
    sources = [end("others", "/log/a*.log"), raw("logs", "/log/*.log")]
    world = looked(*sources[:: 1 if is_end_first else -1])
    own, other = ("others", "logs") if is_end_first else ("logs", "others")
    assert world.values(own) == (["one"] if is_end_first else ["old", "one"])
    world.files.append("/log/a2.log", b"new\n")
    change(world, *sources[:: -1 if is_end_first else 1])
    assert world.values(other) == ["new"]
