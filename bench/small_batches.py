"""Measures the loader and the broker's counter (which counts the records for the audit) on batches
of few records, as brokers get them if there are many producers. The table also has batches of a
hundred records.

Normally both readers (loader and counter) combine small batches and parse about 1 MB of them at
once. The table compares these readers with readers that parse each batch separately, by the same
code. The batches are in memory, so the figures include no broker and no network. Seconds are CPU
seconds of one process.

    loader   does all of a task's work on the batches: decodes them, computes counts and the marks
             by which a load recognizes repeated records, and makes Parquet files in memory
    counter  checks that the batches have no gaps, computes marks and counts, and commits nothing
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final
from unittest.mock import patch

from bench.measure import Row, Table, in_turn
from bench.scale import scaled
from skidway.audit.counter.batch_runs import Runs
from skidway.audit.counter.continuity import Following
from skidway.audit.counter.state import Position
from skidway.audit.counts import marks
from skidway.audit.counts.counts import Counts, identify
from skidway.loader.planning.plan import Slice
from support.loading import SOURCE, Record, Runner, log
from support.memory_store import MemoryStore

RECORDS: Final = scaled(10_000, 400)
ROUNDS: Final = scaled(5, 1)
ALONE: Final = "each batch by itself"
_RUNS: Final = Runs()


def run() -> Table:
    """Measures loader and counter on batches of one, two and a hundred records. Combined and
    separate parsing take turns."""
    table = Table(f"small_batches: {RECORDS:,} records, in memory, one core")
    for size in (1, 2, 100):
        batches = log([Record(first=10 * index) for index in range(RECORDS)], size)
        for reader, read in (("loader", load), ("counter", count)):
            sides = {
                "together": partial(rate, read, batches),
                "alone": partial(alone, read, batches),
            }
            found = in_turn(sides, ROUNDS)
            name = f"{reader}, batches of {size}"
            table.add(Row(name, "records/CPU s", found["together"], found["alone"], ALONE))
    return table


def rate(read: Callable[[Sequence[memoryview]], int], batches: Sequence[memoryview]) -> float:
    """Returns how many records per CPU second `read` reads from the batches."""
    begin = time.process_time()
    taken = read(batches)
    seconds = time.process_time() - begin
    if taken != RECORDS:
        raise ValueError(f"{taken} of {RECORDS} records were read")
    return RECORDS / seconds


def alone(read: Callable[[Sequence[memoryview]], int], batches: Sequence[memoryview]) -> float:
    """Measures the same as `rate`, but the loader or counter parses each batch separately."""
    with each_by_itself():
        return rate(read, batches)


@contextlib.contextmanager
def each_by_itself() -> Iterator[None]:
    """Inside the `with` block, both readers (loader and counter) parse each batch as soon as they
    have it."""
    with (
        patch("skidway.loader.slices.chunk.TOGETHER_BYTES", 0),
        patch("skidway.audit.counter.batch_runs.TOGETHER_BYTES", 0),
    ):
        yield


def load(batches: Sequence[memoryview]) -> int:
    """Loads the batches as a task of a load does with its slice of a partition. Returns the number
    of rows."""
    result = Runner(MemoryStore(), {0: batches}).one(Slice(0, 0, RECORDS))
    return sum(file.rows for file in result.files)


def count(batches: Sequence[memoryview]) -> int:
    """Counts the batches as the counter does; returns the number of records."""
    counts, known = Counts(), dict[marks.FileKey, int]()
    for each in _RUNS.of(Following(Position(0)), batches):
        if each.records is None:
            continue
        offsets, timestamps, own, has_origin = each.records
        origins = identify(own, has_origin, 0, offsets)
        walked = marks.walk(origins.agent, origins.file, origins.first, origins.length, known)
        counts.add(SOURCE, timestamps, origins, keep=walked.keep, straddle=walked.straddle)
        marks.advance(known, walked.highest)
    return sum(sums.count for _, sums in counts.items())
