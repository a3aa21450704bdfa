"""The producer for applications works with Apache Kafka and with our broker."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from concurrent.futures import Future
from typing import Any

import pytest

from skidway.errors import UsageError
from skidway.kafka.batch import read_header
from skidway.kafka.client import EARLIEST, LATEST, Client, Fetcher, NewTopic
from skidway.kafka.codecs import BY_NAME, Codec, codec_of
from skidway.kafka.columns import decode
from skidway.kafka.errors import ErrorCode, KafkaError
from skidway.kafka.types import TopicPartition
from skidway.producer import Producer, RecordMetadata
from skidway.producer.partitioner import by_key
from support.brokers import SkidwayBroker
from support.kafka import topic_name
from support.processes import eventually

pytestmark = pytest.mark.java

PARTITIONS = 3
Rows = dict[tuple[int, int], tuple[bytes | None, bytes | None]]


def make_topic(bootstrap: str) -> str:
    name = topic_name("producer")
    with Client(bootstrap) as client:
        configs = {"max.message.bytes": "100000"}
        assert client.create_topics([NewTopic(name, PARTITIONS, 1, configs)]) == {name: None}
        eventually(lambda: len(client.metadata([name]).topics[name].partitions) == PARTITIONS)
    return name


@pytest.fixture
def topic(bootstrap: str) -> str:
    return make_topic(bootstrap)


def read(bootstrap: str, topic: str) -> tuple[Rows, list[Codec]]:
    """Returns two values: the key and value of each record, by partition and offset; and the codec
    of each batch."""
    tps = [TopicPartition(topic, partition) for partition in range(PARTITIONS)]
    found: Rows = {}
    codecs = []
    with Client(bootstrap) as client:
        ends = client.list_offsets(dict.fromkeys(tps, LATEST))
        starts = client.list_offsets(dict.fromkeys(tps, EARLIEST))
        fetcher = Fetcher(client, max_wait_ms=100)
        for tp in tps:
            fetcher.seek(tp, starts[tp].offset)
        while any(fetcher.positions[tp] < ends[tp].offset for tp in tps):
            for fetched in fetcher.poll(1_000):
                for raw in fetched.batches:
                    codecs.append(codec_of(read_header(raw)))
                    batch = decode(raw)
                    rows = zip(batch.keys.to_pylist(), batch.values.to_pylist(), strict=True)
                    for offset, row in zip(batch.offsets.tolist(), rows, strict=True):
                        found[fetched.tp.partition, offset] = row
    return found, codecs


def where(future: Future[RecordMetadata]) -> tuple[int, int]:
    metadata = future.result(300)
    return metadata.partition, metadata.offset


@pytest.mark.parametrize("codec", list(BY_NAME))
def test_messages_arrive_where_their_futures_say(bootstrap: str, topic: str, codec: Any) -> None:
    """With every codec, each message is stored in the partition and at the offset that its future
    returns. Messages may have null keys. An application may send messages one by one, may send
    several messages in one call, and may choose the partition."""
    with Producer(bootstrap, compression_type=codec, linger_ms=20) as producer:
        long = b"compressible " * 50
        expected = {
            producer.send(topic, long + b"%d" % index, key=b"%d" % index): (
                b"%d" % index,
                long + b"%d" % index,
            )
            for index in range(100)
        }
        expected[producer.send(topic, None, key=b"gone")] = (b"gone", None)
        expected[producer.send(topic, b"here", partition=2)] = (None, b"here")
        many = producer.send(topic, [b"a", b"b", None], key=[b"k", None, b""])
    found, codecs = read(bootstrap, topic)
    assert {where(future): row for future, row in expected.items()}.items() <= found.items()
    assert [found[each.partition, each.offset] for each in many.result()] == [
        (b"k", b"a"),
        (None, b"b"),
        (b"", None),
    ]
    assert len(found) == 105
    assert BY_NAME[codec] in codecs
    for future, (key, _) in expected.items():
        if key is not None:
            assert [future.result().partition] == by_key([key], PARTITIONS)


def test_an_own_partition_function(bootstrap: str, topic: str) -> None:
    """An application can supply its own partition function, which gets the key, the value and the
    number of partitions. The producer refuses a partition that does not exist."""
    with Producer(bootstrap) as producer:
        sent = [
            producer.send(topic, b"%d" % index, partitioner=lambda _k, v, n: int(v or b"") % n)
            for index in range(9)
        ]
        with pytest.raises(UsageError, match="chose 7 of 3"):
            producer.send(topic, b"", partitioner=lambda _k, _v, _n: 7)
        with pytest.raises(UsageError, match="0 to 2 only"):
            producer.send(topic, b"", partition=3)
        with pytest.raises(UsageError, match="not str"):
            producer.send(topic, ["text"])  # type: ignore[list-item]
    assert [future.result().partition for future in sent] == [0, 1, 2] * 3


def test_a_message_that_is_too_large_fails_alone(bootstrap: str, topic: str) -> None:
    """If a message is too large, only its own future has an error. All other messages arrive in
    order."""
    with Producer(bootstrap, compression_type="none", batch_size=90_000) as producer:
        before = [producer.send(topic, b"%d" % index, partition=0) for index in range(50)]
        large = producer.send(topic, bytes(200_000), partition=0)
        after = [producer.send(topic, b"%d" % index, partition=0) for index in range(50, 100)]
    error = large.exception()
    assert isinstance(error, KafkaError)
    assert error.code is ErrorCode.MESSAGE_TOO_LARGE
    assert [where(future) for future in [*before, *after]] == [(0, offset) for offset in range(100)]
    found, _ = read(bootstrap, topic)
    assert [found[0, offset][1] for offset in range(100)] == [b"%d" % i for i in range(100)]


def test_messages_of_a_topic_that_is_none(bootstrap: str) -> None:
    """If a topic does not exist, `send` waits at least for the time `max_block_ms`, and then raises
    an error that says that the topic does not exist. `flush` then returns. The topic is not
    created."""
    with Producer(bootstrap, max_block_ms=10_000) as producer:
        began = time.monotonic()
        with pytest.raises(KafkaError, match="UNKNOWN_TOPIC_OR_PARTITION"):
            producer.send("never-was", b"x")
        assert time.monotonic() - began >= 10
        producer.flush()
    with Client(bootstrap) as client:
        assert "never-was" not in client.metadata().topics


@pytest.mark.slow
def test_a_broker_killed_under_load_loses_and_repeats_nothing(own_broker: SkidwayBroker) -> None:
    """If the broker is killed with kill -9 under load and restarted, every future returns an
    offset, and every message is stored once."""
    own_broker.start()
    topic = make_topic(own_broker.address)
    with Producer(own_broker.address, linger_ms=1, batch_size=5_000) as producer:
        sent = []
        for index in range(20_000):
            sent.append(producer.send(topic, b"%d" % index))
            if index in (7_000, 14_000):
                own_broker.crash()
    found, _ = read(own_broker.address, topic)
    assert sorted(int(value or b"") for _, value in found.values()) == list(range(20_000))
    values = {where(future): b"%d" % index for index, future in enumerate(sent)}
    assert values == {place: value for place, (_, value) in found.items()}


@pytest.mark.parametrize("end", ["", "raise SystemExit", "raise ValueError"])
def test_a_program_may_end_without_closing(bootstrap: str, topic: str, end: str) -> None:
    """Every message arrives, although the program ends without closing its producer: at the end of
    its script, with an exit, or with an exception."""
    script = (
        "from skidway.producer import Producer\n"
        f"producer = Producer({bootstrap!r})\n"
        f"for number in range(1000): producer.send({topic!r}, b'%d' % number)\n{end}\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert "not acknowledged" not in done.stderr
    found, _ = read(bootstrap, topic)
    assert sorted(int(value or b"") for _, value in found.values()) == list(range(1000))


def test_a_fork_does_not_disturb_the_parent(bootstrap: str, topic: str) -> None:
    """A forked child that uses its parent's producer gets an error at once. The parent's sends need
    the same connections meanwhile, and arrive."""
    other = make_topic(bootstrap)
    with Producer(bootstrap) as producer:
        producer.send(topic, b"before").result(300)
        child = os.fork()
        if child == 0:
            refused = 0
            for call in (lambda: producer.send(other, b"x"), producer.flush, producer.close):
                try:
                    call()
                except UsageError:
                    refused += 1
            os._exit(refused)
        producer.send(other, b"meanwhile").result(300)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
        producer.send(topic, b"after").result(300)
    assert [value for _, value in read(bootstrap, other)[0].values()] == [b"meanwhile"]
    assert {value for _, value in read(bootstrap, topic)[0].values()} == {b"before", b"after"}
