"""Tests copies that are written over older files, so that they keep these files' inodes. An example
is `cp app.log app.log.1; : > app.log`, run every night."""

from __future__ import annotations

from itertools import product

import pytest

from skidway.audit.topic.messages import Certainty, Delta, Loss
from support.agent_world import World, datum_text, raw, settings
from support.promises import promise

APP = "/log/app.log"
COPY = f"{APP}.1"
LONG = b"h" * 1_100 + b"\n"


def losses(world: World) -> list[Loss]:
    return [loss for delta in world.of(Delta) for loss in delta.losses]


def copy(world: World) -> None:
    """Does the same as `cp app.log app.log.1`."""
    if COPY in world.files.by_path:
        world.files.truncate(COPY)
    world.files.append(COPY, bytes(world.files.by_path[APP].data))


def copy_over(world: World) -> None:
    """Does the same as `cp app.log app.log.1; : > app.log`."""
    copy(world)
    world.files.truncate(APP)


def made_with_copy(pattern: str, *, knows_births: bool = True, **others: int) -> World:
    """Returns a world in which the log was copied and truncated once. The agent has read the line
    "first" in the log, and the line "rest" in the copy."""
    world = World(settings(raw("logs", pattern), **others))
    world.files.knows_births = knows_births
    world.files.append(APP, b"first\n")
    world.start()
    world.settle()
    world.files.append(APP, b"rest\n")
    copy_over(world)
    world.settle()
    return world


def restart(world: World) -> None:
    world.kill()
    world.start()
    world.settle()


CASES = [
    (number, *case)
    for number, case in enumerate(
        product(
            (APP, f"{APP}*"),
            ("nothing", "a part", "all"),
            ("never", "before a copy", "after a copy"),
        )
    )
]


@promise("1 copies")
@pytest.mark.parametrize(("number", "pattern", "read", "stop"), CASES)
def test_a_copy_over_an_older_copy_is_read_from_where_its_log_was_read(
    number: int, pattern: str, read: str, stop: str
) -> None:
    """If a log is copied over an older copy and then truncated, the agent reads each line once,
    however much of the log it had read, and whether it runs or not."""
    is_long = number % 2 == 1  # both come with every two values of the other parameters
    made = made_with_copy(pattern)
    for night in range(3):
        made.files.append(APP, (LONG if is_long else b"") + b"one %d\n" % night)
        if read != "nothing":
            made.settle()
        if read == "a part":
            made.files.append(APP, b"two %d\n" % night)
        if stop == "before a copy":
            made.kill()
        copy_over(made)
        if stop == "after a copy":
            made.settle()
            made.kill()
        if stop != "never":
            made.start()
        made.settle()
    lines = [value for value in made.values() if not value.startswith("h")]
    twos = ["two 0", "two 1", "two 2"] if read == "a part" else []
    assert sorted(lines) == ["first", "one 0", "one 1", "one 2", "rest", *twos]
    assert len(made.values()) - len(lines) == 3 * is_long


@promise("1 copies")
@pytest.mark.parametrize("pattern", [APP, f"{APP}*"])
@pytest.mark.parametrize("copied", [5, 12, 14])
def test_a_copy_that_is_written_over_an_older_copy_in_two_steps(pattern: str, copied: int) -> None:
    """If a scan finds a copy that is written over an older copy and is not complete, the agent
    still reads each line once."""
    made = made_with_copy(pattern)
    made.files.append(APP, b"read\n")
    made.settle()
    made.files.append(APP, b"unread\nunread too\n")
    whole = bytes(made.files.by_path[APP].data)
    made.files.truncate(COPY)
    made.files.append(COPY, whole[:copied])
    made.files.truncate(APP)
    made.settle(3)
    made.files.append(COPY, whole[copied:])
    made.settle()
    assert made.values() == ["first", "rest", *whole.decode().splitlines()]


@promise("1 copies")
@pytest.mark.parametrize("pattern", [APP, f"{APP}*"])
def test_a_growing_log_that_is_copied_over_an_older_copy(pattern: str) -> None:
    """If a log is copied over an older copy, and is not truncated, the agent reads the lines in the
    log only, and declares nothing about the copy's lines."""
    made = made_with_copy(pattern)
    for hour in range(3):
        made.files.append(APP, b"hour %d\n" % hour)
        made.settle()
        copy(made)
        made.settle()
    assert made.values() == ["first", "rest", "hour 0", "hour 1", "hour 2"]
    assert Certainty.UNCERTAIN not in {loss.certainty for loss in losses(made)}


@promise("1 copies")
@pytest.mark.parametrize("is_restarted", [False, True])
@pytest.mark.parametrize("is_long", [False, True])
def test_a_copy_over_a_file_that_is_older_than_its_log(is_long: bool, is_restarted: bool) -> None:
    """If a log is copied over a file that is older than the log, the agent reads each line
    once."""
    made = World(settings(raw("logs", f"{APP}*")))
    made.files.append(COPY, b"older\n")
    made.start()
    made.settle()
    made.files.append(APP, (LONG if is_long else b"") + b"one\n")
    made.settle()
    made.files.append(APP, b"rest\n")
    copy_over(made)
    made.settle()
    made.files.append(APP, (LONG if is_long else b"") + b"two\n")
    made.settle()
    copy_over(made)
    made.settle()
    if is_restarted:
        restart(made)
    lines = [value for value in made.values() if not value.startswith("h")]
    assert lines == ["older", "one", "rest", "two"]
    assert Certainty.UNCERTAIN not in {loss.certainty for loss in losses(made)}


@promise("1 copies")
@pytest.mark.parametrize("stop", ["never", "before a copy"])
def test_a_copy_over_a_copy_that_was_never_read_is_read(stop: str) -> None:
    """Suppose that the agent left a copy unread, because it had read all its lines in the log. If
    the log is then written, copied over the old copy and truncated between two scans, only the copy
    has the new lines, and the agent reads them."""
    made = World(settings(raw("logs", APP)))
    made.files.append(APP, b"seen\n")
    made.start()
    made.settle()
    copy_over(made)
    made.settle()
    assert made.values() == ["seen"]
    if stop == "before a copy":
        made.kill()
    made.files.append(APP, b"unseen\n")
    copy_over(made)
    if stop == "before a copy":
        made.start()
    made.settle()
    assert made.values() == ["seen", "unseen"]


@promise("1 copies")
def test_what_was_in_a_copy_before_is_declared_once() -> None:
    """If a copy is written over an older copy whose file id has ended, lines may have been written
    to the older copy before. The agent declares this once, and not again at each start."""
    made = made_with_copy(APP, close_rotated_ms=1_000)
    made.files.append(APP, b"second\n")
    made.settle()
    copy_over(made)
    made.settle()
    declared = [loss.reason for loss in losses(made)]
    assert len([reason for reason in declared if COPY in reason]) == 1
    for _ in range(2):
        restart(made)
    assert [loss.reason for loss in losses(made)] == declared
    assert made.values() == ["first", "rest", "second"]


@promise("1 copies")
def test_other_bytes_over_a_copy_are_read() -> None:
    """If a file is written over an older copy, and is no copy of a log, the agent reads all its
    lines."""
    made = made_with_copy(f"{APP}*")
    made.files.truncate(COPY)
    made.files.append(COPY, b"other lines\nof somebody\n")
    made.settle()
    assert made.values() == ["first", "rest", "other lines", "of somebody"]


@promise("1 copies")
@pytest.mark.parametrize("line", [b"second, and longer\n", b"other\n"])
@pytest.mark.parametrize("pattern", [APP, f"{APP}*"])
def test_a_copy_of_a_log_that_has_grown_to_its_old_size_again(pattern: str, line: bytes) -> None:
    """If a log was truncated, has grown to its old size again, and was copied before the agent
    noticed this, the agent reads each line once."""
    made = World(settings(raw("logs", pattern)))
    made.files.append(APP, b"first\n")
    made.start()
    made.settle()
    made.files.truncate(APP)
    made.files.append(APP, line)
    made.files.append(COPY, line)
    made.settle()
    assert made.values() == ["first", line.decode().strip()]


@promise("1 compression")
def test_a_compressed_file_over_an_older_one_is_known() -> None:
    """If `gzip -c app.log.1 > app.log.1.gz` keeps the inode of an older compressed file, the agent
    still finds out which known file was compressed, and reads only that file's unread rest."""
    made = World(settings(raw("logs", APP)))
    made.start()
    for day in (1, 2, 3):
        made.files.append(APP, LONG + b"day %d\n" % day)
        made.settle()
        made.files.rename(APP, COPY)
        made.files.append(APP, b"")
        made.settle()
        data = bytes(made.files.by_path[COPY].data)
        if day > 1:
            made.files.truncate(f"{COPY}.gz")
        packed = made.files.append(f"{COPY}.gz", data + b"rest %d\n" % day)
        packed.plain_size = -1
        made.files.delete(COPY)
        made.settle()
    lines = [value for value in made.values() if not value.startswith("h")]
    assert sorted(lines) == ["day 1", "day 2", "day 3", "rest 1", "rest 2", "rest 3"]


@promise("1 compression")
@pytest.mark.parametrize("is_restarted", [False, True])
def test_the_compressed_rest_of_a_truncated_log_is_read_once(is_restarted: bool) -> None:
    """If the agent read the rest of a truncated log in a copy, the copy's compressed form has the
    bytes of two file ids: of the log's, and of the copy's. The agent knows that it has read all of
    them, even after a restart and after the compressed file was renamed."""
    made = World(settings(raw("logs", APP)))
    made.files.append(APP, LONG + b"one\n")
    made.start()
    made.settle()
    made.files.append(APP, b"two\n")
    copy_over(made)
    made.files.append(APP, b"three\n")
    made.settle(3)
    made.files.compress(COPY, keeps_time=False)
    made.settle()
    if is_restarted:
        made.kill()
        made.start()
        made.settle(3)
    made.files.append(APP, b"four\n")
    made.settle(3)
    made.files.rename(f"{COPY}.gz", f"{APP}.2.gz")
    copy_over(made)
    made.files.append(APP, b"five\n")
    made.settle()
    assert sorted(made.values()[1:]) == ["five", "four", "one", "three", "two"]


@promise("1 copies")
@pytest.mark.parametrize("pattern", [APP, f"{APP}*"])
def test_a_log_that_is_copied_again_and_again_is_read_twice_and_declared(pattern: str) -> None:
    """Where the times of birth are unknown, the agent reads a copy that may be another log. If the
    growing log is then copied over this copy several times, the agent declares all lines that it
    reads twice."""
    made = made_with_copy(pattern, knows_births=False)
    for hour in range(4):
        made.files.append(APP, b"hour %d\n" % hour)
        made.settle(5 if hour % 2 else 40)
        copy(made)
        made.settle(5 if hour % 2 else 40)
    doubtful = {
        (loss.file, at)
        for loss in losses(made)
        if loss.certainty is Certainty.UNCERTAIN and loss.end is not None
        for at in range(loss.first, loss.end)
    }
    records = made.brokers.records("logs")
    for hour in range(4):
        both = [each for each in records if datum_text(each.value) == f"hour {hour}"]
        assert len(both) == 2
        assert any((each.file, each.first) in doubtful for each in both)


@promise("1 copies")
def test_a_log_that_is_copied_again_and_then_truncated_is_declared() -> None:
    """Where the times of birth are unknown, the agent reads a copy that may be another log. If the
    log is copied over this copy once more, and is then truncated, the agent declares the lines that
    it reads twice, and only these."""
    made = World(settings(raw("logs", f"{APP}*")))
    made.files.knows_births = False
    made.files.append(APP, b"one\n")
    made.start()
    made.settle()
    made.files.append(COPY, b"one\n")
    made.settle()
    made.files.append(APP, b"two\n")
    made.settle()
    made.files.append(APP, b"three\n")
    copy_over(made)
    made.settle()
    assert sorted(made.values()) == ["one", "one", "three", "two", "two"]
    doubtful = [
        (loss.first, loss.end)
        for loss in losses(made)
        if loss.certainty is Certainty.UNCERTAIN and loss.end is not None
    ]
    assert doubtful == [(0, 4), (4, 8)]


@promise("1 copies")
@pytest.mark.parametrize("stop", ["never", "before a copy"])
@pytest.mark.parametrize("pattern", [APP, f"{APP}*"])
def test_a_copy_that_begins_like_what_its_log_had_before(pattern: str, stop: str) -> None:
    """Each time that a program begins a log, it may write the same long first line. So if a copy is
    shorter than what the agent has read of the log, and the log is empty now, the agent reads the
    copy, and declares that its lines may be doubled."""
    made = World(settings(raw("logs", pattern)))
    made.files.append(APP, LONG + b"one\ntwo\n")
    made.start()
    made.settle()
    made.files.truncate(APP)
    made.settle()
    if stop == "before a copy":
        made.kill()
    made.clock.advance(600)
    made.files.append(APP, LONG + b"new\n")
    copy_over(made)
    if stop == "before a copy":
        made.start()
    made.settle()
    assert [value for value in made.values() if not value.startswith("h")] == ["one", "two", "new"]
    doubts = [loss for loss in losses(made) if loss.certainty is Certainty.UNCERTAIN]
    assert [(loss.first, loss.end) for loss in doubts] == [(0, len(LONG) + 4)]


@promise("1 copies")
def test_an_older_copy_of_a_truncated_log_is_known_after_a_restart() -> None:
    """If a copy was made before the log's last line was written, the agent knows, even after the
    log was truncated and the agent was started again, that it has read the copy's lines in the
    log."""
    made = World(settings(raw("logs", f"{APP}*")))
    made.files.append(APP, LONG + b"one\n")
    made.start()
    made.settle()
    made.files.append(f"{APP}.bak", LONG + b"one\n")
    made.settle()
    made.files.append(APP, b"two\n")
    made.settle()
    made.files.truncate(APP)
    made.files.append(APP, b"three\n")
    made.settle()
    restart(made)
    assert made.values()[1:] == ["one", "two", "three"]


@promise("1 compression")
def test_a_compressed_file_over_an_older_one_is_declared_once() -> None:
    """If a copy of a log was compressed over an older compressed file, the agent declares what may
    have been in the older file once, and not again at each start."""
    made = World(settings(raw("logs", APP)))
    made.files.append(APP, LONG + b"one\n")
    made.start()
    made.settle()
    made.files.append(APP, b"rest\n")
    copy_over(made)
    made.files.compress(COPY)
    made.files.append(APP, b"i" * 1_100 + b"\ntwo\n")
    made.settle()
    copy_over(made)
    made.settle()
    packed = made.files.by_path[f"{COPY}.gz"]
    packed.data[:] = made.files.by_path[COPY].data
    made.files.write(packed, b"")
    packed.plain_size = -1
    made.files.append(APP, b"three\n")
    made.settle()
    declared = losses(made)
    for _ in range(3):
        restart(made)
    assert losses(made) == declared
    lines = [value for value in made.values() if value[0] not in "hi"]
    assert sorted(lines) == ["one", "rest", "three", "two"]
