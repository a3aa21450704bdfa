"""Which segments of a log have expired. Pure: the log manager acts on what this says.

Only whole segments go, oldest first, and only flushed ones. By time: the last *append* is longer
ago than `retention.ms`; the event times inside say nothing. By size: without the segment the log
still holds `retention.bytes`. An active segment that has expired is rolled first, so that the log
keeps its end.

`held_from` is the hook of `retention.hold`: the least offset that a named reader (mirror, loader)
still needs; segments that reach beyond it stay.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from broker.log.config import UNLIMITED, LogConfig


class SegmentAge(NamedTuple):
    """What retention needs to know of a segment; time in ms."""

    base_offset: int
    size: int
    last_append_ms: int


@dataclass(frozen=True, slots=True)
class Expired:
    """How many of the oldest segments go, and whether the active one has to be rolled first."""

    count: int
    roll: bool


def expired(
    segments: Sequence[SegmentAge],
    config: LogConfig,
    *,
    now_ms: int,
    log_start_offset: int,
    flushed_offset: int,
    held_from: int | None = None,
) -> Expired:
    """What may go now; the last of `segments` is the active one."""
    total = sum(segment.size for segment in segments)
    count = 0
    for segment, following in pairwise(segments):
        end = following.base_offset
        if end > flushed_offset or (held_from is not None and end > held_from):
            return Expired(count, False)
        if not (_too_old(segment, config, now_ms) or _too_much(segment, total, config)) and (
            end > log_start_offset
        ):
            return Expired(count, False)
        total -= segment.size
        count += 1
    active = segments[-1]
    roll = active.size > 0 and held_from is None and _too_old(active, config, now_ms)
    return Expired(count, roll)


def _too_old(segment: SegmentAge, config: LogConfig, now_ms: int) -> bool:
    if config.retention_ms == UNLIMITED:
        return False
    return now_ms - segment.last_append_ms > config.retention_ms


def _too_much(segment: SegmentAge, total: int, config: LogConfig) -> bool:
    return config.retention_bytes != UNLIMITED and total - segment.size >= config.retention_bytes
