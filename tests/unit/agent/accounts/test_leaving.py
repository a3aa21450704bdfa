"""An agent's last word about a topic is a final seal, which says that all lines are delivered. The
tests check when the agent sends a last word, when it takes a last word back, and what prevents a
last word."""

from dataclasses import replace

from skidway.agent.accounts import sealing
from skidway.agent.accounts.leaving import Leaving, obstacles
from skidway.agent.accounts.sealing import Noted
from skidway.agent.state.changes import LastWord
from skidway.agent.values.found import FileKey
from skidway.agent.values.identity import Fingerprint, Guard
from skidway.agent.values.tracked import Birth, Checkpoint, FileState, TrackedFile


def tracked(position: int, size: int, **others: object) -> TrackedFile:
    birth = Birth(1, 1, "t", "", "h", "/p", FileKey(1, 1), Fingerprint(0, b""))
    made = TrackedFile(birth, Checkpoint(position, 0, Guard(0, 0), ()), "/p")
    made.tally.acknowledged = made.read_position = position
    made.size, made.verified = size, True
    for name, value in others.items():
        setattr(made, name, value)
    return made


def noted_of(file: TrackedFile) -> Noted:
    return sealing.note("t", 1000, 5, 0, [file])


def is_last_word(leaving: Leaving, file: TrackedFile) -> bool:
    return leaving.judge(noted_of(file), {1: file})


def test_only_a_topic_at_rest_gets_its_last_word() -> None:
    """A topic's last word is a message which says that all the topic's lines are delivered. An
    agent that was asked to leave sends this message when two conditions hold: every byte is
    acknowledged, and the agent has checked since its start that every open file is still the file
    that it has read."""
    leaving = Leaving({})
    assert not is_last_word(leaving, tracked(9, 9))
    leaving.is_asked = True
    assert not is_last_word(leaving, tracked(8, 9))
    assert not is_last_word(leaving, tracked(8, 9, promised=9, read_position=9))
    assert not is_last_word(leaving, tracked(9, 9, verified=False))
    assert not leaving.is_done_with("t")
    assert is_last_word(leaving, tracked(9, 9))
    assert leaving.is_done_with("t"), "nothing is read between the look and the seal"


def test_a_last_word_lasts_until_something_turns_up() -> None:
    """A topic's last word is a message which says that all the topic's lines are delivered. When
    the agent starts, it takes back the last words that it sent before this start. While it runs, it
    takes back a last word as soon as a scan finds that a file has more bytes, or may no longer have
    the bytes that the agent read."""
    leaving = Leaving({"t": LastWord(900, 3)})
    leaving.is_asked = True
    assert not leaving.is_done_with("t"), "it is looked through again"
    assert leaving.take_back() == {"t": LastWord(900, 3)}
    assert leaving.take_back() == {}, "it is none any more"
    file = tracked(9, 9)
    for disturb in (lambda: setattr(file, "size", 12), lambda: setattr(file, "verified", False)):
        file.size, file.verified = 9, True
        noted = replace(noted_of(file), final=True)
        assert leaving.judge(noted, {1: file})
        assert leaving.said(noted)
        leaving.review(noted_of(file), {1: file})
        assert leaving.take_back() == {}
        disturb()
        leaving.review(noted_of(file), {1: file})
        assert not leaving.is_done_with("t")
        assert leaving.take_back() == {"t": LastWord(1000, 5)}
        assert leaving.left == {}


def test_a_note_in_doubt_is_made_again() -> None:
    """Before a topic's last word (the message which says that all its lines are delivered), the
    agent notes the sizes of the topic's files, and stops reading them. If the next scan finds that
    one of these files was replaced, the agent reads the topic's files again. When they are read,
    the topic gets its last word."""
    leaving = Leaving({})
    leaving.is_asked = True
    assert is_last_word(leaving, tracked(9, 9))
    leaving.review(sealing.note("t", 0, 0, 1, []), {})
    assert not leaving.is_done_with("t")
    assert leaving.take_back() == {}, "the last word was not sent"
    assert is_last_word(leaving, tracked(12, 12))


def test_what_is_not_durable_yet_is_not_done() -> None:
    """A topic's last word is a message which says that all the topic's lines are delivered. The
    agent counts the message as sent only after the commit of the transaction that stores it,
    because a full disk can delay the commit."""
    leaving = Leaving({})
    leaving.is_asked = True
    file = tracked(9, 9)
    leaving.judge(noted_of(file), {1: file})
    leaving.said(replace(noted_of(file), final=True))
    assert leaving.kept == set()
    leaving.committed()
    assert leaving.kept == {"t"}
    leaving.disturbed("t")
    assert leaving.kept == set()


def test_what_stands_in_the_way_is_named() -> None:
    """A topic's last word is a message which says that all the topic's lines are delivered. If the
    agent cannot send last words yet, it lists each file that prevents one, with the file's error or
    number of undelivered bytes. The list names no completely delivered file, and no file of a topic
    that already has its last word."""
    files = [tracked(3, 9), tracked(0, 5, state=FileState.CLOSED, length=5)]
    assert list(obstacles(["t"], files, {})) == ["topic t: 6 bytes of /p are not delivered"]
    denied = {"t": {"/p": "Permission denied"}}
    assert list(obstacles(["t"], files, denied)) == [
        "topic t: /p cannot be read: Permission denied"
    ]
    (busy,) = obstacles(["t"], [tracked(9, 9)], {})
    assert "written to" in busy
    assert list(obstacles([], files, denied)) == []
