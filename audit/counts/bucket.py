"""Buckets are the windows of event time for which the audit compares the counts of the tiers with
each other.

The name of a bucket is its start, in ms since 1970. The bucket contains the event times in [start,
start + size). Starts are multiples of the size, so all tiers with the same size have the same
buckets. A record's timestamp can be any 64-bit number. If it is outside the years 1970 to 9999, no
date names it: then the record is counted in the first bucket, that of 1970-01-01T00:00Z, and the
loader rejects it (see `has_date`). So people can name every bucket, and no bucket is in a future
that never comes.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from skidway.audit.topic.count_columns import YEAR_10000_MS

DEFAULT_BUCKET_MS = 60_000


def start(timestamps_ms: npt.NDArray[np.int64], size_ms: int) -> npt.NDArray[np.int64]:
    """Returns the bucket of each event time."""
    times: npt.NDArray[np.int64] = np.where(has_date(timestamps_ms), timestamps_ms, 0)
    return times - times % size_ms


def start_of(moment_ms: int, size_ms: int) -> int:
    """Returns the bucket of a moment that a clock shows, or that a person names."""
    return moment_ms - moment_ms % size_ms


def has_date(timestamps_ms: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Returns, for each event time, whether it is in the years 1970 to 9999. Only the hours of
    these years have directories in the loader's output."""
    dated: npt.NDArray[np.bool_] = (timestamps_ms >= 0) & (timestamps_ms < YEAR_10000_MS)
    return dated
