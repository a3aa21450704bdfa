"""Tests rotated files that have unexpected names or are in unexpected directories, and copies of
logs."""

from __future__ import annotations

from collections import Counter

import pytest

from skidway.audit.topic.messages import Certainty, Delta, Loss, Seal
from support.agent_world import World, raw, settings
from support.promises import promise

APP = "/log/app.log"
NEIGHBOURS = ["app-errors.log", "app.log.trace", "other"]


@pytest.fixture
def world() -> World:
    made = World(settings(raw("logs", APP)))
    made.files.append(APP, b"seen\n")
    made.start()
    made.settle()
    assert losses(made) == []
    return made


def losses(world: World) -> list[Loss]:
    return [loss for delta in world.of(Delta) for loss in delta.losses]


def rotate(world: World, *paths: str) -> list[str]:
    """Renames app.log to each of these paths in turn, and writes a new app.log each time."""
    lines = []
    for number, path in enumerate(paths):
        world.files.rename(APP, path)
        lines.append(f"line {number}")
        world.files.append(APP, f"{lines[-1]}\n".encode())
    return lines


@promise("1 generations")
@pytest.mark.parametrize("is_down", [False, True])
@pytest.mark.parametrize(
    "names",
    [
        ("app-11-02-2026-1.log", "app-11-02-2026-2.log"),
        ("app.log.bak1", "app.log.bak2"),
        ("app.log.first", "app.log.second"),
        ("closed-app-1x", "closed-app-2x"),
    ],
)
def test_generations_under_any_name_that_tells_whose_they_are(
    world: World, names: tuple[str, str], is_down: bool
) -> None:
    """After two rotations between two scans, each line is read once if the names of the two rotated
    files contain the log's name or resemble each other."""
    if is_down:
        world.kill()
    lines = rotate(world, *(f"/log/{name}" for name in names))
    if is_down:
        world.clock.advance(60)
        world.start()
    world.settle()
    assert sorted(world.values()) == sorted(["seen", *lines])
    assert losses(world) == []


def test_a_name_that_shares_nothing_is_declared(world: World) -> None:
    """If a rotated file has an unrelated name, the agent declares a loss, because it cannot know
    whether other new files with unrelated names are rotated files, too."""
    rotate(world, "/log/first", "/log/second")
    world.settle()
    (loss,) = losses(world)
    assert loss.end is None
    assert "not known as one of rotation" in loss.reason
    assert world.values() == ["seen", "line 1"]


def test_generations_in_another_directory(world: World) -> None:
    """If logrotate's setting `olddir` moves rotated files to another directory, the agent finds
    this directory through a rotated file that it still has open. It also reads the other rotated
    files in that directory."""
    lines = rotate(world, "/old/app.log.2", "/old/app.log.1")
    world.settle()
    assert sorted(world.values()) == sorted(["seen", *lines])
    assert losses(world) == []
    world.files.append("/old/app.log.2", b"late\n")
    world.settle(rounds=3)
    assert "late" in world.values()


def test_strangers_that_were_there_are_left_alone(world: World) -> None:
    """If another log has a name like that of the agent's log, but no pattern matches it, the agent
    does not read the other log. This is so even if the other log grows and the agent is
    restarted."""
    world.files.append("/log/app-2.log", b"a worker's\n")
    world.clock.advance(60)
    world.settle()
    world.kill()
    rotate(world, "/log/app.log.1")
    world.files.append("/log/app-2.log", b"and more\n")
    world.start()
    world.settle()
    assert sorted(world.values()) == ["line 0", "seen"]
    assert losses(world) == []


@pytest.mark.parametrize("names", [("a.log", "a-1.log"), ("run1.log", "run2.log")])
@pytest.mark.parametrize("is_down", [False, True])
def test_logs_that_a_pattern_means_are_no_copies_of_each_other(
    names: tuple[str, str], is_down: bool
) -> None:
    """Several workers, or several runs of a job, may write logs with the same bytes. The agent
    reads each of these logs, and declares no line uncertain."""
    made = World(settings(raw("logs", "/log/*.log")))
    data = b"".join(b"step %d of 1000\n" % number for number in range(200))
    made.files.append(f"/log/{names[0]}", data)
    made.start()
    made.settle()
    if is_down:
        made.kill()
    made.files.append(f"/log/{names[1]}", data)
    if is_down:
        made.start()
    made.settle()
    assert sorted(made.values()) == sorted(data.decode().split("\n")[:-1] * 2)
    assert losses(made) == []


@pytest.mark.parametrize("is_down", [False, True])
def test_rotated_logs_with_the_same_bytes_are_each_read(world: World, is_down: bool) -> None:
    """If a job writes the same bytes in each run and its log is rotated, the lines of every run are
    delivered."""
    data = b"".join(b"step %d of 1000\n" % number for number in range(200))
    for _ in range(3):
        if is_down:
            world.kill()
        world.files.delete(f"{APP}.1") if f"{APP}.1" in world.files.by_path else None
        rotate(world, f"{APP}.1")
        world.files.append(APP, data)
        if is_down:
            world.start()
        world.settle()
    assert world.values().count("step 7 of 1000") == 3


@pytest.mark.parametrize(
    ("neighbour", "is_first"),
    [
        *((name, is_first) for name in NEIGHBOURS for is_first in (False, True)),
        ("app-1.log", False),  # if app-1.log were older than the log, it would be a rotated file
    ],
)
def test_a_neighbour_that_is_made_with_the_log_is_another_log(
    neighbour: str, is_first: bool
) -> None:
    """If a program creates two logs and a source's pattern matches only one of them, the agent
    reads only this one and declares nothing lost."""
    made = World(settings(raw("logs", APP)))
    made.files.append("/log/of another program", b"x\n")
    made.start()
    made.settle()
    first, second = (f"/log/{neighbour}", APP)[:: 1 if is_first else -1]
    made.files.append(first, b"beside\n" if is_first else b"meant\n")
    made.clock.advance(0.001)
    made.files.append(second, b"meant\n" if is_first else b"beside\n")
    made.settle()
    made.kill()
    made.start()
    made.settle()
    assert made.values() == ["meant"]
    assert losses(made) == []


@promise("1 copies")
def test_a_copy_of_a_file_that_was_never_looked_at() -> None:
    """If the kernel has reported a new file to the agent, and the file is copied and truncated
    before a full scan finds it, no line is read twice."""
    made = World(settings(raw("logs", APP)))
    made.start()
    made.files.append(APP, b"one\ntwo\n")
    made.agent.touch([APP])
    for _ in range(3):
        made.publish()
        made.turn(made.producer.deliver_all())
    made.files.append(f"{APP}.5", b"one\ntwo\n")
    made.files.truncate(APP)
    made.files.append(APP, b"three\n")
    made.settle()
    assert sorted(made.values()) == ["one", "three", "two"]


@promise("1 copies")
@pytest.mark.parametrize("pattern", [APP, f"{APP}*"])
def test_a_copy_that_seems_older_than_its_log(pattern: str) -> None:
    """If the clock is set back and a log is then copied and truncated (logrotate's `copytruncate`),
    the copy seems older than the log. The agent reads the copy, and declares that its lines may be
    delivered twice."""
    lines = b"line\n" * 300
    made = World(settings(raw("logs", pattern)))
    made.files.append(APP, lines)
    made.start()
    made.settle()
    made.clock.set_time_ms(made.clock.time_ms() - 60_000)
    made.settle(3)
    made.files.append(f"{APP}.1", lines)
    made.files.truncate(APP)
    made.settle()
    (doubt,) = (loss for loss in losses(made) if loss.certainty is Certainty.UNCERTAIN)
    assert (doubt.first, doubt.end) == (0, len(lines))


@pytest.mark.parametrize("first", [b"", b"=" * 2_000 + b"\n"])
def test_an_earlier_log_is_no_copy(first: bytes) -> None:
    """In these tests, a rotated file is older than the log. The two files have few bytes, or they
    begin with the same bytes and then differ. Then the rotated file counts as an earlier log, and
    not as a copy of the log: the agent reads it, and declares none of its lines uncertain."""
    made = World(settings(raw("logs", APP)))
    made.files.append("/log/kept", b"seen\n")
    made.files.rename("/log/kept", APP)
    made.start()
    made.settle()
    made.kill()
    made.files.rename(APP, f"{APP}.2")
    made.files.append(APP, first + (b"run 1\n" if first else b"run\n"))
    made.files.rename(APP, f"{APP}.1")
    made.files.append(APP, first + (b"run 2\n" if first else b"run\n"))
    made.start()
    made.settle()
    runs = [value for value in made.values() if value.startswith("run")]
    assert sorted(runs) == (["run 1", "run 2"] if first else ["run", "run"])
    assert losses(made) == []


@pytest.mark.parametrize("is_grown", [False, True])
def test_a_copy_of_a_file_that_is_read_where_it_lies(is_grown: bool) -> None:
    """The kernel reports the new file app.log to the agent. Then somebody runs `cp app.log
    app.log.bak`. The next full scan finds both files, but no line is read twice."""
    made = World(settings(raw("logs", APP)))
    made.start()
    made.settle()
    made.files.append(APP, b"one\ntwo\n")
    made.agent.touch([APP])
    made.files.append(f"{APP}.bak", b"one\ntwo\n")
    if is_grown:
        made.files.append(APP, b"three\n")
    made.settle()
    assert made.values() == ["one", "two", "three"][: 2 + is_grown]
    assert losses(made) == []


def test_a_short_copy_where_no_birth_is_known() -> None:
    """The agent recognizes a copy by the log's announced fingerprint, a hash of the log's first
    bytes. If a copy is shorter than these bytes, the agent reads the copy and declares its lines
    uncertain, because these lines may be doubled."""
    made = World(settings(raw("logs", APP)))
    made.files.knows_births = False
    made.files.append("/log/old.log", b"x\n")
    made.start()
    made.files.append(APP, b"one\n")
    made.files.append(f"{APP}.bak", b"one\n")
    made.files.append(APP, b"two\n")
    made.settle()
    assert sorted(made.values()) == ["one", "one", "two"]
    assert [x.certainty for x in losses(made) if x.end is not None] == [Certainty.UNCERTAIN]


@promise("1 copies")
def test_what_a_copy_holds_of_truncated_bytes_is_read(world: World) -> None:
    """After a copytruncate between two scans, the agent reads the unread rest of the log from the
    copy, and reads no line twice."""
    world.files.append(APP, b"unread\n")
    world.files.append(f"{APP}.1", b"seen\nunread\n")
    world.files.truncate(APP)
    world.files.append(APP, b"after\n")
    world.settle()
    assert sorted(world.values()) == ["after", "seen", "unread"]


@promise("1 copies")
@pytest.mark.parametrize("later", [b"new\n", b"a later and longer text\n"])
def test_a_copy_of_a_log_of_which_nothing_was_read_is_read(later: bytes) -> None:
    """If a log is copied and truncated before the agent has read any of its bytes, the agent reads
    the copy, even if the log is soon longer than it was before."""
    made = World(settings(raw("logs", APP)))
    made.start()
    made.settle(3)
    made.files.append(APP, b"one\ntwo\n")
    made.agent.tracker.reconcile(made.clock.monotonic(), made.clock.time_ms())
    made.files.append(f"{APP}.1", b"one\ntwo\n")
    made.files.truncate(APP)
    made.files.append(APP, later)
    made.settle()
    assert sorted(made.values()) == sorted(["one", "two", later.decode().strip()])


@promise("1 copies")
@pytest.mark.parametrize("pattern", [APP, f"{APP}*"])
def test_a_copy_that_a_look_finds_before_its_original_is_truncated(pattern: str) -> None:
    """If a look finds a copy while the log still has all its bytes, and the log is truncated before
    the agent has read them, the agent reads the rest from the copy."""
    made = World(settings(raw("logs", pattern)))
    made.files.append(APP, b"seen\n")
    made.start()
    made.settle()
    made.files.append(APP, b"unread\n")
    made.files.append(f"{APP}.1", b"seen\nunread\n")
    made.agent.tracker.reconcile(made.clock.monotonic(), made.clock.time_ms())
    made.files.truncate(APP)
    made.files.append(APP, b"after\n")
    made.settle()
    assert sorted(made.values()) == ["after", "seen", "unread"]


@promise("1 copies")
@pytest.mark.parametrize("events", [1, 3])
def test_a_copy_that_is_seen_before_its_original_was_cut_waits_for_that(events: int) -> None:
    """If the kernel reports a copy before it reports that the original was truncated, the agent
    waits for the next scan, which notices the truncation, even if the kernel reports the copy
    several times. In the copy, the agent begins at the position that it had reached in the
    original."""
    made = World(settings(raw("logs", f"{APP}*")))
    made.files.append(APP, b"seen\n")
    made.start()
    made.settle()
    made.files.append(APP, b"unread\n")
    made.files.append(f"{APP}.1", b"seen\nunread\n")
    made.files.truncate(APP)
    made.agent.touch([f"{APP}.1"] * events)
    made.settle()
    assert made.values() == ["seen", "unread"]
    assert Certainty.UNCERTAIN not in {loss.certainty for loss in losses(made)}


@promise("1 copies")
def test_a_copy_that_could_not_be_read_for_a_moment_holds_back_no_seal() -> None:
    """If a restarted agent cannot read a copy that it had read to its end, and can read it again
    later, the agent checks the copy and sends seals again, although the copy never changes."""
    made = World(settings(raw("logs", f"{APP}*")))
    made.files.append(APP, b"seen\n")
    made.start()
    made.settle()
    made.files.append(APP, b"unread\n")
    made.files.append(f"{APP}.1", b"seen\nunread\n")
    made.files.truncate(APP)
    made.settle()
    made.kill()
    made.files.by_path[f"{APP}.1"].unreadable = True
    made.start()
    made.tick(0.1)
    made.files.by_path[f"{APP}.1"].unreadable = False
    made.settle()
    seals = len(made.of(Seal))
    made.settle()
    assert made.values() == ["seen", "unread"]
    assert len(made.of(Seal)) > seals


@promise("1 copies")
@pytest.mark.parametrize("is_meant", [False, True])
def test_another_file_under_the_inode_of_a_copy_is_no_copy(is_meant: bool) -> None:
    """If the agent has skipped the copy of a log, and the copy is deleted, the next file of the log
    may get the copy's inode. The agent reads this file, even if it is rotated before the agent's
    next scan."""
    made = World(settings(raw("logs", f"{APP}*" if is_meant else APP)))
    made.start()
    made.settle()
    made.files.append(APP, b"seen\n")
    inode = made.files.append(f"{APP}.bak", b"seen\n").inode
    made.settle()
    rotate(made, f"{APP}.2")
    made.settle()
    assert made.values() == ["seen", "line 0"]
    made.files.delete(f"{APP}.bak")
    made.files.rename(APP, f"{APP}.1")
    made.files.append(APP, b"unseen\n").inode = inode
    rotate(made, f"{APP}.bak")
    made.settle()
    assert sorted(made.values()) == ["line 0", "line 0", "seen", "unseen"]


def test_a_generation_that_cannot_be_read_is_waited_for(world: World) -> None:
    """The agent reports a rotated file that it cannot read. It sends no seal for the topic, because
    a seal says that all earlier lines are counted. As soon as the agent can read the file, it reads
    the file and sends seals again."""
    world.files.append(APP, b"rest\n")
    rotate(world, f"{APP}.2", f"{APP}.1")
    world.files.by_path[f"{APP}.1"].unreadable = True
    world.settle()
    seals = len(world.of(Seal))
    assert f"{APP}.1" in world.agent.tracker.unreadable["logs"]
    world.settle()
    assert len(world.of(Seal)) == seals
    world.files.by_path[f"{APP}.1"].unreadable = False
    world.settle()
    assert sorted(world.values()) == ["line 0", "line 1", "rest", "seen"]
    assert len(world.of(Seal)) > seals
    assert losses(world) == []


@promise("1 not opened")
@pytest.mark.parametrize("is_rotated", [False, True])
@pytest.mark.parametrize("is_down", [False, True])
def test_what_goes_away_before_it_can_be_read_is_declared(is_rotated: bool, is_down: bool) -> None:
    """If a log that only root may read is deleted, a loss is declared, whether the agent runs or is
    down at that time."""
    made = World(settings(raw("logs", APP)))
    made.files.append(APP, b"secret\n").unreadable = True
    made.start()
    made.settle()
    if is_down:
        made.kill()
    if is_rotated:
        made.files.rename(APP, f"{APP}.1")
        made.files.append(APP, b"next\n")
        made.settle() if not is_down else None
    made.files.delete(f"{APP}.1" if is_rotated else APP)
    made.start() if is_down else None
    made.settle()
    assert made.values() == (["next"] if is_rotated else [])
    (loss,) = losses(made)
    assert loss.reason.endswith("it went away before it could be read")


@promise("1 not opened")
def test_what_was_cut_off_before_it_could_be_read_is_declared() -> None:
    """If a file is truncated before the agent has the right to read it, the agent declares lost all
    bytes that were cut off since the agent found the file."""
    made = World(settings(raw("logs", APP)))
    file = made.files.append(APP, b"secret\nmore\n")
    file.unreadable = True
    made.start()
    made.settle()
    made.files.truncate(APP, 7)
    made.settle()
    file.unreadable = False
    made.settle()
    assert made.values() == ["secret"]
    (loss,) = losses(made)
    assert loss.reason.endswith("it was cut to 7 bytes before it could be read")


def test_a_look_asks_for_each_name_a_few_times_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    """A scan of the agent asks the file system at most three times for each name, even if many logs
    and unrelated files were created and deleted."""
    made = World(settings(raw("logs", "/log/job-*.log")))
    for number in range(200):
        made.files.append(f"/log/stranger-{number}", b"x\n")
        made.files.append(f"/log/job-{number}.log", b"x\n")
    made.start()
    made.settle()
    for number in range(100):
        made.files.delete(f"/log/job-{number}.log")
        made.files.append(f"/log/job-new-{number}.log", b"x\n")
        made.files.append(f"/log/stranger-new-{number}", b"x\n")
    asked: list[str] = []
    look = made.files.look
    monkeypatch.setattr(made.files, "look", lambda path: (asked.append(path), look(path))[1])
    made.tick(0.3)
    assert max(Counter(asked).values()) <= 3
