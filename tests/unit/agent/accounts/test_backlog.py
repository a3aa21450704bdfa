"""Tests the backlog, which the agent reports to the audit in a note (a message on which no verdict
depends). A backlog describes the bytes for which the agent must still account: no broker has
acknowledged them, and the agent has not declared them lost or uncertain. The life of a file is the
time from its creation to its deletion."""

from __future__ import annotations

import pytest

from skidway.agent.accounts.backlog import LIVES_MAX, REACHES_MAX, Lives, then
from skidway.agent.values.found import FileKey
from skidway.agent.values.identity import Fingerprint, Guard
from skidway.agent.values.tracked import Birth, Checkpoint, TrackedFile
from skidway.audit.topic.backlog import KIND, Backlog, backlog_of
from skidway.audit.topic.notes import Note
from support.agent_world import World, raw, settings

A, B = "/log/a.log", "/log/b.log"
MINUTE, HOUR = 60, 3_600


@pytest.fixture
def world() -> World:
    return World(settings(raw(), close_rotated_ms=100))


def told(world: World) -> Backlog:
    """Returns the newest backlog that the agent has published."""
    return backlog_of([note for note in world.of(Note) if note.kind == KIND][-1])


def delete_after(world: World, seconds: float) -> None:
    """Lets the agent read a file, and deletes the file after `seconds`."""
    world.files.append(A, b"old\n")
    world.settle(5)
    world.clock.advance(seconds)
    world.files.delete(A)
    world.settle(60, 1)


def test_bytes_without_an_acknowledgement_are_told_with_file_and_age(world: World) -> None:
    """The backlog describes the bytes that the agent has read and no broker has acknowledged. It
    contains the number of these bytes, the path of their file, and the time at which the oldest of
    these bytes was written. After the acknowledgement the backlog is empty."""
    world.start()
    world.settle(3)
    assert told(world) == Backlog()
    world.files.append(A, b"12345\n")
    written_ms = world.clock.time_ms()
    world.hold(5, 10)
    [topic] = told(world).topics
    assert (topic.topic, topic.unread, topic.unacknowledged) == ("logs", 0, 6)
    [file] = topic.files
    assert (file.path, file.bytes, file.oldest_ms, file.loss_ms) == (A, 6, written_ms, None)
    world.settle(5, 10)
    assert told(world) == Backlog()


def test_a_file_that_cannot_be_opened_is_told_as_unread(world: World) -> None:
    """If the agent has no right to open a file, the backlog counts the file's bytes as unread bytes
    of the topic."""
    world.files.append(B, b"secret\n").unreadable = True
    world.start()
    world.hold(5, 10)
    [topic] = told(world).topics
    assert (topic.unread, topic.unacknowledged, topic.files[0].path) == (7, 0, B)


def test_the_life_of_a_deleted_file_says_when_the_next_is_lost(world: World) -> None:
    """If the agent has seen that a file was deleted an hour after its creation, it expects that
    each other file of the same directory will also be deleted an hour after its own creation."""
    world.start()
    delete_after(world, HOUR)
    life_ms = world.clock.time_ms()
    world.files.append(B, b"new\n")
    born_ms = world.clock.time_ms()
    world.hold(5, 10)
    [topic] = told(world).topics
    assert topic.loss_ms is not None
    left_s = (topic.loss_ms - born_ms) / 1000
    assert HOUR <= left_s <= HOUR + MINUTE
    assert topic.loss_ms == topic.files[0].loss_ms > life_ms


def test_the_life_of_a_closed_file_is_rather_too_short(world: World) -> None:
    """A file is closed when the agent has accounted for all its bytes and announced its final
    length. If a closed file is deleted, only an hourly search finds out that the file is gone. The
    agent assumes the earliest possible time of the deletion, an hour before this search. So the
    assumed life of the file may be too short, but not too long."""
    world.files.append("/log/other", b"")
    world.files.append(A, b"old\n")
    born_ms = world.clock.time_ms()
    world.start()
    world.settle(20)
    world.files.rename(A, "/log/a.log.1")
    world.settle(40, 1)
    world.clock.advance(5 * HOUR)
    world.files.delete("/log/a.log.1")
    world.settle(5, 1)
    seen_ms = world.clock.time_ms()
    world.files.append(B, b"new\n")
    begun_ms = world.clock.time_ms()
    world.hold(5, 10)
    [topic] = told(world).topics
    assert topic.loss_ms is not None
    life_ms = topic.loss_ms - begun_ms
    assert seen_ms - born_ms - HOUR * 1_000 - 30_000 <= life_ms <= seen_ms - born_ms


def test_a_file_that_got_a_later_id_does_not_count_as_deleted(world: World) -> None:
    """A closed file that grows gets a new file id, and a day later the agent forgets the file's old
    id. The agent does not take this for a deletion, because the file still exists. So it does not
    expect that other files of the directory will be deleted at this age."""
    world.files.append(A, b"old\n")
    world.start()
    world.settle(20)
    world.files.rename(A, "/log/a.log.1")
    world.settle(40, 1)
    [first] = world.agent.tracker.files
    world.files.append("/log/a.log.1", b"late\n")
    world.settle(40, 1)
    for _ in range(30):
        world.clock.advance(HOUR)
        world.settle(6)
    [later] = world.agent.tracker.files.values()
    assert later.birth.predecessor == first
    world.files.append(B, b"new\n")
    world.hold(5, 10)
    assert told(world).topics[0].loss_ms is None


def test_a_setting_says_when_files_are_deleted() -> None:
    """With `deleted.after.ms`, the agent expects that a file will be deleted this long after its
    creation. The agent does not need to have seen the deletion of an earlier file."""
    world = World(settings(raw(deleted_after_ms=5_000_000)))
    world.files.append(A, b"1\n")
    born_ms = world.clock.time_ms()
    world.start()
    world.hold(5, 10)
    assert told(world).topics[0].loss_ms == born_ms + 5_000_000


def test_a_file_without_a_name_is_lost_at_once() -> None:
    """If a file was deleted and the agent still has it open, the backlog says that the file's bytes
    may be lost at any moment. This is so even if the agent does not know yet how long other files
    of the directory existed before they were deleted."""
    world = World(settings(raw(), close_rotated_ms=3_600_000))
    world.files.append(A, b"1\n")
    world.start()
    world.hold(5, 10)
    world.files.delete(A)
    world.files.append(B, b"1\n")
    world.hold(10, 10)
    [topic] = told(world).topics
    worst, *_ = topic.files
    assert worst.path == A
    assert worst.loss_ms is not None
    assert worst.loss_ms <= world.clock.time_ms()
    assert topic.loss_ms == worst.loss_ms


def test_nothing_new_is_not_told_again(world: World) -> None:
    """The backlog is the agent's report on the bytes that are neither acknowledged nor declared
    lost or uncertain. As long as there are no such bytes, the backlog is empty, and the agent sends
    the empty backlog only once."""
    world.files.append(A, b"1\n")
    world.start()
    world.settle(40, 10)
    empty = [note for note in world.of(Note) if backlog_of(note) == Backlog()]
    assert empty == world.of(Note)[-1:]


def test_one_note_waits_at_most(world: World) -> None:
    """While the brokers accept no messages, the agent's state contains at most one note with a
    backlog (a report on bytes that are not acknowledged yet)."""
    world.start()
    for size in range(20):
        world.files.append(A, b"x" * size + b"\n")
        world.clock.advance(40)
        world.turn()
    world.publish()
    assert len(world.of(Note)) == 1


def _tracked(position: int) -> TrackedFile:
    birth = Birth(1, 1, "logs", "id", "host", A, FileKey(1, 2), Fingerprint(0, b""))
    return TrackedFile(birth, Checkpoint(position, 0, Guard(0, 0), ()), A, changed_ns=7_000_000)


def test_the_age_is_that_of_the_first_byte_that_is_not_safe() -> None:
    """If bytes of a file are neither acknowledged nor declared lost or uncertain, their age is the
    age of the first of these bytes. To know this age, the agent remembers lengths of the file, each
    with the time at which the file had this length. When all bytes up to a remembered length are
    acknowledged or declared, the agent forgets this length."""
    found = then(None, _tracked(0), 10, 1_000)
    assert found == [(10, 7)]
    found = then(found, _tracked(0), 20, 2_000)
    assert then(found, _tracked(9), 20, 3_000) == [(10, 7), (20, 2_000)]
    assert then(found, _tracked(10), 30, 3_000) == [(20, 2_000), (30, 3_000)]
    assert then(found, _tracked(20), 30, 3_000) == [(30, 3_000)]


def test_the_notes_of_a_file_are_few_and_never_make_bytes_younger() -> None:
    """The agent's list of a file's lengths and their times stays short, because neighbouring
    entries are merged. A merged entry has the older of the two times, so bytes never seem younger
    than they are."""
    found = then(None, _tracked(0), 1, 7)
    for end in range(2, 500):
        found = then(found, _tracked(0), end, end * 1_000)
        assert len(found) <= REACHES_MAX
        assert found[-1][0] == end
    assert found[0][1] == 7
    for end, time_ms in found:
        assert time_ms <= end * 1_000
    assert [x for x, _ in found] == sorted({x for x, _ in found})


def test_the_shortest_of_the_last_lives_counts() -> None:
    """The life of a file is the time from its creation to its deletion. For each directory, the
    agent remembers the lives of the most recently deleted files. It expects that the other files of
    the directory will live as long as the shortest of these lives. It forgets older lives, because
    the rotation may have been changed since then. It ignores a negative life."""
    lives = Lives()
    assert lives.shortest("/log") is None
    for life_ms in (5, -1, *range(100, 100 + LIVES_MAX - 1)):
        lives.end("/log", life_ms)
    assert (lives.shortest("/log"), lives.shortest("/other")) == (5, None)
    lives.end("/log", 200)
    assert lives.shortest("/log") == 100
