"""Tests an agent that is asked to leave. The agent's last word on a topic is a final seal, which
says that all lines are delivered. The tests show what prevents a last word, and what makes the
agent take a last word back."""

import pytest

from skidway.agent.state.database import StateDatabase, StateFull
from skidway.audit.topic.messages import Announcement, Delta, Seal
from skidway.audit.topic.seal_columns import NEVER_SEALED, SealedTopic
from support.agent_world import World, raw, settings
from support.promises import promise

A = "/log/a.log"


@pytest.fixture
def world() -> World:
    return World(settings(raw()))


def newest(world: World, topic: str = "logs") -> SealedTopic:
    return [x for seal in world.of(Seal) for x in seal.topics if x.source.topic == topic][-1]


def drain(world: World, rounds: int = 40) -> bool:
    """Starts the agent and asks it to leave. Returns whether it has left within `rounds` turns of
    its loop."""
    world.start().leave()
    for _ in range(rounds):
        world.tick(0.1)
        if world.agent.has_left:
            return True
    return False


def test_an_agent_that_leaves_delivers_all_and_says_so(world: World) -> None:
    """An agent that leaves delivers all lines, including a last line without a line terminator.
    After its last word (a final seal, which says that all lines are delivered), it sends no delta,
    which is a message of counts."""
    world.files.append(A, b"one\ntwo")
    world.start()
    world.tick()
    world.kill()
    assert drain(world)
    assert world.values() == ["one", "two"]
    assert newest(world).final
    assert newest(world, "logs.rejected").final
    numbers = [delta.number for delta in world.of(Delta)]
    assert max(numbers) <= newest(world).at
    assert max(seal.number for seal in world.of(Seal)) > max(numbers)


@promise("6 last word")
def test_no_file_is_closed_by_leaving(world: World) -> None:
    """An agent that leaves closes no file, because it could not take back a closure (the
    announcement of a file's final length). So if a file grows and is deleted before the agent runs
    again, the agent still declares the new bytes lost."""
    world.files.append(A, b"1\n")
    assert drain(world)
    assert [x for x in world.of(Announcement) if x.length is not None] == []
    world.kill()
    world.files.append(A, b"2\n")
    world.files.delete(A)
    world.start()
    world.settle(5)
    (loss,) = world.losses()
    assert "vanished" in loss.reason


def test_nothing_to_deliver_is_a_last_word_too(world: World) -> None:
    """An agent that has nothing to deliver still sends its last word (a final seal, which says that
    all lines are delivered). If it is asked to leave a second time, it sends a last word again."""
    assert drain(world)
    said = len(world.of(Seal))
    world.kill()
    assert drain(world)
    assert newest(world).final
    assert len(world.of(Seal)) > said


def test_a_file_that_is_written_to_has_no_last_word_until_it_rests(world: World) -> None:
    """While a program writes to a file, the agent reports the file as an obstacle to leaving, and
    sends ordinary seals for the file's topic. It sends the final seal, its last word on the topic,
    when the file no longer changes."""
    world.files.append(A, b"0\n")
    world.start().leave()
    for index in range(40):
        world.files.append(A, b"%d\n" % index)
        world.tick(0.1)
    assert not world.agent.has_left
    (obstacle,) = world.agent.obstacles()
    assert "bytes of /log/a.log are not delivered" in obstacle
    assert not newest(world).final
    for _ in range(20):
        world.tick(0.1)
    assert world.agent.has_left
    assert world.agent.obstacles() == []
    assert len(world.values()) == 41


@promise("6 last word")
def test_it_has_left_only_when_all_topics_rest_at_one_look() -> None:
    """An agent has left only when one scan finds the files of all topics unchanged. A last word is
    the final seal of a topic, which says that all lines are delivered. If a topic's file grows
    after the topic's last word, while another topic has no last word yet, the agent takes the last
    word back. It delivers the new bytes and sends the last word again."""
    world = World(settings(raw("logs", A), raw("other", "/other/*.log")))
    world.files.append(A, b"1\n")
    waits = world.files.append("/other/b.log", b"2\n")
    waits.unreadable = True
    assert not drain(world, 20)
    word = newest(world)
    assert word.final
    world.files.append(A, b"12345\n")
    world.clock.advance(0.2)
    world.turn()
    world.publish()
    assert not newest(world).final
    assert (newest(world).sealed_until, newest(world).at) == (word.sealed_until, word.at)
    assert world.values() == ["1"], "it is none any more before it is read on"
    waits.unreadable = False
    for _ in range(40):
        world.tick(0.1)
        if world.agent.has_left:
            break
    assert world.agent.has_left
    assert world.agent.pending_bytes == 0
    assert world.values() == ["1", "12345"]
    assert newest(world).final
    assert newest(world).sealed_until > word.sealed_until


def test_what_was_said_does_not_end_it_when_more_is_seen(world: World) -> None:
    """The last word is the final seal, which says that all lines are delivered. Even after the
    agent has sent the last word, the agent does not leave if the kernel has reported a change since
    the last scan."""
    world.files.append(A, b"1\n")
    assert drain(world)
    world.files.append(A, b"2\n")
    world.agent.touch([A])
    world.turn()
    assert not world.agent.has_left


@promise("6 last word")
def test_no_last_word_of_before_stands_over_what_cannot_be_read(world: World) -> None:
    """A last word says that all lines are delivered. After the agent has left, a file may grow and
    become unreadable. If the agent is asked to leave again, it takes the old last word back,
    although it cannot read the new bytes."""
    file = world.files.append(A, b"1\n")
    assert drain(world)
    world.kill()
    world.files.append(A, b"2\n")
    file.unreadable = True
    assert not drain(world, 20)
    assert world.agent.unsaid == {"logs"}
    assert not newest(world).final
    file.unreadable = False
    world.kill()
    assert drain(world)
    assert newest(world).final
    assert world.values() == ["1", "2"]


def test_a_file_that_becomes_another_one_takes_the_last_word_back(world: World) -> None:
    """The last word says that all lines are delivered. If the bytes of a file change afterwards,
    the agent takes the last word back and reads the new bytes, even if the file's size stays the
    same."""
    world.files.append(A, b"1\n")
    world.start().leave()
    for _ in range(20):
        world.tick(0.1)
    assert newest(world).final
    world.files.overwrite(A, 0, b"2\n")
    world.tick(0.2)
    world.publish()
    assert not newest(world).final
    for _ in range(40):
        world.tick(0.1)
    assert world.agent.has_left
    assert world.values() == ["1", "2"]


def test_a_path_that_cannot_be_read_takes_the_last_word_back(world: World) -> None:
    """The last word says that all lines are delivered. If a new file cannot be read afterwards, the
    agent takes the last word back, and sends it again when the file is read."""
    world.files.append(A, b"1\n")
    assert drain(world)
    word = newest(world)
    hidden = world.files.append("/log/b.log", b"2\n")
    hidden.unreadable = True
    world.tick()
    world.publish()
    assert not newest(world).final
    assert (newest(world).sealed_until, newest(world).at) == (word.sealed_until, word.at)
    assert world.agent.unsaid == {"logs"}
    hidden.unreadable = False
    for _ in range(20):
        world.tick()
    assert world.agent.has_left
    assert newest(world).final
    assert world.values() == ["1", "2"]


def test_a_seal_in_doubt_is_not_sent_and_a_last_word_follows() -> None:
    """If a leaving agent notices, while a seal waits for acknowledgements, that it has missed
    rotated files, it does not send this seal. When the lines that are in the log now are
    acknowledged, the agent sends its last word, the final seal, with the time of a later scan."""
    world = World(settings(raw("logs", A)))
    world.files.append(A, b"1\n")
    world.start()
    world.settle(5)
    before = len(world.of(Seal))
    world.files.append(A, b"2\n")
    world.agent.leave()
    world.hold(3)
    noted = world.clock.time_ms()
    world.clock.advance(1)
    for number in range(3):  # rotation keeps only one rotated file
        world.files.rename(A, f"{A}.1")
        world.files.append(A, b"%d\n" % number)
    world.hold(1)
    assert not world.agent.has_left
    for _ in range(40):
        world.tick()
    assert min(x.sealed_until for seal in world.of(Seal)[before:] for x in seal.topics) > noted
    assert world.agent.has_left
    assert newest(world).final
    assert sorted(world.values()) == ["1", "1", "2", "2"]


@promise("6 last word")
def test_an_agent_that_runs_again_takes_its_last_word_back_at_once(world: World) -> None:
    """The last word says that all lines are delivered. If an agent that has left runs again, it
    replaces its last word by an ordinary seal of the same time. It does so before it reads a new
    line."""
    world.files.append(A, b"1\n")
    assert drain(world)
    word = newest(world)
    world.kill()
    world.files.append(A, b"2\n")
    world.start()
    world.turn()
    world.publish()
    assert not newest(world).final
    assert (newest(world).sealed_until, newest(world).at) == (word.sealed_until, word.at)
    assert world.values() == ["1"]
    world.settle(5)
    assert world.values() == ["1", "2"]
    assert StateDatabase(world.connection).left == {}


def test_an_agent_that_is_asked_again_takes_it_back_first(world: World) -> None:
    """If an agent is asked to leave a second time, it takes the old last word back in its first
    transaction. So even after a crash, no last word claims that unread lines are delivered."""
    world.files.append(A, b"1\n")
    assert drain(world)
    world.kill()
    world.files.append(A, b"2\n")
    world.start().leave()
    world.turn()
    world.publish()
    assert not newest(world).final
    world.kill()
    assert drain(world)
    assert newest(world).final
    assert world.values() == ["1", "2"]


def test_a_last_word_on_a_topic_that_was_made_again_is_dropped(world: World) -> None:
    """The last word is the final seal of an agent that leaves. If the topic was deleted and made
    again before the agent runs again, the agent sends no seal with the last word's time, because
    the new topic has no seal that this seal could replace."""
    world.files.append(A, b"1\n")
    assert drain(world)
    word = newest(world)
    world.kill()
    world.topic_ids = "made-again"
    seals = len(world.of(Seal))
    world.start()
    world.settle(5)
    said = [x for seal in world.of(Seal)[seals:] for x in seal.topics]
    assert said
    assert all(each.sealed_until > word.sealed_until for each in said)
    assert StateDatabase(world.connection).left == {}


def test_one_topic_has_its_last_word_while_another_waits() -> None:
    """An unreadable file prevents only the last word (the final seal) of its own topic, and the
    agent reports the file."""
    world = World(settings(raw("logs", A), raw("other", "/other/*.log")))
    world.files.append(A, b"1\n")
    world.files.append("/other/b.log", b"2\n").unreadable = True
    assert not drain(world)
    assert newest(world).final
    assert world.agent.obstacles() == [
        "topic other: /other/b.log cannot be read: Permission denied"
    ]
    others = [x for seal in world.of(Seal) for x in seal.topics if x.source.topic == "other"]
    assert {each.sealed_until for each in others} == {NEVER_SEALED}


def test_promises_of_before_are_kept_first(world: World) -> None:
    """Records that were on their way when the agent was killed are sent again after its next start,
    before the last word (which says that all lines are delivered)."""
    world.files.append(A, b"1\n2\n")
    world.start()
    world.hold(10, 0.3)
    world.kill()
    assert world.values() == []
    assert drain(world)
    assert world.values() == ["1", "2"]


def test_a_last_word_that_cannot_be_kept_is_none(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the disk is full, the last word (which says that all lines are delivered) cannot be
    stored, and is not sent. Once there is room again, the agent leaves."""
    world.files.append(A, b"1\n")

    def full(_state: StateDatabase, _changes: object) -> None:
        raise StateFull("the disk is full")

    world.start()
    world.settle(10)
    monkeypatch.setattr(StateDatabase, "commit", full)
    world.agent.leave()
    for _ in range(20):
        world.tick(0.1)
    assert world.agent.full_reason == "the disk is full"
    assert world.agent.unsaid == {"logs"}
    monkeypatch.undo()
    for _ in range(20):
        world.tick(0.1)
    assert world.agent.has_left
