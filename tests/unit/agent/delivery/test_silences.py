"""Partitions whose leader acknowledges nothing are silent, and /health names them."""

from __future__ import annotations

from skidway.agent.delivery.silences import Silences
from skidway.kafka.types import TopicPartition

ONE, TWO = TopicPartition("logs", 0), TopicPartition("logs", 1)


def test_a_partition_that_nobody_acknowledges_is_named() -> None:
    """A partition that acknowledges nothing is named with the seconds since its last
    acknowledgement, while records of other partitions are sent and acknowledged."""
    silences = Silences()
    for now in range(12):
        silences.look([ONE, TWO], [TWO], float(now))
    assert silences.longer_than(10.0, 11.0) == {ONE: 11.0}


def test_who_has_nothing_on_its_way_is_not_silent() -> None:
    """A partition with nothing on its way is not silent. The seconds of its silence are counted
    anew from its next batch."""
    silences = Silences()
    silences.look([ONE], [], 0.0)
    silences.look([], [ONE], 1.0)
    silences.look([ONE], [], 100.0)
    assert silences.longer_than(10.0, 105.0) == {}
    assert silences.longer_than(10.0, 111.0) == {ONE: 11.0}
