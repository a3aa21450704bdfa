"""A closed file is forgotten only when no repeat of its records can come. The fence is the offset,
by partition, up to which loads must come first."""

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
    """A topic that heard the closures of these files."""
    closures = Closures()
    closures.close(dict.fromkeys(files or (FILE,), CLOSED_MS), NOW_MS)
    return closures


def sealed(*files: tuple[int, int]) -> Closures:
    closures = closed(*files)
    closures.seal({7: Heard(SEALED_MS, {0: 40})}, (), MARKS)
    return closures


@promise("5 closed files")
def test_a_file_goes_when_all_is_loaded_that_was_there_after_its_seal() -> None:
    """A file is forgotten as soon as each partition is loaded up to the watermark that it had after
    the seal, and not before."""
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
    """A seal counts only if the agent of the file sent it an hour or more after the closure, and if
    it names every partition in which the file has a mark."""
    closures = closed()
    closures.seal({agent: Heard(time_ms, offsets)}, (), MARKS)
    assert closures.files[FILE].stage is Stage.CLOSED


@promise("5 closed files")
def test_a_seal_counts_only_behind_the_closure() -> None:
    """If closure and seal are heard in one run, the seal counts only for files whose closure came
    first, whatever the times say."""
    closures = closed(FILE, OTHER)
    heard = Heard(SEALED_MS, {0: 40}, frozenset({OTHER}))
    closures.seal({7: heard}, {FILE, OTHER}, MARKS)
    assert closures.files[FILE].stage is Stage.CLOSED
    assert closures.files[OTHER].stage is Stage.SEALED


@promise("5 closed files")
def test_the_loaders_clock_counts_too() -> None:
    """A file waits for its fence until ten minutes have passed by the loader's clock, even if the
    agent's clock was set on by an hour."""
    assert sealed().settled(LATER_MS - 1) == []
    assert sealed().settled(LATER_MS) == [FILE]


@promise("5 closed files")
def test_a_topic_has_one_fence() -> None:
    """While files wait for a fence, later ones wait for the next fence. So the tables hold one
    offset for each partition, however far the loads lag."""
    closures = sealed()
    closures.make_fence(closures.settled(LATER_MS), {0: 50})
    closures.close({OTHER: CLOSED_MS}, NOW_MS)
    closures.seal({7: Heard(SEALED_MS, {0: 60})}, (), MARKS)
    assert closures.settled(LATER_MS) == []
    assert closures.passed({0: 50}) == [FILE]
    assert closures.settled(LATER_MS) == [OTHER]


@promise("5 closed files")
def test_a_mirror_must_reach_what_seals_name() -> None:
    """The watermark of a mirror may be lower than an offset that a seal names, and the mirror may
    lack a partition. The fence waits for both."""
    closures = sealed()
    closures.name({0: 99, 3: 4})
    closures.name({0: 60})
    closures.make_fence(closures.settled(LATER_MS), {0: 50})
    assert closures.passed({0: 99, 3: 5}) == []
    assert closures.passed({0: 100}) == []
    assert closures.passed({0: 100, 3: 5}) == [FILE]


def test_a_closure_heard_again_changes_nothing() -> None:
    """Messages are sent again after a crash. A closure that is heard again does not begin anew."""
    closures = sealed()
    closures.close({FILE: CLOSED_MS + 5}, LATER_MS)
    assert closures.settled(LATER_MS) == [FILE]
