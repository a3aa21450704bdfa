"""Tests rotations of the log `app.log`, with an agent and files in memory. In most tests, the
agent's pattern matches `app.log` but none of the names that rotation gives to the file."""

import errno

import pytest

from skidway.agent.state.database import StateDatabase
from skidway.agent.values.found import FileKey
from skidway.agent.values.identity import FINGERPRINT_BYTES
from skidway.audit.topic.messages import Announcement, Delta, Loss, Seal
from support.agent_world import World, raw, settings
from support.promises import promise

APP = "/log/app.log"


def make(*paths: str, exclude: tuple[str, ...] = ()) -> World:
    return World(settings(raw("logs", *(paths or (APP,)), exclude=list(exclude))))


@pytest.fixture
def world() -> World:
    """An agent that has read app.log and has sent a seal. A seal says that all earlier lines are
    counted. The present time is well after the seal."""
    made = make()
    made.files.append(APP, b"seen\n")
    made.start()
    made.settle()
    assert losses(made) == []
    return made


def losses(world: World) -> list[Loss]:
    return [loss for delta in world.of(Delta) for loss in delta.losses]


def rotate(world: World, *, keep: int = 99) -> None:
    """Renames app.log to app.log.1, app.log.1 to app.log.2 and so on. Keeps the `keep` newest
    rotated files and deletes the others."""
    world.files.delete(f"{APP}.{keep}")
    for number in range(keep - 1, 0, -1):
        if f"{APP}.{number}" in world.files.by_path:
            world.files.rename(f"{APP}.{number}", f"{APP}.{number + 1}")
    world.files.rename(APP, f"{APP}.1")


def generations(world: World, count: int, *, keep: int = 99) -> list[str]:
    """Rotates app.log `count` times without a scan of the agent in between, and writes one line to
    each new app.log. Returns these lines."""
    lines = []
    for number in range(count):
        rotate(world, keep=keep)
        lines.append(f"generation {number}")
        world.files.append(APP, f"{lines[-1]}\n".encode())
    return lines


def test_generations_between_two_looks_are_read(world: World) -> None:
    """If app.log is rotated several times between two scans, each rotated file is read once, to its
    end. Rotated files that the agent did not know are announced under their present paths. Nothing
    is declared lost."""
    lines = generations(world, 4)
    world.settle()
    assert sorted(world.values()) == sorted(["seen", *lines])
    assert losses(world) == []
    paths = {each.path for each in world.of(Announcement)}
    assert paths == {APP, f"{APP}.1", f"{APP}.2", f"{APP}.3"}
    rotate(world)
    world.files.append(APP, b"last\n")
    world.settle()
    assert sorted(world.values()) == sorted(["seen", *lines, "last"])
    assert losses(world) == []


def test_a_generation_is_read_on_and_closed(world: World) -> None:
    """While a program still writes to a rotated file, the agent continues to read this file. When
    no program has written to the file for a while, the agent closes the file's id: it announces the
    file's final length."""
    generations(world, 2)
    world.settle(rounds=4)
    world.files.append(f"{APP}.1", b"late\n")
    world.settle()
    assert "late" in world.values()
    (closed,) = (each for each in world.ledger() if each["announced_path"] == f"{APP}.1")
    assert (closed["state"], closed["pending"]) == ("closed", 0)
    assert losses(world) == []


@pytest.mark.parametrize("is_down", [False, True])
def test_a_closed_generation_that_is_rewritten_with_the_same_size(
    world: World, is_down: bool
) -> None:
    """If a rotated file is rewritten with different bytes of the same size after its file id was
    closed, the agent reads the new bytes. It also declares a loss, because further bytes may have
    been written and replaced in the meantime. A file id is closed when the agent has announced the
    file's final length."""
    rotate(world)
    world.settle()
    assert [each["state"] for each in world.ledger()] == ["closed"]
    if is_down:
        world.kill()
    world.files.truncate(f"{APP}.1")
    world.files.append(f"{APP}.1", b"anew\n")
    world.clock.advance(60)
    if is_down:
        world.start()
    world.settle()
    assert sorted(world.values()) == ["anew", "seen"]
    assert [loss.end for loss in losses(world)] == [None]


def test_a_touch_of_a_closed_generation_is_nothing(world: World) -> None:
    """If a completely read rotated file gets a new modification time but keeps its bytes, the agent
    declares no loss and continues to send seals for the topic. A seal says that all earlier lines
    are counted."""
    rotate(world)
    world.settle()
    assert [each["state"] for each in world.ledger()] == ["closed"]
    world.clock.advance(60)
    world.files.by_path[f"{APP}.1"].changed_ns = world.clock.time_ms() * 1_000_000
    seals = len(world.of(Seal))
    world.settle()
    assert len(world.of(Seal)) > seals
    assert losses(world) == []


def test_a_generation_that_was_empty_when_it_was_rotated(world: World) -> None:
    """If a file was empty when it was rotated, and its program writes to the rotated file later,
    the agent reads this file."""
    rotate(world)
    world.files.append(APP, b"")
    world.settle(rounds=3)
    rotate(world)
    world.files.append(APP, b"new\n")
    world.settle(rounds=3)
    world.files.append(f"{APP}.1", b"late\n")
    world.settle()
    assert sorted(world.values()) == ["late", "new", "seen"]
    assert losses(world) == []


@promise("1 same file")
@pytest.mark.parametrize("knows_births", [True, False])
def test_an_empty_generation_whose_inode_another_log_has_by_now(knows_births: bool) -> None:
    """If an empty rotated file is deleted and another log gets its inode, the lines of the other
    log go only to that log's own topic."""
    web = "/log/web.log"
    world = World(settings(raw("logs", APP), raw("web", web)))
    world.files.knows_births = knows_births
    world.files.append(APP, b"seen\n")
    world.start()
    world.settle()
    rotate(world)
    world.files.append(APP, b"")
    world.settle(rounds=3)
    rotate(world)
    world.files.append(APP, b"new\n")
    world.settle(rounds=3)
    empty = world.files.by_path[f"{APP}.1"].inode
    world.files.delete(f"{APP}.1")
    world.files.append(web, b"web\n").inode = empty
    world.settle()
    world.files.append(web, b"more\n")
    world.settle()
    assert sorted(world.values()) == ["new", "seen"]
    assert world.values("web") == ["web", "more"]
    assert [entry["topic"] for entry in world.ledger() if entry["path"] == web] == ["web"]
    assert losses(world) == []


def test_rotations_while_the_agent_was_down(world: World) -> None:
    """A log may be rotated while the agent is down, after the agent's last seal (the message which
    says that all earlier lines are counted). When the agent starts again, it reads the rotated
    files."""
    world.kill()
    lines = generations(world, 3)
    world.clock.advance(3_600)
    world.start()
    world.settle()
    assert sorted(world.values()) == sorted(["seen", *lines])
    assert losses(world) == []
    world.kill()
    world.start()
    world.settle()
    assert len(world.values()) == 4
    assert losses(world) == []


def test_a_half_read_generation_goes_on_after_a_start(world: World) -> None:
    """After a restart, the agent continues to read a half-read rotated file, because it has stored
    to which source the file belongs."""
    generations(world, 2)
    world.settle(rounds=2)
    world.kill()
    world.files.append(f"{APP}.1", b"more\n")
    world.start()
    world.settle()
    assert sorted(world.values()) == ["generation 0", "generation 1", "more", "seen"]
    assert losses(world) == []


def test_history_is_left_alone() -> None:
    """Rotated files that existed before the agent's first start are not read, even after rotations
    have renamed them."""
    world = make()
    for number in (3, 2, 1):
        world.files.append(f"{APP}.{number}", b"history\n")
    world.clock.advance(600)
    world.files.append(APP, b"one\n")
    world.start()
    world.settle()
    rotate(world)
    world.files.append(APP, b"two\n")
    world.settle()
    assert world.values() == ["one", "two"]
    assert losses(world) == []


@pytest.mark.parametrize("name", ["app.log.1", "app.log-20261120", "app.1.log", "app-20261120.log"])
def test_names_of_generations(world: World, name: str) -> None:
    """The agent finds rotated files whose names have a number or a date, at the end or before the
    file extension."""
    world.files.append("/log/app.log.2", b"")
    world.files.rename(APP, "/log/app.log.2")
    world.files.append(APP, b"between\n")
    world.files.rename(APP, f"/log/{name}")
    world.files.append(APP, b"now\n")
    world.settle()
    assert sorted(world.values()) == ["between", "now", "seen"]
    assert losses(world) == []


def test_strangers_are_not_read(world: World) -> None:
    """The agent does not read files with unrelated names. The agent also does not read a file that
    already had the name of a rotated file before any rotation, even if this file grows."""
    world.files.append("/log/app.1.log", b"a worker of that name\n")
    world.clock.advance(60)
    world.settle()
    rotate(world)
    world.files.append(APP, b"now\n")
    world.files.append("/log/app.1.log", b"and its next line\n")
    world.files.append("/log/app.log.swp", b"an editor's\n")
    world.settle()
    assert sorted(world.values()) == ["now", "seen"]


def test_what_is_excluded_stays_excluded() -> None:
    """An excluded path is not read, even if it looks like the path of a rotated file."""
    world = make(exclude=("/**/*.1",))
    world.files.append(APP, b"seen\n")
    world.start()
    world.settle()
    generations(world, 2)
    world.settle()
    assert sorted(world.values()) == ["generation 1", "seen"]


def test_a_generation_that_another_source_means_is_its_own() -> None:
    """If the pattern of another source matches a rotated file, the file's lines go only to that
    source's topic."""
    world = World(settings(raw("logs", APP), raw("old", f"{APP}.*")))
    world.files.append(APP, b"seen\n")
    world.start()
    world.settle()
    generations(world, 2)
    world.settle()
    assert world.values("logs").count("generation 0") == 0
    assert world.values("old").count("generation 0") == 1


def test_a_copy_is_not_read(world: World) -> None:
    """With copytruncate, the log stays the same file. Therefore the copy beside it does not count
    as a rotated file, and the agent does not read the copy."""
    world.files.append(f"{APP}.1", b"seen\n")
    world.files.append(APP, b"more\n")
    world.settle()
    assert world.values() == ["seen", "more"]


def test_deleted_generations_are_declared(world: World) -> None:
    """Rotation deletes the oldest rotated file first. So no newer file is missing as long as the
    newest file that the agent knows still exists. If this file is deleted, newer files that the
    agent never saw may be deleted too, and the agent declares one loss."""
    generations(world, 5, keep=2)
    world.settle()
    (loss,) = losses(world)
    assert loss.end is None
    assert loss.reason.startswith(f"{APP}: rotated more often")
    assert sorted(world.values()) == ["generation 2", "generation 3", "generation 4", "seen"]


def test_deleted_generations_of_a_path_that_was_empty_are_declared(world: World) -> None:
    """At the last scan, no file was at the log's path, and the agent knew the newest rotated file.
    If later rotations delete this file, they may also have deleted newer files that the agent never
    saw. So the agent declares a loss."""
    rotate(world)
    world.settle()
    world.files.append(APP, b"first\n")
    generations(world, 4, keep=2)
    world.settle()
    (loss,) = losses(world)
    assert loss.end is None


@pytest.mark.parametrize("is_restarted", [False, True])
def test_a_look_between_two_generations_breaks_no_chain(world: World, is_restarted: bool) -> None:
    """If the agent lists the directory in the middle of a rotation, it finds no file at the log's
    path, but it finds rotated files in the same directory. At the next scan, the agent uses the
    newest of these files to prove that no rotated file is missing."""
    generations(world, 2)
    rotate(world)
    world.settle(rounds=5)
    if is_restarted:
        world.kill()
    world.files.append(APP, b"next\n")
    lines = generations(world, 2)
    if is_restarted:
        world.start()
    world.settle()
    assert sorted(world.values()) == sorted(["seen", *lines, *lines, "next"])
    assert losses(world) == []


def test_deleted_while_the_agent_was_down(world: World) -> None:
    """While the agent is down, newer files are written, and some of them are deleted, together with
    the last file that the agent knows. The agent declares two losses: one for bytes that may have
    been added to the known file, and one for the files that it never saw."""
    world.kill()
    generations(world, 5, keep=2)
    world.start()
    world.settle()
    assert [loss.end for loss in losses(world)] == [None, None]


def test_deleted_and_written_again_is_no_rotation(world: World) -> None:
    """If a log is deleted and written again, and the directory has no rotated file, the agent
    assumes that no other file was written in between."""
    for number in range(3):
        world.files.delete(APP)
        world.files.append(APP, b"%d\n" % number)
        world.settle()
    assert world.values() == ["seen", "0", "1", "2"]
    assert losses(world) == []


def test_a_known_file_that_is_compressed_in_an_unknown_way(world: World) -> None:
    """If a known file is compressed in a way that the agent cannot read, the agent recognizes the
    compressed file by its modification time."""
    old = world.files.by_path[APP]
    rotate(world)
    world.files.append(APP, b"now\n")
    world.files.append(f"{APP}.1.lz4", b"...").changed_ns = old.changed_ns // 1000 * 1000
    world.files.delete(f"{APP}.1")
    world.settle()
    assert sorted(world.values()) == ["now", "seen"]
    assert losses(world) == []


def test_an_unknown_file_that_is_compressed_in_an_unknown_way_is_declared(world: World) -> None:
    """If a file that the agent never saw is compressed in a way that the agent cannot read, the
    file is declared lost, and the loss names the file."""
    rotate(world)
    world.files.append(APP, b"between\n")
    rotate(world)
    world.files.append(APP, b"now\n")
    world.files.append(f"{APP}.1.lz4", b"...")
    world.files.delete(f"{APP}.1")
    world.settle()
    (loss,) = losses(world)
    reason = "was compressed before it was read, in a way that cannot be read"
    assert loss.reason == f"{APP}.1.lz4: {reason}"
    assert (loss.end, sorted(world.values())) == (None, ["now", "seen"])


def test_one_that_is_being_compressed_is_read(world: World) -> None:
    """While a rotated file is being compressed, the agent reads the plain file to its end."""
    generations(world, 2)
    world.files.append(f"{APP}.1.gz", b"...")
    world.settle(rounds=3)
    world.files.delete(f"{APP}.1")
    world.settle()
    assert sorted(world.values()) == ["generation 0", "generation 1", "seen"]
    assert losses(world) == []


def test_generations_that_were_deleted_are_declared_though_the_log_has_the_old_inode(
    world: World,
) -> None:
    """Deleted rotated files are declared lost even if the file that is now at the log's path has
    the inode of a deleted file that the agent knew. The agent does not mistake the new file for the
    deleted one."""
    inode = world.files.by_path[APP].inode
    world.kill()
    generations(world, 5, keep=2)
    world.files.by_path[APP].inode = inode
    world.start()
    world.settle()
    reasons = [loss.reason for loss in losses(world)]
    assert any("rotated more often than it was looked at" in reason for reason in reasons)


def test_another_file_under_the_inode_of_a_closed_one(world: World) -> None:
    """A file was rotated, completely read and deleted. The log at the file's old path now has the
    file's inode. So the path seems to lead to the same file as before. The agent still finds the
    rotated file that was written after the deleted file and before the present log."""
    inode = world.files.by_path[APP].inode
    rotate(world)
    world.settle()
    assert [each["state"] for each in world.ledger()] == ["closed"]
    world.files.append(APP, b"second\n")
    rotate(world)
    world.files.append(APP, b"third\n").inode = inode
    world.files.delete(f"{APP}.2")
    world.settle()
    assert sorted(world.values()) == ["second", "seen", "third"]


@promise("1 generations")
@pytest.mark.parametrize("is_missed", [False, True])
def test_another_file_under_the_same_inode_is_known_when_names_stand_still_again(
    world: World, monkeypatch: pytest.MonkeyPatch, is_missed: bool
) -> None:
    """A scan in the middle of a rotation may miss a rotated file, so the agent draws no conclusion
    from this scan. In this test, somebody deletes the only file that the agent knows, and the
    present log gets the inode of the deleted file. A rotated file was written after the deleted
    file and before the present log. The next scan finds the rotated file, and the agent reads
    it."""
    read = world.files.list

    def renamed_meanwhile(directory: str) -> list[tuple[str, int]]:
        monkeypatch.setattr(world.files, "list", read)
        found = read(directory)
        world.files.rename(f"{APP}.1", f"{APP}.2")
        return [each for each in found if not is_missed or each[0] != "app.log.1"]

    inode = world.files.by_path[APP].inode
    world.files.delete(APP)
    world.files.append(APP, b"second\n")
    world.files.rename(APP, f"{APP}.1")
    world.files.append(APP, b"third\n").inode = inode
    monkeypatch.setattr(world.files, "list", renamed_meanwhile)
    world.settle()
    assert sorted(world.values()) == ["second", "seen", "third"]


@pytest.mark.parametrize("knows_births", [True, False])
@pytest.mark.parametrize("last", ["a last generation that is longer than the first\n", "4\n"])
def test_another_file_under_the_inode_of_one_deleted_meanwhile(
    last: str, knows_births: bool
) -> None:
    """If a file is deleted while the agent is down, the log may get the file's inode. The agent
    then recognizes that the log is another file: by the time of birth or, if that is unknown, by
    the bytes. It reads the log from its start, and declares a loss, because rotated files were
    deleted unread."""
    world = make()
    world.files.knows_births = knows_births
    world.files.append(APP, b"seen\n")
    world.start()
    world.settle()
    inode = world.files.by_path[APP].inode
    world.kill()
    lines = generations(world, 3, keep=2)
    rotate(world, keep=2)
    world.files.append(APP, last.encode()).inode = inode
    world.start()
    world.settle()
    assert sorted(world.values()) == sorted(["seen", *lines[1:], last.strip()])
    assert None in [loss.end for loss in losses(world)]


def test_truncated_while_the_agent_was_down_is_no_rotation(world: World) -> None:
    """If a log is copied and truncated while the agent is down, the agent continues to read in the
    copy, and reads no line twice. It declares a loss for the bytes that may have been written
    between the copy and the truncation."""
    world.kill()
    world.files.append(f"{APP}.1", b"seen\nmore\n")
    world.files.truncate(APP)
    world.files.append(APP, b"another beginning\n")
    world.start()
    world.settle()
    assert sorted(world.values()) == ["another beginning", "more", "seen"]
    assert [loss.end for loss in losses(world)] == [None]


def test_a_directory_that_cannot_be_listed_holds_the_seal_back(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While a directory cannot be listed after a rotation, the agent sends no seal, because a seal
    says that all earlier lines are counted."""

    def refuse(directory: str) -> list[tuple[str, int]]:
        raise PermissionError(errno.EACCES, "Permission denied", directory)

    allowed = world.files.list
    monkeypatch.setattr(world.files, "list", refuse)
    lines = generations(world, 2)
    world.settle(rounds=3)
    seals = len(world.of(Seal))
    assert "/log" in world.agent.tracker.unreadable["logs"]
    world.settle()
    assert len(world.of(Seal)) == seals
    monkeypatch.setattr(world.files, "list", allowed)
    world.settle()
    assert sorted(world.values()) == sorted(["seen", *lines])
    assert len(world.of(Seal)) > seals


def test_names_that_change_while_they_are_read_say_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If names in the directory change while the agent lists them, the agent repeats the scan.
    Until a scan finds the names unchanged, the agent declares nothing lost, and sends no seal,
    because a seal says that all earlier lines are counted."""
    read = world.files.list

    def rotated_meanwhile(directory: str) -> list[tuple[str, int]]:
        monkeypatch.setattr(world.files, "list", read)
        found = read(directory)
        rotate(world)
        world.files.append(APP, b"third\n")
        return [each for each in found if each[0] != "app.log.2"]  # a listing may miss it

    world.files.append(APP, b"first\n")
    rotate(world)
    world.files.append(APP, b"second\n")
    world.clock.advance(1)
    monkeypatch.setattr(world.files, "list", rotated_meanwhile)
    seals = len(world.of(Seal))
    world.tick(0.0)
    assert world.agent.tracker.unreadable == {"logs": {"/log": "files are being renamed in it"}}
    assert len(world.of(Seal)) == seals
    world.settle()
    assert sorted(world.values()) == ["first", "second", "seen", "third"]
    assert losses(world) == []
    assert len(world.of(Seal)) > seals


@promise("1 generations")
def test_a_rotation_that_takes_many_looks_is_waited_for(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a busy host renames files so slowly that every listing of the directory misses a name, the
    agent waits until the names no longer change. It reads every line."""
    read, lines, looks = world.files.list, ["seen"], 0

    def rotated_meanwhile(directory: str) -> list[tuple[str, int]]:
        nonlocal looks
        looks += 1
        found = read(directory)
        if looks > 40:
            return found
        rotate(world)
        lines.append(f"generation {looks}")
        world.files.append(APP, f"{lines[-1]}\n".encode())
        return [each for each in found if each[0] != "app.log.1"]

    monkeypatch.setattr(world.files, "list", rotated_meanwhile)
    rotate(world)
    world.files.append(APP, b"generation 0\n")
    lines.append("generation 0")
    seals = len(world.of(Seal))
    while looks <= 40:
        world.agent.touch([], everything=True)
        world.tick(0.2)
        assert len(world.of(Seal)) == seals
    world.settle()
    assert sorted(world.values()) == sorted(lines)
    assert losses(world) == []
    assert len(world.of(Seal)) > seals


@promise("1 generations")
def test_a_look_into_a_rotation_is_no_look_since_when_a_generation_would_be_old(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An unread rotated file counts as history (too old to be read) only if it has not changed
    since the agent's last scan that found all names. A scan during a rotation does not count as
    this scan, because it may miss names."""
    read = world.files.list

    def rotated_meanwhile(directory: str) -> list[tuple[str, int]]:
        monkeypatch.setattr(world.files, "list", read)
        found = read(directory)
        rotate(world)
        world.files.append(APP, b"fourth\n")
        return [each for each in found if each[0] != "app.log.1"]  # a listing may miss it

    rotate(world)
    world.files.append(APP, b"second\n")
    world.clock.advance(60)
    world.files.delete(f"{APP}.1")
    rotate(world)
    world.files.append(APP, b"third\n")
    monkeypatch.setattr(world.files, "list", rotated_meanwhile)
    world.settle()
    assert sorted(world.values()) == ["fourth", "second", "seen", "third"]


def test_a_directory_that_changed_just_now_is_listed_again() -> None:
    """A directory's modification time is only as exact as a clock tick. Even if a file is rotated
    and compressed within one tick, the agent finds the compressed file and continues to read in
    this file."""
    world = World(settings(raw("logs", "/log/*.log"), max_open_files=1))
    world.files.append(APP, b"x" * FINGERPRINT_BYTES + b"\n")
    world.files.append("/log/held.log", b"held\n")
    world.start()
    world.settle()
    rotate(world)
    world.files.append(APP, b"second\n")
    world.files.append("/log/held.log", b"held\n")
    world.tick(0.2)
    world.tick(0.2)
    changed_ns = world.files.changed("/log")
    world.files.append(f"{APP}.1", b"unread\n")
    world.files.compress(f"{APP}.1", keeps_time=False)
    world.files._directories["/log"] = changed_ns
    world.settle()
    assert "unread" in world.values()
    assert losses(world) == []


def test_a_generation_that_is_renamed_whenever_it_is_looked_for_has_not_gone(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a file is renamed after each scan, before the agent can open it, the agent does not
    declare the file lost."""
    lines = generations(world, 2)
    file = world.files.by_path[f"{APP}.1"]
    file.unreadable = True
    world.settle(4)
    find, moves = world.files.find, iter(range(20))

    def renamed_behind(directory: str, key: FileKey) -> str | None:
        found = find(directory, key)
        is_it = found is not None and key.inode == file.inode
        return f"{found}-before" if is_it and next(moves, None) is not None else found

    monkeypatch.setattr(world.files, "find", renamed_behind)
    world.files.rename(f"{APP}.1", "/log/elsewhere")
    world.settle(4)
    assert losses(world) == []
    file.unreadable = False
    world.settle()
    assert sorted(world.values()) == sorted(["seen", *lines])
    assert losses(world) == []


@pytest.mark.parametrize("is_first", [True, False])
def test_a_new_path_that_an_event_told_of_before_any_look(is_first: bool) -> None:
    """The kernel may report a new path to the agent before the agent has scanned the directory. If
    the directory has a rotated file that is older than the file at this path, the log existed
    before, and other rotated files may be gone. So the agent declares one loss. If no rotated file
    is older, the file at the path is the log's first file, and the agent declares nothing lost."""
    made = make()
    made.start()
    made.settle()
    if not is_first:
        made.files.append(APP, b"unseen\n")
        rotate(made)
    made.files.append(APP, b"seen\n")
    made.agent.tracker.look(APP, made.clock.monotonic(), made.clock.time_ms())
    lines = generations(made, 3)
    made.settle()
    assert sorted(made.values()) == sorted(["seen", *lines, *([] if is_first else ["unseen"])])
    assert len(losses(made)) == (0 if is_first else 1)


def test_neighbours_that_come_and_go_do_not_hold_the_seal(world: World) -> None:
    """Other files that are created and deleted in the directory do not make it unreadable. So they
    do not delay the seals of the log's topic: the agent goes on to send about ten seals a second. A
    seal says that all earlier lines are counted."""
    rotate(world)
    world.files.append(APP, b"more\n")
    world.settle()
    seals = len(world.of(Seal))
    for number in range(500):
        world.files.append(f"/log/spool-{number}", b"x")
        world.files.delete(f"/log/spool-{number - 3}")
        world.agent.touch([], everything=True)
        world.tick(0.01)
        assert world.agent.tracker.unreadable == {}
    assert len(world.of(Seal)) - seals > 40


@pytest.mark.parametrize("is_compressed", [False, True])
def test_a_generation_under_the_name_and_inode_of_one_that_is_gone(
    world: World, is_compressed: bool
) -> None:
    """A new rotated file is read even if it has the inode and the name of a rotated file that was
    deleted. The kernel reuses inodes, and rotation reuses names."""
    rotate(world)
    world.files.append(APP, b"second\n")
    world.settle()
    inode = world.files.by_path[f"{APP}.1"].inode
    if is_compressed:
        world.files.compress(f"{APP}.1")
        world.files.rename(f"{APP}.1.gz", f"{APP}.3.gz")
    else:
        world.files.delete(f"{APP}.1")
    world.files.rename(APP, f"{APP}.2")
    world.files.append(APP, b"third\n").inode = inode
    world.clock.advance(1)
    world.agent.tracker._known.detach(world.agent.tracker._known.at(FileKey(1, inode)))
    world.files.rename(APP, f"{APP}.1")
    world.files.append(APP, b"fourth\n")
    world.settle()
    assert sorted(world.values()) == ["fourth", "second", "seen", "third"]


def test_a_compressed_file_that_was_being_written_at_the_last_look(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A scan finds both a compressed file and its plain file. If the plain file is deleted before
    the agent can open it, the agent reads the compressed file."""
    read = world.files.list

    def listed_before(directory: str) -> list[tuple[str, int]]:
        return [*read(directory), ("app.log.1", 99)]

    monkeypatch.setattr(world.files, "list", listed_before)
    rotate(world)
    world.files.append(APP, b"second\n")
    rotate(world)
    world.files.append(APP, b"third\n")
    world.files.compress(f"{APP}.1")
    world.settle(4)
    assert "second" not in world.values()
    monkeypatch.setattr(world.files, "list", read)
    rotate(world)
    world.files.rename(f"{APP}.1", f"{APP}.9")
    world.files.append(APP, b"fourth\n")
    world.settle()
    assert sorted(world.values()) == ["fourth", "second", "seen", "third"]


def test_a_generation_whose_time_of_change_was_set_back_is_declared(world: World) -> None:
    """If a rotated file's modification time is set back (`touch -d`), the file looks like an old
    file that somebody has unpacked. The agent does not read the file, but declares the file
    lost."""
    generations(world, 2)
    world.files.by_path[f"{APP}.1"].changed_ns -= 3_600_000_000_000
    world.settle()
    assert "generation 0" not in world.values()
    [loss] = losses(world)
    assert (
        loss.reason == f"{APP}.1: is younger than its time of change: it may be a generation"
        " that nobody read"
    )


def test_a_clock_that_was_set_back_while_the_agent_was_down_is_declared(world: World) -> None:
    """If the clock was set back while the agent was down, new rotated files seem to be older than
    the agent's last scan. The agent therefore declares a loss."""
    world.kill()
    world.clock.set_time_ms(world.clock.time_ms() - 3_600_000)
    lines = generations(world, 3)
    world.clock.advance(60)
    world.start()
    world.settle()
    assert set(world.values()) <= {"seen", *lines}
    assert any(
        loss.reason.endswith(
            "the clock was set back while nobody looked: rotated files may be unread"
        )
        for loss in losses(world)
    )


def test_a_declared_span_begins_with_the_oldest_file_that_was_left_alone(world: World) -> None:
    """If the agent starts long after the clock was set back, it does not read files that seem old,
    but declares a loss. The loss reaches back to the time of the oldest of these files."""
    world.kill()
    world.clock.set_time_ms(world.clock.time_ms() - 3_600_000)
    written_ms = world.clock.time_ms()
    lines = generations(world, 3)
    world.clock.advance(1_800)
    world.start()
    world.settle()
    assert not set(lines) <= set(world.values())
    [loss] = losses(world)
    assert loss.from_bucket is not None
    assert loss.from_bucket <= written_ms


def test_a_look_after_a_long_while_by_a_clock_that_was_set_back(world: World) -> None:
    """If the clock is set back while the agent runs, the agent still finds every new rotated file,
    because it measures the time since its last scan with the monotonic clock, which nobody sets
    back."""
    for number in range(3):
        rotate(world)
        world.clock.set_time_ms(world.clock.time_ms() - (3_600_000 if not number else 0))
        world.files.append(APP, f"generation {number}\n".encode())
        world.clock.advance(60)
    world.settle()
    assert sorted(world.values()) == ["generation 0", "generation 1", "generation 2", "seen"]


@promise("clocks generations")
@pytest.mark.parametrize("set_back_s", [2, 3_600])
@pytest.mark.parametrize("before", [0, 1, 2])
def test_a_clock_that_is_set_back_between_two_rotations_hides_nothing(
    world: World, before: int, set_back_s: int
) -> None:
    """If the clock is set back between two rotations, and the agent does not scan the directory
    between these rotations, the older file seems to be the newer file. The agent still reads both
    files."""
    lines = []
    for number in range(3):
        world.clock.advance(0.5)
        rotate(world)
        if number == before:
            world.clock.set_time_ms(world.clock.time_ms() - set_back_s * 1_000)
        lines.append(f"generation {number}")
        world.files.append(APP, f"{lines[-1]}\n".encode())
    world.settle()
    assert sorted(world.values()) == sorted(["seen", *lines])
    assert losses(world) == []


@promise("1 generations")
@pytest.mark.parametrize("origin", ["/log/other.log", f"{APP}.1", "/elsewhere/app.log"])
@pytest.mark.parametrize("is_down", [False, True])
def test_an_old_file_that_came_to_the_path_hides_no_generation(origin: str, is_down: bool) -> None:
    """If a log is rotated and an old file is renamed to the log's path between two scans, the
    rotated file is younger than the file at the path. The agent still reads the rotated file."""
    world = make(APP, "/log/other.log")
    world.files.append(APP, b"seen\n")
    world.start()
    world.settle()
    rotate(world)
    world.files.append(APP, b"next\n")
    world.files.append("/elsewhere/app.log", b"elsewhere\n")
    world.files.append("/log/other.log", b"other\n")
    world.settle()
    if is_down:
        world.kill()
    world.files.rename(APP, "/log/kept")
    world.files.append(APP, b"generation\n")
    world.files.rename(APP, f"{APP}.7")
    world.files.rename(origin, APP)
    if is_down:
        world.start()
    world.settle()
    lines = {"seen", "next", "other", "generation"}
    assert sorted(world.values()) == sorted(lines | ({"elsewhere"} if "else" in origin else set()))
    assert losses(world) == []


def test_a_hole_in_the_numbers_is_declared(world: World) -> None:
    """If the second of three rotated files was deleted before the agent read it, a loss is
    declared."""
    lines = generations(world, 3)
    world.files.delete(f"{APP}.2")
    world.settle()
    assert sorted(world.values()) == sorted(["seen", lines[1], lines[2]])
    assert [loss.end for loss in losses(world)] == [None]


@promise("clocks generations")
def test_a_clock_that_was_set_back_hides_nothing(world: World) -> None:
    """If the clock is set back while the agent runs, a new rotated file seems to be older than the
    agent's last scan. The agent still reads the rotated file."""
    world.clock.set_time_ms(world.clock.time_ms() - 7_200_000)
    lines = generations(world, 2)
    world.settle()
    assert sorted(world.values()) == sorted(["seen", *lines])


def test_when_a_topic_was_started_with_first_is_kept(world: World) -> None:
    """The agent stores the time at which it first started with a topic, and keeps this time when it
    starts again. If the agent starts again before it has sent the topic's first seal, the stored
    time shows which rotated files are new. A seal says that all earlier lines are counted."""
    first = StateDatabase(world.connection).since()
    world.kill()
    world.clock.advance(60)
    world.start()
    world.settle()
    assert StateDatabase(world.connection).since() == first
    assert first.keys() == {"logs"}


def test_what_was_rotated_before_an_emptied_log_is_declared_once() -> None:
    """Suppose that a rotated file was deleted, and that the log was copied and emptied after that.
    The agent declares what it did not see once, and not again at each start."""
    world = World(settings(raw("logs", "/log/app.log"), close_rotated_ms=1_000))
    world.files.append("/log/app.log", b"one\n")
    world.start()
    world.settle(4)
    world.files.rename("/log/app.log", "/log/app.log.1")
    world.settle(8)
    world.files.append("/log/app.log", b"two\n")
    world.files.delete("/log/app.log.1")
    world.files.append("/log/app.log.2", b"two\n")
    world.settle(4)
    world.files.truncate("/log/app.log")
    world.agent.touch(["/log/app.log"])
    world.turn()
    world.settle()
    declared = losses(world)
    for _ in range(3):
        world.kill()
        world.start()
        world.settle()
    assert losses(world) == declared
