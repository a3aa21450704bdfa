"""The announcement of a log file is an audit message with the file's host and path. If the
announcement is missing, the loader stores a note: the time at which it began to wait for the
announcement."""

from __future__ import annotations

from skidway.loader.state.waiting import WaitingNotes
from support.memory_store import MemoryStore
from support.promises import promise

KEY = ((1 << 63) - 1, 5)


@promise("clocks wait")
def test_the_wait_begins_once() -> None:
    """The wait for a file's announcement begins with the first load that reads a record of the
    file. Later loads do not restart the wait."""
    notes = WaitingNotes(MemoryStore(), "logs")
    notes.begin(KEY, 1000)
    notes.begin(KEY, 5000)
    assert notes.over(2999, 2000) == frozenset()
    assert notes.over(3000, 2000) == {KEY}


def test_announced_files_are_not_waited_for() -> None:
    """When a log file is announced, the note about its missing announcement is deleted. The notes
    about other files stay."""
    notes = WaitingNotes(MemoryStore(), "logs")
    notes.begin(KEY, 0)
    notes.begin((1, 2), 0)
    notes.clear({KEY: ("host", "path")})
    assert notes.over(10, 0) == {(1, 2)}


def test_a_damaged_note_only_makes_the_wait_longer() -> None:
    """If the note about a missing announcement is damaged, no record is rejected because of the
    damage. The wait only becomes longer."""
    store = MemoryStore()
    store.put("_skidway/logs/waiting/1-2", b"")
    store.put("_skidway/logs/waiting/other", b"7")
    assert WaitingNotes(store, "logs").over(10_000, 1) == frozenset()
