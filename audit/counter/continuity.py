"""Checks, without I/O, that the counter misses no batch of a partition. Each batch must begin where
the previous batch ended. If a batch begins later, the offsets in between are a gap: the counter
never skips a gap silently, but reports it as missing in the next delta.

After a restart, and after each interruption of the fetches, the counter first reads the last
counted batch of a partition again, and compares its base offset, CRC and leader epoch with those
that it knows. If one of the three differs, this is not the log that was counted. Then the counter
stops counting the partition, and /health gives the reason. If the log begins after the last counted
batch, the counter cannot compare this batch. The counter reports this in the next delta, and
continues.
"""

from __future__ import annotations

from dataclasses import dataclass

from skidway.audit.counter.state import BatchId, Position
from skidway.kafka.batch import BatchHeader


@dataclass(frozen=True, slots=True)
class Following:
    """How far the counter has followed a partition. position: the next offset to count, and the
    last counted batch. comparing: whether the last counted batch must still be read again, to
    compare it with the state (see `identity`).
    """

    position: Position
    comparing: bool = False

    @property
    def fetch_offset(self) -> int:
        """The offset to fetch: normally the next offset to count. If the last counted batch must be
        compared first, the offset to fetch is one less, because the last counted batch contains
        this offset."""
        return self.position.next_offset - (1 if self.comparing else 0)


@dataclass(frozen=True, slots=True)
class Step:
    """What the counter does about a batch, or about a fetch offset outside the log. following: how
    far the partition is counted after this batch. counts: whether the batch's records must be
    counted.

    gap: offsets [first, end) that the next delta must name as missing, with `reason`. If first =
    end, no offset is missing: then the gap only reports what could not be checked, and `reason`
    says what. stop: why the partition cannot be counted further; "" if it can.
    """

    following: Following
    counts: bool = False
    gap: tuple[int, int] | None = None
    reason: str = ""
    stop: str = ""


def resumed(position: Position) -> Following:
    """Returns from where to follow a partition after a restart or an interruption. position: where
    it was followed up to."""
    return Following(position, comparing=position.below is not None)


def at_batch(following: Following, header: BatchHeader) -> Step:
    """Returns what the counter does about the next batch that was fetched from the partition."""
    expected = following.position.next_offset
    if following.comparing:
        return _compared(following, header)
    if header.base_offset < expected:
        return Step(
            following,
            stop=f"a batch begins at offset {header.base_offset}, below {expected}, which was"
            " counted: the log diverged",
        )
    after = Following(Position(header.last_offset + 1, identity(header)))
    if header.base_offset == expected:
        return Step(after, counts=True)
    gap = (expected, header.base_offset)
    return Step(
        after,
        counts=True,
        gap=gap,
        reason="these offsets are not in the log, and no mirror named them",
    )


def at_compacted(following: Following, header: BatchHeader) -> Step:
    """Returns what the counter does about a batch from which compaction has removed records."""
    return Step(
        following,
        stop=f"the batch at offset {header.base_offset} has {header.count} of its"
        f" {header.last_offset_delta + 1} records: the topic was compacted (cleanup.policy)",
    )


def out_of_range(following: Following, log_start: int, log_end: int) -> Step:
    """Returns what the counter does if the brokers answer that the fetch offset is outside the log.
    log_start, log_end: the first offset of the log, and the offset after the last one."""
    position = following.position
    if log_end < position.next_offset:
        return Step(
            following,
            stop=f"the log ends at offset {log_end}, below {position.next_offset}, which was"
            " counted: the log diverged",
        )
    if log_start <= position.next_offset:
        return Step(
            Following(Position(position.next_offset)),
            gap=(position.next_offset, position.next_offset),
            reason="the batch below could not be compared any more",
        )
    after = Following(Position(log_start))
    reason = "these offsets expired before they were counted, and no mirror named them"
    return Step(after, gap=(position.next_offset, log_start), reason=reason)


def identity(header: BatchHeader) -> BatchId:
    """Returns the values by which a batch is recognized when it is read again."""
    return BatchId(header.base_offset, header.crc, header.leader_epoch)


def _compared(following: Following, header: BatchHeader) -> Step:
    position = following.position
    if header.base_offset >= position.next_offset:  # the last counted batch is no longer in the log
        step = at_batch(Following(position), header)
        gap = step.gap or (position.next_offset, position.next_offset)
        reason = step.reason or "the batch below could not be compared any more"
        return Step(step.following, step.counts, gap, reason, step.stop)
    if identity(header) == position.below:
        return Step(Following(position))
    return Step(
        following,
        stop=f"the batch at offset {header.base_offset} is not the one that was counted:"
        " the log diverged",
    )
