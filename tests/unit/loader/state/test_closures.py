"""After an agent has closed a log file, the loader forgets the file only when no repeat of its
records can come any more. Before that, loads must reach the fence, which is an offset for each
partition."""

from __future__ import annotations

import pytest

from skidway.loader.state.closures import (
    GRACE_MS,
    SETTLED_MS,
    Closures,
    Heard,
    Stage,
)
from support.promises import promise

FILE, OTHER = (7, 1), (7, 2)
CLOSED_MS, NOW_MS = 1_000, 5_000_000
LATER_MS = NOW_MS + SETTLED_MS
SEALED_MS = CLOSED_MS + GRACE_MS
MARKS = {0: {FILE: 10}}


def closed(*files: tuple[int, int]) -> Closures:
    """Returns the state of a topic's closed files, after the loader has read that the given files
    (by default FILE) were closed."""
    closures = Closures()
    closures.close(dict.fromkeys(files or (FILE,), CLOSED_MS), NOW_MS)
    return closures


def sealed(*files: tuple[int, int]) -> Closures:
    closures = closed(*files)
    closures.seal({7: Heard(SEALED_MS, {0: 40})}, (), MARKS)
    return closures


@promise("5 closed files")
def test_a_file_goes_when_all_is_loaded_that_was_there_after_its_seal() -> None:
    """After the loader has read a seal (an agent's message that all lines up to a time are
    acknowledged), it asks for the partitions' high watermarks. It forgets a closed log file as soon
    as each partition is loaded up to its high watermark, and not before."""
    closures = sealed()
    closures.make_fence(closures.settled(LATER_MS), {0: 50, 1: 8})
    assert closures.passed({0: 50, 1: 7}) == []
    assert closures.passed({0: 49, 1: 9}) == []
    assert closures.passed({0: 50, 1: 8}) == [FILE]
    assert not closures.files
    assert not closures.is_fenced


@promise("5 closed files")
@pytest.mark.parametrize(
    ("time_ms", "offsets", "agent"),
    [(SEALED_MS - 1, {0: 40}, 7), (SEALED_MS, {1: 40}, 7), (SEALED_MS, {0: 40}, 8)],
    ids=["too early", "without a partition of the file", "of another agent"],
)
def test_a_seal_that_proves_too_little_moves_no_file(
    time_ms: int, offsets: dict[int, int], agent: int
) -> None:
    """A seal is an agent's audit message that all lines up to a time have been acknowledged. A seal
    counts for a closed file only if the file's own agent sent the seal an hour or more after it
    closed the file. The seal must also give an offset for every partition in which the loader has a
    mark of the file (the position up to which it is loaded)."""
    closures = closed()
    closures.seal({agent: Heard(time_ms, offsets)}, (), MARKS)
    assert closures.files[FILE].stage is Stage.CLOSED


@promise("5 closed files")
def test_a_seal_counts_only_behind_the_closure() -> None:
    """A run may read both a file's closure (the message that the file was closed) and a seal of the
    file's agent. The seal proves that the file is complete only if it comes after the closure in
    the audit topic's log, whatever the times in the messages are."""
    closures = closed(FILE, OTHER)
    heard = Heard(SEALED_MS, {0: 40}, frozenset({OTHER}))
    closures.seal({7: heard}, {FILE, OTHER}, MARKS)
    assert closures.files[FILE].stage is Stage.CLOSED
    assert closures.files[OTHER].stage is Stage.SEALED


@promise("5 closed files")
def test_the_loaders_clock_counts_too() -> None:
    """A fence consists of the offsets that loads must reach before the loader forgets a closed
    file. A closed file gets a fence only after a later seal of its agent. In addition, ten minutes
    must have passed by the loader's own clock since the loader read that the file was closed. So it
    does no harm if the agent's clock was set forward by an hour."""
    assert sealed().settled(LATER_MS - 1) == []
    assert sealed().settled(LATER_MS) == [FILE]


@promise("5 closed files")
def test_a_topic_has_one_fence() -> None:
    """A fence consists of the offsets that loads must reach before the loader forgets closed files.
    A topic has only one fence at a time. If the seal of another closed file arrives while closed
    files wait for this fence, the other file waits for the next fence. So the tables store only one
    fence offset for each partition, however far the loads lag."""
    closures = sealed()
    closures.make_fence(closures.settled(LATER_MS), {0: 50})
    closures.close({OTHER: CLOSED_MS}, NOW_MS)
    closures.seal({7: Heard(SEALED_MS, {0: 60})}, (), MARKS)
    assert closures.settled(LATER_MS) == []
    assert closures.passed({0: 50}) == [FILE]
    assert closures.settled(LATER_MS) == [OTHER]


@promise("5 closed files")
def test_a_mirror_must_reach_what_seals_name() -> None:
    """A fence consists of the offsets that loads must reach before the loader forgets closed files.
    Usually these offsets are high watermarks. But a mirrored topic may lag behind the source: its
    high watermark may be lower than an offset in a seal, or the mirror may lack a partition. In
    both cases the fence is one past the seal's offset."""
    closures = sealed()
    closures.name({0: 99, 3: 4})
    closures.name({0: 60})
    closures.make_fence(closures.settled(LATER_MS), {0: 50})
    assert closures.passed({0: 99, 3: 5}) == []
    assert closures.passed({0: 100}) == []
    assert closures.passed({0: 100, 3: 5}) == [FILE]


def test_a_closure_heard_again_changes_nothing() -> None:
    """After an agent has sent a file's closure (the message that the file was closed), the loader
    remembers the file for some time. After a crash, the agent may send the closure again. The
    second message does not extend this time."""
    closures = sealed()
    closures.close({FILE: CLOSED_MS + 5}, LATER_MS)
    assert closures.settled(LATER_MS) == [FILE]
