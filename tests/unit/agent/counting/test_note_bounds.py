"""Tests when `skidway agent count` deletes its oldest notes about log lines. It deletes notes in
groups, which are called segments."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from skidway.agent.counting.segments import PARTS, Segment, Segments, stored_bytes
from skidway.agent.counting.state import CountChanges
from skidway.audit.comparison import notes
from support.counting import Counting, hashes_of

KEEP_BYTES, KEEP_MS = 64_000, 64_000


def test_the_oldest_notes_are_dropped_if_there_are_too_many() -> None:
    """If the notes of `skidway agent count` take more bytes than allowed, the oldest segments
    (groups of notes) are dropped, but no more segments than necessary."""
    segments = Segments([], KEEP_BYTES, KEEP_MS)
    numbers = [segments.add(500, 1) for _ in range(140)]
    assert numbers[:5] == [1, 1, 2, 2, 3]
    dropped = segments.drop(1)
    assert [each.number for each in dropped] == [1, 2, 3, 4, 5, 6]
    assert segments.drop(1) == []


def test_old_notes_are_dropped() -> None:
    """A segment (a group of notes) is dropped if its newest note is too old. The newest segment
    stays even if its notes are too old, so that its number is not used again."""
    segments = Segments([Segment(1, 0, 900, 10), Segment(2, 1_000, 1_500, 10)], KEEP_BYTES, KEEP_MS)
    assert segments.drop(900 + KEEP_MS) == []
    assert [each.number for each in segments.drop(901 + KEEP_MS)] == [1]
    assert segments.drop(10 * KEEP_MS) == []
    assert segments.add(10, 10 * KEEP_MS) == 3
    assert [each.number for each in segments.drop(10 * KEEP_MS)] == [2]


def test_a_segment_ends_after_a_part_of_the_time() -> None:
    """A segment is a group of notes that is dropped as a whole. If notes are kept for a time T, all
    notes of a segment were written within the time T / PARTS."""
    segments = Segments([], KEEP_BYTES, KEEP_MS)
    part_ms = KEEP_MS // PARTS
    assert [segments.add(1, at) for at in (0, part_ms - 1, part_ms, part_ms + 1)] == [1, 1, 2, 2]


def test_long_values_are_counted_by_pages() -> None:
    """The agent adds up the sizes of its notes. For a long value, it adds at least the size of the
    database pages that the value needs."""
    assert stored_bytes(bytes(100)) < 300
    assert stored_bytes(bytes(4097)) >= 2 * 4096


def test_the_notes_say_since_when_they_are_whole(tmp_path: Path) -> None:
    """After `skidway agent count` has dropped old notes, its database says that the notes are
    complete only for the time after the newest dropped note."""
    world = Counting(tmp_path / "notes")
    world.settings = replace(world.settings, keep_s=3600.0)
    world.write("a")
    world.turn()
    first_ms = world.counted().from_ms
    world.files.delete("/log/app.log")
    world.turn(times=70)
    world.clock.advance(3000)
    world.write("b")
    world.turn()
    assert (world.hashes(), world.counted().from_ms) == (hashes_of("a", "b"), first_ms)
    world.clock.advance(3000)
    world.write("c")
    world.turn(times=20)
    assert world.hashes() == hashes_of("b", "c")
    assert first_ms < world.counted().from_ms < world.clock.time_ms() - 3_600_000
    assert world.state is not None
    world.kill()
    world.turn()
    assert world.hashes() == hashes_of("b", "c")


def test_the_notes_are_never_called_whole_for_an_earlier_time(tmp_path: Path) -> None:
    """Dropping an older segment does not move back the time since which the notes are complete.
    This time may be later than the segment's newest note, because the database has deleted rows
    about byte ranges without a note."""
    world = Counting(tmp_path / "notes")
    world.write("a")
    world.turn()
    assert world.state is not None
    later_ms = world.counted().from_ms + 5_000
    changes = CountChanges()
    changes.put_meta(notes.COUNTED_FROM, later_ms)
    changes.drop([Segment(1, 0, 900, 10)], world.clock.time_ms())
    world.state.commit(changes)
    assert world.counted().from_ms == later_ms
