"""Decides where a stream's next batch ends. Does no I/O.

Each batch begins at the end positions of the batch before it. The end positions include every
partition that the topics have now. If a partition or a topic was created after the stream began,
the stream reads it from offset 0, and so skips none of its records.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from skidway.loader.datasource.positions import Positions, TopicPositions
from skidway.loader.planning.plan import Bounds
from skidway.loader.planning.topic import SourceTopic


def changed_topics(start: Positions, topics: Sequence[SourceTopic]) -> list[str]:
    """Returns a sentence for each topic in `start` that was deleted (and perhaps created again)
    after the batch that ended at `start`. Such a topic may have had records that the query has not
    read.
    """
    now = {each.name: each.topic_id for each in topics}
    found = []
    for name, was in start.items():
        if name not in now:
            found.append(f"the topic {name} was deleted")
        elif not was.is_of(now[name]):
            found.append(
                f"the topic {name} was deleted and made again: its id was {was.topic_id}, now it "
                f"is {now[name]}"
            )
    return found


def firsts(start: Positions, name: str, topic_id: str) -> Mapping[int, int]:
    """Returns the offsets at which a batch begins to read the topic with this id. If a partition is
    not in the result, the batch begins to read the partition at offset 0."""
    was = start.get(name)
    return was.offsets if was is not None and was.is_of(topic_id) else {}


def next_positions(
    start: Positions, topics: Sequence[SourceTopic], offsets_max: int | None
) -> Positions:
    """Returns the end positions of the batch that begins at `start`. For each partition, the result
    has both the offset at which the batch ends and the offset at which it begins. The batch ends at
    the high watermarks, or earlier if it would otherwise have more than about `offsets_max`
    offsets. Each partition gets a share of `offsets_max` in proportion to its unread offsets. If a
    partition has unread offsets, its share is at least one offset, so that each batch reads
    something of the partition.

    Spark begins a batch whenever positions change. So if there are no new records, the result is
    `start` itself. But if `start` has the initial positions of a stream, the result always differs
    from `start`. Spark then makes a first batch, which may be empty, and writes the initial
    positions into its checkpoint."""
    begins = {
        topic.name: {
            each.partition: _begin(firsts(start, topic.name, topic.topic_id), each)
            for each in topic.bounds
        }
        for topic in topics
    }
    total = sum(
        each.high_watermark - begins[topic.name][each.partition]
        for topic in topics
        for each in topic.bounds
    )
    ends = {
        topic.name: TopicPositions(
            topic.topic_id,
            {
                each.partition: _end(begins[topic.name][each.partition], each, offsets_max, total)
                for each in topic.bounds
            },
            firsts(start, topic.name, topic.topic_id),
        )
        for topic in topics
    }
    is_initial = any(topic.begins is None for topic in start.values())
    return ends if is_initial or _places(ends) != _places(start) else start


def ends_of(topics: Sequence[SourceTopic]) -> dict[str, TopicPositions]:
    """Returns the high watermarks of the topics, as positions."""
    return {
        topic.name: TopicPositions(
            topic.topic_id, {each.partition: each.high_watermark for each in topic.bounds}
        )
        for topic in topics
    }


def up_to(topics: Sequence[SourceTopic], target: Positions) -> list[SourceTopic]:
    """Returns the topics as if nothing had been written after `target`. Leaves out topics and
    partitions that are not in `target`, and uses the offsets of `target` as high watermarks."""
    return [
        replace(topic, bounds=bounds)
        for topic in topics
        if topic.name in target and target[topic.name].is_of(topic.topic_id)
        for bounds in [tuple(_lowered(topic.bounds, target[topic.name].offsets))]
    ]


def _places(positions: Positions) -> dict[str, tuple[str, Mapping[int, int]]]:
    return {name: (topic.topic_id, topic.offsets) for name, topic in positions.items()}


def _begin(offsets: Mapping[int, int], bounds: Bounds) -> int:
    first = offsets.get(bounds.partition, 0)
    return min(max(first, bounds.log_start), bounds.high_watermark)


def _end(begin: int, bounds: Bounds, offsets_max: int | None, total: int) -> int:
    size = bounds.high_watermark - begin
    if offsets_max is None or total <= offsets_max or size == 0:
        return bounds.high_watermark
    return min(bounds.high_watermark, begin + max(1, size * offsets_max // total))


def _lowered(bounds: Sequence[Bounds], ends: Mapping[int, int]) -> list[Bounds]:
    return [
        replace(
            each, high_watermark=min(each.high_watermark, max(ends[each.partition], each.log_start))
        )
        for each in bounds
        if each.partition in ends
    ]
