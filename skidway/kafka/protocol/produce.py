"""Produce (key 0), versions 0-9: record batches for partitions.

What is new in each version:

    1    throttle time
    2    log append time
    3    transactional id; record batch v2 only from here on (KIP-98)
    4    may answer KAFKA_STORAGE_ERROR
    5    log start offset
    7    zstd is allowed from here on (KIP-110)
    8    record errors and a message (KIP-467)
    9    flexible (KIP-482)

A broker answers requests of versions 0-2 with UNSUPPORTED_VERSION in the form of a Produce response
(KIP-896). So this module can parse these requests and write their responses, too. The module does
not look into the records. A request with acks 0 gets no answer.

The hot path uses the functions of this module. ``parse_request`` returns the records as views of
the frame, ``write_response`` returns a whole frame, and ``write_request`` returns buffers for
sendmsg. The dataclasses describe the same messages in the form of `messages.py`; of the functions,
only ``parse_response`` uses them.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Annotated, NamedTuple

from skidway.kafka.errors import BadValue, Truncated, UnsupportedVersion
from skidway.kafka.protocol.apis import ApiKey, VersionRange
from skidway.kafka.protocol.cursor import (
    by_topic,
    compact_count_at,
    compact_text_at,
    count_at,
    ended,
    refusing,
    skip_tags_at,
    text_at,
    uvarint_at,
)
from skidway.kafka.protocol.frames import request_head, response_head
from skidway.kafka.protocol.messages import (
    ErrorText,
    Int16,
    Int32,
    Int64,
    Request,
    Response,
    decode,
    since,
    structure,
)
from skidway.kafka.protocol.primitives import (
    INT16,
    INT32,
    REQUEST_ELEMENTS_MAX,
    put_compact_string,
    put_string,
    put_uvarint,
)

VERSIONS = VersionRange(0, 9)
_FLEXIBLE = 9

Buffer = bytes | bytearray | memoryview


@structure
class PartitionProduceData:
    """The records of one partition. Since version 3, they are exactly one batch."""

    index: Int32
    records: bytes | None


@structure
class TopicProduceData:
    """The records for the partitions of one topic."""

    name: str
    partition_data: tuple[PartitionProduceData, ...]


@structure
class ProduceRequest(Request):
    """Records to append. `acks` says when the broker answers: never (0), when the leader has the
    records (1), or when all in-sync replicas have the records (-1)."""

    API = ApiKey.PRODUCE
    VERSIONS = VERSIONS

    transactional_id: Annotated[str | None, since(3)] = None
    acks: Int16
    timeout_ms: Int32
    topic_data: tuple[TopicProduceData, ...]


@structure
class BatchIndexAndErrorMessage:
    """A record that is invalid, and why. One such record makes the broker refuse the whole
    batch."""

    batch_index: Int32
    batch_index_error_message: ErrorText = None


@structure
class PartitionProduceResponse:
    """The result for one partition's records."""

    index: Int32
    error_code: Int16 = 0
    base_offset: Int64
    log_append_time_ms: Annotated[Int64, since(2)] = -1
    log_start_offset: Annotated[Int64, since(5)] = -1
    record_errors: Annotated[tuple[BatchIndexAndErrorMessage, ...], since(8)] = ()
    error_message: Annotated[ErrorText, since(8)] = None


@structure
class TopicProduceResponse:
    """The results for the partitions of one topic."""

    name: str
    partition_responses: tuple[PartitionProduceResponse, ...]


@structure
class ProduceResponse(Response):
    """The result for each partition's records."""

    API = ApiKey.PRODUCE
    VERSIONS = VERSIONS

    responses: tuple[TopicProduceResponse, ...]
    throttle_time_ms: Annotated[Int32, since(1)] = 0


class TopicRecords(NamedTuple):
    """Records for a partition, as a view of the request's frame. `records` is None if the request
    has null instead of records."""

    topic: str
    partition: int
    records: memoryview | None


class Produce(NamedTuple):
    """A parsed Produce request. `data` is in the order of the request. With acks 0, the broker
    sends no answer."""

    transactional_id: str | None
    acks: int
    timeout_ms: int
    data: list[TopicRecords]


class ProduceResult(NamedTuple):
    """The result for one partition's records. An unknown offset or time is -1.

    `record_errors` has the index of each refused record within the batch, and the reason.
    """

    topic: str
    partition: int
    error_code: int
    base_offset: int
    log_append_time_ms: int = -1
    log_start_offset: int = -1
    error_message: str | None = None
    record_errors: tuple[tuple[int, str | None], ...] = ()


class ProduceAnswer(NamedTuple):
    """A parsed Produce response."""

    results: list[ProduceResult]
    throttle_time_ms: int


class TopicBuffers(NamedTuple):
    """Records for a partition: the buffers that make up one batch, in order."""

    topic: str
    partition: int
    records: tuple[Buffer, ...]


_FRONT = Struct(">hi")
_PARTITION = Struct(">ii")
_PARTITION_BYTES_MIN = 8
_COMPACT_PARTITION_BYTES_MIN = 6
_TOPIC_BYTES_MIN = 6
_COMPACT_TOPIC_BYTES_MIN = 3


@refusing
def parse_request(body: memoryview, version: int) -> Produce:
    """Parses the body of a Produce request. The records are views of the body. Raises
    ProtocolError, and UnsupportedVersion for an unknown version."""
    if version not in VERSIONS:
        raise UnsupportedVersion(f"Produce is known in versions {VERSIONS}, not in {version}")
    return _parse_flexible(body) if version >= _FLEXIBLE else _parse_plain(body, version)


def _parse_plain(body: memoryview, version: int) -> Produce:
    at, transactional_id = 0, None
    if version >= 3:
        at = 2
        if INT16.unpack_from(body)[0] != -1:
            transactional_id, at = text_at(body, 0)
    acks, timeout_ms = _FRONT.unpack_from(body, at)
    topics, at = count_at(body, at + 6, _TOPIC_BYTES_MIN, REQUEST_ELEMENTS_MAX)
    data: list[TopicRecords] = []
    for _ in range(topics):
        topic, at = text_at(body, at)
        partitions, at = count_at(body, at, _PARTITION_BYTES_MIN, REQUEST_ELEMENTS_MAX - len(data))
        for _ in range(partitions):
            partition, size = _PARTITION.unpack_from(body, at)
            start = at + 8
            at = start + size if size > 0 else start
            data.append(TopicRecords(topic, partition, _records(body, start, at, size)))
    ended(body, at)
    return Produce(transactional_id, acks, timeout_ms, data)


def _parse_flexible(body: memoryview) -> Produce:
    at, transactional_id = 1, None
    if body[0] != 0:
        transactional_id, at = compact_text_at(body, 0)
    acks, timeout_ms = _FRONT.unpack_from(body, at)
    topics, at = compact_count_at(body, at + 6, _COMPACT_TOPIC_BYTES_MIN, REQUEST_ELEMENTS_MAX)
    data: list[TopicRecords] = []
    for _ in range(topics):
        topic, at = compact_text_at(body, at)
        most = REQUEST_ELEMENTS_MAX - len(data)
        partitions, at = compact_count_at(body, at, _COMPACT_PARTITION_BYTES_MIN, most)
        for _ in range(partitions):
            partition = INT32.unpack_from(body, at)[0]
            size, start = uvarint_at(body, at + 4)
            at = start + size - 1 if size else start
            data.append(TopicRecords(topic, partition, _records(body, start, at, size - 1)))
            at = skip_tags_at(body, at)
        at = skip_tags_at(body, at)
    ended(body, skip_tags_at(body, at))
    return Produce(transactional_id, acks, timeout_ms, data)


def _records(body: memoryview, start: int, end: int, size: int) -> memoryview | None:
    if end > len(body):
        raise Truncated(f"records of {size} bytes in the last {len(body) - start} bytes")
    if size < 0:
        if size != -1:
            raise BadValue(f"records of {size} bytes")
        return None
    return body[start:end]


_RESULT_0 = Struct(">ihq")
_RESULT_2 = Struct(">ihqq")
_RESULT_5 = Struct(">ihqqq")


def write_response(
    correlation_id: int, version: int, results: Sequence[ProduceResult], throttle_time_ms: int = 0
) -> bytes:
    """Returns the whole frame of a response. If results of the same topic are neighbours, the
    response contains the topic's name only once.
    """
    out = bytearray()
    write = _write_flexible if version >= _FLEXIBLE else _write_plain
    write(out, version, results, throttle_time_ms)
    return response_head(ApiKey.PRODUCE, version, correlation_id, len(out)) + out


def _write_plain(
    out: bytearray, version: int, results: Sequence[ProduceResult], throttle_time_ms: int
) -> None:
    groups = by_topic(results)
    out += INT32.pack(len(groups))
    for topic, members in groups:
        put_string(out, topic)
        out += INT32.pack(len(members))
        for result in members:
            out += _fixed_part(result, version)
            if version >= 8:
                out += INT32.pack(len(result.record_errors))
                for index, reason in result.record_errors:
                    out += INT32.pack(index)
                    put_string(out, reason)
                put_string(out, result.error_message)
    if version >= 1:
        out += INT32.pack(throttle_time_ms)


def _write_flexible(
    out: bytearray, version: int, results: Sequence[ProduceResult], throttle_time_ms: int
) -> None:
    groups = by_topic(results)
    put_uvarint(out, len(groups) + 1)
    for topic, members in groups:
        put_compact_string(out, topic)
        put_uvarint(out, len(members) + 1)
        for result in members:
            out += _fixed_part(result, version)
            put_uvarint(out, len(result.record_errors) + 1)
            for index, reason in result.record_errors:
                out += INT32.pack(index)
                put_compact_string(out, reason)
                out.append(0)
            put_compact_string(out, result.error_message)
            out.append(0)
        out.append(0)
    out += INT32.pack(throttle_time_ms)
    out.append(0)


def _fixed_part(result: ProduceResult, version: int) -> bytes:
    _, partition, error_code, base_offset, append_time, log_start_offset, _, _ = result
    if version >= 5:
        return _RESULT_5.pack(partition, error_code, base_offset, append_time, log_start_offset)
    if version >= 2:
        return _RESULT_2.pack(partition, error_code, base_offset, append_time)
    return _RESULT_0.pack(partition, error_code, base_offset)


# `write_request` needs seven parameters: the fields of the request's header and body.
def write_request(
    correlation_id: int,
    client_id: str | None,
    version: int,
    acks: int,
    timeout_ms: int,
    data: Sequence[TopicBuffers],
    transactional_id: str | None = None,
) -> list[Buffer]:
    """Returns the whole frame of a request, as buffers for sendmsg. The records in it are not
    copied."""
    compact = version >= _FLEXIBLE
    out = bytearray()
    if version >= 3:
        (put_compact_string if compact else put_string)(out, transactional_id)
    out += _FRONT.pack(acks, timeout_ms)
    pieces = _pieces(out, data, compact)
    body_bytes = sum(map(len, pieces))
    pieces[0] = request_head(
        ApiKey.PRODUCE, version, correlation_id, client_id, body_bytes
    ) + bytes(pieces[0])
    return pieces


def _pieces(out: bytearray, data: Sequence[TopicBuffers], compact: bool) -> list[Buffer]:
    groups = by_topic(data)
    pieces: list[Buffer] = []
    _put_count(out, len(groups), compact)
    for topic, members in groups:
        (put_compact_string if compact else put_string)(out, topic)
        _put_count(out, len(members), compact)
        for _, partition, records in members:
            out += INT32.pack(partition)
            size = sum(map(len, records))
            put_uvarint(out, size + 1) if compact else out.extend(INT32.pack(size))
            pieces += (bytes(out), *records)
            out = bytearray(b"\0" if compact else b"")
        out += b"\0" if compact else b""
    out += b"\0" if compact else b""
    return [*pieces, bytes(out)] if out else pieces


def _put_count(out: bytearray, count: int, compact: bool) -> None:
    if compact:
        put_uvarint(out, count + 1)
    else:
        out += INT32.pack(count)


def parse_response(body: memoryview, version: int) -> ProduceAnswer:
    """Parses the body of a Produce response into a flat list of results. Raises ProtocolError."""
    response = decode(ProduceResponse, body, version)
    results = [
        ProduceResult(
            topic.name,
            one.index,
            one.error_code,
            one.base_offset,
            one.log_append_time_ms,
            one.log_start_offset,
            one.error_message,
            tuple((e.batch_index, e.batch_index_error_message) for e in one.record_errors),
        )
        for topic in response.responses
        for one in topic.partition_responses
    ]
    return ProduceAnswer(results, response.throttle_time_ms)
