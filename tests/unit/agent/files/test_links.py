"""Tests symbolic links that a pattern matches. The agent reads the link's target, and watches the
directory in which the target is. It also searches this directory for rotated files."""

from __future__ import annotations

import pytest

from skidway.audit.topic.messages import Announcement, Delta, Loss, Seal
from support.agent_world import World, raw, settings
from support.promises import promise

LINK, TARGET = "/containers/web.log", "/pods/0.log"


@pytest.fixture
def world() -> World:
    """An agent, a log, and a link to this log. The names are those that kubelet uses. The pattern
    matches only the link."""
    made = World(settings(raw("logs", "/containers/*.log")))
    made.files.append(TARGET, b"seen\n")
    made.files.link(LINK, TARGET)
    made.start()
    made.settle()
    assert losses(made) == []
    return made


def losses(world: World) -> list[Loss]:
    return [loss for delta in world.of(Delta) for loss in delta.losses]


def rotate(world: World, stamp: str, line: str) -> str:
    """Rotates the log as kubelet does. The old file gets a time at the end of its name, and a new
    file gets the old name. The link stays unchanged."""
    world.files.rename(TARGET, f"{TARGET}.20261121-{stamp}")
    world.files.append(TARGET, f"{line}\n".encode())
    return line


def rotations(world: World) -> list[str]:
    return [rotate(world, f"07000{number}", f"line {number}") for number in range(3)]


@promise("1 links")
def test_generations_beside_the_target_are_read(world: World) -> None:
    """If the link's target is rotated three times between two of the agent's scans, each line is
    read once, and nothing is declared lost."""
    lines = rotations(world)
    world.settle()
    assert sorted(world.values()) == sorted(["seen", *lines])
    assert losses(world) == []
    assert LINK in {each.path for each in world.of(Announcement)}


def test_rotations_of_the_target_while_the_agent_was_down(world: World) -> None:
    """If the link's target is rotated while the agent is down, the agent finds the rotated files in
    the target's directory, and reads them to their ends."""
    world.kill()
    world.files.append(TARGET, b"unread\n")
    lines = rotations(world)
    world.clock.advance(3_600)
    world.start()
    world.settle()
    assert sorted(world.values()) == sorted(["seen", "unread", *lines])
    assert losses(world) == []


def test_a_link_that_is_set_to_the_next_file() -> None:
    """Programs such as rotatelogs and cronolog start a new file and set a link to it. If the link
    points to several files in turn between two scans, the agent finds all of them by their similar
    names, and reads them."""
    made = World(settings(raw("logs", "/log/current.log")))
    made.files.append("/log/app.2026-11-20.log", b"seen\n")
    made.files.link("/log/current.log", "/log/app.2026-11-20.log")
    made.start()
    made.settle()
    for day in (21, 22, 23):
        made.files.append(f"/log/app.2026-11-{day}.log", b"%d\n" % day)
        made.files.link("/log/current.log", f"/log/app.2026-11-{day}.log")
    made.settle()
    assert sorted(made.values()) == ["21", "22", "23", "seen"]
    assert losses(made) == []


def test_a_link_that_went_leaves_its_file_to_be_read(world: World) -> None:
    """If a link is removed while the agent is down, the agent still reads the file to which the
    link pointed."""
    world.kill()
    world.files.append(TARGET, b"last\n")
    del world.files.links[LINK]
    world.start()
    world.settle()
    assert world.values() == ["seen", "last"]
    assert losses(world) == []


@promise("1 links")
def test_a_link_that_leads_nowhere_holds_the_seal_by_name(world: World) -> None:
    """If a link led to a file, and is dead now, the file may have lines that nobody has read. While
    the link exists, the agent names it and sends no seal, also after a restart."""
    world.files.append("/elsewhere/late.log", b"seen too\n")
    world.files.link("/containers/late.log", "/elsewhere/late.log")
    world.settle()
    world.files.delete("/elsewhere/late.log")
    world.settle(rounds=3)
    seals = len(world.of(Seal))
    assert "nowhere" in world.agent.tracker.unreadable["logs"]["/containers/late.log"]
    world.kill()
    world.start()
    world.settle()
    assert "nowhere" in world.agent.tracker.unreadable["logs"]["/containers/late.log"]
    assert len(world.of(Seal)) == seals
    del world.files.links["/containers/late.log"]
    world.settle()
    assert len(world.of(Seal)) > seals


def test_a_link_that_never_led_to_a_file_is_named_and_holds_nothing(world: World) -> None:
    """A dead link that has never led to a file is named, and the agent goes on to seal its topic.
    When the link's file appears, the agent reads it."""
    world.files.link("/containers/dead.log", "/pods/nowhere.log")
    world.settle(rounds=3)
    assert "nowhere" in world.agent.tracker.beside["logs"]["/containers/dead.log"]
    seals = len(world.of(Seal))
    world.settle()
    assert len(world.of(Seal)) > seals
    world.files.append("/pods/nowhere.log", b"late\n")
    world.settle()
    assert "late" in world.values()
    assert world.agent.tracker.beside == {}


def test_an_event_of_the_target_is_one_of_the_link(world: World) -> None:
    """The agent watches the directory of a link's target. So it reads new lines of the target at
    once, without waiting for its next scan."""
    assert world.agent.tracker.linked_directories == {"/pods"}
    world.files.append(TARGET, b"more\n")
    world.agent.touch([TARGET])
    assert world.agent.reader.has_ready


def test_a_link_and_its_target_are_one_file() -> None:
    """If the patterns match both a link and the link's target, each line arrives once."""
    made = World(settings(raw("logs", "/containers/*.log", "/pods/*.log")))
    made.files.append(TARGET, b"seen\n")
    made.files.link(LINK, TARGET)
    made.start()
    made.settle()
    lines = rotations(made)
    made.settle()
    assert sorted(made.values()) == sorted(["seen", *lines])
    assert losses(made) == []


# --- links that are set to another file ---------------------------------------------------------


@promise("1 link leads elsewhere")
@pytest.mark.parametrize("is_down", [False, True])
@pytest.mark.parametrize(
    "place", ["/log/2026-11-{}/app.log", "/log/2026/{}/x/app.log", "/log/{}.log", "/log/r{}/a.log"]
)
def test_what_a_link_led_to_between_two_looks_is_read(place: str, is_down: bool) -> None:
    """If a link is set to another file several times between two scans, the agent reads every file
    to which the link pointed. Some programs set a link to a new file every day or with every
    deployment."""
    made = World(settings(raw("logs", "/log/latest.log")))
    for number in range(1, 5):
        made.clock.advance(1)
        made.files.append(place.format(number), b"line %d\n" % number)
        made.files.link("/log/latest.log", place.format(number))
        if number == 1:
            made.start()
            made.settle()
            if is_down:
                made.kill()
                made.clock.advance(3_600)
    if is_down:
        made.start()
    made.settle()
    made.files.append(place.format(3), b"late\n")
    made.settle()
    lines = [f"line {number}" for number in range(1, 5)]
    assert sorted(made.values()) == sorted(["late", *lines])
    assert losses(made) == []


@promise("clocks generations")
@pytest.mark.parametrize("is_down", [False, True])
@pytest.mark.parametrize("before", [2, 3, 4])
def test_what_a_link_led_to_while_the_clock_was_set_back(before: int, is_down: bool) -> None:
    """Between two scans, a link is set to several files, one after the other. The clock is set back
    in between, so the times of these files may contradict their order. A running agent still reads
    all of them. An agent that was down may miss some of them, and then declares a loss."""
    made = World(settings(raw("logs", "/log/latest.log")))
    lines = []
    for number in range(1, 5):
        made.clock.advance(20)
        if number == before:
            made.clock.set_time_ms(made.clock.time_ms() - 3_600_000)
        lines.append(f"line {number}")
        made.files.append(f"/log/{number}/app.log", f"{lines[-1]}\n".encode())
        made.files.link("/log/latest.log", f"/log/{number}/app.log")
        if number == 1:
            made.start()
            made.settle()
            if is_down:
                made.kill()
    if is_down:
        made.start()
    made.settle()
    assert set(made.values()) <= set(lines)
    is_whole = sorted(made.values()) == lines
    assert is_whole or is_down
    assert is_whole is (losses(made) == [])


@pytest.mark.parametrize("is_down", [False, True])
def test_containers_whose_logs_are_called_by_their_ids(is_down: bool) -> None:
    """The agent reads every line of a container that crashes several times between two scans. After
    each crash, the link points to a new Docker log <id>/<id>-json.log with another id. One of these
    logs is also rotated."""
    made = World(settings(raw("logs", "/containers/app.log")))
    for number, id_ in enumerate(("0fa2d1c09e", "beefcafe01", "c0ffee77aa", "deadbeef42")):
        path = f"/docker/{id_}/{id_}-json.log"
        made.clock.advance(1)
        made.files.append(path, b"line %d\n" % number)
        if number == 2:
            made.files.rename(path, f"{path}.1")
            made.files.append(path, b"line 2b\n")
        made.files.link("/containers/app.log", path)
        if number == 0:
            made.start()
            made.settle()
            if is_down:
                made.kill()
    if is_down:
        made.start()
    made.settle()
    assert sorted(made.values()) == ["line 0", "line 1", "line 2", "line 2b", "line 3"]
    assert losses(made) == []


def test_links_to_names_without_an_order_are_declared() -> None:
    """If a link is set to another file, the link may have pointed to further files in between. If
    the names of the old and the new file do not show an order (such as numbers or dates), the agent
    cannot find these files, and declares a loss."""
    made = World(settings(raw("logs", "/log/latest.log")))
    for number, path in enumerate(("/log/a/first.log", "/log/b/next.log")):
        made.files.append(path, b"line %d\n" % number)
        made.files.link("/log/latest.log", path)
        if number == 0:
            made.start()
        made.settle()
    [loss] = losses(made)
    assert "the link leads elsewhere" in loss.reason


def test_other_logs_beside_what_a_link_led_to_are_left_alone() -> None:
    """Between two scans, a link was set from file A to file B. The agent does not read a file with
    a similar name that is older than A or newer than B, because the agent assumes that the link
    never pointed to this file."""
    made = World(settings(raw("logs", "/log/latest.log")))
    made.files.append("/log/0/app.log", b"history\n")
    made.clock.advance(60)
    made.files.append("/log/1/app.log", b"one\n")
    made.files.link("/log/latest.log", "/log/1/app.log")
    made.start()
    made.settle()
    made.clock.advance(60)
    made.files.append("/log/2/app.log", b"two\n")
    made.files.link("/log/latest.log", "/log/2/app.log")
    made.clock.advance(0.1)
    made.files.append("/log/3/app.log", b"being prepared\n")
    made.settle()
    assert made.values() == ["one", "two"]
    assert losses(made) == []


@promise("1 link leads elsewhere")
def test_logs_of_other_names_where_a_link_led_in_between_are_left_alone() -> None:
    """If a link pointed into a directory that also contains other logs, the agent does not read
    these other logs, because no pattern matches them."""
    made = World(settings(raw("logs", "/log/latest.log")))
    for number, line in enumerate((b"one\n", b"two\n", b"three\n")):
        made.files.append(f"/log/{number}/app.log", line)
        made.files.append(f"/log/{number}/errors.log", b"of nobody\n")
        made.files.link("/log/latest.log", f"/log/{number}/app.log")
        if number == 0:
            made.start()
            made.settle()
        made.clock.advance(60)
    made.settle()
    assert made.values() == ["one", "three", "two"]
    assert losses(made) == []


@promise("1 link leads elsewhere")
def test_a_link_that_leads_somewhere_else_altogether_is_declared(world: World) -> None:
    """If a link is set to an unrelated path, the agent declares a loss. The link may have pointed
    to other logs in between, and the agent does not know where to search for these logs."""
    world.files.append("/data/other/tree/web.log", b"next\n")
    world.files.link(LINK, "/data/other/tree/web.log")
    world.settle()
    assert world.values() == ["seen", "next"]
    (loss,) = losses(world)
    assert "the link leads elsewhere" in loss.reason


@promise("1 link leads elsewhere")
def test_containers_that_are_started_again_between_two_looks(world: World) -> None:
    """The agent reads every line of a container that is restarted several times between two scans,
    although kubelet's logs of all earlier runs (0.log, 1.log, 2.log) are rotated and compressed."""
    for number in range(1, 4):
        old = f"/pods/{number - 1}.log"
        world.files.rename(old, f"{old}.20261121-07000{number}")
        world.files.compress(f"{old}.20261121-07000{number}")
        world.clock.advance(0.01)
        world.files.append(f"/pods/{number}.log", b"line %d\n" % number)
        world.files.link(LINK, f"/pods/{number}.log")
    world.settle()
    assert sorted(world.values()) == ["line 1", "line 2", "line 3", "seen"]
    assert losses(world) == []


@promise("1 link leads elsewhere")
def test_files_of_another_user_where_a_link_led_in_between_are_declared() -> None:
    """If a file to which a link may have led between two looks, or a rotated file beside what it
    leads to, belongs to another user, the agent does not read it, and declares it."""
    made = World(settings(raw("logs", "/log/latest.log")))
    for number, line in enumerate((b"one\n", b"two\n", b"three\n")):
        made.files.append(f"/log/{number}/app.log", line)
        if number == 0:
            made.files.link("/log/latest.log", "/log/0/app.log")
            made.start()
            made.settle()
        made.clock.advance(60)
    made.files.by_path["/log/1/app.log"].owner = 7
    made.files.link("/log/latest.log", "/log/2/app.log")
    made.settle()
    assert made.values() == ["one", "three"]
    assert ["the link leads elsewhere" in each.reason for each in losses(made)] == [True]
    made.files.append("/log/2/app.log.1", b"secret\n")
    made.files.by_path["/log/2/app.log.1"].owner = 7
    made.files.rename("/log/2/app.log", "/log/2/app.log.2")
    made.files.append("/log/2/app.log", b"four\n")
    made.settle()
    assert made.values() == ["one", "three", "four"]
    assert "belongs to another user" in losses(made)[-1].reason
