"""Links that a pattern matches: the file is read, watched and searched for where it really lies."""

from __future__ import annotations

import pytest

from audit.messages import Announcement, Delta, Loss, Seal
from support.agent_world import World, raw, settings

LINK, TARGET = "/containers/web.log", "/pods/0.log"


@pytest.fixture
def world() -> World:
    """As kubelet lays logs out: the pattern means the link alone."""
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
    """As kubelet does: the file gets a time behind its name, the link stays."""
    world.files.rename(TARGET, f"{TARGET}.20261121-{stamp}")
    world.files.append(TARGET, f"{line}\n".encode())
    return line


def rotations(world: World) -> list[str]:
    return [rotate(world, f"07000{number}", f"line {number}") for number in range(3)]


def test_generations_beside_the_target_are_read(world: World) -> None:
    """Three rotations between two looks: each line once, nothing declared."""
    lines = rotations(world)
    world.settle()
    assert sorted(world.values()) == sorted(["seen", *lines])
    assert losses(world) == []
    assert LINK in {each.path for each in world.of(Announcement)}


def test_rotations_of_the_target_while_the_agent_was_down(world: World) -> None:
    """What lies beside the target is not lost, and is read to its end."""
    world.kill()
    world.files.append(TARGET, b"unread\n")
    lines = rotations(world)
    world.clock.advance(3_600)
    world.start()
    world.settle()
    assert sorted(world.values()) == sorted(["seen", "unread", *lines])
    assert losses(world) == []


def test_a_link_that_is_set_to_the_next_file(world: World) -> None:
    """As rotatelogs and cronolog do: the files between two looks have names of the same kind."""
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
    """Also where it went while the agent was down."""
    world.kill()
    world.files.append(TARGET, b"last\n")
    del world.files.links[LINK]
    world.start()
    world.settle()
    assert world.values() == ["seen", "last"]
    assert losses(world) == []


def test_a_link_that_leads_nowhere_holds_the_seal_by_name(world: World) -> None:
    """Nobody knows what it should lead to."""
    world.files.link("/containers/dead.log", "/pods/nowhere.log")
    world.settle(rounds=3)
    seals = len(world.of(Seal))
    assert "nowhere" in world.agent.tracker.unreadable["logs"]["/containers/dead.log"]
    world.settle()
    assert len(world.of(Seal)) == seals
    del world.files.links["/containers/dead.log"]
    world.settle()
    assert len(world.of(Seal)) > seals


def test_an_event_of_the_target_is_one_of_the_link(world: World) -> None:
    """Its directory is watched; what is written there is read without waiting for a look."""
    assert world.agent.tracker.linked_directories == {"/pods"}
    world.files.append(TARGET, b"more\n")
    world.agent.touch([TARGET])
    assert world.agent.reader.has_ready


def test_a_link_and_its_target_are_one_file() -> None:
    """Where a pattern means both, each line arrives once."""
    made = World(settings(raw("logs", "/containers/*.log", "/pods/*.log")))
    made.files.append(TARGET, b"seen\n")
    made.files.link(LINK, TARGET)
    made.start()
    made.settle()
    lines = rotations(made)
    made.settle()
    assert sorted(made.values()) == sorted(["seen", *lines])
    assert losses(made) == []
