"""Range assignment: which reader of a group gets which partition.

Every member computes the assignment from the same registrations, with the same result. The
partitions of each topic, in ascending order, are divided into ranges, one for each reader of the
topic. The readers get the ranges in the order of the readers' names. If the partitions do not
divide evenly, the first ranges have one partition more.

Source: the 2011 Kafka paper, section 3.2, algorithm 1; Kafka 0.8's RangeAssignor.
"""

from __future__ import annotations

from collections.abc import Mapping

from skidway.kafka.types import TopicPartition

Readers = Mapping[str, frozenset[str]]
"""The topics that each reader of a group subscribes to, by the reader's name."""


def range_assignment(readers: Readers, partitions: Mapping[str, int]) -> dict[TopicPartition, str]:
    """Returns the reader of each partition. `partitions` maps each topic to its number of
    partitions.

    The result leaves out topics without subscribers.
    """
    found: dict[TopicPartition, str] = {}
    for topic, count in partitions.items():
        names = sorted(name for name, topics in readers.items() if topic in topics)
        short, longer = divmod(count, max(len(names), 1))
        for index, name in enumerate(names):
            start = short * index + min(index, longer)
            end = short * (index + 1) + min(index + 1, longer)
            found.update({TopicPartition(topic, p): name for p in range(start, end)})
    return found
