"""Tests the content sum of a record, which is a hash of the record's time, length and values."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from skidway.audit.counts.content import SUM_BYTES, content_sums


def sums(times: list[int], lengths: list[int], datums: list[bytes | None]) -> list[bytes]:
    numbers = np.array(times, np.int64), np.array(lengths, np.int64)
    return content_sums(*numbers, pa.array(datums, pa.binary()))


def test_equal_records_have_equal_sums_and_every_part_counts() -> None:
    """The content sums (hashes of the content) of two records are the same if the records' times,
    lengths and datums are equal. If one of these three differs, the sums differ."""
    found = sums([1, 1, 2, 1, 1, 256], [9, 9, 9, 8, 9, 9], [b"x", b"x", b"x", b"x", b"y", b""])
    assert found[0] == found[1]
    assert len({*found}) == 5
    assert {len(each) for each in found} == {SUM_BYTES}


def test_a_record_without_a_value_equals_nothing() -> None:
    """A row without a datum (because its values cannot be encoded any more) gets an empty value
    instead of a sum, and so differs from every record in a sample."""
    assert sums([1], [1], [None]) == [b""]
