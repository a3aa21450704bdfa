import numpy as np
import pyarrow as pa
import pytest

from agent.delivery import routing

KAFKA = {
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    b"abc": 479470107,
}
"""Hashes that Kafka's own client gives, as signed numbers."""


def test_keys_are_hashed_as_kafka_does() -> None:
    """A record of ours and one of a stock client with the same key meet in one partition."""
    column = pa.array([b"first", *KAFKA], pa.binary())[1:]
    assert routing.murmur2(column).view(np.int32).tolist() == list(KAFKA.values())
    expected = [(number & 0x7FFFFFFF) % 7 for number in KAFKA.values()]
    assert routing.of_key(column, 7).tolist() == expected
    assert routing.of_key(pa.array([b""], pa.binary()), 7).tolist() == [
        (int(routing.murmur2(pa.array([b""], pa.binary()))[0]) & 0x7FFFFFFF) % 7
    ]


def test_a_file_stays_in_its_partition() -> None:
    """The partition of a file id never changes; golden, because intents depend on it."""
    assert [routing.of_file(file, 5) for file in (1, 2, 3, 2**63 - 1)] == GOLDEN_FILES
    assert {routing.of_file(file, 4) for file in range(100)} == {0, 1, 2, 3}


def test_spread_changes_the_partition_every_mebibyte() -> None:
    """Within a MiB records stay together; golden, because intents depend on it."""
    first = np.array([0, 5, (1 << 20) - 1, 1 << 20, 3 << 20], np.int64)
    found = routing.of_position(7, first, 4).tolist()
    assert found[0] == found[1] == found[2]
    assert found == GOLDEN_SPREAD


GOLDEN_FILES = [0, 0, 3, 4]
GOLDEN_SPREAD = [1, 1, 1, 3, 1]


@pytest.mark.parametrize("partitions", [1, 3])
def test_every_partition_is_one_of_the_topic(partitions: int) -> None:
    """No record goes to a partition that is not there."""
    assert all(0 <= routing.of_file(file, partitions) < partitions for file in range(50))
