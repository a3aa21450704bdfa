"""Tests how the agent decides whether a directory's names stayed the same while it listed the
directory."""

from __future__ import annotations

from skidway.agent.files.stillness import RESTLESS_S, STILL_MS, Restless, Seen, look_again

NAMES: Seen = frozenset({("app.log.1", 7)})
RENAMED: Seen = frozenset({("app.log.2", 7)})


def test_neighbours_that_come_and_go_keep_nothing_waiting() -> None:
    """Other files may be created and deleted in a log's directory all the time. If the names of the
    log and its rotated files stay the same, such changes do not make the agent list the directory
    again."""
    before = Restless(5.0, NAMES, 90)
    assert look_again(before, NAMES, 5.1, 90 + STILL_MS) is None


def test_two_looks_shortly_one_after_the_other_prove_nothing() -> None:
    """Two listings in quick succession may both find the same half-finished rotation. Therefore the
    agent lists the directory a third time and compares this listing with the first one."""
    before = Restless(5.0, NAMES, 90)
    assert look_again(before, NAMES, 5.0, 90 + STILL_MS - 1) == before


def test_names_that_change_are_waited_for() -> None:
    """While names change, the agent lists the directory again and again until they no longer
    change, because a busy host renames files slowly."""
    before = Restless(0.0, NAMES, 0)
    for look in range(1, 100):
        now = look * RESTLESS_S / 200
        again = look_again(before, RENAMED if look % 2 else NAMES, now, int(now * 1000))
        assert again is not None
        before = again


def test_a_directory_that_never_rests_is_taken_as_it_is() -> None:
    """If the names in a directory never stop changing, the agent gives up after a time limit and
    uses its last listing. Otherwise it could never send a seal, the message which says that all
    earlier lines are counted."""
    before = Restless(5.0, NAMES, 90)
    assert look_again(before, RENAMED, 5.0 + RESTLESS_S, 99_999) is None


def test_a_clock_that_was_set_back_keeps_nothing_waiting() -> None:
    """The agent lists a directory again if too little time has passed since the previous listing.
    If the clock was set back by more than this time, the agent does not list the directory again.
    By the clock, the previous listing is then later than the present one."""
    before = Restless(5.0, NAMES, 3_600_000)
    assert look_again(before, NAMES, 6.0, 1_000) is None
