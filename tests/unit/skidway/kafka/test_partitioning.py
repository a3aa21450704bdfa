import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from skidway.kafka import partitioning

KAFKA = {
    b"": 275646681,
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    b"abc": 479470107,
}
"""For each key, the hash that Kafka's Java client computes, as a signed number."""


def test_keys_are_hashed_as_kafka_does() -> None:
    """Skidway's producer chooses the same partition for a key as Kafka's own client."""
    column = pa.array([b"first", *KAFKA], pa.binary())[1:]
    assert partitioning.murmur2(column).view(np.int32).tolist() == list(KAFKA.values())
    expected = [(number & 0x7FFFFFFF) % 7 for number in KAFKA.values()]
    assert partitioning.of_keys(column, 7).tolist() == expected
    assert partitioning.of_keys(pa.array([b""], pa.binary()), 7).tolist() == expected[:1]


@given(st.lists(st.binary(max_size=40), min_size=1), st.integers(1, 1000))
def test_one_key_goes_where_a_column_of_it_goes(keys: list[bytes], partitions: int) -> None:
    """A key gets the same partition whether it is hashed alone or in a column."""
    expected = partitioning.of_keys(pa.array(keys, pa.binary()), partitions).tolist()
    assert [partitioning.of_key(key, partitions) for key in keys] == expected
