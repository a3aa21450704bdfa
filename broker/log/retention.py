"""Decides which segments of a log have expired. The functions do no I/O; the module `expiration`
carries out what they decide.

Only whole, flushed segments expire, and the oldest expire first. A segment expires by time if its
last *append* is longer ago than `retention.ms`; event times do not matter. A segment expires by
size if the newer segments together still have `retention.bytes` or more. A closed segment whose
records are all below the log start offset expires in any case. If the active segment has expired,
the log begins a new segment before it deletes the expired one. The new segment's file is named
after the log end offset, so this offset is not lost. The expired segment is deleted only when a
flush has made the new segment's file durable.

The consumer groups in the topic's setting `retention.hold` delay the expiration of segments.
`held_from` is the lowest offset that one of these groups still needs. A segment with records at
this offset or later is kept, even if `retention.ms` or `retention.bytes` would delete it. The delay
has two limits: such a segment expires if it is older than `retention.hold.max.ms`, or if the newer
segments together still have `retention.hold.max.bytes` or more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from skidway.broker.log.config import UNLIMITED, LogConfig


class SegmentAge(NamedTuple):
    """What retention must know about a segment. The time is in ms."""

    base_offset: int
    size: int
    last_append_ms: int


@dataclass(frozen=True, slots=True)
class Expired:
    """The decision about the segments of one log. count: how many of the oldest segments the caller
    must delete. roll: whether to roll the active segment first, that is, to close it and begin a
    new one.

    held: whether segments are kept only because a group of `retention.hold` still needs them.
    """

    count: int
    roll: bool
    held: bool = False


NOTHING = Expired(0, False)


def expired(
    segments: Sequence[SegmentAge],
    config: LogConfig,
    *,
    now_ms: int,
    log_start_offset: int,
    flushed_offset: int,
    flushed_segment: int,
    held_from: int | None = None,
) -> Expired:
    """Decides which segments expire now. The last element of `segments` is the active segment.

    flushed_segment: the base offset of the last segment whose file a flush has made durable. A
    segment expires only if the file of the segment after it is durable. Otherwise a crash might
    leave neither file.
    """
    total = sum(segment.size for segment in segments)
    count = 0
    for segment, following in pairwise(segments):
        end = following.base_offset
        if end > flushed_segment:
            return Expired(count, False)
        if end > log_start_offset:
            if not (
                _too_old(segment, config.retention_ms, now_ms)
                or _too_much(segment, total, config.retention_bytes)
            ):
                return Expired(count, False)
            if _is_held(segment, end, total, config, now_ms, held_from):
                return Expired(count, False, held=True)
        total -= segment.size
        count += 1
    active = segments[-1]
    if not active.size or not _too_old(active, config.retention_ms, now_ms):
        return Expired(count, False)
    held = _is_held(active, flushed_offset, total, config, now_ms, held_from)
    return Expired(count, not held, held)


def below_start(base_offsets: Sequence[int], *, log_start_offset: int, flushed_segment: int) -> int:
    """Returns how many of the oldest segments have only records below the log start offset, so that
    they may be deleted. flushed_segment: as for `expired`."""
    end_max = min(log_start_offset, flushed_segment)
    return sum(end <= end_max for end in base_offsets[1:])


def _is_held(
    segment: SegmentAge,
    end: int,
    total: int,
    config: LogConfig,
    now_ms: int,
    held_from: int | None,
) -> bool:
    if held_from is None or end <= held_from:
        return False
    return not (
        _too_old(segment, config.hold_ms_max, now_ms)
        or _too_much(segment, total, config.hold_bytes_max)
    )


def _too_old(segment: SegmentAge, limit_ms: int, now_ms: int) -> bool:
    return limit_ms != UNLIMITED and now_ms - segment.last_append_ms > limit_ms


def _too_much(segment: SegmentAge, total: int, limit_bytes: int) -> bool:
    return limit_bytes != UNLIMITED and total - segment.size >= limit_bytes
