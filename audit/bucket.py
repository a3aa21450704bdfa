"""Buckets of event time: the windows in which counts are compared.

A bucket is named by its start, in ms since the epoch, and holds the event times of
[start, start + size). Starts are multiples of the size, also before 1970, so that every tier cuts
time alike without having to agree on anything but the size.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

DEFAULT_BUCKET_MS = 60_000


def start(timestamps_ms: npt.NDArray[np.int64], size_ms: int) -> npt.NDArray[np.int64]:
    """The bucket of each event time."""
    return timestamps_ms - timestamps_ms % size_ms


def start_of(timestamp_ms: int, size_ms: int) -> int:
    """The bucket of one event time."""
    return timestamp_ms - timestamp_ms % size_ms
