"""The agent reads compressed rotated files. It reads each file once, and gives each line the
position that the line had in the plain file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from skidway.agent.files.history import REPEATED
from skidway.agent.files.plain_sizes import not_yet
from skidway.agent.values.found import UNMEASURED
from skidway.agent.values.identity import FINGERPRINT_BYTES
from skidway.agent.values.tracked import FileState
from skidway.audit.topic.messages import Certainty, Delta, Loss, Seal
from support.agent_world import DAMAGED_BYTES, MemoryHandle, World, raw, settings
from support.promises import promise

APP = "/log/app.log"
LONG = b"x" * FINGERPRINT_BYTES + b"\n"


def losses(world: World) -> list[Loss]:
    return [loss for delta in world.of(Delta) for loss in delta.losses]


def made(pattern: str = APP, first: bytes = b"seen\n", **others: int) -> World:
    world = World(settings(raw("logs", pattern), **others))
    world.files.append(APP, first)
    world.start()
    world.settle()
    assert losses(world) == []
    return world


@promise("1 compression")
@pytest.mark.parametrize("pattern", [APP, "/log/app.log*"])
@pytest.mark.parametrize("keeps_time", [True, False])
@pytest.mark.parametrize("is_down", [True, False])
def test_the_rest_of_a_known_file_is_read_from_the_compressed_one(
    pattern: str, keeps_time: bool, is_down: bool
) -> None:
    """If a file is rotated and compressed between two of the agent's scans, the agent reads the
    rest of the file from the compressed file. It reads no byte twice."""
    world = made(pattern, LONG, max_open_files=1)
    if not is_down and "*" in pattern:
        world.files.append("/log/app.log-other", b"held\n")
    if is_down:
        world.kill()
    world.files.append(APP, b"unread\n")
    world.files.rename(APP, f"{APP}.1")
    world.files.compress(f"{APP}.1", keeps_time=keeps_time)
    world.files.append(APP, b"next\n")
    if is_down:
        world.start()
    world.settle()
    expected = [LONG.decode()[:-1], "next", "unread"]
    assert sorted(value for value in world.values() if value != "held") == sorted(expected)
    assert losses(world) == []
    assert len(world.of(Seal)) > 1


@pytest.mark.parametrize("keeps_time", [True, False])
@pytest.mark.parametrize("ending", [".gz", ".zst"])
def test_generations_that_nobody_saw_are_read_from_the_compressed_ones(
    ending: str, keeps_time: bool
) -> None:
    """If a log is rotated three times and each rotated file is compressed while the agent is down,
    the agent reads every line once."""
    world = made(first=LONG)
    world.kill()
    for number in range(3):
        for old in range(3, 0, -1):
            if f"{APP}.{old}{ending}" in world.files.by_path:
                world.files.rename(f"{APP}.{old}{ending}", f"{APP}.{old + 1}{ending}")
        world.files.rename(APP, f"{APP}.1")
        world.clock.advance(1)
        world.files.compress(f"{APP}.1", ending, keeps_time=keeps_time)
        world.files.append(APP, b"line %d\n" % number)
    world.start()
    world.settle()
    assert sorted(world.values())[:3] == ["line 0", "line 1", "line 2"]
    assert len(world.values()) == 4
    assert losses(world) == []


def test_what_was_read_is_not_read_again_when_it_is_compressed() -> None:
    """With logrotate's `delaycompress`, a compressed file keeps the file id of the plain file,
    whether the agent runs or is down. Nothing is read again or declared lost."""
    world = made(first=LONG)
    first = world.only()["file"]
    world.files.rename(APP, f"{APP}.1")
    world.files.append(APP, b"next" + LONG)
    world.settle()
    second = world.only(APP)["file"]
    world.files.compress(f"{APP}.1", keeps_time=False)
    world.settle()
    assert {each["path"]: each["file"] for each in world.ledger()} == {
        f"{APP}.1.gz": first,
        APP: second,
    }
    world.kill()
    world.files.rename(f"{APP}.1.gz", f"{APP}.2.gz")
    world.files.rename(APP, f"{APP}.1")
    world.files.compress(f"{APP}.1", keeps_time=False)
    world.start()
    world.settle()
    assert {each["path"]: each["file"] for each in world.ledger()} == {
        f"{APP}.2.gz": first,
        f"{APP}.1.gz": second,
    }
    assert sorted(world.values()) == sorted([LONG.decode()[:-1], "next" + LONG.decode()[:-1]])
    assert losses(world) == []


@promise("1 compression")
@pytest.mark.parametrize("is_closed", [True, False])
@pytest.mark.parametrize("compressed", ["app.log.1", "app.log.2"])
def test_what_was_moved_to_another_directory_is_not_read_again_when_it_is_compressed(
    is_closed: bool, compressed: str
) -> None:
    """If a file is moved to another directory that a pattern matches (logrotate's `olddir`), and is
    compressed there later, the agent recognizes the file in the compressed one. It does so even if
    the file was already closed when it was moved, and if the next rotation both renames and
    compresses the file."""
    world = made("/log/**", LONG)
    world.files.rename(APP, f"{APP}.1")
    world.files.append(APP, b"next\n")
    if is_closed:
        world.settle(60)
        closed = [x for x in world.agent.tracker.files.values() if x.state is FileState.CLOSED]
        assert [x.location for x in closed] == [f"{APP}.1"]
    world.files.rename(f"{APP}.1", "/log/archive/app.log.1")
    world.settle(60)
    if compressed != "app.log.1":
        world.files.rename("/log/archive/app.log.1", f"/log/archive/{compressed}")
    world.files.compress(f"/log/archive/{compressed}", keeps_time=False)
    world.settle(60)
    assert sorted(world.values()) == ["next", LONG.decode()[:-1]]
    assert losses(world) == []


def test_history_that_was_compressed_before_the_agent_came_is_left_alone() -> None:
    """Rotated files that were compressed before the agent's first start are not read. This is so
    even if the log that the agent was reading is deleted, so that the agent searches compressed
    files for the rest of this log."""
    world = World(settings(raw("logs", APP)))
    world.files.append(f"{APP}.1", b"history\n")
    world.files.compress(f"{APP}.1")
    world.clock.advance(60)
    world.files.append(APP, LONG)
    world.start()
    world.settle()
    world.kill()
    world.files.delete(APP)
    world.files.append(APP, b"next\n")
    world.start()
    world.settle()
    assert world.values() == [LONG.decode()[:-1], "next"]


def test_a_compressed_log_of_which_nobody_knows_is_in_doubt() -> None:
    """If a short compressed file begins like a known file but has another modification time, the
    agent cannot know whether the two are the same file. It reads the compressed file under a new
    file id, and declares its lines uncertain: if they are the known file's lines, they are now
    delivered twice."""
    world = made(first=b"Starting job\n")
    world.kill()
    world.files.append(APP, b"end\n")
    world.files.rename(APP, f"{APP}.1")
    world.clock.advance(1)
    world.files.compress(f"{APP}.1", keeps_time=False)
    world.start()
    world.settle()
    assert sorted(world.values()) == ["Starting job", "Starting job", "end"]
    assert Certainty.UNCERTAIN in {loss.certainty for loss in losses(world)}


def test_one_that_cannot_be_decompressed_is_declared_after_a_minute() -> None:
    """If a compressed file cannot be decompressed, the agent lists the file as unreadable and waits
    for a minute, because another program may still be writing it. During this minute, the agent
    sends no seal. After this minute, the agent declares the file lost, and sends seals again."""
    world = made(first=LONG)
    world.kill()
    world.files.rename(APP, f"{APP}.1")
    world.files.append(APP, DAMAGED_BYTES)
    world.files.rename(APP, f"{APP}.2")
    world.files.compress(f"{APP}.2", keeps_time=False)
    seal = world.of(Seal)[-1]
    world.start()
    world.settle(50, seconds=1)
    assert losses(world) == []
    assert world.of(Seal)[-1] == seal
    assert f"{APP}.2.gz" in world.agent.tracker.unreadable["logs"]
    world.clock.advance(10)
    world.settle()
    assert world.of(Seal)[-1] != seal
    (loss,) = losses(world)
    assert loss.reason == f"{APP}.2.gz: it cannot be decompressed"
    assert world.agent.tracker.unreadable == {}


@promise("1 compression")
def test_promises_are_kept_from_the_compressed_file() -> None:
    """Bytes that were on their way when the agent was killed are sent again. The agent reads these
    bytes from the compressed file if the plain file is gone."""
    world = made(first=LONG)
    world.files.append(APP, b"on its way\n")
    world.tick()
    world.kill(0)
    world.files.append(APP, b"unread\n")
    world.files.rename(APP, f"{APP}.1")
    world.files.compress(f"{APP}.1", keeps_time=False)
    world.start()
    world.settle()
    assert sorted(world.values()) == sorted([LONG.decode()[:-1], "on its way", "unread"])
    assert losses(world) == []


def test_compressed_files_that_have_the_inodes_of_each_other_s_plain_ones() -> None:
    """If two known rotated files are compressed while the agent is down, each compressed file may
    get the inode that the other file had before its compression. The agent still continues each
    rotated file in the file that was compressed from it."""
    world = made(first=LONG)
    world.files.rename(APP, f"{APP}.1")
    world.files.append(APP, b"second" + LONG)
    world.settle()
    world.kill()
    world.files.rename(f"{APP}.1", f"{APP}.2")
    world.files.append(APP, b"unread\n")
    world.files.rename(APP, f"{APP}.1")
    for name in (f"{APP}.1", f"{APP}.2"):
        world.files.compress(name, keeps_time=False)
    first, second = (world.files.by_path[f"{APP}.{number}.gz"] for number in (1, 2))
    first.inode, second.inode = 1, 2
    world.files.append(APP, b"next\n")
    world.start()
    world.settle()
    line = LONG.decode()[:-1]
    assert sorted(world.values()) == sorted([line, "second" + line, "unread", "next"])
    assert losses(world) == []


@promise("1 same file", "1 generations")
@pytest.mark.parametrize("knows_births", [True, False])
def test_a_log_with_the_inode_that_another_one_had_before_it_was_compressed(
    knows_births: bool,
) -> None:
    """In this test, app.log gets the inode that access.log had before access.log was compressed.
    When app.log is deleted, the agent does not take the compressed access.log for the compressed
    app.log. It declares a loss for app.log."""
    web = "/log/web/access.log"
    world = World(settings(raw("logs", APP), raw("web", web)))
    world.files.knows_births = knows_births
    world.files.append(web, b"w1" + LONG)
    world.files.append(APP, LONG)
    world.start()
    world.settle()
    plain = world.files.by_path[web].inode
    world.files.rename(web, f"{web}.1")
    world.files.append(web, b"w2" + LONG)
    world.files.compress(f"{web}.1", keeps_time=False)
    world.files.rename(APP, f"{APP}.1")
    world.settle()
    world.files.append(APP, b"a2" + LONG).inode = plain
    world.settle()
    assert losses(world) == []
    world.files.delete(APP)
    world.files.append(APP, b"a4" + LONG)
    world.files.rename(APP, f"{APP}.1")
    world.files.append(APP, b"a5" + LONG)
    world.settle()
    line = LONG.decode()[:-1]
    assert sorted(world.values()) == sorted([line, f"a2{line}", f"a4{line}", f"a5{line}"])
    assert sorted(world.values("web")) == [f"w{number}{line}" for number in (1, 2)]
    assert [loss.reason for loss in losses(world)] == [f"{APP}: {REPEATED}"]


@promise("1 compression")
def test_a_short_log_that_is_compressed_and_whose_inode_the_next_log_has() -> None:
    """While the agent is down, a log of which it has read only a few bytes grows and is compressed,
    and the next log gets its inode. The compressed file is read, although the next log is larger;
    the few bytes are declared as perhaps doubled, and no seal is held back."""
    world = made("/log/*.log", b"few\n")
    world.kill()
    plain = world.files.by_path[APP].inode
    world.files.append(APP, b"unread\n")
    world.files.rename(APP, f"{APP}.1")
    world.clock.advance(1)
    world.files.compress(f"{APP}.1")
    world.files.append(APP, LONG).inode = plain
    seals = len(world.of(Seal))
    world.start()
    world.settle()
    assert sorted(world.values()) == sorted(["few", "few", "unread", LONG.decode()[:-1]])
    (doubled,) = [each for each in losses(world) if each.certainty is Certainty.UNCERTAIN]
    assert (doubled.first, doubled.end) == (0, len(b"few\nunread\n"))
    assert len(world.of(Seal)) > seals


@pytest.mark.parametrize("is_down", [True, False])
def test_a_short_file_is_known_by_its_time_of_change(is_down: bool) -> None:
    """The agent recognizes a short file after its compression by the modification time, which the
    compressed file keeps. The first bytes are no proof, because another log may begin with the same
    few bytes."""
    world = made()
    if is_down:
        world.kill()
    world.files.rename(APP, f"{APP}.1")
    world.files.compress(f"{APP}.1")
    if is_down:
        world.start()
    world.settle()
    assert world.values() == ["seen"]
    assert losses(world) == []


@pytest.mark.parametrize("knows_births", [True, False])
def test_while_the_plain_file_is_there_the_compressed_one_is_not_read(knows_births: bool) -> None:
    """While a program compresses a file, the plain file and the compressed file both exist. The
    agent reads the plain file until the plain file is deleted, and reads no line twice."""
    world = World(settings(raw("logs", f"{APP}*")))
    world.files.knows_births = knows_births
    world.files.append(APP, LONG)
    world.start()
    world.settle()
    world.files.rename(APP, f"{APP}.1")
    packed = world.files.append(f"{APP}.1.gz", LONG)
    packed.plain_size, packed.changed_ns = UNMEASURED, world.files.by_path[f"{APP}.1"].changed_ns
    world.settle()
    assert world.values() == [LONG.decode()[:-1]]
    world.files.delete(f"{APP}.1")
    world.settle()
    assert world.values() == [LONG.decode()[:-1]]
    assert losses(world) == []


@contextmanager
def measuring(world: World) -> Iterator[None]:
    """Within this block the agent does not learn the decompressed size of any compressed file, as
    if it were still decompressing large files to measure them."""
    open_ = world.files.open

    def opened(path: str) -> MemoryHandle:
        if path.endswith(".gz"):
            raise not_yet()
        return open_(path)

    world.files.open = opened  # type: ignore[method-assign]
    yield
    world.files.open = open_  # type: ignore[method-assign]


@promise("1 compression")
def test_promises_wait_for_a_file_that_is_being_measured() -> None:
    """If the bytes of intents (stored promises to send certain bytes) are now only in a compressed
    file, the agent does not send these bytes until it has measured the size of the decompressed
    file. Nothing is lost, even if the measurement lasts for many scans, and longer than the agent
    waits for late batches."""
    world = made(first=LONG)
    world.files.append(APP, b"on its way\n")
    world.hold()
    world.kill()
    world.files.rename(APP, f"{APP}.1")
    world.files.compress(f"{APP}.1", keeps_time=False)
    with measuring(world):
        world.start()
        world.settle(20)
        assert losses(world) == []
    world.settle()
    assert sorted(world.values()) == sorted([LONG.decode()[:-1], "on its way"])
    assert losses(world) == []


@promise("1 compression")
@pytest.mark.parametrize("is_renamed", [False, True])
def test_a_generation_that_is_measured_for_long_is_read_however_old_it_is_then(
    is_renamed: bool,
) -> None:
    """If the agent finds an unknown compressed rotated file, it first measures the size of the
    decompressed file. The agent reads the file even if the measurement takes so long that the file
    is then old, or that later rotations have renamed the file. The file does not count as history
    (files that are too old to be read)."""
    world = made(first=LONG)
    world.kill()
    world.files.rename(APP, f"{APP}.2")
    world.files.append(APP, b"unseen" + LONG)
    world.files.rename(APP, f"{APP}.1")
    for number in (1, 2):
        world.files.compress(f"{APP}.{number}", keeps_time=False)
    world.files.append(APP, b"next\n")
    with measuring(world):
        world.start()
        world.settle(5)
        world.clock.advance(20)
        world.settle(2)
        for number in (2, 1) if is_renamed else ():
            world.files.rename(f"{APP}.{number}.gz", f"{APP}.{number + 1}.gz")
        if is_renamed:
            world.files.rename(APP, f"{APP}.1")
            world.files.append(APP, b"last\n")
        world.settle(5)
    world.settle()
    expected = [LONG.decode()[:-1], "unseen" + LONG.decode()[:-1], "next"]
    assert sorted(world.values()) == sorted([*expected, "last"] if is_renamed else expected)
    assert losses(world) == []


def test_promises_are_not_given_up_before_the_first_look() -> None:
    """An agent that is stopped immediately after its start does not declare the bytes of its
    intents (stored promises to send bytes) lost, because it has not yet searched for compressed
    files."""
    world = made(first=LONG)
    world.files.append(APP, b"on its way\n")
    world.hold()
    world.kill()
    world.files.rename(APP, f"{APP}.1")
    world.files.compress(f"{APP}.1", keeps_time=False)
    world.start().is_stopping = True
    world.settle(20)
    assert losses(world) == []
    world.kill()
    world.start()
    world.settle()
    assert sorted(world.values()) == sorted([LONG.decode()[:-1], "on its way"])
    assert losses(world) == []


def test_a_compressed_file_with_fewer_bytes_than_were_promised_is_another_one() -> None:
    """If a compressed file begins like the file of an intent, but ends before the end of the
    intent's bytes, the compressed file is another file. The agent sends the bytes from the right
    file. An intent is a stored promise to send certain bytes of a file."""
    world = made(first=LONG)
    world.files.append(APP, b"on its way\n")
    world.hold()
    world.kill()
    world.files.rename(APP, f"{APP}.2")
    world.files.append(APP, LONG + b"b\n")
    world.files.rename(APP, f"{APP}.1")
    for number in (1, 2):
        world.files.compress(f"{APP}.{number}", keeps_time=False)
    world.files.append(APP, b"next\n")
    world.start()
    world.settle()
    line = LONG.decode()[:-1]
    assert sorted(world.values()) == sorted([line, line, "on its way", "b", "next"])
    assert Certainty.LOST not in {loss.certainty for loss in losses(world)}


@promise("1 compression")
@pytest.mark.parametrize("is_seen_plain", [False, True])
@pytest.mark.parametrize("pattern", [APP, "/log/app.log*"])
def test_a_compressed_empty_log_holds_back_neither_seals_nor_losses(
    pattern: str, is_seen_plain: bool
) -> None:
    """If an empty log is rotated and compressed, the agent waits for the compressed file only until
    it knows that the file is empty. After that, it sends seals, and declares the loss of a log that
    was deleted with unread lines."""
    world = made(pattern)
    world.files.rename(APP, f"{APP}.2")
    world.files.append(APP, b"")
    world.settle(4)
    world.files.rename(APP, f"{APP}.1")
    if is_seen_plain:
        world.settle(4)
    world.files.compress(f"{APP}.1")
    world.files.append(APP, b"two\n")
    world.settle()
    assert world.agent.tracker.unopened == []
    world.files.append(APP, b"unread\n")
    world.kill()
    world.files.delete(APP)
    world.files.append(APP, b"three\n")
    world.start()
    world.settle()
    seals = len(world.of(Seal))
    world.settle()
    assert len(world.of(Seal)) > seals
    assert world.values() == ["seen", "two", "three"]
    assert len([loss for loss in losses(world) if loss.certainty is Certainty.LOST]) == 1
