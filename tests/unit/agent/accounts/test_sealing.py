"""Tests when the agent sends seals. A seal says that all lines that were written before a certain
time are counted. When the agent scans a topic's files, it notes their lengths. It sends the topic's
seal when all bytes up to these lengths are acknowledged, or declared lost or uncertain."""

from skidway.agent.accounts import sealing
from skidway.agent.values.found import FileKey
from skidway.agent.values.identity import Fingerprint, Guard
from skidway.agent.values.tracked import Birth, Checkpoint, FileState, TrackedFile
from support.promises import promise


def tracked(file: int, position: int, size: int, **others: object) -> TrackedFile:
    birth = Birth(file, file, "t", "", "h", "/p", FileKey(1, file), Fingerprint(0, b""))
    made = TrackedFile(birth, Checkpoint(position, 0, Guard(0, 0), ()), "/p")
    made.size, made.verified = size, True
    for name, value in others.items():
        setattr(made, name, value)
    return made


def noted(*files: TrackedFile) -> sealing.Noted:
    return sealing.note("t", 1000, 5, 0, files)


@promise("6 seal")
def test_a_seal_waits_for_every_byte_that_lay_there() -> None:
    """A seal says that all lines before a certain time are counted. The agent first notes the
    lengths of the topic's files. It sends the seal when every byte up to these lengths is
    acknowledged, even in files to which no program writes any more. The seal does not wait for
    bytes that are written later."""
    growing = tracked(1, 10, 20)
    ended = tracked(2, 5, 9, state=FileState.ENDED, length=9)
    note = noted(growing, ended, tracked(3, 0, 7, state=FileState.CLOSED))
    files = {1: growing, 2: ended}
    assert note.targets == {1: 20, 2: 9}
    growing.checkpoint = Checkpoint(25, 0, Guard(0, 0), ())
    assert not sealing.is_complete(note, files)
    ended.checkpoint = Checkpoint(9, 0, Guard(0, 0), ())
    assert sealing.is_complete(note, files)


def test_nothing_is_said_of_a_file_in_doubt() -> None:
    """A seal says that all lines before a certain time are counted. After a start, the agent sends
    a seal only after it has checked that every file whose size it noted is still the file that it
    has read. If a file was replaced or truncated after its size was noted, the agent does not send
    this seal."""
    file = tracked(1, 20, 20, verified=False)
    note = noted(file)
    assert not sealing.is_complete(note, {1: file})
    file.verified = True
    assert sealing.is_complete(note, {1: file})
    assert not sealing.is_void(note, {1: file}, doubts=0)
    assert sealing.is_void(note, {1: file}, doubts=1)
    file.length = 15
    assert sealing.is_void(note, {1: file}, doubts=0)


def test_what_cannot_be_read_is_named() -> None:
    """A seal says that all lines before a certain time are counted. If unreadable files delay a
    topic's seal, the agent reports at most five of these files, and no file of another topic."""
    unreadable = {"t": {f"/p{index}": "denied" for index in range(9)}}
    assert sealing.held_back_by("t", unreadable)[0] == "/p0: denied"
    assert len(sealing.held_back_by("t", unreadable)) == 5
    assert sealing.held_back_by("other", unreadable) == []


def test_what_a_seal_waits_for_is_named() -> None:
    """If a seal waits, the agent names at most five of the files for which the seal waits."""
    files = {file: tracked(file, 3, 10, location=f"/p{file}") for file in range(1, 9)}
    note = noted(*files.values())
    assert list(sealing.waits_for(note, files)) == [f"/p{file}" for file in range(1, 6)]
    for file in range(1, 8):
        files[file].checkpoint = Checkpoint(10, 0, Guard(0, 0), ())
    assert sealing.waits_for(note, files) == {"/p8": "7 bytes are not delivered"}
    files[8].checkpoint = Checkpoint(10, 0, Guard(0, 0), ())
    files[1].verified = False
    assert sealing.waits_for(note, files) == {"/p1": "it may be another file"}
    del files[1]
    assert sealing.waits_for(note, files) == {}
