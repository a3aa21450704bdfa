"""Tests how event times are assigned to buckets."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from skidway.audit.counts import bucket
from skidway.audit.reports.report import time_text
from skidway.audit.topic.count_columns import YEAR_10000_MS
from skidway.cli.moments import parse_moment
from support.promises import promise


def test_a_bucket_holds_its_start_and_not_its_end() -> None:
    """A bucket is the half-open span [start, start + size): `start` belongs to the bucket, and
    `start + size` does not."""
    times = np.array([59_999, 60_000, 119_999, 120_000], np.int64)
    assert bucket.start(times, 60_000).tolist() == [0, 60_000, 60_000, 120_000]


@given(st.lists(st.integers(0, YEAR_10000_MS - 1), max_size=20), st.integers(1, 10**8))
def test_columns_and_single_times_agree(times: list[int], size_ms: int) -> None:
    """For a whole column of times, `start` gives the same buckets as `start_of` gives for each time
    alone."""
    found = bucket.start(np.array(times, np.int64), size_ms).tolist()
    assert found == [bucket.start_of(time, size_ms) for time in times]
    assert all(start <= time < start + size_ms for start, time in zip(found, times, strict=True))


@promise("6 bucket size")
@given(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=20), st.integers(1_000, 10**8))
def test_times_without_a_date_have_the_first_bucket(times: list[int], size_ms: int) -> None:
    """A timestamp may be any 64-bit number: -1 (a record without a timestamp), or nanoseconds. All
    tiers put the same record into the same bucket, and a person can name this bucket: times outside
    the years 1970 to 9999 have the first one, of 1970."""
    found = bucket.start(np.array(times, np.int64), size_ms).tolist()
    assert all(start % size_ms == 0 for start in found)
    for start, time in zip(found, times, strict=True):
        assert start == 0 if not 0 <= time < YEAR_10000_MS else start <= time < start + size_ms
        assert parse_moment(time_text(start).replace("Z", "+00:00"), 0) == start // 1_000 * 1_000
