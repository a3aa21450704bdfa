"""Tests how the agent decides whether a file is the same file as a file that it knows already. The
answer is "the same", "another" or "unknown", and the tests check what the agent does in each
case."""

from __future__ import annotations

import pytest

from skidway.agent.files.endings import VANISHED
from skidway.agent.files.same_file import Answer, Evidence, same_file
from skidway.agent.parsing.framing import READ_BYTES
from skidway.agent.values.found import FileKey
from skidway.agent.values.identity import FINGERPRINT_BYTES
from skidway.audit.topic.messages import Certainty, Delta, Loss, Seal
from support.agent_world import World, raw, settings
from support.promises import promise

HERE, THERE, ELSEWHERE = FileKey(1, 7), FileKey(1, 8), FileKey(2, 7)
RUN, RUN2 = "/log/run.log", "/log/run2.log"  # names that rotation can give
JOB = b"Starting job\ndone\n"

EVIDENCE = Evidence((HERE, HERE), (None, None), False, False, True, True)


@promise("1 same file")
@pytest.mark.parametrize(
    ("evidence", "answer"),
    [
        (EVIDENCE, Answer.SAME),
        (EVIDENCE._replace(keys=(HERE, THERE)), Answer.OTHER),
        (EVIDENCE._replace(was_deleted=True, births=(5, 5)), Answer.OTHER),
        (EVIDENCE._replace(births=(5, 6), is_held=True), Answer.OTHER),
        (EVIDENCE._replace(births=(5, 5), same_bytes=False), Answer.SAME),
        (EVIDENCE._replace(births=(5, 5), same_place=False), Answer.SAME),
        (EVIDENCE._replace(births=(5, None), same_place=False), Answer.UNKNOWN),
        (EVIDENCE._replace(same_bytes=False), Answer.UNKNOWN),
        (EVIDENCE._replace(same_place=False), Answer.UNKNOWN),
        (EVIDENCE._replace(same_place=False, is_held=True), Answer.SAME),
        (EVIDENCE._replace(keys=(HERE, ELSEWHERE)), Answer.SAME),
        (EVIDENCE._replace(keys=(HERE, ELSEWHERE), same_place=False), Answer.OTHER),
        (EVIDENCE._replace(keys=(HERE, ELSEWHERE), same_bytes=None), Answer.OTHER),
        (EVIDENCE._replace(keys=(HERE, ELSEWHERE), births=(5, 6)), Answer.OTHER),
    ],
)
def test_what_the_evidence_says(evidence: Evidence, answer: Answer) -> None:
    """If there are several pieces of evidence, the strongest one decides whether two files are the
    same. If no piece of evidence is strong enough to decide this, the answer is "unknown"."""
    assert same_file(evidence) is answer


def made(*, knows_births: bool) -> World:
    world = World(settings(raw()))
    world.files.knows_births = knows_births
    world.files.append(RUN, JOB)
    world.start()
    world.settle()
    return world


def losses(world: World) -> list[Loss]:
    return [loss for delta in world.of(Delta) for loss in delta.losses]


def read(world: World) -> None:
    """Makes the agent continue to read in its only file in the next turn. If a scan is due, the
    turn scans first."""
    world.agent.reader.wake(next(iter(world.agent.tracker.files.values())))
    world.turn()
    world.turn(world.producer.answer_all())


def take_inode(world: World, path: str, data: bytes) -> None:
    """Deletes run.log, and writes a new file at `path`, which gets the inode of run.log."""
    inode = world.files.by_path[RUN].inode
    world.files.delete(RUN)
    world.files.append(path, b"").inode = inode
    world.files.append(path, data)


@promise("1 same file")
@pytest.mark.parametrize("path", [RUN, RUN2])
def test_an_inode_taken_again_by_a_file_that_begins_alike(path: str) -> None:
    """If a log is deleted, and a program's next log gets its inode and begins with the same lines,
    the agent reads the next log from its start. The name of the next log does not matter. The agent
    goes on to seal the log's topic: a seal says that all earlier lines are counted."""
    world = made(knows_births=True)
    before = world.of(Seal)[-1].topics[0]
    world.kill()
    take_inode(world, path, JOB + b"done again\n")
    world.clock.advance(1)
    world.start()
    world.settle()
    lines = ["Starting job", "done"]
    assert world.values() == [*lines, *lines, "done again"]
    assert {loss.certainty for loss in losses(world)} <= {Certainty.LOST}
    sealed = world.of(Seal)[-1].topics[0]
    assert sealed.source == before.source
    assert sealed.sealed_until > before.sealed_until + 1000


@promise("1 same file")
def test_an_inode_taken_again_where_no_birth_is_known() -> None:
    """On a file system without birth times, a file may have the inode and the first bytes of a
    deleted file but another name. The agent reads this file from its start, and declares the first
    bytes uncertain, because it may have sent them before."""
    world = made(knows_births=False)
    world.kill()
    take_inode(world, RUN2, JOB + b"done again\n")
    world.start()
    world.settle()
    lines = ["Starting job", "done"]
    assert world.values() == [*lines, *lines, "done again"]
    (doubt,) = (each for each in losses(world) if each.certainty is Certainty.UNCERTAIN)
    assert (doubt.first, doubt.end) == (0, len(JOB))


def test_an_inode_taken_again_under_an_agent_that_holds_few_files() -> None:
    """If a file that the agent does not have open is deleted between two scans, and another file
    gets its inode, the agent reads the other file from its start."""
    world = World(settings(raw(), max_open_files=1))
    world.files.append(RUN, JOB)
    world.files.append("/log/other.log", b"x\n")
    world.start()
    world.settle()
    world.files.append("/log/other.log", b"y\n")
    world.settle()
    take_inode(world, RUN2, JOB + b"done again\n")
    world.settle()
    assert sorted(world.values()) == sorted(["x", "y", *["Starting job", "done"] * 2, "done again"])


@promise("1 same file")
def test_an_inode_taken_again_after_the_agent_had_the_deleted_file_open() -> None:
    """If the agent has a file open, it notices that the file is deleted. It reads the next file
    with the same inode from the first byte, even if this file begins with the same bytes."""
    world = made(knows_births=False)
    world.files.delete(RUN)
    world.settle(rounds=300)
    assert [each["state"] for each in world.ledger()] == ["closed"]
    world.files.reuse_last_inode()
    world.files.append(RUN, JOB + b"done again\n")
    world.settle()
    lines = ["Starting job", "done"]
    assert world.values() == [*lines, *lines, "done again"]


@promise("1 same file")
def test_an_inode_taken_again_by_a_file_of_the_same_size_and_time() -> None:
    """If a log is replaced by a file with the same inode, size and modification time, the agent
    distinguishes the two files by their birth times."""
    world = World(settings(raw(), max_open_files=1))
    world.files.append(RUN, JOB)
    world.files.append("/log/other.log", b"x\n")
    world.start()
    world.settle()
    world.files.append("/log/other.log", b"y\n")
    world.settle()
    changed_ns = world.files.by_path[RUN].changed_ns
    world.files.delete(RUN)
    world.files._inode = 0
    world.files.append(RUN, JOB.upper()).changed_ns = changed_ns
    world.settle()
    assert sorted(world.values()) == sorted(
        ["x", "y", "Starting job", "done", "STARTING JOB", "DONE"]
    )


def test_unread_bytes_of_a_file_whose_inode_was_taken_are_lost() -> None:
    """If another file gets the inode of a deleted file, the unread bytes of the deleted file are
    declared lost, and the agent never sends the other file's bytes instead."""
    world = World(settings(raw(), max_open_files=1))
    world.files.append(RUN, JOB)
    world.start()
    world.tick()
    world.kill()
    take_inode(world, RUN2, JOB + b"done again\n")
    world.start()
    world.settle()
    assert world.values().count("done again") == 1
    assert world.values().count("Starting job") == 1 + world.values().count("done") - 1
    assert losses(world)


# --- deleted at rest ----------------------------------------------------------------------------


def at_rest(still_s: float, **others: int) -> World:
    world = made(knows_births=True)
    world.kill()
    world.settings = settings(raw(), max_open_files=1, **others)
    world.start()
    world.clock.advance(still_s)
    world.files.append("/log/other.log", b"x\n")
    world.settle()
    return world


@promise("1 deleted at rest")
def test_deleting_what_was_read_long_ago_loses_nothing() -> None:
    """The agent declares no loss for a deleted file if all the file's bytes were acknowledged, and
    the file had not changed for much longer than the time between the last two scans."""
    world = at_rest(600)
    world.files.delete(RUN)
    world.settle()
    assert losses(world) == []
    assert sorted(world.values()) == ["Starting job", "done", "x"]


def test_deleting_what_was_written_just_now_is_a_loss() -> None:
    """If a file is deleted soon after the last known write, the agent declares a loss, because
    other bytes may have been written to the file before it was deleted."""
    world = at_rest(0.1)
    world.files.delete(RUN)
    world.settle()
    assert [loss.end for loss in losses(world)] == [None]


@promise("clocks rest")
@pytest.mark.parametrize("hours", [1, -1])
def test_by_a_clock_that_was_set_nothing_was_at_rest(hours: int) -> None:
    """If the clock is changed just after a file was written, the agent does not conclude that the
    file has been unchanged for a long time."""
    world = at_rest(0.1)
    world.clock.set_time_ms(world.clock.time_ms() + hours * 3_600_000)
    world.settle(20)
    world.files.delete(RUN)
    world.settle()
    assert [loss.end for loss in losses(world)] == [None]


@promise("1 deleted at rest")
@pytest.mark.parametrize(("away_s", "count"), [(60, 0), (3_600, 1)])
def test_deleted_while_nobody_looked(away_s: float, count: int) -> None:
    """A file has not changed for 15 minutes, and is then deleted while the agent is down. If the
    agent was down for only a minute, it declares no loss. If it was down for an hour, it declares
    one loss, because a program may have written to the file in this hour."""
    world = at_rest(900)
    world.kill()
    world.clock.advance(away_s)
    world.files.delete(RUN)
    world.start()
    world.settle()
    assert len(losses(world)) == count


@promise("1 deleted at rest")
def test_one_look_declares_one_loss() -> None:
    """If one scan finds that several files are gone, the agent declares one loss for all these
    files. The reason of the loss names one of these files, and gives the number of the others."""
    world = World(settings(raw(), max_open_files=1))
    for number in range(50):
        world.files.append(f"/log/{number}.log", b"%d\n" % number)
    world.start()
    world.settle()
    world.files.append("/log/kept.log", b"x\n")  # the only file that the agent has open
    world.settle()
    for number in range(40):
        world.files.delete(f"/log/{number}.log")
    world.settle()
    (loss,) = losses(world)
    assert loss.end is None
    assert loss.reason == f"{VANISHED}; 39 more files likewise"


# --- truncated ----------------------------------------------------------------------------------


def test_bytes_that_were_cut_off_behind_the_position_are_lost() -> None:
    """If unread bytes at the end of a file are cut off, they are declared lost, although the file
    is still longer than the part that the agent has read."""
    world = World(settings(raw()))
    world.files.append(RUN, b"1\n2\n")
    world.start()
    world.settle()
    world.producer._room = 0
    world.files.append(RUN, b"3\n4\n5\n")
    world.settle(3)
    world.files.truncate(RUN, 6)
    world.settle(3)
    world.producer._room = 1_000
    world.settle()
    assert world.values() == ["1", "2", "3"]
    (loss,) = losses(world)
    assert (loss.first, loss.end) == (4, None)
    assert loss.reason == "it was cut to 6 bytes, 10 were there"


@promise("1 file id")
def test_bytes_that_were_cut_off_and_written_anew_between_two_looks_are_lost() -> None:
    """If unread bytes are cut off and other bytes are written between two scans, the unread bytes
    are declared lost. The agent knows of the cut because it read from the file before the other
    bytes were written."""
    world = World(settings(raw(), reconcile_interval_ms=3_600_000))
    world.files.append(RUN, b"1\n2\n")
    world.start()
    world.settle()
    world.producer._room = 0
    world.files.append(RUN, b"3\n4\n5\n")
    world.agent.touch([RUN])
    world.files.truncate(RUN, 6)
    world.producer._room = 1_000
    world.tick()
    world.files.append(RUN, b"6\n7\n8\n9\n")
    world.agent.touch([RUN], everything=True)
    world.settle()
    assert world.values() == ["1", "2", "3", "6", "7", "8", "9"]
    (loss,) = losses(world)
    assert (loss.first, loss.end) == (4, None)


@promise("1 file id")
def test_after_a_cut_only_what_is_proven_again_is_not_read_again() -> None:
    """If a file is truncated, the agent continues at the highest position up to which it has read
    the file and still finds the same bytes. If the file is truncated again, the agent no longer
    considers the positions that the first truncation cut off. So it sends no line twice."""
    world = World(settings(raw()))
    for line in (b"1111\n", b"2222\n", b"3333\n", b"4444\n"):
        world.files.append(RUN, line)
        if world.loop is None:
            world.start()
        world.settle(4)
    world.files.truncate(RUN, 10)
    world.settle()
    world.files.append(RUN, b"aaaa\nbbbb\ncccc\n")
    world.settle()
    world.files.append(RUN, b"dddd\n")
    world.settle()
    world.files.truncate(RUN, 25)
    world.settle()
    assert world.values() == ["1111", "2222", "3333", "4444", "aaaa", "bbbb", "cccc", "dddd"]
    assert [each["begin"] for each in world.ledger()] == [0, 10, 25]


def test_bytes_that_were_exchanged_before_the_first_reading() -> None:
    """If a file is truncated and rewritten after the agent found it and before the agent first
    reads it, the old bytes are declared lost. No byte is sent under the file id that the file got
    first."""
    world = World(settings(raw()))
    world.start()
    world.settle()
    world.producer._room = 0
    world.files.append(RUN, b"1\n")
    world.agent.touch([RUN])
    world.publish()
    world.files.truncate(RUN)
    world.files.append(RUN, b"2\n3\n")
    world.producer._room = 1_000
    world.settle()
    assert world.values() == ["2", "3"]
    assert [(loss.first, loss.end) for loss in losses(world)] == [(0, None)]


@pytest.mark.parametrize("is_down", [False, True])
def test_the_same_bytes_written_again_are_declared(is_down: bool) -> None:
    """If a file is rewritten with the same bytes, as by `job > job.log`, the agent declares a loss,
    because it cannot distinguish the new lines from the old ones."""
    world = made(knows_births=True)
    world.clock.advance(1)
    if is_down:
        world.kill()
    world.files.truncate(RUN)
    world.files.append(RUN, JOB)
    if is_down:
        world.start()
    world.settle()
    assert world.values() == ["Starting job", "done"]
    (loss,) = losses(world)
    assert loss.reason.endswith("the same bytes may have been written again")
    world.settle()
    assert losses(world) == [loss]


def test_bytes_that_were_exchanged_in_the_middle_while_the_agent_was_down() -> None:
    """If `job > job.log` runs again while the agent is down and only a line in the middle of the
    log differs, the agent reads this line."""
    banner, lines = b"#" * (FINGERPRINT_BYTES + 99) + b"\n", b"working\n" * 100
    world = World(settings(raw()))
    world.files.append(RUN, banner + b"run 1\n" + lines)
    world.start()
    world.settle()
    world.kill()
    world.files.truncate(RUN)
    world.files.append(RUN, banner + b"run 2\n" + lines + b"done\n")
    world.start()
    world.settle()
    assert world.values().count("run 2") == world.values().count("done") == 1
    assert None in [loss.end for loss in losses(world)]


def test_an_older_time_of_change_says_nothing() -> None:
    """If a file's modification time is older than before, no loss is declared, because a power
    failure or `touch` may have changed the time."""
    world = made(knows_births=True)
    world.files.by_path[RUN].changed_ns -= 1_000_000_000
    world.settle()
    assert losses(world) == []


@pytest.mark.parametrize("back_s", [1, 60, 3600])
@pytest.mark.parametrize("is_noticed", [True, False])
def test_the_same_bytes_written_again_after_the_clock_was_set_back(
    back_s: int, is_noticed: bool
) -> None:
    """If the clock is set back and a file is then rewritten with the same bytes, the file's
    modification time is older than before. The agent knows that the clock was set back, and
    declares a loss. is_noticed: whether the agent scans after the clock was set back and before the
    file is rewritten. If not, the first sign that the agent gets may be a file system event of the
    rewriting."""
    world = made(knows_births=True)
    world.clock.set_time_ms(world.clock.time_ms() - back_s * 1000)
    if is_noticed:
        world.tick()
    world.files.truncate(RUN)
    world.files.append(RUN, JOB)
    world.agent.touch([RUN])
    world.settle()
    (loss,) = losses(world)
    assert loss.reason.endswith("the same bytes may have been written again")
    world.clock.advance(2 * back_s)
    world.settle()
    assert losses(world) == [loss]


@pytest.mark.parametrize("aged_s", [1, 7200])
def test_a_time_of_change_that_is_older_than_the_clock_ever_was_says_nothing(aged_s: int) -> None:
    """If the clock was set back, it shows a span of times twice. If a file's modification time is
    older than before, this counts as a write only if the old and the new modification time are both
    in this span. In this test, `touch` sets a time before the span, or the file was written after
    the span. So the agent declares no loss."""
    world = made(knows_births=True)
    world.clock.set_time_ms(world.clock.time_ms() - 3_600_000)
    world.tick()
    if aged_s == 1:
        world.clock.advance(7200)
        world.files.append(RUN, b"more\n")
        world.settle()
    world.files.by_path[RUN].changed_ns -= aged_s * 1_000_000_000
    world.settle()
    assert losses(world) == []


@pytest.mark.parametrize("waits_s", [0.1, 5.0])
def test_a_write_that_has_noted_its_time_and_not_grown_yet_is_waited_for(waits_s: float) -> None:
    """A write changes a file's modification time first, then may wait for the disk, and then
    changes the file's size. If the agent looks at the file between the two changes, it declares no
    loss. It waits for the new size. Meanwhile it sends no seal, because a seal says that all
    earlier lines are counted."""
    world = made(knows_births=True)
    file = world.files.by_path[RUN]
    world.clock.advance(1)
    file.changed_ns = world.clock.time_ms() * 1_000_000
    world.agent.touch([RUN])
    seals = len(world.of(Seal))
    for _ in range(round(waits_s / 0.1)):
        world.tick()
    assert len(world.of(Seal)) == seals
    world.files.append(RUN, b"and more\n")
    world.settle()
    assert world.values() == ["Starting job", "done", "and more"]
    assert losses(world) == []
    assert len(world.of(Seal)) > seals


@pytest.mark.parametrize("is_seen", [True, False])
def test_each_of_many_writes_is_waited_for_anew(is_seen: bool) -> None:
    """For each new write, the agent waits again until the file has its new size. is_seen: whether
    the agent scans between two writes. If not, it only reads what the first write has added."""
    world = made(knows_births=True)
    file = world.files.by_path[RUN]
    for _ in range(3):
        if is_seen:
            world.tick(1)
        world.clock.advance(0.01)
        file.changed_ns = world.clock.time_ms() * 1_000_000
        world.agent.touch([RUN])
        world.clock.advance(8)
        world.turn()
        world.clock.advance(0.01)  # no scan is due
        world.files.append(RUN, b"more\n")
        read(world)
    world.settle()
    assert world.values().count("more") == 3
    assert losses(world) == []


def test_the_same_bytes_written_again_while_the_file_is_being_read() -> None:
    """If a file is truncated and the same bytes are written again, the agent cannot know whether
    these bytes are new lines. It declares a loss for these bytes, even if it reads from the file
    before its next scan."""
    world = World(settings(raw()))
    world.files.append(RUN, JOB)
    world.start()
    world.settle()
    world.clock.advance(0.01)  # no scan is due
    world.files.truncate(RUN)
    world.files.append(RUN, JOB)
    read(world)
    world.settle()
    (loss,) = losses(world)
    assert loss.reason.endswith("the same bytes may have been written again")


@promise("1 same file")
def test_a_file_that_ends_alike_and_begins_otherwise_was_written_anew() -> None:
    """An open file may be truncated and rewritten between two scans, with the same bytes before the
    agent's position. If the beginning of the file has changed, the agent reads the file from its
    start."""
    foot = b"=" * 300 + b"\n"
    world = World(settings(raw()))
    world.files.append(RUN, b"run 1\n" + foot)
    world.start()
    world.settle()
    world.files.truncate(RUN)
    world.files.append(RUN, b"run 2\n" + foot + b"done\n")
    world.settle()
    line = foot.decode().strip()
    assert world.values() == ["run 1", line, "run 2", line, "done"]
    assert len(losses(world)) == 1


def test_a_file_that_grew_with_an_overlong_line_was_not_written_again() -> None:
    """If a file grows while the agent reads an over-long line piece by piece, the agent does not
    conclude that the file was rewritten."""
    world = World(settings(raw()))
    world.files.append(RUN, b"x" * READ_BYTES)
    world.start()
    world.hold()
    world.clock.advance(0.01)  # no scan is due
    world.files.append(RUN, b"y" * 100)
    read(world)
    world.clock.advance(0.01)
    world.files.append(RUN, b"\n")
    read(world)
    world.settle()
    assert losses(world) == []


# --- logs that are cut and then grow before the next look -----------------------------------------


def rewritten(size: int, text: bytes) -> World:
    """Returns a simulated host whose agent has read four lines of a log. Before the next look, the
    log is cut to `size` bytes, and `text` is appended."""
    world = World(settings(raw()))
    world.files.append(RUN, b"line 0\nline 1\nline 2\n")
    world.start()
    world.settle()
    world.files.append(RUN, b"line 3\n")
    world.settle()
    world.kill()  # so the agent has to use what its state says about the file
    world.start()
    world.settle()
    world.files.truncate(RUN, size)
    world.files.append(RUN, text)
    world.settle()
    return world


def doubtful(world: World) -> list[tuple[int, int | None]]:
    found = [each for each in losses(world) if each.certainty is Certainty.UNCERTAIN]
    return [(each.first, each.end) for each in found]


@promise("1 file id")
@pytest.mark.parametrize("kept", [7, 9, 14, 16])
def test_lines_that_a_cut_kept_are_declared_if_they_come_twice(kept: int) -> None:
    """If a log is cut so that only its first lines are left, and then grows again before the next
    scan, the agent reads the kept lines again. It declares that they may be doubled."""
    world = rewritten(kept, b"another line\nnew line\n"[: 27 - kept] + b"\n")
    assert world.values().count("line 0") == 2
    assert doubtful(world) == [(0, 28)]


@promise("1 file id")
def test_an_ordinary_copytruncate_doubles_nothing() -> None:
    """If a log is cut to 0 bytes and gets other lines before the next scan, the agent declares no
    doubling, because the log's first line is now another line."""
    world = rewritten(0, b"line 4\nline 5\nline 6\nline 7\n")
    assert world.values() == [f"line {number}" for number in range(8)]
    assert doubtful(world) == []


@promise("1 file id")
def test_a_first_line_that_each_log_has_is_read_again() -> None:
    """If a log is cut to 0 bytes, and only the first of its new lines is the same as before, the
    agent reads all new lines. It declares that they may be doubled, because it cannot know that the
    cut did not keep the first line."""
    world = rewritten(0, b"line 0\nline 5\nline 6\nline 7\n")
    assert world.values()[4:] == ["line 0", "line 5", "line 6", "line 7"]
    assert doubtful(world) == [(0, 28)]
