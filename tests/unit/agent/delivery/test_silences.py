"""A partition is silent if batches are on their way to it, and its leader acknowledges none of
them. /health lists the silent partitions."""

from __future__ import annotations

from skidway.agent.delivery.silences import Silences
from skidway.kafka.types import TopicPartition

ONE, TWO = TopicPartition("logs", 0), TopicPartition("logs", 1)


def test_a_partition_that_nobody_acknowledges_is_named() -> None:
    """A partition whose leader acknowledges nothing is reported, with the seconds for which its
    batches have waited, even while the leaders of other partitions acknowledge batches."""
    silences = Silences()
    for now in range(12):
        silences.look([ONE, TWO], [TWO], float(now))
    assert silences.longer_than(10.0, 11.0) == {ONE: 11.0}


def test_who_has_nothing_on_its_way_is_not_silent() -> None:
    """If no batches are on their way to a partition, the partition is not silent. When the agent
    sends the next batch to the partition, the seconds of silence start again at zero."""
    silences = Silences()
    silences.look([ONE], [], 0.0)
    silences.look([], [ONE], 1.0)
    silences.look([ONE], [], 100.0)
    assert silences.longer_than(10.0, 105.0) == {}
    assert silences.longer_than(10.0, 111.0) == {ONE: 11.0}
