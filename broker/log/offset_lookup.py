"""Finds where the batches from an offset on are: in which segment, at which position of its file,
and how many bytes they have."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from skidway.broker.log.files import DamagedLog, StorageFailed
from skidway.broker.log.scan import InvalidBatch
from skidway.broker.log.segment import Boundary, LogPosition, Segment
from skidway.kafka.protocol.pieces import FileSlice

POSITIONS_REMEMBERED = 16


class OffsetOutside(Exception):
    """Raised if the offset of a read is below the log start offset or above the log end offset."""


class OffsetLookup:
    """Looks into the segments of a PartitionLog. There is at least one segment, and the segments
    are in the order of their offsets.

    The lookup remembers a few positions where the next reads are likely to begin, so that these
    reads need no search. Its methods raise StorageFailed and DamagedLog.
    """

    def __init__(self, segments: Sequence[Segment], end: LogPosition) -> None:
        self._segments = segments
        self._positions: dict[int, tuple[int, int]] = {}
        self.remember(end)

    def segment_of(self, offset: int) -> Segment:
        """Returns the segment whose range of offsets includes `offset`."""
        at = bisect_right(self._segments, offset, key=_base_offset) - 1
        return self._segments[max(at, 0)]

    def batches(
        self, offset: int, max_bytes: int, end: LogPosition, *, at_least_one: bool
    ) -> FileSlice | None:
        """Returns a range of bytes in a segment's file. The range has whole batches: it begins with
        the batch that contains `offset`, and ends at `end` or before it.

        The batches together have at most `max_bytes`. But with `at_least_one`, the first batch is
        included even if it is larger. Returns None if the range would have no batch.
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
        """Returns the number of bytes from an offset up to the position `end`. If there are more
        than `enough` bytes, the method may stop counting and return any number above `enough`.
        """
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
        """Remembers where a later read will begin, so that this read needs no search."""
        self._positions[place.offset] = place[1:]
        if len(self._positions) > POSITIONS_REMEMBERED:
            del self._positions[next(iter(self._positions))]

    def forget_below(self, offset: int) -> None:
        """Forgets the remembered positions of offsets below `offset`, because the log now begins at
        `offset`."""
        self._positions = {at: place for at, place in self._positions.items() if at >= offset}

    def _locate(self, offset: int) -> tuple[Segment, int]:
        """Returns the segment and position of the batch that contains `offset`. If the offset is in
        a gap, so that no batch contains it, returns the segment and position of the next batch.
        """
        segment = self.segment_of(offset)
        if offset == segment.base_offset and segment.size:
            return segment, 0
        place = self._positions.get(offset)
        # A remembered position may be the end of a segment. If the log has begun a new segment
        # since then, no batch begins at this position, so the position is not used. In this case
        # `segment.find` finds no batch, and the result is the start of the next segment.
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
    """Returns a position at which a batch ends, at most `max_bytes` after `position`: the last such
    position that the index shows. If the index shows none, reads the headers of the batches."""
    boundary = segment.boundary_before(position + max_bytes)
    if boundary.position > position:
        return boundary
    return segment.end_of_batches(position, max_bytes, at_least_one=at_least_one)


def _base_offset(segment: Segment) -> int:
    return segment.base_offset
