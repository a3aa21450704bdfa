"""From an offset to the bytes of a log: which segment, which position, how many whole batches."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from skidway.broker.log.files import DamagedLog, StorageFailed
from skidway.broker.log.scan import InvalidBatch
from skidway.broker.log.segment import Boundary, LogPosition, Segment
from skidway.kafka.protocol.pieces import FileSlice

POSITIONS_REMEMBERED = 16


class OffsetOutside(Exception):
    """A read below the log start offset or above the log end offset."""


class OffsetLookup:
    """Looks into segments that a PartitionLog owns, in order and never none.

    Remembers a few places where somebody will ask next: those need no search. Its methods raise
    StorageFailed and DamagedLog.
    """

    def __init__(self, segments: Sequence[Segment], end: LogPosition) -> None:
        self._segments = segments
        self._positions: dict[int, tuple[int, int]] = {}
        self.remember(end)

    def segment_of(self, offset: int) -> Segment:
        """The segment that holds an offset, or would."""
        at = bisect_right(self._segments, offset, key=_base_offset) - 1
        return self._segments[max(at, 0)]

    def batches(
        self, offset: int, max_bytes: int, end: LogPosition, *, at_least_one: bool
    ) -> FileSlice | None:
        """Whole batches of one segment from the one that holds `offset` on, none behind `end`.

        No more than `max_bytes`, but for a first batch that is larger if `at_least_one`.
        """
        segment, position = self._locate(offset)
        try:
            limit = end.position if segment.base_offset == end.segment else segment.size
            if limit - position > max_bytes:
                limit, following = _whole_batches(
                    segment, position, max_bytes, at_least_one=at_least_one
                )
                self.remember(LogPosition(following, segment.base_offset, limit))
            if limit <= position:
                return None
            return FileSlice(segment.file, position, limit - position)
        except OSError as error:
            raise StorageFailed("read", segment.path, error) from error
        except InvalidBatch as error:
            raise DamagedLog(segment.path, error.position, error.reason) from error

    def bytes_between(self, offset: int, end: LogPosition, enough: int) -> int:
        """Bytes from an offset to an end behind it, or any number above `enough`."""
        segment, position = self._locate(offset)
        if segment.base_offset == end.segment:
            return end.position - position
        total = segment.size - position
        for later in self._segments[self._segments.index(segment) + 1 :]:
            if total > enough or later.base_offset > end.segment:
                break
            total += end.position if later.base_offset == end.segment else later.size
        return total

    def remember(self, place: LogPosition) -> None:
        """Where somebody will ask next, who then needs no search."""
        self._positions[place.offset] = place[1:]
        if len(self._positions) > POSITIONS_REMEMBERED:
            del self._positions[next(iter(self._positions))]

    def forget_below(self, offset: int) -> None:
        """The log begins at an offset now."""
        self._positions = {at: place for at, place in self._positions.items() if at >= offset}

    def _locate(self, offset: int) -> tuple[Segment, int]:
        """Segment and position of the batch that holds an offset, or of the next one (a gap)."""
        segment = self.segment_of(offset)
        if offset == segment.base_offset and segment.size:
            return segment, 0
        place = self._positions.get(offset)
        # At the end of a closed segment a gap follows: the search goes on behind it.
        grows = segment is self._segments[-1]
        if place and place[0] == segment.base_offset and (grows or place[1] < segment.size):
            return segment, place[1]
        try:
            position = segment.find(offset)
        except OSError as error:
            raise StorageFailed("read", segment.path, error) from error
        except InvalidBatch as error:
            raise DamagedLog(segment.path, error.position, error.reason) from error
        if position is None:
            return self._segments[self._segments.index(segment) + 1], 0
        return segment, position


def _whole_batches(
    segment: Segment, position: int, max_bytes: int, *, at_least_one: bool
) -> Boundary:
    """Where the last batch ends that ends within `max_bytes`, by the index if that knows."""
    boundary = segment.boundary_before(position + max_bytes)
    if boundary.position > position:
        return boundary
    return segment.end_of_batches(position, max_bytes, at_least_one=at_least_one)


def _base_offset(segment: Segment) -> int:
    return segment.base_offset
