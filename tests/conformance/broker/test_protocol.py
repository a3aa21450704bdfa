"""The broker keeps the rules of the Kafka protocol for order, limits, refusals and bad frames. The
tests send hand-written requests."""

from __future__ import annotations

import json
import random
import struct
import uuid

import pytest

from skidway.broker.api import registry
from skidway.kafka.batch import headers
from skidway.kafka.errors import ErrorCode
from skidway.kafka.protocol.api_versions import ApiVersionsRequest, ApiVersionsResponse
from skidway.kafka.protocol.apis import ApiKey
from skidway.kafka.protocol.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from skidway.kafka.protocol.find_coordinator import (
    TRANSACTION,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from skidway.kafka.protocol.frames import request_frame
from skidway.kafka.protocol.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from skidway.kafka.protocol.list_offsets import (
    EARLIEST,
    LATEST,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from skidway.kafka.protocol.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from support.batches import batch, sized
from support.brokers import SkidwayBroker
from support.processes import eventually
from support.raw_client import RawClient


def create(broker: SkidwayBroker, partitions: int = 1, **configs: str) -> str:
    name = f"topic-{uuid.uuid4().hex[:12]}"
    settings = tuple(
        CreatableTopicConfig(name=key.replace("_", "."), value=value)
        for key, value in configs.items()
    )
    topic = CreatableTopic(name=name, num_partitions=partitions, configs=settings)
    with RawClient(broker.port) as client:
        answer = client.ask(CreateTopicsRequest(topics=(topic,)), 7, CreateTopicsResponse)
        assert isinstance(answer, CreateTopicsResponse)
        assert answer.topics[0].error_code == 0
    return name


def offsets(records: memoryview) -> list[int]:
    return [header.base_offset for _, header in headers(records)]


def test_answers_come_in_the_order_of_the_requests(skidway_broker: SkidwayBroker) -> None:
    """While a fetch waits, the broker does not answer later requests of the same connection. After
    the broker has answered the fetch, it answers these requests in order."""
    topic = create(skidway_broker)
    with RawClient(skidway_broker.port) as client, RawClient(skidway_broker.port) as other:
        numbers = [client.send_fetch(topic, 0, max_wait_ms=10_000)]
        numbers += [client.send_produce(topic + "-unknown", batch(b"x")) for _ in range(3)]
        numbers += [client.send_fetch(topic, 0)]
        eventually(lambda: skidway_broker.metric("skidway_broker_requests_waiting") >= 1)
        assert other.produce(topic, batch(b"late")).base_offset == 0
        found = [struct.unpack(">i", client.receive()[:4])[0] for _ in numbers]
        assert found == numbers


def test_many_requests_at_once_are_all_answered(skidway_broker: SkidwayBroker) -> None:
    """If a client sends thousands of Produce requests before it reads the first answer, it still
    gets an answer to each request with acks other than 0. Requests with acks=0 get no answer."""
    topic = create(skidway_broker)
    count = 3000
    with RawClient(skidway_broker.port) as client:
        for number in range(count):
            client.send_produce(topic, batch(b"%d" % number), acks=(1, -1, 0)[number % 3])
        found = [client.produced().base_offset for _ in range(count * 2 // 3)]
    assert found == [number for number in range(count) if number % 3 != 2]


def test_fetch_gives_whole_batches_with_the_offset(skidway_broker: SkidwayBroker) -> None:
    """The answer to a Fetch request contains whole batches, beginning with the batch that contains
    the requested offset. It contains as many batches as fit into max_bytes, but at least one
    batch."""
    topic = create(skidway_broker)
    with RawClient(skidway_broker.port) as client:
        for _ in range(4):
            client.produce(topic, sized(500, 10))
        for version in range(4, 13):
            assert offsets(client.fetch(topic, 15, version=version).records) == [10, 20, 30]
        assert offsets(client.fetch(topic, 15, max_bytes=1200).records) == [10, 20]
        assert offsets(client.fetch(topic, 15, max_bytes=1).records) == [10]
        end = client.fetch(topic, 40)
        assert (end.error_code, end.high_watermark, len(end.records)) == (0, 40, 0)


@pytest.mark.parametrize("offset", [-1, 41, 1 << 40])
def test_fetch_outside_the_log_says_where_it_is(skidway_broker: SkidwayBroker, offset: int) -> None:
    """If the offset of a Fetch request is outside of the log, the answer contains
    OFFSET_OUT_OF_RANGE, the log start offset and the high watermark."""
    topic = create(skidway_broker)
    with RawClient(skidway_broker.port) as client:
        client.produce(topic, sized(100, 40))
        found = client.fetch(topic, offset)
        assert found.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
        assert (found.log_start_offset, found.high_watermark) == (0, 40)


def test_fetch_waits_for_min_bytes(skidway_broker: SkidwayBroker) -> None:
    """A fetch waits until min_bytes of data are available, but for at most max_wait_ms."""
    topic = create(skidway_broker)
    with RawClient(skidway_broker.port) as client, RawClient(skidway_broker.port) as other:
        other.produce(topic, sized(100))
        found = client.fetch(topic, 0, min_bytes=1000, max_wait_ms=50)
        assert len(found.records) == 100
        client.send_fetch(topic, 0, min_bytes=1000, max_wait_ms=20_000)
        for _ in range(9):
            other.produce(topic, sized(100))
        assert len(client.fetched().records) == 1000


def test_unknown_partitions_are_named(skidway_broker: SkidwayBroker) -> None:
    """Produce, Fetch and ListOffsets answer UNKNOWN_TOPIC_OR_PARTITION for an unknown partition,
    and the connection stays open."""
    topic = create(skidway_broker)
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    with RawClient(skidway_broker.port) as client:
        assert client.produce(topic, batch(b"x"), partition=7).error_code == unknown
        assert client.fetch(topic, 0, partition=-1).error_code == unknown
        assert client.fetch("../etc", 0).error_code == unknown
        asked = ListOffsetsPartition(partition_index=3, timestamp=LATEST)
        request = ListOffsetsRequest(topics=(ListOffsetsTopic(name=topic, partitions=(asked,)),))
        answer = client.ask(request, 7, ListOffsetsResponse)
        assert isinstance(answer, ListOffsetsResponse)
        assert answer.topics[0].partitions[0].error_code == unknown
        assert client.produce(topic, batch(b"x")).base_offset == 0


@pytest.mark.parametrize("version", range(1, 8))
def test_ends_in_every_version(skidway_broker: SkidwayBroker, version: int) -> None:
    """In every version, ListOffsets returns the log start as the earliest offset, and the high
    watermark as the latest offset."""
    topic = create(skidway_broker)
    with RawClient(skidway_broker.port) as client:
        client.produce(topic, sized(100, 12))
        for asked, expected in ((EARLIEST, 0), (LATEST, 12)):
            partition = ListOffsetsPartition(partition_index=0, timestamp=asked)
            request = ListOffsetsRequest(
                topics=(ListOffsetsTopic(name=topic, partitions=(partition,)),)
            )
            answer = client.ask(request, version, ListOffsetsResponse)
            assert isinstance(answer, ListOffsetsResponse)
            assert answer.topics[0].partitions[0].offset == expected


@pytest.mark.parametrize("version", range(10))
def test_produce_in_every_version(skidway_broker: SkidwayBroker, version: int) -> None:
    """A Produce request of version 0, 1 or 2 gets UNSUPPORTED_VERSION (KIP-896). In every later
    version the batch is stored."""
    topic = create(skidway_broker)
    with RawClient(skidway_broker.port) as client:
        for expected in range(3):
            found = client.produce(topic, batch(b"x"), version=version)
            if version < 3:
                assert found.error_code == ErrorCode.UNSUPPORTED_VERSION
            else:
                assert (found.error_code, found.base_offset) == (0, expected)


def test_refused_batches_have_kafkas_codes(skidway_broker: SkidwayBroker) -> None:
    """If the broker refuses a batch, it answers with the same error code as Kafka, does not store
    the batch, and keeps the connection open."""
    topic = create(skidway_broker, max_message_bytes="2000", message_timestamp_after_max_ms="1000")
    corrupt = batch(b"x" * 20)
    corrupt[-1] ^= 1
    future = batch(b"x", timestamps=[1 << 50])
    cases = [
        (bytes(corrupt), ErrorCode.CORRUPT_MESSAGE),
        (bytes(sized(2001)), ErrorCode.MESSAGE_TOO_LARGE),
        (bytes(batch(b"a") + batch(b"b")), ErrorCode.INVALID_RECORD),
        (bytes(future), ErrorCode.INVALID_TIMESTAMP),
        (b"\0" * 16 + b"\1" + b"\0" * 60, ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT),
    ]
    with RawClient(skidway_broker.port) as client:
        for data, code in cases:
            found = client.produce(topic, data)
            assert (found.error_code, found.base_offset) == (code, -1)
        assert client.produce(topic, batch(b"x"), acks=7).error_code == (
            ErrorCode.INVALID_REQUIRED_ACKS
        )
        assert client.produce(topic, batch(b"x")).base_offset == 0


def test_a_refusal_without_acks_closes_the_connection(skidway_broker: SkidwayBroker) -> None:
    """A Produce request with acks=0 gets no answer that could carry an error. So if the broker
    refuses its batch, the broker closes the connection."""
    topic = create(skidway_broker)
    with RawClient(skidway_broker.port) as client:
        client.send_produce(topic, batch(b"good"), acks=0)
        assert client.produce(topic, batch(b"x")).base_offset == 1
        client.send_produce(topic, b"nonsense", acks=0)
        assert client.receive() == b""


def test_producer_ids_are_never_the_same(skidway_broker: SkidwayBroker) -> None:
    """In every version, each InitProducerId request without a transactional id gets a new producer
    id. A request with a transactional id is refused."""
    found = []
    with RawClient(skidway_broker.port) as client:
        for version in (0, 1, 2, 3, 4) * 500:
            answer = client.ask(InitProducerIdRequest(), version, InitProducerIdResponse)
            assert isinstance(answer, InitProducerIdResponse)
            assert (answer.error_code, answer.producer_epoch) == (0, 0)
            found.append(answer.producer_id)
        request = InitProducerIdRequest(transactional_id="t", transaction_timeout_ms=1000)
        refused = client.ask(request, 4, InitProducerIdResponse)
        assert isinstance(refused, InitProducerIdResponse)
        assert refused.error_code != 0
    assert len(set(found)) == len(found)


def test_metadata_says_what_was_asked(skidway_broker: SkidwayBroker) -> None:
    """The answer to a Metadata request lists all topics, no topics or the named topics, as
    requested. The broker creates an unknown topic only if the request allows this."""
    topic = create(skidway_broker, 3)
    unknown = f"{topic}-unknown"

    def ask(version: int, names: tuple[str, ...] | None, may_create: bool) -> MetadataResponse:
        topics = None if names is None else tuple(MetadataRequestTopic(name=n) for n in names)
        request = MetadataRequest(topics=topics, allow_auto_topic_creation=may_create)
        answer = client.ask(request, version, MetadataResponse)
        assert isinstance(answer, MetadataResponse)
        return answer

    with RawClient(skidway_broker.port) as client:
        for version in range(4, 12):
            everything = ask(version, None, False)
            assert topic in {each.name for each in everything.topics}
            assert [(each.host, each.port) for each in everything.brokers] == [
                ("127.0.0.1", skidway_broker.port)
            ]
            assert ask(version, (), False).topics == ()
            found, missing = ask(version, (topic, unknown), False).topics
            assert [each.partition_index for each in found.partitions] == [0, 1, 2]
            assert missing.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert ask(11, ("..",), True).topics[0].error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
        ask(11, (unknown,), True)
        eventually(lambda: ask(11, (unknown,), False).topics[0].error_code == 0)


def test_the_coordinator_is_this_broker(skidway_broker: SkidwayBroker) -> None:
    """FindCoordinator names this broker as the coordinator of every group, and refuses to name a
    coordinator of transactions."""
    with RawClient(skidway_broker.port) as client:
        for version in range(4):
            answer = client.ask(FindCoordinatorRequest(key="g"), version, FindCoordinatorResponse)
            assert isinstance(answer, FindCoordinatorResponse)
            assert answer.error_code == ErrorCode.NONE
            assert (answer.node_id, answer.port) == (1, skidway_broker.port)
        transaction = FindCoordinatorRequest(key="t", key_type=TRANSACTION)
        answer = client.ask(transaction, 3, FindCoordinatorResponse)
        assert isinstance(answer, FindCoordinatorResponse)
        assert answer.error_code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


def test_versions_are_those_registered(skidway_broker: SkidwayBroker) -> None:
    """The broker answers an ApiVersions request with the versions of all APIs that it offers. A
    request of an unknown version gets UNSUPPORTED_VERSION, and the connection stays open
    (KIP-511)."""
    with RawClient(skidway_broker.port) as client:
        for version in range(4):
            request = ApiVersionsRequest(client_software_name="x", client_software_version="1")
            if version < 3:
                request = ApiVersionsRequest()
            answer = client.ask(request, version, ApiVersionsResponse)
            assert isinstance(answer, ApiVersionsResponse)
            assert answer.error_code == 0
            assert answer.ranges() == registry.ranges()
        for version in (4, 5, 99):
            client.send(request_frame(ApiKey.API_VERSIONS, version, 1234, "x", b"\xff\xfe"))
            frame = client.receive()
            assert struct.unpack(">ih", frame[:6]) == (1234, ErrorCode.UNSUPPORTED_VERSION)
        assert client.fetch("unknown", 0).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


BAD = {
    "http": (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "FrameTooLarge"),
    "tls": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "UnexpectedTls"),
    "negative": (struct.pack(">i", -5), "FrameTooLarge"),
    "huge": (struct.pack(">i", 1 << 30), "FrameTooLarge"),
    "short": (struct.pack(">i", 3) + b"abc", "Truncated"),
    "unknown-api": (
        request_frame(ApiKey.FETCH, 4, 1, "x", b"").replace(b"\0\1\0\4", b"\3\xe7\0\0"),
        "UnknownApi",
    ),
    "unknown-version": (request_frame(ApiKey.METADATA, 99, 1, "x", b""), "NotOffered"),
    "empty-body": (request_frame(ApiKey.METADATA, 5, 1, "x", b""), "Truncated"),
    "count": (request_frame(ApiKey.METADATA, 5, 1, "x", struct.pack(">i", 1 << 30)), "Truncated"),
    "produce": (request_frame(ApiKey.PRODUCE, 7, 1, "x", b"\xff\xff\0\1"), "Truncated"),
}
"""Maps the name of each test case to a bad frame and a reason. After the frame the broker closes
the connection, and its metric counts the connection under this reason.
"""


@pytest.mark.parametrize(("data", "reason"), BAD.values(), ids=BAD.keys())
def test_a_bad_frame_closes_its_connection_only(
    skidway_broker: SkidwayBroker, data: bytes, reason: str
) -> None:
    """If a client sends a bad frame, the broker closes the client's connection, and a metric counts
    the closed connections by reason. Other connections stay open.
    """
    metric = f'skidway_broker_connections_closed_total{{reason="{reason}"}}'
    before = skidway_broker.metric(metric)
    with RawClient(skidway_broker.port) as good, RawClient(skidway_broker.port) as bad:
        bad.send(data)
        assert bad.receive() == b""
        assert skidway_broker.metric(metric) == before + 1
        assert good.fetch("unknown", 0).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


OLD = [
    request_frame(
        ApiKey.PRODUCE,
        0,
        1,
        "of 2015",
        struct.pack(">hiih3siii", acks, 1000, 1, 3, b"old", 1, 0, 1) + b"x",
    )
    for acks in (0, 1)
] + [
    request_frame(ApiKey.FETCH, 0, 1, "of 2015", b""),
    request_frame(ApiKey.OFFSET_COMMIT, 0, 1, "of 2015", b""),
    request_frame(ApiKey.FETCH, 4, 1, "of 2015", b"").replace(b"\0\1\0\4", b"\0\x42\0\1"),
]
"""Requests that the broker does not serve: of an old client, and for transactions."""


def test_clients_that_are_too_old_are_named_once(own_broker: SkidwayBroker) -> None:
    """A client whose requests the broker refuses, because it does not offer the API or the version,
    has one line in the log for each API and version, however often it tries: with its address, its
    client id, the API and the version. A metric counts the requests by API."""
    broker = own_broker.start()
    for _ in range(20):
        for frame in OLD:
            with RawClient(broker.port) as client:
                client.send(frame)
                client.receive()
    lines = [json.loads(line) for line in broker.program.output().splitlines()]
    named = [each for each in lines if each["event"] == "version_refused"]
    assert [(each["host"], each["client_id"], each["api"], each["version"]) for each in named] == [
        ("127.0.0.1", "of 2015", "PRODUCE", 0),
        ("127.0.0.1", "of 2015", "FETCH", 0),
        ("127.0.0.1", "of 2015", "OFFSET_COMMIT", 0),
        ("127.0.0.1", "of 2015", "66", 1),
    ]
    assert not [each for each in lines if each["event"] == "connection_refused"]
    for api, count in (("PRODUCE", 40), ("FETCH", 20), ("OFFSET_COMMIT", 20), ("unknown", 20)):
        metric = f'skidway_broker_versions_refused_total{{api="{api}"}}'
        assert broker.metric(metric) == count


def test_bad_requests_do_not_fill_the_log(own_broker: SkidwayBroker) -> None:
    """Whatever bytes a stranger sends how often, the log stays small: bad frames, unknown keys, and
    bad bodies and unknown versions from clients with names of 30 kB, each another. Metrics count
    them."""
    broker = own_broker.start()
    size = len(broker.program.output())
    for number in range(300):
        name = f"{number} " + "x" * 30_000
        metadata = request_frame(ApiKey.METADATA, 4, 1, name, b"\x7f\xff\xff\xff")
        version = request_frame(ApiKey.METADATA, 99, 1, name, b"")
        short = b"\0\0\0\x02\0\x03"
        for frame in (b"GET / HTTP/1.1\r\n", short, metadata, version):
            with RawClient(broker.port) as client:
                client.send(frame)
                assert client.receive() == b""
    assert len(broker.program.output()) - size < 60_000
    closed = "skidway_broker_connections_closed_total"
    for reason, count in (("FrameTooLarge", 300), ("Truncated", 600), ("NotOffered", 300)):
        assert broker.metric(f'{closed}{{reason="{reason}"}}') == count


def test_noise_in_every_version_kills_nothing(skidway_broker: SkidwayBroker) -> None:
    """If a request of any advertised version has a random body, the broker answers the request or
    closes the connection. The broker neither hangs nor crashes."""
    noise = random.Random(4711)
    for key, offered in registry.ranges().items():
        for version in range(offered.lowest, offered.highest + 1):
            for _ in range(8):
                body = noise.randbytes(noise.randrange(0, 120))
                with RawClient(skidway_broker.port) as client:
                    client.send(request_frame(key, version, 1, "noise", body))
                    # After the random bytes, the client sends a good request. The broker answers
                    # the good request if the connection is still open.
                    client.send(request_frame(ApiKey.METADATA, 4, 2, "x", b"\0\0\0\0\0"))
                    while (frame := client.receive()) and frame[:4] != b"\0\0\0\2":
                        pass
    assert "request_failed" not in skidway_broker.program.output()
    assert skidway_broker.ready()


def test_a_reader_that_does_not_read_is_bounded(skidway_broker: SkidwayBroker) -> None:
    """A client that never reads its answers costs the broker little memory and does not delay other
    clients."""
    topic = create(skidway_broker)
    with RawClient(skidway_broker.port) as slow, RawClient(skidway_broker.port) as good:
        for _ in range(20):
            good.produce(topic, sized(500_000))
        before = resident_mb(skidway_broker)
        slow.socket.settimeout(1.0)
        request = request_frame(ApiKey.METADATA, 5, 1, "x", struct.pack(">ib", -1, 0))
        with pytest.raises(TimeoutError):
            ask_forever(slow, topic, request)
        assert good.produce(topic, batch(b"x")).error_code == 0
        assert resident_mb(skidway_broker) < before + 60


def ask_forever(client: RawClient, topic: str, request: bytes) -> None:
    while True:
        client.send_fetch(topic, 0, max_bytes=50_000_000)
        client.send(request * 20)


def resident_mb(broker: SkidwayBroker) -> float:
    with open(f"/proc/{broker.program.pid}/status") as status:
        line = next(line for line in status if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1024
