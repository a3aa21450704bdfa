"""Tests traps in detail. (A trap is a case in which another broker has made clients hang or fail.)
The tests compare bytes, and use a broker core, which is a broker without a network. The module
`test_traps` tests other traps on a real broker.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import google_crc32c
import pytest

from skidway.broker.api import registry
from skidway.kafka.batch import CRC_START, EncodedBatch, headers, seal
from skidway.kafka.codecs import BY_NUMBER, LZ4, NONE, ZSTD, Codec
from skidway.kafka.errors import RETRIABLE, ErrorCode
from skidway.kafka.protocol import fetch_request, fetch_response, produce
from skidway.kafka.protocol.api_versions import ApiVersionsRequest, ApiVersionsResponse
from skidway.kafka.protocol.apis import ApiKey
from skidway.kafka.protocol.create_topics import CreatableTopic, CreateTopicsRequest
from skidway.kafka.protocol.delete_topics import DeleteTopicsRequest, DeleteTopicState
from skidway.kafka.protocol.find_coordinator import TRANSACTION, FindCoordinatorRequest
from skidway.kafka.protocol.frames import request_frame, response_body
from skidway.kafka.protocol.init_producer_id import InitProducerIdRequest
from skidway.kafka.protocol.list_offsets import (
    MAX_TIMESTAMP,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from skidway.kafka.protocol.messages import NO_ID, Request, decode, encode
from skidway.kafka.protocol.metadata import MetadataRequest, MetadataRequestTopic
from support.batches import NOW_MS, batch
from support.broker_core import BrokerCore, CoreClient, broker_core
from support.messages import RESPONSES

UNKNOWN_OPERATIONS = -(1 << 31)


@pytest.fixture
def core(tmp_path: Path) -> Iterator[BrokerCore]:
    with broker_core(tmp_path) as made:
        ask(made, CreateTopicsRequest(topics=(CreatableTopic(name="logs", num_partitions=1),)), 7)
        yield made


@pytest.fixture
def client(core: BrokerCore) -> Iterator[CoreClient]:
    made = core.connect()
    yield made
    made.close()


def ask(core: BrokerCore, request: Request, version: int) -> Any:
    client = core.connect()
    answer = client.ask(request_frame(request.API, version, 7, "test", encode(request, version)))
    client.close()
    assert answer is not None
    body = response_body(memoryview(answer), request.API, version)
    return decode(RESPONSES[request.API], body, version)


def produced(
    client: CoreClient, data: bytes | bytearray, *, version: int = 9, acks: int = -1
) -> produce.ProduceResult:
    buffers = [produce.TopicBuffers("logs", 0, (bytes(data),))]
    pieces = produce.write_request(1, "test", version, acks, 1000, buffers)
    answer = client.ask(b"".join(bytes(each) for each in pieces))
    assert answer is not None
    body = response_body(memoryview(answer), ApiKey.PRODUCE, version)
    return produce.parse_response(body, version).results[0]


def fetched(client: CoreClient, offset: int, version: int, isolation: int = 0) -> Any:
    wanted = [fetch_request.FetchTarget("logs", 0, offset, 1 << 20)]
    request = fetch_request.Fetch(wanted, 0, 1, 1 << 20, isolation_level=isolation)
    answer = client.ask(fetch_request.write_request(1, "test", version, request))
    assert answer is not None
    body = response_body(memoryview(answer), ApiKey.FETCH, version)
    return fetch_response.parse_response(body, version).partitions[0]


@pytest.mark.parametrize("version", [4, 5, 99, 32767])
def test_apis_of_a_later_client_are_told_in_version_0(client: CoreClient, version: int) -> None:
    """If the broker does not know the version of an ApiVersions request, the broker answers with
    error 35 in a body of version 0. The body contains the version range of every API, so that the
    client can choose a version and send its request again."""
    answer = client.ask(request_frame(ApiKey.API_VERSIONS, version, 99, "x", b"\xff" * 7))
    assert answer is not None
    assert answer[:4] == struct.pack(">i", 99)
    told = decode(ApiVersionsResponse, memoryview(answer)[4:], 0)
    assert told.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert told.ranges() == registry.ranges()
    assert ApiKey.API_VERSIONS in told.ranges()


@pytest.mark.parametrize("name", ["", "-x", "x-", "a b", "ü", "x/1"])
def test_a_client_without_a_decent_name_is_told_so(core: BrokerCore, name: str) -> None:
    """If an ApiVersions request has a malformed client name, the client gets INVALID_REQUEST,
    because the broker uses the name in a metric.
    """
    request = ApiVersionsRequest(client_software_name=name, client_software_version="1")
    assert ask(core, request, 3).error_code == ErrorCode.INVALID_REQUEST


def test_tags_that_nobody_knows_are_skipped_everywhere(client: CoreClient) -> None:
    """The broker skips unknown tags in a request's header, body and nested structures. Even in a
    header with tags, the client id has the older string format."""
    tags = b"\x02" + b"\x63\x03abc" + b"\xe4\x07\x00"
    head = struct.pack(">hhih", ApiKey.METADATA, 9, 5, 4) + b"test" + tags
    body = b"\x02" + b"\x05logs" + tags + b"\x00\x00\x00" + tags
    frame = head + body
    answer = client.ask(struct.pack(">i", len(frame)) + frame)
    assert answer is not None
    found: Any = decode(
        RESPONSES[ApiKey.METADATA], response_body(memoryview(answer), ApiKey.METADATA, 9), 9
    )
    assert [(each.name, each.error_code) for each in found.topics] == [("logs", 0)]


@pytest.mark.parametrize("codec", list(BY_NUMBER.values()))
def test_a_batch_comes_back_as_it_was_sent(client: CoreClient, codec: Codec) -> None:
    """When the broker stores a batch, it changes only the base offset and the leader epoch, which
    the CRC does not cover."""
    assert produced(client, batch(b"before")).base_offset == 0
    sent = bytes(batch(b"a", b"b", codec=codec, timestamps=[NOW_MS, NOW_MS + 1]))
    assert produced(client, sent).base_offset == 1
    got = bytes(fetched(client, 2, 11).records)
    assert got[:8] == struct.pack(">q", 1)
    assert got[8:12] == sent[8:12]
    assert got[12:16] == struct.pack(">i", 0)
    assert got[16:] == sent[16:]


def changed(at: int, content: bytes) -> bytes:
    """Returns a batch of two records in which `content` replaces the bytes from the position `at`
    on. The batch has the CRC of its new content."""
    made = batch(b"a", b"b")
    made[at : at + len(content)] = content
    struct.pack_into(">I", made, 17, google_crc32c.value(bytes(made[CRC_START:])))
    return bytes(made)


FAULTS = {
    "base-offset": changed(0, b"\0" * 7 + b"\x05"),
    "control": changed(21, b"\0\x20"),
    "transactional": changed(21, b"\0\x10"),
    "codec-5": changed(21, b"\0\x05"),
    "codec-7": changed(21, b"\0\x07"),
    "delete-horizon": changed(21, b"\0\x40"),
    "more-records": changed(57, struct.pack(">i", 3)),
    "fewer-records": changed(57, struct.pack(">i", 1)),
    "no-records": changed(23, struct.pack(">i", -1))[:57] + b"\0\0\0\0",
    "negative-count": changed(57, struct.pack(">i", -2)),
    "no-sequence": changed(43, struct.pack(">qhi", 5, 0, -1)),
    "no-epoch": changed(43, struct.pack(">qhi", 5, -1, 0)),
    "longer": bytes(batch(b"a")) + b"\0",
    "two": bytes(batch(b"a") + batch(b"b")),
    "empty": b"",
    "short": bytes(batch(b"a"))[:60],
    "length": changed(8, struct.pack(">i", 48)),
    "magic": changed(16, b"\x03"),
}


DAMAGED = {"length", "magic"}
"""The keys of `FAULTS` whose faults may be caused by damage during the transmission."""


@pytest.mark.parametrize("fault", FAULTS)
def test_batches_that_kafka_refuses_are_refused(client: CoreClient, fault: str) -> None:
    """If the fault of a batch may come from damage during the transmission, the batch gets
    CORRUPT_MESSAGE, which is retriable. With any other fault it gets INVALID_RECORD, which is not
    retriable. The broker stores no faulty batch, so a faulty batch takes no offset."""
    found = produced(client, FAULTS[fault])
    is_damaged = fault in DAMAGED
    code = ErrorCode.CORRUPT_MESSAGE if is_damaged else ErrorCode.INVALID_RECORD
    assert found.error_code == code
    assert (code in RETRIABLE) == is_damaged
    assert found.base_offset == -1
    assert produced(client, batch(b"good")).base_offset == 0


@pytest.mark.parametrize("version", range(3, 10))
def test_zstd_needs_a_client_that_knows_it(client: CoreClient, version: int) -> None:
    """In a Produce request of a version below 7, a zstd batch gets UNSUPPORTED_COMPRESSION_TYPE
    (KIP-110)."""
    code = 0 if version >= 7 else ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    data = batch(b"x", codec=ZSTD)
    assert produced(client, data, version=version).error_code == code


@pytest.mark.parametrize("acks", [2, -2, 32767, -32768])
def test_acks_that_do_not_exist_are_refused(client: CoreClient, acks: int) -> None:
    """If a Produce request has an unknown acks value, the client gets INVALID_REQUIRED_ACKS, and
    the broker does not store the batch."""
    assert produced(client, batch(b"x"), acks=acks).error_code == ErrorCode.INVALID_REQUIRED_ACKS
    assert produced(client, batch(b"x")).base_offset == 0


@pytest.mark.parametrize("version", range(4, 13))
def test_there_are_no_transactions_and_no_nearer_replica(client: CoreClient, version: int) -> None:
    """A Fetch request with read_committed reads up to the high watermark and gets an empty list of
    aborted transactions. The preferred replica in the answer is -1."""
    produced(client, batch(b"x"))
    committed, uncommitted = (fetched(client, 0, version, isolation) for isolation in (1, 0))
    assert (committed.aborted, uncommitted.aborted) == ((), None)
    assert committed.last_stable_offset == committed.high_watermark == 1
    assert committed.preferred_read_replica == -1
    assert bytes(committed.records) == bytes(uncommitted.records)


@pytest.mark.parametrize("key", [68, 69, 76, 78], ids=str)
def test_groups_that_the_server_assigns_are_not_offered(core: BrokerCore, key: int) -> None:
    """The broker's ApiVersions answer does not list the requests of KIP-848 (groups whose
    partitions the broker assigns) and of KIP-932 (share groups), so clients do not send them. If a
    client still sends such a request, the broker closes the connection."""
    offered = {each.api_key for each in ask(core, ApiVersionsRequest(), 0).api_keys}
    assert ApiKey.JOIN_GROUP in offered
    assert key not in offered
    client = core.connect()
    content = struct.pack(">hhih", key, 0, 1, -1) + b"\0" * 20
    client.send(struct.pack(">i", len(content)) + content)
    core.advance(0)
    assert client.answers() == []
    assert client.is_closed


@pytest.mark.parametrize("version", range(1, 4))
def test_a_transactional_producer_is_refused_for_good(core: BrokerCore, version: int) -> None:
    """FindCoordinator and InitProducerId refuse a transactional producer with an error that no
    client retries, because after a retriable error the producer would wait for a minute."""
    wanted = FindCoordinatorRequest(key="tx", key_type=TRANSACTION)
    code = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert ask(core, wanted, version).error_code == code
    given = InitProducerIdRequest(transactional_id="tx", transaction_timeout_ms=1000)
    assert ask(core, given, version).error_code == code


def test_topics_are_not_fetched_by_their_ids() -> None:
    """The broker offers Fetch only up to version 12, which is the last version that names topics.
    From version 13 on, a request has only topic ids."""
    assert registry.ranges()[ApiKey.FETCH].highest == 12
    assert registry.ranges()[ApiKey.PRODUCE].lowest == 0


def test_a_topic_made_again_has_another_id(core: BrokerCore) -> None:
    """A topic that was deleted and created again has a new id, which is never zero. The broker no
    longer knows the old id."""
    ids = []
    for _ in range(3):
        [topic] = ask(core, MetadataRequest(topics=(MetadataRequestTopic(name="logs"),)), 11).topics
        assert (topic.error_code, len(topic.partitions)) == (0, 1)
        ids.append(topic.topic_id)
        deletion = DeleteTopicsRequest(topics=(DeleteTopicState(name=None, topic_id=ids[-1]),))
        codes = [ask(core, deletion, 6).responses[0].error_code for _ in range(2)]
        assert codes == [0, ErrorCode.UNKNOWN_TOPIC_ID]
        wanted = CreateTopicsRequest(topics=(CreatableTopic(name="logs", num_partitions=1),))
        assert ask(core, wanted, 7).topics[0].error_code == 0
    assert len({*ids, NO_ID}) == 4


def listed(core: BrokerCore, timestamp: int, version: int) -> tuple[int, int]:
    asked = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
    topics = (ListOffsetsTopic(name="logs", partitions=(asked,)),)
    [found] = ask(core, ListOffsetsRequest(topics=topics), version).topics[0].partitions
    assert found.error_code == 0
    return found.timestamp, found.offset


@pytest.mark.parametrize("version", range(1, 8))
@pytest.mark.parametrize("codec", [NONE, LZ4])
def test_times_are_found_within_batches(
    core: BrokerCore, client: CoreClient, codec: Codec, version: int
) -> None:
    """A look-up by time returns the first record, in offset order, with a timestamp at or after the
    given time. If no record has such a timestamp, the look-up returns -1 as offset and as
    timestamp. For the time -3, the look-up returns the record with the latest timestamp."""
    produced(client, batch(b"a", b"b", b"c", timestamps=[30, 10, 40], codec=codec))
    produced(client, batch(b"d", timestamps=[20], codec=codec))
    assert [listed(core, at, version) for at in (0, 31, 40, 41)] == [
        (30, 0), (40, 2), (40, 2), (-1, -1),
    ]  # fmt: skip
    if version >= 7:
        assert listed(core, MAX_TIMESTAMP, version) == (40, 2)


@pytest.mark.parametrize("version", [8, 9, 10])
def test_nobody_is_told_what_he_may_do(core: BrokerCore, version: int) -> None:
    """The broker does not compute which operations a client is authorized to do. In its Metadata
    answers the fields for authorized operations are always INT32_MIN, as in Kafka's answer to a
    client that has not asked for them."""
    answer = ask(core, MetadataRequest(topics=None), version)
    assert answer.cluster_authorized_operations == UNKNOWN_OPERATIONS
    assert {each.topic_authorized_operations for each in answer.topics} == {UNKNOWN_OPERATIONS}


def sequenced(number: int, *, epoch: int = 3, count: int = 1, text: bytes = b"") -> bytes:
    values = [text + b"%d" % number] * count
    return bytes(batch(*values, producer_id=77, epoch=epoch, sequence=number))


def test_the_last_five_batches_are_known_again(client: CoreClient) -> None:
    """If a producer sends one of its last five batches again, the broker does not store the batch
    again and answers with the original offset. The broker answers OUT_OF_ORDER_SEQUENCE_NUMBER (45)
    if a producer repeats an older batch, repeats a batch with other bytes, or leaves a gap in the
    sequence."""
    for number in range(7):
        assert produced(client, sequenced(number)).base_offset == number
    for number in (2, 6, 4, 3, 5):
        again = produced(client, sequenced(number))
        assert (again.error_code, again.base_offset) == (0, number)
    for wrong in (sequenced(1), sequenced(8), sequenced(6, text=b"other")):
        found = produced(client, wrong)
        assert found.error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert produced(client, sequenced(7)).base_offset == 7


def test_an_older_epoch_is_fenced_and_a_newer_begins_at_0(client: CoreClient) -> None:
    """A batch with an older producer epoch gets INVALID_PRODUCER_EPOCH (47). If the first batch of
    a new epoch does not have sequence 0, the batch gets OUT_OF_ORDER_SEQUENCE_NUMBER (45)."""
    assert produced(client, sequenced(0)).base_offset == 0
    assert produced(client, sequenced(1, epoch=2)).error_code == ErrorCode.INVALID_PRODUCER_EPOCH
    out_of_order = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert produced(client, sequenced(1, epoch=4)).error_code == out_of_order
    assert produced(client, sequenced(0, epoch=4)).base_offset == 1
    assert produced(client, sequenced(1)).error_code == ErrorCode.INVALID_PRODUCER_EPOCH


def test_sequences_wrap_behind_int32(client: CoreClient) -> None:
    """After a record with sequence 2^31-1, the next record of the same batch has sequence 0, and
    the next batch continues from there. If a batch ends with sequence 2^31-1, the next batch has
    sequence 0."""
    last = (1 << 31) - 1
    assert produced(client, sequenced(last - 1, count=1)).base_offset == 0
    across = EncodedBatch(bytes(batch(b"x", b"y", b"z"))[61:], NONE.number, 3, NOW_MS, NOW_MS, 9)
    over = seal(across, 77, 3, last)
    assert produced(client, over).base_offset == 1
    assert produced(client, over).base_offset == 1
    assert produced(client, sequenced(2)).base_offset == 4
    assert [header.base_sequence for _, header in headers(fetched(client, 0, 11).records)] == [
        last - 1, last, 2,
    ]  # fmt: skip
    ending = bytes(batch(b"x", b"y", producer_id=78, epoch=3, sequence=last - 1))
    following = bytes(batch(b"z", producer_id=78, epoch=3, sequence=0))
    assert produced(client, ending).base_offset == 5
    assert produced(client, following).base_offset == 7
    assert [produced(client, each).base_offset for each in (ending, following)] == [5, 7]
