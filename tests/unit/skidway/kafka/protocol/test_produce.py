"""The hand-written functions for Produce agree with the general functions `encode` and `decode`,
which use the fields of the classes ProduceRequest and ProduceResponse. They agree in every version,
and for damaged messages."""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from skidway.kafka.errors import BadValue, ErrorCode, ProtocolError, UnsupportedVersion
from skidway.kafka.protocol import (
    ApiKey,
    decode,
    encode,
    produce,
    read_request_header,
    response_body,
)
from skidway.kafka.protocol.apis import PRODUCE_SERVED_SINCE
from skidway.kafka.protocol.primitives import REQUEST_ELEMENTS_MAX, put_uvarint
from skidway.kafka.protocol.produce import (
    ProduceRequest,
    ProduceResponse,
    ProduceResult,
    TopicBuffers,
    TopicRecords,
)
from support.messages import messages, wire
from support.randomness import share_of

VERSIONS = range(10)
every_version = pytest.mark.parametrize("version", VERSIONS)


def flat(request: ProduceRequest) -> tuple[object, ...]:
    data = [
        (topic.name, one.index, one.records)
        for topic in request.topic_data
        for one in topic.partition_data
    ]
    return request.transactional_id, request.acks, request.timeout_ms, data


def parsed(body: bytes, version: int) -> tuple[object, ...]:
    request = produce.parse_request(memoryview(body), version)
    data = [
        (item.topic, item.partition, None if item.records is None else bytes(item.records))
        for item in request.data
    ]
    return request.transactional_id, request.acks, request.timeout_ms, data


def either(read: Callable[[], tuple[object, ...]]) -> tuple[object, ...] | None:
    """Returns the result of `read`, or None if `read` raises ProtocolError."""
    try:
        return read()
    except ProtocolError:
        return None


@every_version
@settings(max_examples=share_of(60), deadline=None)
@given(data=st.data())
def test_parse_request_equals_decode(version: int, data: st.DataObject) -> None:
    """The hand-written parser and the general function `decode` give the same result for valid,
    damaged and arbitrary requests."""
    body = bytearray(encode(data.draw(messages(ProduceRequest, version)), version))
    assert parsed(bytes(body), version) == flat(decode(ProduceRequest, bytes(body), version))
    for at, byte in data.draw(st.lists(st.tuples(st.integers(0, 80), st.integers(0, 255)))):
        body[at : at + 1] = bytes([byte])
    cut = data.draw(st.integers(0, len(body)))
    for damaged in (bytes(body), bytes(body[:cut]), data.draw(st.binary(max_size=60))):
        by_table = either(
            partial(lambda noise: flat(decode(ProduceRequest, noise, version)), damaged)
        )
        assert either(partial(parsed, damaged, version)) == by_table


@every_version
@settings(max_examples=share_of(40), deadline=None)
@given(data=st.data())
def test_write_response_equals_encode(version: int, data: st.DataObject) -> None:
    """The hand-written code and the general function `encode` write the same response, byte for
    byte."""
    response = data.draw(messages(ProduceResponse, version))
    names = [topic.name for topic in response.responses if topic.partition_responses]
    # The parser leaves out topics without partitions, and combines neighbouring topics with the
    # same name.
    assume(len(names) == len(response.responses) == len(set(names)))
    body = encode(response, version)
    answer = produce.parse_response(memoryview(body), version)
    frame = produce.write_response(7, version, answer.results, answer.throttle_time_ms)
    assert int.from_bytes(frame[:4]) == len(frame) - 4
    assert bytes(response_body(memoryview(frame)[4:], ApiKey.PRODUCE, version)) == body


@every_version
@settings(max_examples=share_of(40), deadline=None)
@given(
    name=st.none() | st.text(max_size=9),
    data=st.lists(
        st.builds(
            TopicBuffers,
            st.sampled_from(["a", "logs"]),
            st.integers(0, 9),
            st.lists(st.binary(min_size=1, max_size=50), max_size=3).map(tuple),
        ),
        max_size=4,
    ),
)
def test_write_request(version: int, name: str | None, data: list[TopicBuffers]) -> None:
    """A request that `write_request` returns as buffers is read back unchanged, both by the
    hand-written parser and by the general function `decode`."""
    transactional_id = name if version >= 3 else None
    frame = b"".join(produce.write_request(7, "me", version, -1, 500, data, transactional_id))
    assert int.from_bytes(frame[:4]) == len(frame) - 4
    header, body = read_request_header(memoryview(frame)[4:])
    assert header == (ApiKey.PRODUCE, version, 7, "me")
    expected = [(item.topic, item.partition, b"".join(item.records)) for item in data]
    assert parsed(bytes(body), version) == (transactional_id, -1, 500, expected)
    assert flat(decode(ProduceRequest, body, version)) == parsed(bytes(body), version)


@pytest.mark.parametrize("version", [3, 9])
def test_nothing_is_copied(version: int) -> None:
    """Records are never copied. Sent records are the caller's own buffers, and received records are
    views of the frame."""
    batch = b"batch of records"
    buffers = produce.write_request(7, "me", version, -1, 500, [TopicBuffers("a", 0, (batch,))])
    assert any(buffer is batch for buffer in buffers)
    frame = bytearray(b"".join(buffers))
    _, body = read_request_header(memoryview(frame)[4:])
    (found,) = produce.parse_request(body, version).data
    assert found.records is not None
    assert found.records.obj is frame
    assert isinstance(found, TopicRecords)


@pytest.mark.parametrize("version", range(PRODUCE_SERVED_SINCE))
def test_old_versions_can_be_refused_politely(version: int) -> None:
    """Produce requests of versions 0 to 2 can be read, and answered with the error
    UNSUPPORTED_VERSION in their own version."""
    frame = b"".join(produce.write_request(7, "kcat", version, 1, 500, [TopicBuffers("a", 4, ())]))
    _, body = read_request_header(memoryview(frame)[4:])
    request = produce.parse_request(body, version)
    refused = [
        ProduceResult(item.topic, item.partition, ErrorCode.UNSUPPORTED_VERSION, -1)
        for item in request.data
    ]
    answer = produce.write_response(7, version, refused)
    received = response_body(memoryview(answer)[4:], ApiKey.PRODUCE, version)
    (result,) = produce.parse_response(received, version).results
    assert (result.topic, result.partition, result.error_code) == ("a", 4, 35)


def test_unknown_version() -> None:
    """A Produce request in an unknown version is refused."""
    with pytest.raises(UnsupportedVersion):
        produce.parse_request(memoryview(b""), 10)


def test_neighbours_of_one_topic_are_one_topic() -> None:
    """If consecutive results in a response belong to the same topic, the topic's name is written
    once, and the results follow in the same order."""
    results = [
        ProduceResult("a", 1, 0, 5),
        ProduceResult("a", 0, 0, 6),
        ProduceResult("b", 0, 3, -1),
    ]
    frame = produce.write_response(7, 3, results)
    body = response_body(memoryview(frame)[4:], ApiKey.PRODUCE, 3)
    response = decode(ProduceResponse, body, 3)
    assert [topic.name for topic in response.responses] == ["a", "b"]
    assert [one.index for one in response.responses[0].partition_responses] == [1, 0]


@pytest.mark.parametrize("topics", [1, 3])
@pytest.mark.parametrize(("version", "empty"), [(3, bytes(8)), (9, wire("00000000 01 00"))])
def test_partitions_are_bounded(version: int, empty: bytes, topics: int) -> None:
    """A Produce request is refused if its topics together have more than REQUEST_ELEMENTS_MAX
    partitions."""
    each = REQUEST_ELEMENTS_MAX // topics + 1
    if version == 9:
        count = bytearray()
        put_uvarint(count, each + 1)
        topic = b"\x02t" + count + empty * each + b"\0"
        body = wire("00 ffff 00000000") + bytes([topics + 1]) + topic * topics + b"\0"
    else:
        topic = b"\0\x01t" + struct.pack(">i", each) + empty * each
        body = wire("ffff ffff 00000000") + struct.pack(">i", topics) + topic * topics
    with pytest.raises(BadValue):
        produce.parse_request(memoryview(body), version)


@pytest.mark.parametrize(
    ("version", "body"),
    [
        (3, "ffff ffff 00000000 ffffffff"),  # null topics
        (3, "ffff ffff 00000000 00000001 ffff 00000000"),  # a null topic name
        (3, "ffff ffff 00000000 00000001 fffe 00000000"),  # a name of -2 bytes
        (3, "ffff ffff 00000000 00000001 0001 74 ffffffff"),  # null partitions
        (
            3,
            "ffff ffff 00000000 00000001 0001 74 00000001 00000000 fffffffe",
        ),  # -2 bytes of records
        (3, "ffff ffff 00000000 00000001 0001 74 00000001 00000000 00000001"),  # records cut off
        (3, "ffff ffff 00000000 00000001 0001 ff 00000000"),  # no UTF-8
        (3, "fffe ffff 00000000 00000000"),  # a transactional id of -2 bytes
        (9, "00 ffff 00000000 00 00"),  # null topics
        (9, "00 ffff 00000000 02 00 01 00 00"),  # a null topic name
        (9, "00 ffff 00000000 02 02 74 00 00 00"),  # null partitions
        (9, "00 ffff 00000000 02 02 74 02 00000000 05 616263 00 00 00"),  # records cut off
        (9, "00 ffff 00000000 02 02 ff 01 00 00"),  # no UTF-8
        (9, "00 ffff 00000000 01 01 05"),  # the tag section is missing
    ],
)
def test_hostile_requests(version: int, body: str) -> None:
    """If one part of a request is invalid, the hand-written parser and the general function
    `decode` raise the same class of exception."""
    with pytest.raises(ProtocolError) as by_hand:
        produce.parse_request(memoryview(wire(body)), version)
    with pytest.raises(ProtocolError) as by_table:
        decode(ProduceRequest, wire(body), version)
    assert by_hand.type is by_table.type
