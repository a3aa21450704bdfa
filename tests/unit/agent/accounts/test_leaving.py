"""When a seal is the last word, when it is taken back, and what stands in its way."""

from agent.accounts import sealing
from agent.accounts.leaving import Leaving, obstacles
from agent.files.host import FileKey
from agent.files.tracked import Birth, Checkpoint, FileState, TrackedFile
from agent.identity import Fingerprint, Guard


def tracked(position: int, size: int, **others: object) -> TrackedFile:
    birth = Birth(1, 1, "t", "", "h", "/p", FileKey(1, 1), Fingerprint(0, b""))
    made = TrackedFile(birth, Checkpoint(position, 0, Guard(0, 0), ()), "/p")
    made.tally.acknowledged = made.read_position = position
    made.size, made.verified = size, True
    for name, value in others.items():
        setattr(made, name, value)
    return made


def is_last_word(leaving: Leaving, file: TrackedFile) -> bool:
    return leaving.judge(sealing.note("t", 1000, 5, 0, [(file, None)]), {1: file})


def test_only_a_topic_at_rest_gets_its_last_word() -> None:
    """Not with bytes unread, on their way, or in a file that is not verified; and never unasked."""
    leaving = Leaving(())
    assert not is_last_word(leaving, tracked(9, 9))
    leaving.is_asked = True
    assert not is_last_word(leaving, tracked(8, 9))
    assert not is_last_word(leaving, tracked(8, 9, promised=9, read_position=9))
    assert not is_last_word(leaving, tracked(9, 9, verified=False))
    assert not leaving.is_done_with("t")
    assert is_last_word(leaving, tracked(9, 9))
    assert leaving.is_done_with("t"), "nothing is read between the look and the seal"


def test_the_last_word_lasts_until_something_is_read() -> None:
    """Asked again, the agent takes it back where it reads on; when it runs, at once."""
    leaving = Leaving({"a", "b"})
    assert leaving.spoken_again(()) == {"a", "b"}
    leaving.is_asked = True
    assert not leaving.is_done_with("a"), "it is looked through again"
    assert leaving.spoken_again(()) == set()
    assert leaving.spoken_again({"b", "c"}) == {"b"}
    assert leaving.said("b", final=False)
    assert not leaving.said("b", final=False), "it is none any more"
    assert leaving.left == {"a"}


def test_a_note_in_doubt_is_made_again() -> None:
    """What turned out to be another file is read before anything is said of it."""
    leaving = Leaving(())
    leaving.is_asked = True
    assert is_last_word(leaving, tracked(9, 9))
    leaving.voided("t")
    assert not leaving.is_done_with("t")


def test_what_stands_in_the_way_is_named() -> None:
    """A sentence for each file with its bytes or its error; none for what is closed or done."""
    files = [tracked(3, 9), tracked(0, 5, state=FileState.CLOSED, length=5)]
    assert list(obstacles(["t"], files, {})) == ["topic t: 6 bytes of /p are not delivered"]
    denied = {"t": {"/p": "Permission denied"}}
    assert list(obstacles(["t"], files, denied)) == [
        "topic t: /p cannot be read: Permission denied"
    ]
    (busy,) = obstacles(["t"], [tracked(9, 9)], {})
    assert "written to" in busy
    assert list(obstacles([], files, denied)) == []
