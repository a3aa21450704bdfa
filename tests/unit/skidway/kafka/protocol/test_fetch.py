"""The hand-written functions for Fetch read and write the same bytes as the general functions
`encode` and `decode`, which use the fields of the classes FetchRequest and FetchResponse. Byte
ranges of files become parts of a response without being read."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skidway.kafka.errors import BadValue, ProtocolError, UnsupportedVersion
from skidway.kafka.protocol import (
    ApiKey,
    decode,
    encode,
    fetch_request,
    fetch_response,
    read_request_header,
    response_body,
)
from skidway.kafka.protocol.fetch import FetchRequest, FetchResponse
from skidway.kafka.protocol.fetch_request import Fetch, FetchTarget
from skidway.kafka.protocol.fetch_response import FetchAnswer, FetchResult
from skidway.kafka.protocol.pieces import FileSlice, Piece
from skidway.kafka.protocol.primitives import REQUEST_ELEMENTS_MAX, put_uvarint
from support.messages import messages, wire
from support.randomness import share_of

every_version = pytest.mark.parametrize("version", range(4, 13))
FLEXIBLE = 12


class File:
    """A fake file descriptor, which the protocol code must not read."""

    def fileno(self) -> int:
        raise AssertionError("the protocol module must not touch files")


def joined(pieces: Sequence[Piece]) -> bytes:
    """Returns the bytes of a response that consists of the given pieces, with an "F" in place of
    each byte that comes from a file."""
    return b"".join(
        b"F" * len(piece) if isinstance(piece, FileSlice) else piece for piece in pieces
    )


def flat(request: FetchRequest) -> Fetch:
    return Fetch(
        wanted=[
            FetchTarget(
                topic.topic,
                one.partition,
                one.fetch_offset,
                one.partition_max_bytes,
                one.current_leader_epoch,
                one.last_fetched_epoch,
                one.log_start_offset,
            )
            for topic in request.topics
            for one in topic.partitions
        ],
        max_wait_ms=request.max_wait_ms,
        min_bytes=request.min_bytes,
        max_bytes=request.max_bytes,
        isolation_level=request.isolation_level,
        replica_id=request.replica_id,
        session_id=request.session_id,
        session_epoch=request.session_epoch,
        forgotten=tuple((topic.topic, topic.partitions) for topic in request.forgotten_topics_data),
        rack_id=request.rack_id,
    )


def flat_response(response: FetchResponse) -> tuple[object, ...]:
    partitions = [
        (
            topic.topic,
            one.partition_index,
            one.error_code,
            one.high_watermark,
            one.last_stable_offset,
            one.log_start_offset,
            one.records or b"",
            None
            if one.aborted_transactions is None
            else tuple((gone.producer_id, gone.first_offset) for gone in one.aborted_transactions),
            one.preferred_read_replica,
        )
        for topic in response.responses
        for one in topic.partitions
    ]
    return response.throttle_time_ms, response.error_code, response.session_id, partitions


def parsed_response(body: bytes, version: int) -> tuple[object, ...]:
    answer = fetch_response.parse_response(memoryview(body), version)
    partitions = [tuple(one._replace(records=bytes(one.records))) for one in answer.partitions]  # type: ignore[arg-type]
    return answer.throttle_time_ms, answer.error_code, answer.session_id, partitions


def agree(by_hand: object, by_table: object, version: int) -> None:
    """Asserts that the hand-written parser and the general function `decode` both refused a message
    (None), or both read the same values. In version 12, `decode` also checks tagged fields that the
    hand-written parser skips, so `decode` may refuse more messages."""
    if by_table is None and version >= FLEXIBLE:
        return
    assert by_hand == by_table


def damaged(data: st.DataObject, body: bytes) -> list[bytes]:
    broken = bytearray(body)
    for at, byte in data.draw(st.lists(st.tuples(st.integers(0, 90), st.integers(0, 255)))):
        broken[at : at + 1] = bytes([byte])
    cut = data.draw(st.integers(0, len(body)))
    return [bytes(broken), body[:cut], body + b"\0", data.draw(st.binary(max_size=90))]


@every_version
@settings(max_examples=share_of(50), deadline=None)
@given(data=st.data())
def test_parse_request_equals_decode(version: int, data: st.DataObject) -> None:
    """The hand-written parser and the general function `decode` give the same result for valid,
    damaged and arbitrary requests, except for some tagged fields (see `agree`)."""
    body = encode(data.draw(messages(FetchRequest, version)), version)
    assert fetch_request.parse_request(memoryview(body), version) == flat(
        decode(FetchRequest, body, version)
    )
    for noise in damaged(data, body):
        found: list[Fetch | None] = []
        for read in (
            lambda noise: fetch_request.parse_request(memoryview(noise), version),
            lambda noise: flat(decode(FetchRequest, noise, version)),
        ):
            try:
                found.append(read(noise))
            except ProtocolError:
                found.append(None)
        agree(*found, version)


@every_version
@settings(max_examples=share_of(50), deadline=None)
@given(data=st.data())
def test_parse_response_equals_decode(version: int, data: st.DataObject) -> None:
    """The hand-written parser and the general function `decode` give the same result for valid,
    damaged and arbitrary responses, except for some tagged fields (see `agree`)."""
    body = encode(data.draw(messages(FetchResponse, version)), version)
    assert parsed_response(body, version) == flat_response(decode(FetchResponse, body, version))
    for noise in damaged(data, body):
        found: list[tuple[object, ...] | None] = []
        for read in (
            lambda noise: parsed_response(noise, version),
            lambda noise: flat_response(decode(FetchResponse, noise, version)),
        ):
            try:
                found.append(read(noise))
            except ProtocolError:
                found.append(None)
        agree(*found, version)


@every_version
@settings(max_examples=share_of(40), deadline=None)
@given(data=st.data())
def test_write_request(version: int, data: st.DataObject) -> None:
    """A request that the hand-written code writes is read back unchanged, both by the hand-written
    parser and by the general function `decode`."""
    meant = flat(data.draw(messages(FetchRequest, version)))
    frame = fetch_request.write_request(7, "me", version, meant)
    assert int.from_bytes(frame[:4]) == len(frame) - 4
    header, body = read_request_header(memoryview(frame)[4:])
    assert header == (ApiKey.FETCH, version, 7, "me")
    assert fetch_request.parse_request(body, version) == meant
    assert flat(decode(FetchRequest, body, version)) == meant


pieces = st.lists(
    st.binary(max_size=20)
    | st.binary(max_size=20).map(memoryview)
    | st.builds(FileSlice, st.just(File()), st.integers(0, 1 << 40), st.integers(0, 300)),
    max_size=3,
).map(tuple)
results = st.lists(
    st.builds(
        FetchResult,
        st.sampled_from(["a", "logs", "é"]),
        st.integers(0, 99),
        st.integers(-1, 100),
        st.integers(-1, 1 << 60),
        st.integers(-1, 1 << 60),
        st.integers(-1, 1 << 60),
        pieces,
        st.none()
        | st.lists(st.tuples(st.integers(0, 9), st.integers(0, 99)), max_size=2).map(tuple),
        st.integers(-1, 5),
    ),
    max_size=4,
)


@every_version
@settings(max_examples=share_of(50), deadline=None)
@given(results=results)
def test_write_response(version: int, results: list[FetchResult]) -> None:
    """A response that the hand-written code writes in pieces is read back unchanged. The general
    function `encode` writes the same bytes."""
    told = (3, 70, 5) if version >= 7 else (3, 0, 0)
    frame = joined(fetch_response.write_response(7, version, results, *told))
    assert int.from_bytes(frame[:4]) == len(frame) - 4
    body = bytes(response_body(memoryview(frame)[4:], ApiKey.FETCH, version))
    expected = [
        tuple(
            one._replace(
                records=joined(one.records),  # type: ignore[arg-type]
                log_start_offset=one.log_start_offset if version >= 5 else -1,
                preferred_read_replica=one.preferred_read_replica if version >= 11 else -1,
            )
        )
        for one in results
    ]
    assert parsed_response(body, version) == (*told, expected)
    assert encode(decode(FetchResponse, body, version), version) == body


@pytest.mark.parametrize("version", [4, 11, 12])
def test_file_slices_pass_through(version: int) -> None:
    """A response is written as a list of pieces. Most pieces are bytes. A range of a file's bytes
    is a piece of its own, which names the file and the range; the bytes of the range are not
    read."""
    part = FileSlice(File(), 4096, 1000)
    sent = fetch_response.write_response(7, version, [FetchResult("a", 0, 0, 9, 9, 0, (part,))])
    assert sent[1] is part
    assert all(isinstance(piece, bytes) for piece in (sent[0], *sent[2:]))
    assert part.behind(300) == FileSlice(part.file, 4396, 700)
    assert len(part.behind(1000)) == 0


@pytest.mark.parametrize("version", [11, 12])
def test_received_records_are_not_copied(version: int) -> None:
    """Records in a received response are not copied, but are views of the frame."""
    frame = bytearray(
        joined(
            fetch_response.write_response(7, version, [FetchResult("a", 0, 0, 9, 9, 0, (b"abc",))])
        )
    )
    body = response_body(memoryview(frame)[4:], ApiKey.FETCH, version)
    answer = fetch_response.parse_response(body, version)
    assert isinstance(answer, FetchAnswer)
    assert answer.partitions[0].records.obj is frame


def test_order_is_kept() -> None:
    """The partitions of a Fetch request keep their order when the request is written and read,
    because a broker fills its answer in this order until the answer is full."""
    wanted = [FetchTarget(topic, p, 0, 100) for topic, p in [("b", 1), ("a", 2), ("b", 0)]]
    frame = fetch_request.write_request(7, "me", 11, Fetch(wanted, 500, 1, 1000))
    _, body = read_request_header(memoryview(frame)[4:])
    assert fetch_request.parse_request(body, 11).wanted == wanted


def test_sessionless_by_default() -> None:
    """Unless the caller gives a session id, Fetch requests and responses are written without a
    fetch session."""
    request = Fetch([], 500, 1, 1000)
    assert (request.session_id, request.session_epoch) == (0, -1)
    frame = joined(fetch_response.write_response(7, 7, []))
    body = response_body(memoryview(frame)[4:], ApiKey.FETCH, 7)
    assert fetch_response.parse_response(body, 7).session_id == 0


def test_what_a_version_cannot_say() -> None:
    """Parsing a Fetch request of an unsupported version raises UnsupportedVersion. Before version
    7, a request cannot list partitions to forget (of a fetch session), so writing such a request
    raises ValueError."""
    with pytest.raises(UnsupportedVersion):
        fetch_request.parse_request(memoryview(b""), 13)
    with pytest.raises(ValueError, match="forget"):
        fetch_request.write_request(7, "me", 6, Fetch([], 500, 1, 1000, forgotten=(("a", (1,)),)))


def test_partitions_are_bounded() -> None:
    """A Fetch request is refused if its topics together have more than REQUEST_ELEMENTS_MAX
    partitions."""
    each = REQUEST_ELEMENTS_MAX // 2 + 1
    front = struct.pack(">iiiib", -1, 500, 1, 1000, 0) + struct.pack(">i", 2)
    topic = b"\0\x01t" + struct.pack(">i", each) + bytes(16 * each)
    with pytest.raises(BadValue):
        fetch_request.parse_request(memoryview(front + topic * 2), 4)


@pytest.mark.parametrize(
    ("version", "least"), [(4, b"\0\0\0\0\0\0"), (9, b"\0\0\0\0\0\0"), (12, b"\1\1\0")]
)
def test_empty_topics_are_bounded(version: int, least: bytes) -> None:
    """A Fetch request with more than REQUEST_ELEMENTS_MAX topics is refused, even if the topics are
    empty."""
    count = bytearray()
    front = struct.pack(">iiiib", -1, 500, 1, 1000, 0) + bytes(8 if version >= 7 else 0)
    if version >= 12:
        put_uvarint(count, REQUEST_ELEMENTS_MAX + 2)
    else:
        count += struct.pack(">i", REQUEST_ELEMENTS_MAX + 1)
    with pytest.raises(BadValue):
        fetch_request.parse_request(
            memoryview(front + count + least * (REQUEST_ELEMENTS_MAX + 1)), version
        )


def test_forgotten_partitions_are_bounded() -> None:
    """A Fetch request may list partitions to forget. The request is refused if it lists more than
    REQUEST_ELEMENTS_MAX partitions in all topics together."""
    each = REQUEST_ELEMENTS_MAX // 2 + 1
    front = struct.pack(">iiiib", -1, 500, 1, 1000, 0) + bytes(8) + struct.pack(">i", 0)
    topic = b"\0\x01t" + struct.pack(">i", each) + bytes(4 * each)
    body = front + struct.pack(">i", 2) + topic * 2
    with pytest.raises(BadValue):
        fetch_request.parse_request(memoryview(body), 7)


FRONT = "ffffffff 000001f4 00000001 03200000 00"
PARTITION = "00000003 0000 000000000000000c 000000000000000c 0000000000000005"


@pytest.mark.parametrize(
    ("version", "body"),
    [
        (4, f"{FRONT} ffffffff"),  # null topics
        (4, f"{FRONT} 00000001 ffff 00000000"),  # a null topic name
        (4, f"{FRONT} 00000001 0001 74 ffffffff"),  # null partitions
        (7, f"{FRONT} 00000000 ffffffff 00000000 ffffffff"),  # null forgotten topics
        (7, f"{FRONT} 00000000 ffffffff 00000000 00000001 0001 74 ffffffff"),  # null partitions
        (11, f"{FRONT} 00000000 ffffffff 00000000 00000000 ffff"),  # a null rack
        (12, f"{FRONT} 00000000 ffffffff 00 01 01 00"),  # null topics
        (12, f"{FRONT} 00000000 ffffffff 02 00 01 00 01 01 00"),  # a null topic name
        (12, f"{FRONT} 00000000 ffffffff 02 02 74 00 00 01 01 00"),  # null partitions
        (12, f"{FRONT} 00000000 ffffffff 01 00 01 00"),  # null forgotten topics
        (12, f"{FRONT} 00000000 ffffffff 01 01 00 00"),  # a null rack
    ],
)
def test_hostile_requests(version: int, body: str) -> None:
    """If one part of a request is invalid, the hand-written parser and the general function
    `decode` raise the same class of exception."""
    with pytest.raises(ProtocolError) as by_hand:
        fetch_request.parse_request(memoryview(wire(body)), version)
    with pytest.raises(ProtocolError) as by_table:
        decode(FetchRequest, wire(body), version)
    assert by_hand.type is by_table.type


@pytest.mark.parametrize(
    ("version", "body"),
    [
        (5, "00000000 ffffffff"),  # null topics
        (5, "00000000 00000001 ffff 00000000"),  # a null topic name
        (5, f"00000000 00000001 0001 74 00000001 {PARTITION} ffffffff fffffffe"),  # -2 bytes
        (5, f"00000000 00000001 0001 74 00000001 {PARTITION} ffffffff 00000001"),  # cut off
        (5, f"00000000 00000001 0001 74 00000001 {PARTITION} fffffffe 00000000"),  # a count of -2
        (5, f"00000000 00000001 0001 74 00000001 {PARTITION} 00000001 00000000"),  # cut off
        (12, "00000000 0000 00000000 00 00"),  # null topics
        (
            12,
            f"00000000 0000 00000000 02 02 74 02 {PARTITION} 01 ffffffff 05 61 00 00 00",
        ),  # cut off
        (12, f"00000000 0000 00000000 02 02 74 02 {PARTITION} 03 ffffffff 01 00 00 00"),  # cut off
    ],
)
def test_hostile_responses(version: int, body: str) -> None:
    """If one part of a response is invalid, the hand-written parser and the general function
    `decode` raise the same class of exception."""
    with pytest.raises(ProtocolError) as by_hand:
        fetch_response.parse_response(memoryview(wire(body)), version)
    with pytest.raises(ProtocolError) as by_table:
        decode(FetchResponse, wire(body), version)
    assert by_hand.type is by_table.type
