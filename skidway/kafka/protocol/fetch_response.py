"""The hot path of Fetch responses. A broker writes a response as a list of pieces (`pieces.py`). A
client reads the records as memoryviews.

``write_response`` copies no records: they are passed to it as slices of files or as views.
``parse_response`` returns records as views of the frame.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import NamedTuple

from skidway.kafka.errors import BadValue, Truncated
from skidway.kafka.protocol.apis import ApiKey
from skidway.kafka.protocol.cursor import (
    by_topic,
    checked,
    compact_count_at,
    compact_text_at,
    count_at,
    ended,
    refusing,
    skip_tags_at,
    text_at,
    uvarint_at,
)
from skidway.kafka.protocol.fetch import (
    COMPACT_TOPIC_BYTES_MIN,
    FLEXIBLE_SINCE,
    NO_SESSION,
    TOPIC_BYTES_MIN,
)
from skidway.kafka.protocol.frames import response_head
from skidway.kafka.protocol.pieces import Piece
from skidway.kafka.protocol.primitives import (
    INT32,
    put_compact_count,
    put_compact_string,
    put_count,
    put_string,
)


class FetchResult(NamedTuple):
    """The broker's answer for one partition. `records` are whole batches, as a list of pieces
    (`pieces.py`).

    `aborted` has a pair (producer id, first offset) for each aborted transaction. `aborted` is None
    if the client also reads uncommitted records.
    """

    topic: str
    partition: int
    error_code: int
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    records: Sequence[Piece] = ()
    aborted: Sequence[tuple[int, int]] | None = None
    preferred_read_replica: int = -1


class FetchedPartition(NamedTuple):
    """The answer for one partition, as a client reads it. `records` may end within a batch."""

    topic: str
    partition: int
    error_code: int
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    records: memoryview
    aborted: tuple[tuple[int, int], ...] | None
    preferred_read_replica: int


class FetchAnswer(NamedTuple):
    """A parsed Fetch response."""

    throttle_time_ms: int
    error_code: int
    session_id: int
    partitions: list[FetchedPartition]


_ABORTED = Struct(">qq")
_RESPONSE_FRONT_4 = Struct(">i")
_RESPONSE_FRONT_7 = Struct(">ihi")
_RESULT_4 = Struct(">ihqq")
_RESULT_5 = Struct(">ihqqq")


def write_response(
    correlation_id: int,
    version: int,
    results: Sequence[FetchResult],
    throttle_time_ms: int = 0,
    error_code: int = 0,
    session_id: int = NO_SESSION,
) -> list[Piece]:
    """Returns the whole frame of a response, as pieces in sending order.

    If results of the same topic are neighbours, the response contains the topic's name only once.
    """
    compact = version >= FLEXIBLE_SINCE
    out = bytearray()
    if version >= 7:
        out += _RESPONSE_FRONT_7.pack(throttle_time_ms, error_code, session_id)
    else:
        out += _RESPONSE_FRONT_4.pack(throttle_time_ms)
    pieces = _response_pieces(out, version, results, compact)
    head = response_head(ApiKey.FETCH, version, correlation_id, sum(map(len, pieces)))
    first = pieces[0]
    assert isinstance(first, bytes), "there is at least the count of topics before any records"
    pieces[0] = head + first
    return pieces


def _response_pieces(
    out: bytearray, version: int, results: Sequence[FetchResult], compact: bool
) -> list[Piece]:
    put_text = put_compact_string if compact else put_string
    put_number = put_compact_count if compact else put_count
    pieces: list[Piece] = []
    groups = by_topic(results)
    put_number(out, len(groups))
    for topic, members in groups:
        put_text(out, topic)
        put_number(out, len(members))
        for result in members:
            size = _put_result(out, result, version, compact)
            if size:
                pieces += (bytes(out), *result.records)
                out = bytearray()
            if compact:
                out.append(0)
        if compact:
            out.append(0)
    if compact:
        out.append(0)
    if out:
        pieces.append(bytes(out))
    return pieces


def _put_result(out: bytearray, result: FetchResult, version: int, compact: bool) -> int:
    put_number = put_compact_count if compact else put_count
    _, partition, error, high_watermark, stable, log_start, records, aborted, preferred = result
    if version >= 5:
        out += _RESULT_5.pack(partition, error, high_watermark, stable, log_start)
    else:
        out += _RESULT_4.pack(partition, error, high_watermark, stable)
    put_number(out, -1 if aborted is None else len(aborted))
    for producer_id, first_offset in aborted or ():
        out += _ABORTED.pack(producer_id, first_offset)
        if compact:
            out.append(0)
    if version >= 11:
        out += INT32.pack(preferred)
    size = sum(map(len, records))
    put_number(out, size)
    return size


@refusing
def parse_response(body: memoryview, version: int) -> FetchAnswer:
    """Parses the body of a Fetch response. The records are views of the body. Raises
    ProtocolError."""
    error_code, session_id = 0, NO_SESSION
    if version >= 7:
        throttle_time_ms, error_code, session_id = _RESPONSE_FRONT_7.unpack_from(body)
        at = _RESPONSE_FRONT_7.size
    else:
        throttle_time_ms = _RESPONSE_FRONT_4.unpack_from(body)[0]
        at = _RESPONSE_FRONT_4.size
    if version >= FLEXIBLE_SINCE:
        partitions = _flexible_partitions(body, at)
    else:
        partitions = _plain_partitions(body, at, version)
    return FetchAnswer(throttle_time_ms, error_code, session_id, partitions)


def _plain_partitions(body: memoryview, at: int, version: int) -> list[FetchedPartition]:
    found: list[FetchedPartition] = []
    form = _RESULT_5 if version >= 5 else _RESULT_4
    least_bytes = form.size + (12 if version >= 11 else 8)
    topics, at = count_at(body, at, TOPIC_BYTES_MIN)
    for _ in range(topics):
        topic, at = text_at(body, at)
        count, at = count_at(body, at, least_bytes)
        for _ in range(count):
            head = form.unpack_from(body, at)
            aborted, at = _plain_aborted(body, at + form.size)
            preferred = -1
            if version >= 11:
                preferred = INT32.unpack_from(body, at)[0]
                at += 4
            records, at = _taken(body, at + 4, INT32.unpack_from(body, at)[0])
            found.append(_fetched(topic, head, records, aborted, preferred))
    ended(body, at)
    return found


def _flexible_partitions(body: memoryview, at: int) -> list[FetchedPartition]:
    found: list[FetchedPartition] = []
    topics, at = compact_count_at(body, at, COMPACT_TOPIC_BYTES_MIN)
    for _ in range(topics):
        topic, at = compact_text_at(body, at)
        count, at = compact_count_at(body, at, _RESULT_5.size + 7)
        for _ in range(count):
            head = _RESULT_5.unpack_from(body, at)
            aborted, at = _flexible_aborted(body, at + _RESULT_5.size)
            preferred = INT32.unpack_from(body, at)[0]
            size, at = uvarint_at(body, at + 4)
            records, at = _taken(body, at, size - 1)
            at = skip_tags_at(body, at)
            found.append(_fetched(topic, head, records, aborted, preferred))
        at = skip_tags_at(body, at)
    ended(body, skip_tags_at(body, at))
    return found


def _fetched(
    topic: str,
    head: tuple[int, ...],
    records: memoryview,
    aborted: tuple[tuple[int, int], ...] | None,
    preferred: int,
) -> FetchedPartition:
    log_start_offset = head[4] if len(head) == 5 else -1
    return FetchedPartition(
        topic, head[0], head[1], head[2], head[3], log_start_offset, records, aborted, preferred
    )


def _taken(body: memoryview, at: int, size: int) -> tuple[memoryview, int]:
    if size < -1:
        raise BadValue(f"records of {size} bytes")
    end = at + max(size, 0)
    if end > len(body):
        raise Truncated(f"records of {size} bytes in the last {len(body) - at} bytes")
    return body[at:end], end


def _plain_aborted(body: memoryview, at: int) -> tuple[tuple[tuple[int, int], ...] | None, int]:
    count = INT32.unpack_from(body, at)[0]
    at += 4
    if count == -1:
        return None, at
    end = at + checked(count, len(body) - at, _ABORTED.size) * _ABORTED.size
    return tuple(_ABORTED.iter_unpack(body[at:end])), end


def _flexible_aborted(body: memoryview, at: int) -> tuple[tuple[tuple[int, int], ...] | None, int]:
    count, at = uvarint_at(body, at)
    if count == 0:
        return None, at
    found: list[tuple[int, int]] = []
    for _ in range(checked(count - 1, len(body) - at, _ABORTED.size + 1)):
        producer_id, first_offset = _ABORTED.unpack_from(body, at)
        found.append((producer_id, first_offset))
        at = skip_tags_at(body, at + _ABORTED.size)
    return tuple(found), at
