"""Tests runs of NUL bytes in place of lines, as a power loss or a truncation leaves them. Such a
run is called a hole."""

from __future__ import annotations

import errno
import random
from typing import Any

import pytest

from skidway.agent.files.decompressed import Decompressed
from skidway.agent.files.holes import FILLED, remember
from skidway.agent.files.host import Status
from skidway.agent.files.reading import HOLE_PIECES
from skidway.agent.parsing.framing import READ_BYTES
from skidway.audit.topic.messages import Certainty
from skidway.kafka.types import TopicPartition
from support.agent_press import rejected_rows
from support.agent_world import MemoryFile, MemoryHandle, World, raw, settings
from support.promises import promise
from support.randomness import Seeds

PATH = "/log/a.log"
REJECTED = TopicPartition("logs.rejected", 0)
MIB = 1 << 20


def running(**source: object) -> World:
    world = World(settings(raw(**source)))
    world.start()
    return world


def holes(world: World) -> list[tuple[int, int]]:
    """Returns the position and the length of each hole (run of NUL bytes) that the topic of
    rejected lines reports. Asserts that the records of holes do not contain the NUL bytes."""
    rows = [row for row in rejected_rows(world.brokers) if row["reason"] == "nul-bytes"]
    assert all(row["line"] == b"" for row in rows)
    return [(row["first"], row["length"]) for row in rows]


@promise("2 nul bytes")
def test_a_hole_is_set_apart_and_the_line_behind_it_is_delivered() -> None:
    """NUL bytes at the beginning of a line become a reject of their own, which gives their number.
    The line after the NUL bytes is delivered. A few NUL bytes inside a line stay in the line."""
    world = running()
    world.files.append(PATH, b"one\n" + bytes(7) + b"two\nth\0ree\n")
    world.settle()
    assert world.values() == ["one", "two", "th\0ree"]
    assert holes(world) == [(4, 7)]
    (row,) = rejected_rows(world.brokers)
    assert row["detail"] == "7 NUL bytes are in place of lines"
    entry = world.only()
    assert (entry["acknowledged"], entry["rejected"], entry["pending"]) == (15, 7, 0)


@promise("2 nul bytes")
def test_what_a_power_loss_leaves_ends_the_line_before_it() -> None:
    """If many NUL bytes follow the first part of a line, this part is delivered as a line. The line
    after the NUL bytes is delivered whole."""
    world = running()
    world.files.append(PATH, b"one\nhalf a l" + bytes(4096) + b"two\n")
    world.settle()
    assert world.values() == ["one", "half a l", "two"]
    assert holes(world) == [(12, 4096)]


@promise("2 nul bytes")
@pytest.mark.parametrize("before", [b"", b"one\n", b"half"])
@pytest.mark.parametrize("mib", [1, 3, 40])
def test_a_large_hole_is_at_most_two_rejected_ranges(before: bytes, mib: int) -> None:
    """A hole (a run of NUL bytes) that is larger than what the agent reads at once becomes at most
    two rejected ranges, and the line after it is delivered."""
    world = running()
    world.files.append(PATH, before + bytes(mib * MIB + 5) + b"two\n")
    world.settle()
    assert world.values() == [*([before.decode().strip()] if before else []), "two"]
    assert sum(length for _, length in holes(world)) == mib * MIB + 5
    assert len(holes(world)) <= 2
    assert world.only()["pending"] == 0


@promise("2 nul bytes")
def test_a_hole_that_is_sent_again_is_the_same_record() -> None:
    """In this test, a large hole (a run of NUL bytes) at the beginning of a file becomes one
    rejected record. If the agent is killed after it stored the intent (the promise to send this
    record), it sends the same record again."""
    world = World(settings(raw()))
    world.kill_in_flight(bytes(2 * MIB) + b"x\n", arrives=REJECTED)
    world.start()
    world.settle()
    first, *again = world.brokers.logs[REJECTED]
    assert all(record == first for record in again)
    assert (first.first, first.length) == (0, 2 * MIB)
    assert world.values() == ["x"]
    entry = world.only()
    assert (entry["rejected"], entry["acknowledged"], entry["pending"]) == (2 * MIB, 2, 0)


def test_a_hole_at_the_end_waits_like_a_line_without_end() -> None:
    """NUL bytes at the end of a file are rejected when the file has not changed for a while. The
    agent waits for the same time before it sends a last line without a line terminator. If more NUL
    bytes come later, they become another rejected record."""
    world = running()
    world.files.append(PATH, b"one\n" + bytes(10))
    world.hold(2)
    assert holes(world) == []
    world.settle()
    world.files.append(PATH, bytes(3) + b"two\n")
    world.settle()
    assert holes(world) == [(4, 10), (14, 3)]
    assert world.values() == ["one", "two"]


def test_a_hole_of_a_gib_is_read_in_few_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """In one turn of its loop, the agent reads many MiB of a hole (a run of NUL bytes) and keeps
    none of these bytes. So it reads a hole of 1 GiB in few turns."""
    world, size, most = running(), 1 << 30, READ_BYTES + 256
    text = b"two\n"
    zeros = bytes(most)

    def read(self: MemoryHandle, count: int, position: int) -> bytes:
        assert count <= most
        data = zeros[: max(min(count, size - position), 0)]
        at = max(position - size, 0)
        return data + text[at : at + count - len(data)]

    def status(self: MemoryHandle) -> Status:
        found = real(self)
        return found._replace(size=size + len(text))

    real, look = MemoryHandle.status, world.files.look
    monkeypatch.setattr(MemoryHandle, "read", read)
    monkeypatch.setattr(MemoryHandle, "status", status)
    monkeypatch.setattr(
        world.files, "look", lambda path: look(path)._replace(size=size + len(text))
    )
    world.files.append(PATH, b"-")
    for _ in range(3 + 2 * (size // (HOLE_PIECES * READ_BYTES))):
        world.tick(0.01)
        if world.values():
            break
    world.settle()
    assert world.values() == ["two"]
    assert holes(world) == [(0, size)]


@promise("2 nul bytes")
def test_a_truncated_log_with_a_hole_at_its_beginning_is_read() -> None:
    """If a log is truncated and its program continues to write at its old position, the log begins
    with a hole (a run of NUL bytes). The agent rejects the hole and delivers each new line once."""
    world = running()
    for number in range(3):
        world.files.append(PATH, b"line %d\n" % number * 50)
        world.settle()
        size = len(world.files.by_path[PATH].data)
        world.files.truncate(PATH)
        world.files.append(PATH, bytes(size) + b"after %d\n" % number)
        world.settle()
    found = world.values()
    assert [line for line in found if line.startswith("after")] == ["after 0", "after 1", "after 2"]
    assert len(found) == 3 * 50 + 3
    assert all(entry["pending"] == 0 for entry in world.ledger())


@promise("2 nul bytes")
def test_holes_between_lines_lose_and_double_nothing(seeds: Seeds) -> None:
    """However holes (runs of NUL bytes), lines and kills follow one another, each line is delivered
    and counted once, and all NUL bytes are rejected."""
    for seed in seeds(range(6)):
        draw = random.Random(seed)
        world, lines, nuls = World(settings(raw())), [], 0
        world.start()
        for number in range(25):
            hole = draw.choice([0, 0, 1, 100, 5000, MIB + 3])
            lines.append(f"line {number}")
            nuls += hole
            world.files.append(PATH, bytes(hole) + lines[-1].encode() + b"\n")
            if draw.random() < 0.5:
                world.tick(0.01)
            if draw.random() < 0.2:
                world.kill()
                world.start()
        world.settle()
        assert sorted(set(world.values())) == sorted(lines)
        entry = world.only()
        assert (entry["rejected"], entry["pending"]) == (nuls, 0)
        assert entry["acknowledged"] == sum(len(line) + 1 for line in lines)


@promise("2 nul bytes")
@pytest.mark.parametrize("before", [READ_BYTES - 100, 2 * READ_BYTES - 100, READ_BYTES - 400])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16le"])
def test_how_much_is_read_at_once_does_not_decide_where_a_long_line_ends(
    encoding: str, before: int
) -> None:
    """NUL bytes may follow an over-long line, and the agent may read these NUL bytes in two parts.
    The over-long line still ends where the NUL bytes begin, and the line after the NUL bytes is
    delivered whole."""
    world = running(encoding=encoding)
    unit = len("x".encode(encoding))
    text = "x" * (before // unit)
    world.files.append(PATH, text.encode(encoding) + bytes(300) + "two\n".encode(encoding))
    world.settle()
    world.clock.advance(60)
    world.settle()
    assert world.values() == ["two"]
    assert holes(world) == [(before, 300)]
    rows = [row for row in rejected_rows(world.brokers) if row["reason"] == "too-long"]
    assert [(row["first"], row["length"]) for row in rows] == [(0, before)]


@promise("2 nul bytes")
@pytest.mark.parametrize("count", [1, 255, 256, 257, 600])
def test_nul_bytes_at_the_end_of_a_long_line_that_stands_still(count: int) -> None:
    """If a file ends with an over-long line and no longer changes, fewer than 256 NUL bytes at its
    end belong to the line, and 256 or more are a hole. Each byte of the file is in one rejected
    record."""
    world = running()
    size = READ_BYTES + 10
    world.files.append(PATH, b"x" * size + bytes(count))
    for _ in range(5):
        world.settle()
        world.clock.advance(60)
    rows = sorted((row["first"], row["length"]) for row in rejected_rows(world.brokers))
    assert rows == ([(0, size + count)] if count < 256 else [(0, size), (size, count)])
    assert world.only()["pending"] == 0


def fill(file: MemoryFile, at: int, data: bytes) -> None:
    """Overwrites NUL bytes, like a program that has mapped the file into memory: the file's size
    and its time of change stay the same."""
    file.data[at : at + len(data)] = data


@promise("2 filled hole")
@pytest.mark.parametrize("behind", [b"", b"later\n"])
@pytest.mark.parametrize("is_rotated", [False, True])
def test_lines_in_place_of_nul_bytes_are_read_and_nothing_is_silent(
    behind: bytes, is_rotated: bool
) -> None:
    """If a program writes a line in place of NUL bytes that the agent has rejected, the agent reads
    the line under a new file id. It also declares a loss, because it cannot know what else was in
    this place. If it sends the line before the NUL bytes again, it declares a possible doubling."""
    world = World(settings(raw(), close_rotated_ms=3_600_000))
    world.start()
    file = world.files.append(PATH, b"one\n" + bytes(4096) + behind)
    world.settle()
    assert holes(world) == [(4, 4096)]
    if is_rotated:
        world.files.rename(PATH, "/log/a.log.1")
        world.settle(5)
    assert world.losses() == []
    fill(file, 4, b"two\n")
    world.settle()
    assert "two" in world.values()
    reasons = {loss.certainty: loss.reason for loss in world.losses()}
    assert reasons[Certainty.LOST] == FILLED
    assert (Certainty.UNCERTAIN in reasons) == (world.values().count("one") > 1)


def test_a_compressed_file_is_not_read_again_for_its_nul_bytes() -> None:
    """Nobody writes to a compressed file, and its bytes can only be read again from its beginning.
    So the agent does not remember the runs of NUL bytes in such a file."""
    world = running()
    world.files.append(PATH, b"one\n")
    world.settle()
    (tracked,) = world.agent.tracker.files.values()
    remember(tracked, object.__new__(Decompressed), [(0, 9)])
    assert tracked.holes == ()
    remember(tracked, world.files.open(PATH), [(0, 9)])
    assert tracked.holes == ((4, 13),)


@promise("2 filled hole")
def test_reading_holes_again_keeps_no_file_open() -> None:
    """Every look reads the holes (runs of NUL bytes) of a file again, to notice when a program
    fills a hole. Nevertheless, the agent closes the descriptor of an idle file after
    `close.inactive.ms`."""
    world = World(settings(raw(), close_inactive_ms=2_000))
    world.start()
    file = world.files.append(PATH, b"one\n" + bytes(4096) + b"later\n")
    world.settle(60, 1)
    assert (holes(world), world.files.open_count) == ([(4, 4096)], 0)
    fill(file, 4, b"two\n")
    world.settle(60, 1)
    assert "two" in world.values()


def read_but_not_at_4(
    handle: MemoryHandle, count: int, position: int, read: Any = MemoryHandle.read
) -> bytes:
    """Does the same as `MemoryHandle.read`, but raises OSError if the position is 4. Tests use this
    function in place of that method."""
    if position == 4:
        raise OSError(errno.EIO, "Input/output error")
    return bytes(read(handle, count, position))


@promise("2 filled hole")
def test_a_file_whose_holes_cannot_be_read_again_is_not_closed_unchecked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Before the agent closes a deleted file, it reads the file's holes (runs of NUL bytes) again.
    If they cannot be read, the agent keeps the file open and tries again later. So it notices later
    that a program has filled a hole, and then declares a loss."""
    world = World(settings(raw(), close_rotated_ms=9_000))
    world.start()
    file = world.files.append(PATH, b"one\n" + bytes(4096) + b"later\n")
    world.settle()
    world.files.delete(PATH)
    fill(file, 4, b"two\n")

    with monkeypatch.context() as patch:
        patch.setattr(MemoryHandle, "read", read_but_not_at_4)
        world.settle(30, 1)
        assert world.files.open_count == 1
    world.settle(30, 1)
    assert FILLED in {loss.reason for loss in world.losses()}
    assert world.files.open_count == 0


def test_a_file_that_can_never_be_read_again_is_closed_in_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Before the agent closes a deleted file that it has read to its end, it reads the file's holes
    (runs of NUL bytes) again. If this fails again and again, the agent closes the file after a
    day."""
    world = World(settings(raw(), close_rotated_ms=9_000))
    world.start()
    world.files.append(PATH, b"one\n" + bytes(4096) + b"later\n")
    world.settle()
    world.files.delete(PATH)

    monkeypatch.setattr(MemoryHandle, "read", read_but_not_at_4)
    world.settle(30, 60)
    assert world.files.open_count == 1
    world.settle(30, 3600)
    assert world.files.open_count == 0
