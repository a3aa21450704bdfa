"""Tests how event times are assigned to buckets."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from skidway.audit.counts import bucket
from skidway.audit.evidence.evidence import FOREVER
from support.promises import promise


def test_a_bucket_holds_its_start_and_not_its_end() -> None:
    """A bucket is the half-open span [start, start + size): `start` belongs to the bucket, and
    `start + size` does not."""
    times = np.array([59_999, 60_000, 119_999, 120_000], np.int64)
    assert bucket.start(times, 60_000).tolist() == [0, 60_000, 60_000, 120_000]


def test_times_before_1970_are_cut_alike() -> None:
    """Buckets before 1970 have the same size as later ones. For example, the time -1 (of a record
    without a timestamp) belongs to such a bucket."""
    assert bucket.start(np.array([-1, -60_000, -60_001], np.int64), 60_000).tolist() == [
        -60_000,
        -60_000,
        -120_000,
    ]


@given(st.lists(st.integers(-(2**50), 2**50), max_size=20), st.integers(1, 10**8))
def test_columns_and_single_times_agree(times: list[int], size_ms: int) -> None:
    """For a whole column of times, `start` gives the same buckets as `start_of` gives for each time
    alone."""
    found = bucket.start(np.array(times, np.int64), size_ms).tolist()
    assert found == [bucket.start_of(time, size_ms) for time in times]
    assert all(start <= time < start + size_ms for start, time in zip(found, times, strict=True))


@promise("6 bucket size")
@given(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=20), st.integers(1_000, 10**8))
def test_absurd_times_have_the_outermost_buckets(times: list[int], size_ms: int) -> None:
    """A timestamp may be any 64-bit number, even a very large one. All tiers put the same record
    into the same bucket, whatever its timestamp is, and the collector's ledger can store and find
    this bucket."""
    found = bucket.start(np.array(times, np.int64), size_ms).tolist()
    assert found == [bucket.start_of(time, size_ms) for time in times]
    assert all(start % size_ms == 0 for start in found)
    assert all(FOREVER[0] <= start < FOREVER[1] for start in found)
    assert sorted(found) == [bucket.start_of(time, size_ms) for time in sorted(times)]
