"""The blocking driver of our Kafka client works over real sockets with a scripted broker, which
misbehaves in a different way in each test."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest

from skidway.kafka import columns
from skidway.kafka.batch import CorruptBatch, EncodedBatch, read_header
from skidway.kafka.client import (
    EARLIEST,
    LATEST,
    Client,
    Delivery,
    Drained,
    Fetcher,
    Producer,
)
from skidway.kafka.codecs import NONE
from skidway.kafka.errors import (
    BrokerUnreachable,
    ErrorCode,
    OffsetOutOfRange,
    UnsupportedVersion,
)
from skidway.kafka.protocol.apis import ApiKey, VersionRange
from skidway.kafka.types import TopicPartition
from support.processes import WITHIN_S, free_port
from support.scripted_broker import HangUp, PartitionLog, ScriptedBroker, Silence, scripted

LOGS = TopicPartition("logs", 0)
WITHIN_MS = int(1000 * WITHIN_S)


@pytest.fixture
def broker() -> Iterator[ScriptedBroker]:
    with scripted({"logs": 2}) as running:
        yield running


@pytest.fixture
def client(broker: ScriptedBroker) -> Iterator[Client]:
    with Client(broker.address, request_timeout_ms=10_000) as running:
        yield running


ILLEGAL_HOSTS = ["", "a..b", "a" * 64, "\u202e.example", "ü", "a\0b", "a b", "/tmp/x", "[::1]"]


@pytest.mark.parametrize("host", ILLEGAL_HOSTS)
def test_a_broker_with_an_illegal_host_is_unreachable(
    broker: ScriptedBroker, client: Client, caplog: pytest.LogCaptureFixture, host: str
) -> None:
    """A broker may tell a host that no resolver takes. Its partitions have no leader until it tells
    a good one, and the log names it once."""
    send(client, range(1))
    broker.leader_host = host
    _, errors = client.list_offsets_now({LOGS: LATEST})
    assert errors[LOGS].code is ErrorCode.LEADER_NOT_AVAILABLE
    fetcher = Fetcher(client)
    fetcher.seek(LOGS, 0)
    asked = broker.count(ApiKey.METADATA)
    while broker.count(ApiKey.METADATA) < asked + 3:
        assert fetcher.poll(100) == []
    assert "its leader is not known" in fetcher.refusals[LOGS][1]
    named = [each for each in caplog.records if each.message == "illegal_brokers_dropped"]
    assert len(named) == 1
    broker.leader_host = "127.0.0.1"
    while not fetcher.poll(1_000):
        pass


@pytest.mark.parametrize("port", [-1, 0, 1 << 16, (1 << 31) - 1])
def test_a_broker_with_an_illegal_port_is_unreachable(
    broker: ScriptedBroker, client: Client, port: int
) -> None:
    """A broker may tell a port that no host has. Its partitions have no leader."""
    broker.leader_port = port
    _, errors = client.list_offsets_now({LOGS: LATEST})
    assert errors[LOGS].code is ErrorCode.LEADER_NOT_AVAILABLE


def encoded(number: int, count: int = 3, *, at_ms: int | None = None) -> EncodedBatch:
    values = pa.array([b"%d.%d" % (number, i) for i in range(count)], pa.binary())
    at_ms = time.time_ns() // 1_000_000 if at_ms is None else at_ms
    return columns.encode(values, np.full(count, at_ms), codec=NONE)


def values_in(log: PartitionLog) -> list[bytes]:
    found: list[bytes] = []
    for raw in log.batches:
        found += columns.decode(raw).values.to_pylist()
    return found


def expected(numbers: range, count: int = 3) -> list[bytes]:
    return [b"%d.%d" % (number, i) for number in numbers for i in range(count)]


def deliveries_of(producer: Producer, count: int) -> list[Delivery]:
    found: list[Delivery] = []
    deadline = time.monotonic() + 300
    while len(found) < count:
        assert time.monotonic() < deadline, f"{len(found)} of {count}: {producer.troubles}"
        found += producer.poll(1_000)
    return found


def send(client: Client, numbers: range) -> list[Delivery]:
    producer = Producer(client)
    for number in numbers:
        producer.send(LOGS, encoded(number), number)
    return deliveries_of(producer, len(numbers))


def test_batches_arrive_in_order(broker: ScriptedBroker, client: Client) -> None:
    """Without faults every batch arrives once and in order, and is acknowledged with its base
    offset."""
    found = send(client, range(20))
    assert [(each.token, each.base_offset, each.error) for each in found] == [
        (number, 3 * number, None) for number in range(20)
    ]
    assert values_in(broker.logs[LOGS]) == expected(range(20))


def test_one_in_flight_until_the_first_acknowledgement(
    broker: ScriptedBroker, client: Client
) -> None:
    """A new producer sends its second Produce request only after the first one has been
    acknowledged."""
    broker.faults[ApiKey.PRODUCE].append(Silence)
    producer = Producer(client)
    for number in range(5):
        producer.send(LOGS, encoded(number), number)
    deadline = time.monotonic() + 300
    while broker.count(ApiKey.PRODUCE) < 1 and time.monotonic() < deadline:
        producer.poll(20)
    producer.poll(200)
    assert broker.count(ApiKey.PRODUCE) == 1


@pytest.mark.parametrize("fault", [HangUp, *(ErrorCode(n) for n in (2, 3, 6, 7, 19, 20, 56))])
def test_transient_refusals_are_retried(
    broker: ScriptedBroker, client: Client, fault: ErrorCode | type[HangUp]
) -> None:
    """If the broker answers with a retriable error or closes the connection, the producer sends the
    batch again until the broker accepts it. All batches arrive in order, each once."""
    broker.faults[ApiKey.PRODUCE] += [fault, fault]
    found = send(client, range(8))
    assert [each.token for each in found] == list(range(8))
    assert all(each.error is None for each in found)
    assert values_in(broker.logs[LOGS]) == expected(range(8))


def test_a_lost_acknowledgement_makes_no_duplicate(broker: ScriptedBroker, client: Client) -> None:
    """If the broker appends a batch and the connection breaks before the acknowledgement, the
    client sends the same bytes again. The broker recognizes the batch as a duplicate."""
    broker.after[ApiKey.PRODUCE] += [HangUp, HangUp]
    found = send(client, range(8))
    assert [each.base_offset for each in found] == [3 * number for number in range(8)]
    assert values_in(broker.logs[LOGS]) == expected(range(8))


def test_a_silent_broker_is_left_after_the_timeout(broker: ScriptedBroker) -> None:
    """If a request gets no answer in time, the client ends the connection and sends the request
    again on another connection."""
    with Client(broker.address, request_timeout_ms=300) as client:
        broker.after[ApiKey.PRODUCE].append(Silence)
        found = send(client, range(4))
    assert [each.token for each in found] == list(range(4))
    assert values_in(broker.logs[LOGS]) == expected(range(4))
    assert broker.connections == 2


def test_garbage_ends_the_connection(broker: ScriptedBroker, client: Client) -> None:
    """If a response is malformed, the client closes the connection and continues over a new
    connection."""
    broker.faults[ApiKey.PRODUCE].append(lambda answer: b"HTTP/1.1 400 Bad Request\r\n\r\n")
    broker.faults[ApiKey.PRODUCE].append(lambda answer: answer[:4] + b"\x7f" * (len(answer) - 4))
    broker.faults[ApiKey.METADATA].append(lambda answer: answer[:-3] + b"\xff\xff\xff")
    found = send(client, range(6))
    assert [each.token for each in found] == list(range(6))
    assert values_in(broker.logs[LOGS]) == expected(range(6))


@pytest.mark.parametrize("code", [45, 47, 59])
def test_a_lost_identity_is_replaced(broker: ScriptedBroker, client: Client, code: int) -> None:
    """After the error OUT_OF_ORDER_SEQUENCE_NUMBER (45), INVALID_PRODUCER_EPOCH (47) or
    UNKNOWN_PRODUCER_ID (59), the producer sends the unacknowledged batches again under another
    producer id."""
    producer = Producer(client)
    producer.send(LOGS, encoded(0), 0)
    assert len(deliveries_of(producer, 1)) == 1
    broker.faults[ApiKey.PRODUCE].append(ErrorCode(code))
    for number in range(1, 9):
        producer.send(LOGS, encoded(number), number)
    found = deliveries_of(producer, 8)
    assert [(each.token, each.error) for each in found] == [(n, None) for n in range(1, 9)]
    assert values_in(broker.logs[LOGS]) == expected(range(9))
    ids = {read_header(raw).producer_id for raw in broker.logs[LOGS].batches}
    assert len(ids) == 2


@pytest.mark.parametrize("code", [10, 32, 76, 87])
def test_a_batch_refused_for_good_comes_back(
    broker: ScriptedBroker, client: Client, code: int
) -> None:
    """If the broker refuses a batch with a final error, the producer returns this batch with the
    broker's error, and the later batches of the partition with the error Drained. Then the producer
    can send further batches."""
    producer = Producer(client)
    producer.send(LOGS, encoded(0), 0)
    deliveries_of(producer, 1)
    broker.faults[ApiKey.PRODUCE].append(ErrorCode(code))
    for number in range(1, 6):
        producer.send(LOGS, encoded(number), number)
    found = deliveries_of(producer, 5)
    assert [each.token for each in found] == [1, 2, 3, 4, 5]
    assert found[0].error is not None
    assert found[0].error.code == code
    assert not isinstance(found[0].error, Drained)
    assert all(isinstance(each.error, Drained) for each in found[1:])
    for number in range(2, 6):
        producer.send(LOGS, encoded(number), number)
    assert [each.error for each in deliveries_of(producer, 4)] == [None] * 4
    values = [value for value in values_in(broker.logs[LOGS]) if value is not None]
    assert list(dict.fromkeys(values)) == expected(range(1)) + expected(range(2, 6))
    assert producer.pending_count == producer.buffered_bytes == 0


def test_no_acknowledgements_wanted(broker: ScriptedBroker, client: Client) -> None:
    """With acks=0 a batch counts as delivered as soon as its bytes are sent, and it has no offset.
    All batches arrive in order, each once."""
    producer = Producer(client, acks=0, idempotent=False)
    for number in range(5):
        producer.send(LOGS, encoded(number), number)
    found = deliveries_of(producer, 5)
    assert [(each.token, each.base_offset) for each in found] == [(n, -1) for n in range(5)]
    deadline = time.monotonic() + 300
    while client.list_offsets({LOGS: LATEST})[LOGS].offset < 15:
        assert time.monotonic() < deadline
    assert values_in(broker.logs[LOGS]) == expected(range(5))


def test_errors_of_rights_are_waited_out(broker: ScriptedBroker, client: Client) -> None:
    """If the broker refuses a batch because the producer lacks a permission, the producer reports
    this in `troubles`, and sends the batch again until the broker accepts it."""
    producer = Producer(client)
    broker.faults[ApiKey.PRODUCE] += [ErrorCode.TOPIC_AUTHORIZATION_FAILED] * 2
    producer.send(LOGS, encoded(0), 0)
    deadline = time.monotonic() + 300
    while not producer.troubles and time.monotonic() < deadline:
        producer.poll(10)
    assert producer.troubles[LOGS].code is ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert [each.error for each in deliveries_of(producer, 1)] == [None]
    assert producer.troubles == {}


def test_poll_wakes_on_other_descriptors(client: Client) -> None:
    """If a file descriptor of the caller becomes readable, the current poll ends early. Each
    further poll also ends early while the descriptor stays readable."""
    producer, fetcher = Producer(client), Fetcher(client)
    readable, writable = os.pipe()
    try:
        os.write(writable, b"x")
        for polled in (producer, fetcher, producer):
            began_at = time.monotonic()
            assert polled.poll(4 * WITHIN_MS, readable) == []
            assert time.monotonic() - began_at < WITHIN_S
    finally:
        os.close(readable)
        os.close(writable)


def test_a_broker_that_comes_later_is_found() -> None:
    """If no broker listens at first, the producer waits, and delivers as soon as a broker
    listens."""
    port = free_port()
    with Client(f"127.0.0.1:{port}", request_timeout_ms=500) as client:
        producer = Producer(client)
        producer.send(LOGS, encoded(0), 0)
        assert producer.poll(100) == []
        assert producer.pending_count == 1
        with pytest.raises(BrokerUnreachable, match="Connection refused"):
            client.metadata()
        with scripted({"logs": 2}, port) as broker:
            assert [each.error for each in deliveries_of(producer, 1)] == [None]
            assert values_in(broker.logs[LOGS]) == [b"0.0", b"0.1", b"0.2"]


def test_an_unreachable_leader_is_looked_up_again(broker: ScriptedBroker, client: Client) -> None:
    """If the metadata contains a leader's address at which no broker listens, the client requests
    the metadata again and finds the right leader."""
    broker.leader_port = free_port()
    producer = Producer(client)
    producer.send(LOGS, encoded(0), 0)
    deadline = time.monotonic() + 300
    while not client.session.last_failure and time.monotonic() < deadline:
        producer.poll(10)
    broker.leader_port = broker.port
    assert [each.error for each in deliveries_of(producer, 1)] == [None]


# --- fetching ---------------------------------------------------------------------------------


def fill(broker: ScriptedBroker, tp: TopicPartition, batches: int, first: int = 0) -> None:
    from skidway.kafka.batch import seal

    for number in range(first, first + batches):
        broker.logs[tp].append(seal(encoded(number)))


def read(fetcher: Fetcher, tp: TopicPartition, until: int, start: int = 0) -> list[bytes]:
    """Polls the fetcher until it has the records of a partition from the offset `start` up to the
    offset `until`. Returns the values of these records. Asserts that no record is skipped or
    repeated."""
    found: list[bytes] = []
    position = start
    deadline = time.monotonic() + 300
    while position < until:
        assert time.monotonic() < deadline, f"{position} of {until}"
        for fetched in fetcher.poll(1_000):
            assert fetched.tp == tp
            for raw in fetched.batches:
                header = read_header(raw)
                assert header.base_offset <= position <= header.last_offset
                rows = columns.decode(raw).values.to_pylist()
                found += rows[position - header.base_offset :]
                position = header.last_offset + 1
            assert fetcher.positions[tp] == position
    return found


@pytest.mark.parametrize("fault", [None, HangUp, *(ErrorCode(n) for n in (-1, 3, 5, 6, 9, 74, 78))])
def test_everything_is_fetched_once(
    broker: ScriptedBroker, client: Client, fault: ErrorCode | type[HangUp] | None
) -> None:
    """The fetcher returns every record from its position on in order, even if the broker answers
    some requests with errors or closes connections."""
    fill(broker, LOGS, 10)
    fetcher = Fetcher(client, max_wait_ms=50, max_bytes=300)
    fetcher.seek(LOGS, 0)
    if fault is not None:
        broker.faults[ApiKey.FETCH] += [fault, fault]
    assert read(fetcher, LOGS, 30) == expected(range(10))
    fill(broker, LOGS, 5, first=10)
    assert read(fetcher, LOGS, 45, start=30) == expected(range(10, 15))
    assert fetcher.high_watermarks == {LOGS: 45}


def test_a_position_within_a_batch(broker: ScriptedBroker, client: Client) -> None:
    """If the fetch position is within a batch, the fetcher returns the whole batch, including the
    records before the position."""
    fill(broker, LOGS, 4)
    fetcher = Fetcher(client, max_wait_ms=50)
    fetcher.seek(LOGS, 4)
    assert read(fetcher, LOGS, 12, start=4) == expected(range(4))[4:]


def test_offsets_outside_are_told(broker: ScriptedBroker, client: Client) -> None:
    """If the offset to read is outside of a partition's log, `poll` raises an error with the log's
    first offset and high watermark. The fetcher still fetches other partitions."""
    fill(broker, LOGS, 2)
    other = TopicPartition("logs", 1)
    fill(broker, other, 2)
    broker.logs[LOGS].start = 3
    fetcher = Fetcher(client, max_wait_ms=50)
    fetcher.seek(LOGS, 0)
    fetcher.seek(other, 0)
    caught: list[OffsetOutOfRange] = []
    seen = 0
    deadline = time.monotonic() + 300
    while (not caught or not seen) and time.monotonic() < deadline:
        try:
            seen += len(fetcher.poll(200))
        except OffsetOutOfRange as error:
            caught.append(error)
    assert [(e.tp, e.requested, e.log_start_offset, e.high_watermark) for e in caught] == [
        (LOGS, 0, 3, 6)
    ]
    assert seen
    fetcher.remove(other)
    fetcher.seek(LOGS, 3)
    assert read(fetcher, LOGS, 6, start=3) == expected(range(1, 2))


def test_a_cut_last_batch_is_fetched_again(broker: ScriptedBroker, client: Client) -> None:
    """If a response ends in the middle of a batch, the client returns the complete batches of the
    response, and fetches the incomplete batch with its next request."""
    fill(broker, LOGS, 3)
    whole = broker.logs[LOGS].read

    def cut(offset: int, max_bytes: int) -> list[bytes]:
        return [b"".join(whole(offset, 1 << 20))[: max(max_bytes, 1)]]

    broker.logs[LOGS].read = cut  # type: ignore[method-assign]
    fetcher = Fetcher(client, max_wait_ms=50, max_bytes=40)
    fetcher.seek(LOGS, 0)
    assert read(fetcher, LOGS, 9) == expected(range(3))


def test_damaged_batches_stop_the_partition_by_name(broker: ScriptedBroker, client: Client) -> None:
    """If the header of a batch is damaged, the fetcher does not skip the batch: `poll` raises an
    error that names the partition and the offset."""
    fill(broker, LOGS, 3)
    broken = bytearray(broker.logs[LOGS].batches[1])
    broken[16] = 9
    fetcher = Fetcher(client, max_wait_ms=50)
    fetcher.seek(LOGS, 0)
    whole = broker.logs[LOGS].read

    def damaged(offset: int, max_bytes: int) -> list[bytes]:
        return [bytes(broken) if raw[:8] == broken[:8] else raw for raw in whole(offset, max_bytes)]

    broker.logs[LOGS].read = damaged  # type: ignore[method-assign]
    assert read(fetcher, LOGS, 3) == expected(range(1))
    with pytest.raises(CorruptBatch, match="logs-0 cannot be read at offset 3"):
        fetcher.poll(WITHIN_MS)
    assert fetcher.positions == {LOGS: 3}


def test_seek_drops_what_was_fetched(broker: ScriptedBroker, client: Client) -> None:
    """After a seek, `poll` returns no batch from before the seek, even if the fetcher has already
    received or requested it."""
    fill(broker, LOGS, 6)
    fetcher = Fetcher(client, max_wait_ms=50, max_bytes=1)
    fetcher.seek(LOGS, 0)
    assert read(fetcher, LOGS, 3) == expected(range(1))
    fetcher.seek(LOGS, 12)
    assert read(fetcher, LOGS, 18, start=12) == expected(range(4, 6))
    fetcher.remove(LOGS)
    assert fetcher.positions == {}
    assert fetcher.poll(100) == []


def test_partitions_take_turns(broker: ScriptedBroker, client: Client) -> None:
    """If each response has room for only one batch, a fetcher that reads two partitions still
    advances in both."""
    tps = [TopicPartition("logs", 0), TopicPartition("logs", 1)]
    for tp in tps:
        fill(broker, tp, 6)
    fetcher = Fetcher(client, max_wait_ms=50, max_bytes=1)
    for tp in tps:
        fetcher.seek(tp, 0)
    order: list[int] = []
    deadline = time.monotonic() + 300
    while len(order) < 8 and time.monotonic() < deadline:
        order += [fetched.tp.partition for fetched in fetcher.poll(1_000)]
    assert order.count(0) >= 3
    assert order.count(1) >= 3


# --- other requests ---------------------------------------------------------------------------


def test_unknown_topics_are_errors(client: Client) -> None:
    """For an unknown topic the metadata contains an error. `list_offsets_now` returns an error for
    an unknown topic or partition."""
    assert client.metadata(["none"]).topics["none"].error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    for tp in (TopicPartition("none", 0), TopicPartition("logs", 9)):
        found, errors = client.list_offsets_now({tp: LATEST})
        assert (found, errors[tp].code) == ({}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def test_offsets_are_listed(broker: ScriptedBroker, client: Client) -> None:
    """The client lists earliest and latest offsets of several partitions, and tries again if a
    leader is not ready."""
    fill(broker, LOGS, 2)
    broker.faults[ApiKey.LIST_OFFSETS].append(ErrorCode.OFFSET_NOT_AVAILABLE)
    other = TopicPartition("logs", 1)
    found = client.list_offsets({LOGS: LATEST, other: LATEST})
    assert (found[LOGS].offset, found[other].offset) == (6, 0)
    assert client.list_offsets({LOGS: EARLIEST})[LOGS].offset == 0


def test_an_old_broker_is_asked_in_its_words(broker: ScriptedBroker, client: Client) -> None:
    """The client uses the API versions that an old broker supports. If the broker lacks an API, the
    error names this API."""
    broker.ranges = {
        ApiKey.API_VERSIONS: VersionRange(0, 2),
        ApiKey.METADATA: VersionRange(0, 5),
        ApiKey.PRODUCE: VersionRange(0, 7),
        ApiKey.FETCH: VersionRange(4, 10),
        ApiKey.INIT_PRODUCER_ID: VersionRange(0, 1),
    }
    found = send(client, range(3))
    assert [each.error for each in found] == [None] * 3
    assert {h.api_version for h in broker.requests if h.api_key is ApiKey.PRODUCE} == {7}
    with pytest.raises(UnsupportedVersion, match="LIST_OFFSETS"):
        client.list_offsets({LOGS: LATEST})
