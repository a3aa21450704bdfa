"""Tests a client's connection to a broker. The tests pass the bytes of requests and responses
without a socket."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator

import pytest

from skidway.kafka.client.calls import MessageCall, ProduceCall
from skidway.kafka.client.connection import Answer, Connection
from skidway.kafka.client.metadata import metadata_call
from skidway.kafka.errors import (
    ErrorCode,
    KafkaError,
    ProtocolError,
    SkidwayError,
    UnsupportedVersion,
)
from skidway.kafka.protocol import api_versions
from skidway.kafka.protocol.apis import ApiKey, VersionRange
from skidway.kafka.protocol.frames import (
    FrameReader,
    RequestHeader,
    read_request_header,
    response_frame,
)
from skidway.kafka.protocol.messages import encode
from skidway.kafka.protocol.metadata import MetadataResponse
from skidway.kafka.protocol.produce import TopicBuffers

RANGES = {key: key.broker for key in ApiKey}
LIMIT = 1 << 20


class Peer:
    """The broker's side of the connection."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._reader = FrameReader()

    def requests(self, at_most: int = 1 << 30) -> Iterator[RequestHeader]:
        """Takes the bytes that the connection wants to send, at most `at_most` bytes at a time, and
        returns the headers of the requests in these bytes."""
        while self.connection.wants_write:
            data = b"".join(self.connection.outgoing())[:at_most]
            self.connection.sent(len(data))
            while data:
                space = self._reader.space()
                part = data[: len(space)]
                space[: len(part)] = part
                for frame in self._reader.received(len(part)):
                    yield read_request_header(frame)[0]
                data = data[len(part) :]

    def give(self, data: bytes, portion: int = 1 << 30) -> None:
        while data:
            space = self.connection.space()
            part = data[: min(len(space), portion)]
            space[: len(part)] = part
            self.connection.received(len(part), 0.0)
            data = data[len(part) :]

    def agree(self, ranges: dict[ApiKey, VersionRange] | None = None) -> None:
        [header] = self.requests()
        assert header.api_key is ApiKey.API_VERSIONS
        self.give(response_frame(header, api_versions.answer(header.api_version, ranges or RANGES)))


def metadata_response(header: RequestHeader, cluster_id: str) -> bytes:
    response = MetadataResponse(brokers=(), cluster_id=cluster_id, topics=())
    return response_frame(header, encode(response, header.api_version))


@pytest.fixture
def connection() -> Connection:
    return Connection("me", LIMIT, 30.0)


@pytest.fixture
def peer(connection: Connection) -> Peer:
    return Peer(connection)


def cluster_ids(answers: list[Answer]) -> list[tuple[int, str]]:
    return [(answer.ticket, answer.response.cluster_id) for answer in answers]


def test_calls_wait_for_versions(connection: Connection, peer: Peer) -> None:
    """A connection first sends only the ApiVersions request. Calls that are submitted meanwhile
    wait for its answer."""
    connection.submit(1, metadata_call(None), 40.0)
    assert not connection.is_ready
    peer.agree()
    assert connection.is_ready
    [header] = peer.requests()
    assert (header.api_key, header.client_id) == (ApiKey.METADATA, "me")
    assert header.api_version == ApiKey.METADATA.broker.highest
    peer.give(metadata_response(header, "x"))
    assert cluster_ids(connection.answers()) == [(1, "x")]
    assert connection.in_flight_count == 0


@pytest.mark.parametrize("portion", [1, 3, 1 << 30])
def test_portions_do_not_matter(connection: Connection, peer: Peer, portion: int) -> None:
    """The connection sends and reads the same requests and responses, however many bytes it can
    send or receive at a time."""
    for ticket in (1, 2, 3):
        connection.submit(ticket, metadata_call(["a", "b"]), 40.0)
    peer.agree()
    requests = list(peer.requests(portion))
    assert [header.api_key for header in requests] == [ApiKey.METADATA] * 3
    data = b"".join(metadata_response(header, f"c{i}") for i, header in enumerate(requests))
    peer.give(data, portion)
    assert cluster_ids(connection.answers()) == [(1, "c0"), (2, "c1"), (3, "c2")]


def test_a_response_out_of_order_ends_it(connection: Connection, peer: Peer) -> None:
    """If a response does not belong to the oldest open request, the client raises ProtocolError."""
    connection.submit(1, metadata_call(None), 40.0)
    connection.submit(2, metadata_call(None), 40.0)
    peer.agree()
    _, second = peer.requests()
    with pytest.raises(ProtocolError, match="oldest"):
        peer.give(metadata_response(second, "x"))
    assert connection.abandoned() == [1, 2]


def test_a_response_nobody_asked_for_ends_it(peer: Peer) -> None:
    """If a response comes while no request is open, the client raises ProtocolError."""
    peer.agree()
    with pytest.raises(ProtocolError, match="nobody"):
        peer.give(b"\0\0\0\4\0\0\0\7")


def test_a_response_that_cannot_be_read_keeps_its_ticket(
    connection: Connection, peer: Peer
) -> None:
    """If a response cannot be parsed, the connection ends. The call that this response answers, and
    all later calls, count as abandoned."""
    connection.submit(1, metadata_call(None), 40.0)
    connection.submit(2, metadata_call(None), 40.0)
    peer.agree()
    first, _ = peer.requests()
    with pytest.raises(ProtocolError):
        peer.give(response_frame(first, b"\xff\xff"))
    assert connection.abandoned() == [1, 2]


def test_too_long_a_response_ends_it(peer: Peer) -> None:
    """If a response is longer than the limit, the connection ends as soon as the length has
    arrived, and allocates no memory for the response."""
    tracemalloc.start()
    try:
        with pytest.raises(ProtocolError):
            peer.give((LIMIT + 1).to_bytes(4, "big"))
        assert tracemalloc.get_traced_memory()[1] < LIMIT // 4
    finally:
        tracemalloc.stop()


def test_a_broker_without_the_api(connection: Connection, peer: Peer) -> None:
    """If the broker does not support any version of a call's API, only this call fails, and other
    calls continue."""
    connection.submit(1, metadata_call(None), 40.0)
    connection.submit(2, ProduceCall(1, 100, []), 40.0)
    peer.agree({ApiKey.API_VERSIONS: VersionRange(0, 3), ApiKey.PRODUCE: VersionRange(0, 9)})
    [answer] = connection.answers()
    assert answer.ticket == 1
    assert isinstance(answer.error, UnsupportedVersion)
    assert [header.api_key for header in peer.requests()] == [ApiKey.PRODUCE]


def test_an_old_broker_is_asked_again_in_version_0(connection: Connection, peer: Peer) -> None:
    """If a broker answers ApiVersions with the error 35 (UNSUPPORTED_VERSION), the client sends the
    request again in version 0, as KIP-511 says."""
    ranges = {ApiKey.API_VERSIONS: VersionRange(0, 2), ApiKey.METADATA: VersionRange(0, 5)}
    [header] = peer.requests()
    assert header.api_version == 3
    error = api_versions.answer(9, ranges)
    peer.give(response_frame(header._replace(api_version=0), error))
    [header] = peer.requests()
    assert header.api_version == 0
    peer.give(response_frame(header, api_versions.answer(0, ranges)))
    connection.submit(1, metadata_call(None), 40.0)
    assert [h.api_version for h in peer.requests()] == [5]


def test_a_refused_negotiation_ends_it(peer: Peer) -> None:
    """Any error in the answer to ApiVersions except 35 (UNSUPPORTED_VERSION) ends the
    connection."""
    [header] = peer.requests()
    body = api_versions.answer(3, RANGES, ErrorCode.INVALID_REQUEST)
    with pytest.raises(KafkaError, match="INVALID_REQUEST"):
        peer.give(response_frame(header, body))


def test_no_answer_is_waited_for_with_acks_0(connection: Connection, peer: Peer) -> None:
    """A Produce request with acks=0 is complete when its last byte has been sent."""
    peer.agree()
    connection.submit(5, ProduceCall(0, 100, [TopicBuffers("t", 0, (b"head", b"body"))]), 40.0)
    connection.submit(6, metadata_call(None), 40.0)
    total = sum(len(piece) for piece in connection.outgoing())
    assert connection.in_flight_count == 2
    metadata_bytes = len(connection.outgoing()[-1])
    connection.sent(total - metadata_bytes - 1)
    assert connection.answers() == []
    connection.sent(1)
    assert connection.answers() == [Answer(5, None, None)]
    assert connection.abandoned() == [6]


def test_a_request_with_acks_0_must_be_sent_in_time(connection: Connection, peer: Peer) -> None:
    """If a broker stops reading, a Produce request with acks=0 cannot be sent to its end. Such a
    request has a deadline, too, so that its batches do not wait until TCP gives up. When the
    request has been sent, the deadline no longer counts."""
    peer.agree()
    connection.submit(5, ProduceCall(0, 100, [TopicBuffers("t", 0, (b"head", b"body"))]), 40.0)
    assert connection.next_deadline == 40.0
    total = sum(len(piece) for piece in connection.outgoing())
    connection.sent(total - 1)
    assert connection.next_deadline == 40.0
    connection.sent(1)
    assert connection.next_deadline is None


def test_batches_are_not_copied(connection: Connection, peer: Peer) -> None:
    """The client passes a batch to sendmsg in the caller's own buffer, without copying it."""
    peer.agree()
    body = bytes(100_000)
    connection.submit(5, ProduceCall(1, 100, [TopicBuffers("t", 0, (b"head", body))]), 40.0)
    assert any(piece.obj is body for piece in connection.outgoing())


def test_deadlines(connection: Connection, peer: Peer) -> None:
    """The connection's next deadline is the earliest deadline of all calls without an answer and of
    the ApiVersions request."""
    assert connection.next_deadline == 30.0
    connection.submit(1, metadata_call(None), 20.0)
    assert connection.next_deadline == 20.0
    peer.agree()
    assert connection.next_deadline == 20.0
    [header] = peer.requests()
    peer.give(metadata_response(header, "x"))
    assert connection.next_deadline is None


def test_a_call_that_cannot_be_written_is_the_callers(connection: Connection, peer: Peer) -> None:
    """If a call cannot be written in the version that the broker supports, only this call fails."""

    def build(_: int) -> MetadataResponse:
        raise UnsupportedVersion("not in this version")

    peer.agree()
    call = MessageCall(ApiKey.METADATA, build, MetadataResponse)  # type: ignore[arg-type]
    connection.submit(1, call, 40.0)
    [answer] = connection.answers()
    assert isinstance(answer.error, SkidwayError)
    assert not connection.wants_write
