"""Carries out what retention decides: takes expired segments out of their logs, and forgets
producers that have appended nothing for long."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from skidway import log
from skidway.broker.log import retention
from skidway.broker.log.files import StorageFailed
from skidway.broker.log.partition_log import PartitionLog
from skidway.broker.log.segment import Segment
from skidway.kafka.types import TopicPartition

HeldFrom = Callable[[TopicPartition], int | None]
"""A function that takes a partition, and returns the lowest offset in this partition that any group
of the topic's `retention.hold` still needs; None if `retention.hold` lists no group.
"""
_log = log.get(__name__)


class Cut(NamedTuple):
    """The offsets [first, end) of the segments that were taken out of a log. The range is empty if
    all these segments were already below the log start offset."""

    partition: TopicPartition
    first: int
    end: int


@dataclass(slots=True)
class Expiration:
    """The result of one search for expired segments.

    renamed: each key is a delay in ms; its value lists the files that the caller has to delete
    after this delay. held: the number of partitions in which groups hold expired segments back.
    unflushed: the partitions whose new segment is not durable yet. The caller has to flush their
    logs, because the segments before the new one expire only after this flush.
    """

    renamed: dict[int, list[Path]] = field(default_factory=dict)
    failures: list[StorageFailed] = field(default_factory=list)
    cuts: list[Cut] = field(default_factory=list)
    held: int = 0
    unflushed: list[TopicPartition] = field(default_factory=list)


def held(logs: Iterable[PartitionLog], now_ms: int) -> dict[TopicPartition, tuple[str, ...]]:
    """Returns the partitions that have expired segments and whose topic has `retention.hold`, each
    with the groups that this setting lists.
    """
    return {
        each.partition: each.config.held_by
        for each in logs
        if each.config.held_by and _expired(each, now_ms, None) != retention.NOTHING
    }


def expire(
    logs: Iterable[PartitionLog], now_ms: int, held_from: HeldFrom, producer_expiration_ms: int
) -> Expiration:
    """Takes the expired segments out of the logs, and forgets producers whose last append is more
    than `producer_expiration_ms` ago."""
    found = Expiration()
    for each in logs:
        each.producers.expire(now_ms - producer_expiration_ms)
        for segment in each.segments[:-1]:
            segment.let_go()  # present readers keep their descriptor; a later reader opens the file
        decision = _expired(each, now_ms, held_from(each.partition))
        found.held += decision.held
        try:
            if decision.roll and each.flushed.offset == each.log_end_offset:
                # The active segment has expired. Now it is only closed, and a new segment begins.
                # When the new segment is durable, the next search for expired segments takes the
                # closed segment out of the log.
                each.roll(now_ms)
            if decision.count:
                _take_out(each, decision.count, found)
        except StorageFailed as error:
            found.failures.append(error)
        if each.has_new_segment:
            found.unflushed.append(each.partition)
    return found


def bound_producers(logs: Iterable[PartitionLog], limit: int) -> TopicPartition | None:
    """If the logs remember more than `limit` producers, lets the log that remembers the most forget
    a quarter of them. Returns the log's partition, or None if there are not too many."""
    count, largest = 0, None
    for each in logs:
        own = len(each.producers.producers)
        count += own
        if largest is None or own > len(largest.producers.producers):
            largest = each
    if largest is None or count <= limit:
        return None
    largest.producers.forget_oldest(len(largest.producers.producers) // 4 + 1)
    return largest.partition


def take_below_start(each: PartitionLog) -> list[Path]:
    """Takes the segments out of a log whose records are all below the log start offset. Returns the
    files that the caller has to delete. Raises StorageFailed."""
    count = retention.below_start(
        [segment.base_offset for segment in each.segments],
        log_start_offset=each.log_start_offset,
        flushed_segment=each.flushed.segment,
    )
    found = Expiration()
    if count:
        _take_out(each, count, found)
    return [path for paths in found.renamed.values() for path in paths]


def _expired(each: PartitionLog, now_ms: int, held_from: int | None) -> retention.Expired:
    ages = [
        retention.SegmentAge(segment.base_offset, segment.size, segment.last_append_ms)
        for segment in each.segments
    ]
    return retention.expired(
        ages,
        each.config,
        now_ms=now_ms,
        log_start_offset=each.log_start_offset,
        flushed_offset=each.flushed.offset,
        flushed_segment=each.flushed.segment,
        held_from=held_from,
    )


def _take_out(each: PartitionLog, count: int, found: Expiration) -> None:
    first = each.log_start_offset
    gone: list[Segment] = each.take_out(count)
    found.cuts.append(Cut(each.partition, first, each.log_start_offset))
    try:
        renamed = [path for segment in gone for path in segment.rename_deleted()]
    except OSError as error:
        raise StorageFailed("delete a segment in", each.directory, error) from error
    found.renamed.setdefault(each.config.file_delete_delay_ms, []).extend(renamed)
    _log.info(
        "segments_expired",
        partition=str(each.partition),
        segments=len(gone),
        bytes=sum(segment.size for segment in gone),
        log_start_offset=each.log_start_offset,
    )
