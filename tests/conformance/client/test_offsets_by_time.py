"""The client looks up offsets by time on real brokers."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from skidway.kafka import columns
from skidway.kafka.client import EARLIEST, LATEST, Client, NewTopic, Producer
from skidway.kafka.codecs import NONE, ZSTD, Codec
from skidway.kafka.errors import ErrorCode, KafkaError
from skidway.kafka.types import TopicPartition
from support.kafka import topic_name

pytestmark = pytest.mark.java

START_MS = 1_700_000_000_000


@pytest.mark.parametrize("codec", [NONE, ZSTD])
def test_the_first_record_at_or_after_a_time(bootstrap: str, codec: Codec) -> None:
    """For a given time the client finds the offset of the first record with a timestamp at or after
    this time. The time may lie within a batch, between batches or before the first record. For a
    time after the last record, the offset is -1."""
    with Client(bootstrap) as client:
        name = topic_name("times")
        assert client.create_topics([NewTopic(name, 2, 1)]) == {name: None}
        tp, empty = TopicPartition(name, 0), TopicPartition(name, 1)
        producer = Producer(client)
        for number in range(5):
            times = START_MS + np.arange(number * 10, number * 10 + 10, dtype=np.int64) * 1_000
            values = pa.array([b"value"] * 10, pa.binary())
            producer.send(tp, columns.encode(values, times, codec=codec), number)
        assert producer.flush(300_000)
        for wanted_s, offset in ((-5.0, 0), (0.0, 0), (13.0, 13), (13.001, 14), (49.0, 49)):
            at_ms = START_MS + round(wanted_s * 1_000)
            listed = client.list_offsets({tp: at_ms})[tp]
            assert (listed.offset, listed.timestamp) == (offset, START_MS + offset * 1_000)
        nothing = client.list_offsets({tp: START_MS + 49_001, empty: START_MS})
        assert {each.offset for each in nothing.values()} == {-1}
        ends = client.list_offsets({tp: LATEST, empty: EARLIEST})
        assert (ends[tp].offset, ends[empty].offset) == (50, 0)


def test_no_such_partition(bootstrap: str) -> None:
    """If a partition does not exist, the client retries for a limited time and then raises an error
    that says that the partition does not exist."""
    name = topic_name("times")
    with Client(bootstrap) as client:
        assert client.create_topics([NewTopic(name, 1, 1)]) == {name: None}
    with Client(bootstrap, request_timeout_ms=10_000) as client:
        with pytest.raises(KafkaError) as caught:
            client.list_offsets({TopicPartition(name, 7): LATEST})
        assert caught.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
