"""The loader sends a note about each load to the audit topic, for people. The note is not part of
the counts that the audit compares."""

from __future__ import annotations

import pytest

from skidway.audit.topic.load_note import Load, RejectedRecord, load_of
from skidway.audit.topic.messages import Delta
from skidway.audit.topic.notes import Note
from skidway.loader.state.layout import HOUR_MS
from support.loading import START_MS, Record
from support.memory_loading import AGENT, PRODUCER, MemoryLoading


@pytest.fixture
def loading() -> MemoryLoading:
    return MemoryLoading()


def told(loading: MemoryLoading) -> list[Load]:
    notes = [x for x in loading.said() if isinstance(x, Note)]
    assert {x.producer for x in notes} <= {PRODUCER}
    found = [load_of(x) for x in notes]
    return [x for x in found if x is not None]


def test_a_load_tells_one_record_that_it_rejected(loading: MemoryLoading) -> None:
    """If a load has rejected records, its note says where one of them is: the first record of a
    file of rejects. The note has the hour of this record's event time, its partition and its
    offset."""
    loading.write(4)
    time_ms = START_MS + 2 * HOUR_MS
    loading.append(*(Record(AGENT, 9, at * 10, 10, time_ms) for at in range(3)))
    loading.run(announce_wait_ms=0)
    loading.write(3)
    loading.run()
    first, second = told(loading)
    assert (first.rejects, second.rejects, second.rejected) == (3, 0, None)
    assert first.rejected == RejectedRecord(time_ms - time_ms % HOUR_MS, 0, 4)


def test_each_load_tells_its_rows_files_and_duration(loading: MemoryLoading) -> None:
    """After the loader has published the counts of a load, it sends a note with the load's number,
    offsets, rows, files, bytes and duration, and a note that says how the loader was started. A run
    that loads nothing sends no note."""
    for count in (10, 25):
        loading.write(count)
        loading.run()
    loading.run()
    first, second = told(loading)
    assert (first.number, first.offsets, first.rows, first.rejects) == (1, 10, 10, 0)
    assert (second.number, second.offsets, second.rows) == (2, 25, 25)
    assert first.files == 1
    assert first.bytes is not None
    assert first.bytes > 0
    assert first.seconds is not None
    said = [x for x in loading.said() if isinstance(x, Delta | Note)]
    kinds = ["" if isinstance(x, Delta) else x.kind for x in said]
    assert kinds == ["", "load", "status", "", "load", "status"]
