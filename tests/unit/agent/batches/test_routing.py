"""Tests how the agent chooses the partition of a record."""

import numpy as np
import pytest

from skidway.agent.batches import routing
from support.promises import promise


@promise("2 partition")
def test_a_file_stays_in_its_partition() -> None:
    """As long as a topic has the same number of partitions, a file id has the same partition. The
    expected partitions are constants in this test, because a later version of Skidway that sends a
    record again must send it to the same partition."""
    assert [routing.of_file(file, 5) for file in (1, 2, 3, 2**63 - 1)] == GOLDEN_FILES
    assert {routing.of_file(file, 4) for file in range(100)} == {0, 1, 2, 3}


def test_spread_changes_the_partition_every_mebibyte() -> None:
    """With `partitioning: spread`, records that begin in the same MiB of a file go to the same
    partition. The expected partitions are constants in this test, because a later version of
    Skidway that sends these records again must send them to the same partitions."""
    first = np.array([0, 5, (1 << 20) - 1, 1 << 20, 3 << 20], np.int64)
    found = routing.of_position(7, first, 4).tolist()
    assert found[0] == found[1] == found[2]
    assert found == GOLDEN_SPREAD


GOLDEN_FILES = [0, 0, 3, 4]
GOLDEN_SPREAD = [1, 1, 1, 3, 1]


@pytest.mark.parametrize("partitions", [1, 3])
def test_every_partition_is_one_of_the_topic(partitions: int) -> None:
    """Whether a source's `partitioning` is `file` or `spread`, its records go to all partitions of
    the topic, and to no other."""
    everywhere = set(range(partitions))
    assert {routing.of_file(file, partitions) for file in range(50)} == everywhere
    first = np.arange(50, dtype=np.int64) << 20
    assert set(routing.of_position(7, first, partitions).tolist()) == everywhere
