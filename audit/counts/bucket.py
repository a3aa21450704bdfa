"""Buckets are the windows of event time for which the audit compares the counts of the tiers with
each other.

The name of a bucket is its start, in ms since 1970. The bucket contains the event times in [start,
start + size). Starts are multiples of the size, even before 1970, so all tiers with the same size
have the same buckets. Event times farther than FARTHEST_MS from 1970 are counted in the first or
the last bucket. So the start of every bucket fits into 64 bits in every store.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from skidway.audit.topic.count_columns import FARTHEST_MS

DEFAULT_BUCKET_MS = 60_000


def start(timestamps_ms: npt.NDArray[np.int64], size_ms: int) -> npt.NDArray[np.int64]:
    """Returns the bucket of each event time."""
    times = np.clip(timestamps_ms, *_span(size_ms))
    return times - times % size_ms


def start_of(timestamp_ms: int, size_ms: int) -> int:
    """Returns the bucket of one event time."""
    first, last = _span(size_ms)
    time_ms = min(max(timestamp_ms, first), last)
    return time_ms - time_ms % size_ms


def _span(size_ms: int) -> tuple[int, int]:
    """Returns the starts of the earliest and the latest bucket that an event time can have."""
    farthest = FARTHEST_MS - FARTHEST_MS % size_ms
    return -farthest, farthest
