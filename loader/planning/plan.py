"""Plans the offset ranges that a load reads from each partition, and cuts them into slices. Does no
I/O.

A load reads a partition from the offset where the newest manifest ended, or from 0 if the newest
manifest does not have the partition. A load skips missing offsets only if the mirror (topic config
`mirror.gaps`) or an operator (setting `gaps.accepted`) has listed them as a gap. If other offsets
are missing, the partition's range ends before the missing offsets, and the run's report lists them.
The run still loads the other partitions, but ends with an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from skidway.errors import ConfigurationRefused, StateRefused
from skidway.kafka.batch import BatchHeader
from skidway.kafka.source import Source
from skidway.loader.state.manifest import BatchMark, Gap, Manifest, PartitionRange


@dataclass(frozen=True, slots=True)
class Bounds:
    """The offsets of a partition that the broker has: [log start, high watermark)."""

    partition: int
    log_start: int
    high_watermark: int


@dataclass(frozen=True, slots=True)
class Planned:
    """The offsets [first, end) that a load reads from a partition. gap: the missing offsets just
    before `first` that the load skips, if there are any. (A gap without offsets is a note; see
    `unverified`.)

    position: where the last load ended. below: the last batch that earlier loads read. refused: why
    the load reads nothing of the partition; "" if the load may read it.
    """

    partition: int
    position: int
    first: int
    end: int
    gap: Gap | None = None
    below: BatchMark | None = None
    refused: str = ""


@dataclass(frozen=True, slots=True)
class Slice:
    """The work of one task: offsets [first, end) of one partition."""

    partition: int
    first: int
    end: int


def positions(newest: Manifest | None) -> dict[int, PartitionRange]:
    """Returns the newest manifest's entry for each partition."""
    return {} if newest is None else {each.partition: each for each in newest.partitions}


def check_identity(newest: Manifest | None, source: Source) -> None:
    """Raises StateRefused if the cluster or the topic has another id than in the newest manifest.
    The offsets then mean other records than those that were loaded."""
    if newest is None:
        return
    was = newest.source
    for what, before, now in (
        ("cluster", was.cluster_id, source.cluster_id),
        ("topic", was.topic_id, source.topic_id),
    ):
        if before and now and before != now:
            raise StateRefused(
                f"the {what} behind {newest.topic} was made again: load {newest.number} read from "
                f"{what} id {before}, now it is {now}; load it into another output, or set the "
                f"old rows and _skidway/{newest.topic} aside first"
            )


def check_bucket(newest: Manifest | None, bucket_ms: int) -> None:
    """Raises ConfigurationRefused if earlier loads counted the output's rows in buckets of another
    size. A bucket is an interval of event time."""
    if newest is None or newest.audit.get("bucket_ms", bucket_ms) == bucket_ms:
        return
    raise ConfigurationRefused(
        f"bucket.ms is {bucket_ms}, but {newest.topic} was counted with "
        f"{newest.audit['bucket_ms']} up to load {newest.number}: buckets of two sizes are never "
        "complete; set it to what it was, as agents and counters have it"
    )


def plan_partition(
    topic: str, bounds: Bounds, previous: PartitionRange | None, gaps: Sequence[Gap]
) -> Planned:
    """Returns the range of one partition that the load reads: from the end of the last load to the
    high watermark. The range is empty and says why in two cases: if the log ends before the end of
    the last load, or if the log lacks the first of these offsets and the missing offsets are not
    listed as a gap. previous: the newest manifest's entry for the partition; None if the manifest
    has no such entry."""
    position = previous.end if previous else 0
    below = previous.below if previous else None
    where = f"{topic} partition {bounds.partition}"
    number = bounds.partition
    if bounds.high_watermark < position:
        reason = (
            f"{where}: loaded up to offset {position}, but the log ends at "
            f"{bounds.high_watermark}: it is not the log that was loaded"
        )
        return Planned(number, position, position, position, None, below, reason)
    if bounds.log_start <= position:
        return Planned(number, position, position, bounds.high_watermark, None, below)
    gap = cover(position, bounds.log_start, gaps)
    if gap is None:
        reason = (
            f"{where}: offsets {position} to {bounds.log_start - 1} are gone from the log and no "
            "mirror named them as a gap; nothing behind them is loaded. If they are lost for "
            f"good, say so: --set gaps.accepted={topic}/{bounds.partition}/{position}-"
            f"{bounds.log_start}"
        )
        return Planned(number, position, position, position, None, below, reason)
    return Planned(number, position, bounds.log_start, bounds.high_watermark, gap, below)


def missing_partitions(
    topic: str,
    before: Mapping[int, PartitionRange],
    bounds: Iterable[Bounds],
    away: Mapping[int, str],
) -> list[Planned]:
    """Returns, for each partition that cannot be loaded now, an empty range at the offset where the
    last load ended, with the reason.

    away: for each partition whose leader did not return log start and high watermark, the reason.
    If the topic now lacks a partition that was loaded earlier, the cluster has a fault, because
    topics never lose partitions. The next manifest must list all partitions that cannot be loaded
    now. Otherwise the first load after these partitions return would begin at offset 0.
    """
    absent = {*before, *away} - {each.partition for each in bounds}
    return [_standing(topic, number, before.get(number), away) for number in sorted(absent)]


def _standing(
    topic: str, number: int, was: PartitionRange | None, away: Mapping[int, str]
) -> Planned:
    end = was.end if was else 0
    why = "the topic has no such partition now"
    if number in away:
        why = f"it is kept back, because its leader does not answer: {away[number]}"
    reason = f"{topic} partition {number}: loaded up to offset {end}, but {why}"
    return Planned(number, end, end, end, None, was.below if was else None, reason)


def limit(planned: Sequence[Planned], offsets: int) -> list[Planned]:
    """Returns the ranges, shortened to about `offsets` offsets in all. Each partition gets a share
    in proportion to the size of its range, and at least one offset, so that each load reads
    something of every partition."""
    total = sum(each.end - each.first for each in planned)
    if total <= offsets:
        return list(planned)
    return [
        replace(each, end=min(each.end, each.first + max(1, size * offsets // total)))
        for each in planned
        for size in (each.end - each.first,)
    ]


def has_more(whole: Iterable[Planned], taken: Iterable[Planned], done: Manifest) -> bool:
    """Returns whether another load should follow at once. Another load should follow if this load
    has read some partition up to the limit of this load, and the partition has more offsets to
    load. whole: the ranges that were passed to `limit`. taken: the shortened ranges that `limit`
    returned. done: the load's manifest."""
    limits = {each.partition: each.end for each in taken}
    ends = {each.partition: each.end for each in done.partitions}
    return any(ends.get(each.partition) == limits[each.partition] < each.end for each in whole)


def cover(first: int, end: int, gaps: Sequence[Gap]) -> Gap | None:
    """If the gaps together cover all offsets [first, end), merges them into one gap and returns it.
    Otherwise returns None.
    """
    at, reasons = first, []
    for gap in sorted(gaps, key=lambda each: each.first):
        if gap.first <= at < gap.end:
            at = gap.end
            reasons.append(gap.reason)
        if at >= end:
            return Gap(first, end, "; ".join(dict.fromkeys(reasons)))
    return None


def check_below(topic: str, planned: Planned, header: BatchHeader) -> str:
    """Checks that the broker still has the last batch that was loaded. header: the header of the
    broker's batch at the same offset. If this is another batch, returns a sentence that says so;
    otherwise returns ""."""
    below = planned.below
    if below is None or (header.base_offset, header.crc, header.leader_epoch) == (
        below.base_offset,
        below.crc,
        below.epoch,
    ):
        return ""
    return (
        f"{topic} partition {planned.partition} has diverged: the batch at offset "
        f"{below.base_offset} had CRC {below.crc:08x} and epoch {below.epoch} when it was loaded, "
        f"now the batch at {header.base_offset} has {header.crc:08x} and {header.leader_epoch}"
    )


def unverified(planned: Planned) -> Planned:
    """Returns `planned` with a note: the last loaded batch could not be compared, because the log
    no longer has it. The note is the `reason` of a `Gap` that begins and ends at the same offset,
    and so has no offsets. If the range is empty or has a gap already, returns `planned` unchanged.
    """
    if planned.gap is not None or planned.first == planned.end:
        return planned
    at = planned.position
    return replace(planned, gap=Gap(at, at, "the batch below could not be compared any more"))


def cut(planned: Iterable[Planned], records: int) -> list[Slice]:
    """Returns the ranges, cut into slices of at most `records` offsets. The first slices of all
    partitions come first, then the second slices, and so on, so that all partitions advance
    together."""
    ranges = [each for each in planned if each.first < each.end]
    slices = [
        Slice(each.partition, at, min(at + records, each.end))
        for each in ranges
        for at in range(each.first, each.end, records)
    ]
    begins = {each.partition: each.first for each in ranges}
    return sorted(slices, key=lambda each: (each.first - begins[each.partition], each.partition))


def parse_accepted(texts: Iterable[str]) -> dict[tuple[str, int], list[Gap]]:
    """Returns, for each topic and partition in the setting `gaps.accepted`, the gaps that the
    setting lists. texts: the elements of the setting, in the form `topic/partition/first-end`.
    Raises ValueError for any other text.
    """
    accepted: dict[tuple[str, int], list[Gap]] = {}
    for text in texts:
        try:
            topic, partition, span = text.rsplit("/", 2)
            first, end = (int(part) for part in span.split("-"))
            key = (topic, int(partition))
        except ValueError as error:
            raise ValueError(text) from error
        if not 0 <= first < end:
            raise ValueError(text)
        accepted.setdefault(key, []).append(Gap(first, end, "accepted by the operator"))
    return accepted


def named_gaps(
    topic: str,
    partition: int,
    previous: PartitionRange | None,
    mirror: Mapping[int, Sequence[Gap]],
    accepted: Mapping[tuple[str, int], Sequence[Gap]],
) -> tuple[Gap, ...]:
    """Returns all listed gaps of a partition: those in the newest manifest, those that the mirror
    has listed, and those that the operator has accepted. previous: the newest manifest's entry for
    the partition; None if the manifest has no such entry."""
    known = [
        *(previous.ahead if previous else ()),
        *mirror.get(partition, ()),
        *accepted.get((topic, partition), ()),
    ]
    return tuple(dict.fromkeys(known))
