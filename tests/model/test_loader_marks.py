"""However a partition is cut into slices and loads, and whichever lines are sent again, the rows
and marks follow the rule in docs/delivery.md, section 5: a record that ends at or before its file's
mark is dropped. A file's mark is the highest byte position at which a loaded record of the file
ends.

The tests run the real code that loads slices, joins slices, and writes the files of rows and
rejects. The record batches and the files are in memory. The tests compare the results of this code
with the results of a function that applies the rule to one record after the other.
"""

from __future__ import annotations

import random

import pytest

from skidway.audit.counts.marks import FileKey
from skidway.loader.planning import plan
from skidway.loader.planning.plan import Planned, Slice
from skidway.loader.slices.join import run_all
from support.loading import Record, Runner, job, log, rows_of
from support.memory_store import MemoryStore
from support.promises import promise

Kept = list[tuple[int, int, int, int]]


def sequential(records: list[Record], marks: dict[FileKey, int]) -> tuple[Kept, Kept]:
    """Drops each record that ends at or before its file's mark (the position up to which the file
    is loaded), as docs/delivery.md, section 5, says. For every other record, moves the mark to the
    record's end. Returns the rows and the straddles. A straddle is a record that begins before its
    file's mark and ends after this mark."""
    rows: Kept = []
    straddles: Kept = []
    for offset, record in enumerate(records):
        key, end = (record.agent, record.file), record.first + record.length
        mark = marks.get(key, -1)
        if end > mark:
            known = straddles if record.first < mark else rows
            known.append((record.agent, record.file, record.first, offset))
            marks[key] = end
    return rows, straddles


def some_log(choose: random.Random, files: int, count: int) -> list[Record]:
    """Returns the records of one partition, made from lines of several files. Some lines are sent
    again. Sometimes a record begins within the bytes of an earlier record, but is not a copy of
    this earlier record. A correct agent never makes such a record."""
    ends = dict.fromkeys(range(files), 0)
    history: dict[int, list[Record]] = {file: [] for file in range(files)}
    records: list[Record] = []
    while len(records) < count:
        file = choose.randrange(files)
        if history[file] and choose.random() < 0.15:
            again = choose.randrange(len(history[file]))
            records += history[file][again : again + choose.randint(1, 6)]
            continue
        if choose.random() < 0.03 and ends[file] > 3:
            ends[file] -= 3
        record = Record(agent=7, file=file, first=ends[file], length=choose.randint(1, 9))
        ends[file] = record.first + record.length
        history[file].append(record)
        records.append(record)
    return records


@promise("5 slices")
@pytest.mark.parametrize("seed", range(40), indirect=True)
def test_slices_give_the_rows_of_the_sequential_rule(seed: int) -> None:
    """A partition is divided at random into loads, and each load into slices. The rows and marks
    are always those that the function `sequential` returns. A mark says up to which byte a file is
    loaded."""
    choose = random.Random(seed)
    records = some_log(choose, choose.randint(1, 4), 120)
    marks: dict[FileKey, int] = {}
    rows, straddles = sequential(records, marks)
    batches = log(records, batch_records=choose.randint(1, 7))
    loaded: dict[FileKey, int] = {}
    found: Kept = []
    rejected: Kept = []
    position = 0
    while position < len(records):
        end = choose.randint(position + 1, len(records))
        runner = Runner(MemoryStore(), {0: batches})
        pieces = plan.cut([Planned(0, position, position, end)], choose.randint(1, 40))
        (result,) = run_all(pieces, {0: loaded}, runner)
        for each in result.results:
            found += [_identity(row) for row in rows_of(runner.store, each)]
            rejected += [_identity(row) for row in rows_of(runner.store, each, "rejects")]
        loaded |= result.moved
        position = result.end
    assert found == rows, f"seed {seed}"
    assert rejected == straddles
    assert loaded == marks


@pytest.mark.parametrize("seed", range(10), indirect=True)
def test_counts_add_up_whatever_the_slices(seed: int) -> None:
    """The counts, bytes and checksums of all slices add up to those of a single slice over the
    whole partition. A slice is a range of a partition's offsets."""
    choose = random.Random(seed)
    records = some_log(choose, 3, 80)
    batches = log(records, batch_records=4)
    whole = Runner(MemoryStore(), {0: batches}).one(Slice(0, 0, len(records)))
    pieces = plan.cut([Planned(0, 0, 0, len(records))], choose.randint(3, 30))
    (result,) = run_all(pieces, {}, Runner(MemoryStore(), {0: batches}))
    for key, sums in whole.sums.items():
        parts = [each.sums[key] for each in result.results if key in each.sums]
        total = parts[0]
        for part in parts[1:]:
            total += part
        assert total == sums


@pytest.mark.parametrize("seed", range(20), indirect=True)
def test_a_file_without_announcement_ends_the_partition_in_the_same_place(seed: int) -> None:
    """However a partition is divided into slices, its load ends before the first new record whose
    file no agent has announced. The load uses no later record. In this test, an earlier load has
    already loaded one record of this file. Copies of that record do not end the load."""
    choose = random.Random(seed)
    records = some_log(choose, 3, 60)
    at = choose.randrange(len(records))
    records.insert(at, Record(agent=8, first=5, length=5))
    for _ in range(2):
        records.insert(choose.randrange(at + 1), Record(agent=8, first=0, length=5))
        at += 1
    batches = log(records, batch_records=choose.randint(1, 5))
    pieces = plan.cut([Planned(0, 0, 0, len(records))], choose.randint(1, 25))
    runner = Runner(MemoryStore(), {0: batches}, job())
    (result,) = run_all(pieces, {0: {(8, 1): 5}}, runner)
    assert result.end == at
    assert result.stop is not None
    assert result.stop.waiting_for == (8, 1)
    assert [each.end for each in result.results][-1] == at
    assert result.moved == _marks_of([each for each in records[:at] if each.agent == 7])
    found = [_identity(row) for each in result.results for row in rows_of(runner.store, each)]
    assert found == sequential(records[:at], {(8, 1): 5})[0]


def _marks_of(records: list[Record]) -> dict[FileKey, int]:
    marks: dict[FileKey, int] = {}
    sequential(records, marks)
    return marks


def _identity(row: dict[str, int]) -> tuple[int, int, int, int]:
    return row["_agent"], row["_file_id"], row["_offset"], row["_kafka_offset"]
