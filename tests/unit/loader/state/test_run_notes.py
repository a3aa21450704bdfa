"""A run note is a file that shows the progress of a run. The run writes it at most once in ten
seconds and deletes it at the end. If the note cannot be written, the load continues."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from skidway.audit.output import StoreFailed
from skidway.audit.recount import recount
from skidway.errors import SkidwayError
from skidway.loader.planning.topics import choose
from skidway.loader.state import layout
from skidway.loader.state.process import Process
from skidway.loader.state.run_notes import (
    FORGOTTEN_MS,
    WRITE_EVERY_S,
    OwnNote,
    RunNote,
    read_notes,
    sweep,
)
from skidway.loader.store import PARTIAL_SUFFIX
from skidway.loader.store.local import LocalStore
from support.clock import ManualClock
from support.memory_store import MemoryStore

DEAD = replace(Process.here("web1"), started=1)
AWAY = replace(Process.here("web1"), host="other", boot="x")


class Counting(MemoryStore):
    """A store that counts replacements of files, and can refuse to write."""

    def __init__(self) -> None:
        super().__init__()
        self.replaced, self.refuses = 0, False

    def replace(self, source: str, target: str) -> bool:
        if self.refuses:
            raise StoreFailed("the disk is full")
        self.replaced += 1
        return super().replace(source, target)


def put(store: MemoryStore, name: str, process: Process, said: int) -> RunNote:
    note = RunNote(name, "0.1.0", said, said, 1, process, {"topic": "logs"})
    store.put(layout.run_note(name), note.to_json())
    return note


def test_a_note_is_written_at_a_bounded_rate() -> None:
    """However often a run reports progress, it replaces its note (the file with its progress) at
    most once in ten seconds. Each new note has a higher counter."""
    store, clock = Counting(), ManualClock()
    with OwnNote(store, clock, "web1") as own:
        for number in range(800):
            own.say({"topic": "logs", "records": number})
            clock.advance(WRITE_EVERY_S / 80)
        assert store.replaced == 10
        (note,) = read_notes(store)
    assert (note.count, note.work["records"]) == (10, 720)
    assert note.process == Process.here("web1")
    assert note.said - note.since == 9 * WRITE_EVERY_S * 1000


@pytest.mark.parametrize("error", [None, SkidwayError("no"), KeyboardInterrupt()])
def test_a_run_deletes_its_note(error: BaseException | None) -> None:
    """A run deletes its note (the file with its progress) at its end, whether the run succeeds or
    fails."""
    store = MemoryStore()

    def run() -> None:
        with OwnNote(store, ManualClock(), "web1") as own:
            own.say({"topic": "logs"})
            assert len(read_notes(store)) == 1
            if error is not None:
                raise error

    if error is None:
        run()
    else:
        with pytest.raises(type(error)):
            run()
    assert store.snapshot == frozenset()


def test_a_note_that_cannot_be_written_stops_nothing() -> None:
    """If a run cannot write its note (the file with its progress) to the output, the run continues,
    and tries again ten seconds later."""
    store, clock = Counting(), ManualClock()
    with OwnNote(store, clock, "web1") as own:
        store.refuses = True
        own.say({"topic": "logs"})
        store.refuses = False
        own.say({"topic": "logs"})
        assert read_notes(store) == []
        clock.advance(WRITE_EVERY_S)
        own.say({"topic": "logs"})
        assert len(read_notes(store)) == 1


def test_the_notes_of_dead_runs_are_deleted() -> None:
    """A later run deletes three kinds of notes (files with the progress of runs): notes of runs
    whose process is gone, notes from other hosts if the time in the note differs much from the
    present time, and notes that are only partly written. The run keeps the notes of runs that may
    be alive."""
    store, clock = MemoryStore(), ManualClock()
    now_ms = clock.time_ms()
    put(store, "dead", DEAD, now_ms)
    put(store, "far", AWAY, now_ms - FORGOTTEN_MS - 1)
    put(store, "ahead", AWAY, now_ms + FORGOTTEN_MS + 1)
    kept = [put(store, "here", Process.here("web1"), now_ms), put(store, "young", AWAY, now_ms)]
    store.put(layout.run_note("torn"), b'{"format": 1')
    store.put(layout.run_note("dead") + PARTIAL_SUFFIX, b"")
    with OwnNote(store, clock, "web1") as own:
        own.say({"topic": "logs"})
        assert len(read_notes(store)) == 3
    assert sorted(read_notes(store), key=lambda each: each.id) == kept
    assert len(store.names(layout.RUNS)) == 2


def test_a_living_run_writes_a_deleted_note_again() -> None:
    """If the note of a live run (the file with its progress) is deleted by mistake, the run writes
    it again, so the deletion does no harm."""
    store, clock = MemoryStore(), ManualClock()
    with OwnNote(store, clock, "web1") as own:
        own.say({"topic": "logs"})
        store.delete(layout.RUNS)
        clock.advance(WRITE_EVERY_S)
        own.say({"topic": "logs"})
        assert len(read_notes(store)) == 1


def test_notes_are_no_topic(tmp_path: Path) -> None:
    """Run notes are files with the progress of runs. The folder of these notes is next to the
    folders of topics, but is never treated as a topic. Neither a name nor a pattern in the setting
    for topics selects this folder, and a recount ignores its files."""
    store = LocalStore(str(tmp_path))
    with OwnNote(store, ManualClock(), "web1") as own:
        own.say({"topic": "logs"})
        names = store.names(layout.STATE)
        assert len(names) == 1
        assert choose([".*", names[0]], names)[0] == []
        assert recount.topics(store) == []
    sweep(store, 0)
    assert read_notes(store) == []
