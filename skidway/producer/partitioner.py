"""Chooses the partition of a message.

    with a key         by a hash of the key, as Kafka's own producers do: messages with the same key
                       keep their order
    with a function    by the application's function of key, value and the number of partitions
    with neither       sticky: a random partition for each batch, among those that have a leader

KIP-480 and KIP-794 describe the sticky choice. Section 3.2 of the paper on Kafka (Kreps, Narkhede,
Rao: "Kafka", NetDB 2011) describes the random choice and the choice by a function.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from skidway.errors import UsageError
from skidway.kafka.partitioning import of_key, of_keys

COLUMN_LEAST = 50
"""If there are fewer keys than this, they are hashed one by one, because making a column also costs
time.
"""

Partitioner = Callable[[bytes | None, bytes | None, int], int]
"""A function from key, value and number of partitions to a partition."""

Segment = tuple[int | None, int, int]
"""A partition (None: any partition), and the first index and the end index of the messages that go
to it."""


def segments(
    topic: str,
    count: int,
    keys: Sequence[bytes | None],
    values: Sequence[Any],
    partition: int | None,
    partitioner: Partitioner | None,
) -> list[Segment]:
    """Returns the messages as segments, in order. Consecutive messages to one partition are one
    segment."""
    if partition is not None and not 0 <= partition < count:
        raise UsageError(f"topic {topic} has the partitions 0 to {count - 1} only")
    if partition is not None or (partitioner is None and keys.count(None) == len(keys)):
        return [(partition, 0, len(values))]
    chosen: list[int | None]
    if partitioner is None:
        chosen = by_key(keys, count)
    else:
        pairs = zip(keys, values, strict=True)
        chosen = [own_choice(partitioner, key, value, count) for key, value in pairs]
    found: list[Segment] = []
    start = 0
    for where, group in itertools.groupby(chosen):
        end = start + sum(1 for _ in group)
        found.append((where, start, end))
        start = end
    return found


def own_choice(partitioner: Partitioner, key: bytes | None, value: bytes | None, count: int) -> int:
    """Returns the partition that the application's function `partitioner` chooses. Raises
    UsageError if the topic has no such partition."""
    partition = partitioner(key, value, count)
    if not 0 <= partition < count:
        raise UsageError(f"the partitioner chose {partition} of {count} partitions")
    return int(partition)


def by_key(keys: Sequence[bytes | None], count: int) -> list[int | None]:
    """Returns for each message the partition of its key in a topic of `count` partitions, or None
    if the message has no key."""
    if len(keys) < COLUMN_LEAST:
        return [None if key is None else of_key(key, count) for key in keys]
    present = [key for key in keys if key is not None]
    chosen = iter(of_keys(pa.array(present, pa.binary()), count).tolist())
    return [None if key is None else next(chosen) for key in keys]


class StickyPartitions:
    """For each topic, the partition that gets the messages without a key. The partition changes
    when a new batch begins."""

    def __init__(self, choose: Callable[[Sequence[int]], int]) -> None:
        """`choose` picks one of the available partitions at random. It is a parameter, so that a
        test can make the choice itself."""
        self._choose = choose
        self._present: dict[str, int] = {}

    def present(self, topic: str) -> int | None:
        """Returns the partition that was last chosen for the topic, or None if none was chosen
        yet."""
        return self._present.get(topic)

    def next(self, topic: str, available: Sequence[int]) -> int:
        """Chooses a partition for a new batch of the topic. `present` then returns this
        partition."""
        partition = self._present[topic] = self._choose(available)
        return partition
