"""A sample is an audit message with content sums (checksums) of records that an agent makes from a
byte range of a file. The tests check which records of the range are in the sample, and what the
sample contains for each record."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from skidway.agent.batches.range_records import RangeRecords, parts, window
from skidway.audit.counts.content import content_sums
from skidway.schemas import wire
from support.audit_senders import LOGS, REJECTED

LENGTH = 10


def records(firsts: list[int], source: object = LOGS, schema_id: int = 4) -> RangeRecords:
    first = np.array(firsts, np.int64)
    values = [wire.prefix(schema_id) + b"%d" % each for each in firsts]
    lengths = np.full(len(firsts), LENGTH)
    return RangeRecords(source, first, lengths, first + 7, pa.array(values, pa.binary()))  # type: ignore[arg-type]


def test_a_sample_tells_whole_ranges_or_a_drawn_part() -> None:
    """A sample has records of one range of bytes of a file. If the range has few records, the
    sample contains all of them. Otherwise it contains as many neighbouring records as a sample may
    have. A random number (the lot) decides with which record the sample begins."""
    few, many = records([0, 10, 20]), [records(list(range(0, 80, 20))), records([10, 30, 50, 70])]
    assert window([few], 0, 30, 5, limit=3) == (0, 30)
    drawn = [window(many, 0, 80, lot, limit=3) for lot in range(6)]
    assert drawn == [(0, 30), (10, 40), (20, 50), (30, 60), (40, 70), (50, 80)]
    for lot in range(20):
        begin, end = window(many, 0, 80, lot, limit=3)
        told = [first for part in parts(many, begin, end) for first in part.firsts]
        assert sorted(told) == list(range(begin, end, 10))
        assert len(told) == 3


def test_a_part_has_rising_positions_with_their_own_sums() -> None:
    """A sample has records of one byte range of a file. These records may come in any order and in
    several batches. The sample has one part for each topic, with the topic's schema id and the
    range of the records' times. A part contains two lists. One has the positions of the records, in
    ascending order. The other has, for each of these records, its content sum (a hash of the
    record's time, length and value)."""
    mixed, rejects = records([20, 0, 10]), records([30], REJECTED, 9)
    found = parts([mixed, rejects, records([99])], 0, 40)
    assert [(x.source, x.schema_id, x.firsts) for x in found] == [
        (LOGS, 4, (0, 10, 20)), (REJECTED, 9, (30,)),
    ]  # fmt: skip
    times = np.array([7, 17, 27], np.int64)
    lengths = np.full(3, LENGTH)
    datums = pa.array([b"0", b"10", b"20"], pa.binary())
    assert list(found[0].sums) == content_sums(times, lengths, datums)
    assert (found[0].least_ms, found[0].greatest_ms) == (7, 27)
