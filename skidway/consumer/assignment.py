"""Range assignment: which reader of a group gets which partition.

Every member works it out for itself from the same view and comes to the same result. Per topic the
partitions in their order are cut into as many ranges as there are readers of the topic, in the
order of their names; the first ranges are one longer where it does not come out even.

Source: the paper, section 3.2, algorithm 1; Kafka 0.8's RangeAssignor.
"""

from __future__ import annotations

from collections.abc import Mapping

from skidway.kafka.types import TopicPartition

Readers = Mapping[str, frozenset[str]]
"""The topics that each reader of a group subscribes to, by the reader's name."""


def range_assignment(readers: Readers, partitions: Mapping[str, int]) -> dict[TopicPartition, str]:
    """The reader of each partition; `partitions` is how many each topic has.

    Topics that nobody subscribes to are left out.
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
