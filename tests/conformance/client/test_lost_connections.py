"""If the network loses connections to a real broker, no record is lost, doubled or reordered."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest

from skidway.kafka import columns
from skidway.kafka.batch import EncodedBatch
from skidway.kafka.client import LATEST, Client, Delivery, Fetcher, NewTopic, Producer
from skidway.kafka.codecs import ZSTD
from skidway.kafka.protocol.apis import ApiKey
from skidway.kafka.types import TopicPartition
from support.brokers import SkidwayBroker
from support.kafka import ApacheKafka, topic_name
from support.processes import WITHIN_S, free_port, running
from support.proxy import Fault, Proxy, produces
from support.zookeeper import ZooKeeper

pytestmark = pytest.mark.java

RECORDS = 20
"""The number of records in one batch."""


@pytest.fixture(scope="module")
def behind_a_proxy(
    tmp_path_factory: pytest.TempPathFactory, zookeeper_server: ZooKeeper
) -> Iterator[tuple[int, int]]:
    """Starts our broker. Yields the port that the broker advertises to clients (on which a proxy
    will listen), and the port on which the broker itself listens."""
    folder = tmp_path_factory.mktemp("proxied")
    told = free_port()
    broker = SkidwayBroker(
        folder,
        f"{zookeeper_server.address}/{folder.name}",
        advertised_listeners=f"PLAINTEXT://127.0.0.1:{told}",
    )
    with running(broker.program, broker.ready):
        yield told, broker.port


@pytest.fixture(params=["apache", "skidway"])
def proxy(request: pytest.FixtureRequest) -> Iterator[Proxy]:
    """A proxy at the address that the broker advertises, so that all clients connect through it."""
    if request.param == "apache":
        kafka: ApacheKafka = request.getfixturevalue("apache_kafka")
        told, port = kafka.proxy_port, kafka.proxied_port
    else:
        told, port = request.getfixturevalue("behind_a_proxy")
    made = Proxy(told, port)
    made.start()
    yield made
    made.stop()


@pytest.fixture
def client(proxy: Proxy) -> Iterator[Client]:
    with Client(f"127.0.0.1:{proxy.port}") as running:
        yield running


@pytest.fixture
def tp(client: Client) -> TopicPartition:
    name = topic_name("lost")
    assert client.create_topics([NewTopic(name, 1, 1)]) == {name: None}
    deadline = time.monotonic() + WITHIN_S
    while not client.metadata([name]).topics[name].partitions:
        assert time.monotonic() < deadline
        client.pause(0.05)
    return TopicPartition(name, 0)


def batch(number: int) -> EncodedBatch:
    values = [b"%d" % (number * RECORDS + at) for at in range(RECORDS)]
    now = np.full(RECORDS, time.time_ns() // 1_000_000)
    return columns.encode(pa.array(values, pa.binary()), now, codec=ZSTD)


def check_deliveries(producer: Producer, found: list[Delivery], count: int) -> None:
    """Polls the producer until `found` has `count` deliveries. Asserts that all batches are
    acknowledged in order, each with its offset."""
    deadline = time.monotonic() + WITHIN_S
    while len(found) < count:
        assert time.monotonic() < deadline, f"{len(found)} of {count}: {producer.troubles}"
        found += producer.poll(200)
    assert [(each.token, each.base_offset, each.error) for each in found] == [
        (number, number * RECORDS, None) for number in range(count)
    ]


def check_log(client: Client, tp: TopicPartition, count: int) -> None:
    """Asserts that the log contains exactly the records of `count` batches, each once and in
    order."""
    assert client.list_offsets({tp: LATEST})[tp].offset == count * RECORDS
    fetcher = Fetcher(client, max_wait_ms=100, max_bytes=5_000)
    fetcher.seek(tp, 0)
    values: list[bytes] = []
    deadline = time.monotonic() + WITHIN_S
    while len(values) < count * RECORDS:
        assert time.monotonic() < deadline, f"{len(values)} records"
        for fetched in fetcher.poll(500):
            for raw in fetched.batches:
                values += columns.decode(raw).values.to_pylist()
    assert values == [b"%d" % number for number in range(count * RECORDS)]


def test_lost_acknowledgements(proxy: Proxy, client: Client, tp: TopicPartition) -> None:
    """If the connection breaks several times after the broker has appended a batch and before the
    producer gets the acknowledgement, each batch is still in the log only once."""
    producer = Producer(client)
    lost = proxy.inject(Fault.LOSE_ANSWER, produces(tp.topic, "skidway"), times=4)
    found: list[Delivery] = []
    for number in range(60):
        producer.send(tp, batch(number), number)
        found += producer.poll(5)
    check_deliveries(producer, found, 60)
    assert lost.hits == 4
    check_log(client, tp, 60)


def test_connections_cut_anywhere(proxy: Proxy, client: Client, tp: TopicPartition) -> None:
    """If all connections break again and again while batches are in flight, each batch is in the
    log once."""
    producer = Producer(client)
    found: list[Delivery] = []
    for number in range(200):
        producer.send(tp, batch(number), number)
        found += producer.poll(0)
        if number % 40 == 39:
            proxy.stop()
            found += producer.poll(20)
            proxy.start()
    check_deliveries(producer, found, 200)
    check_log(client, tp, 200)


def test_answers_to_fetches_are_lost(proxy: Proxy, client: Client, tp: TopicPartition) -> None:
    """If the answer to a fetch is lost, the client fetches again, and neither skips nor repeats a
    record."""
    producer = Producer(client)
    for number in range(40):
        producer.send(tp, batch(number), number)
    check_deliveries(producer, [], 40)
    lost = proxy.inject(
        Fault.LOSE_ANSWER, lambda header, _: header.api_key is ApiKey.FETCH, times=3
    )
    check_log(client, tp, 40)
    assert lost.hits == 3
