"""The hot path of Fetch requests. A broker reads a request as tuples, and a client writes a request
from tuples.

The order of the partitions in a request matters: a broker adds records to its response in this
order, until the response is full (KIP-74). So neither side changes the order.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import NamedTuple

from skidway.kafka.errors import UnsupportedVersion
from skidway.kafka.protocol.apis import ApiKey
from skidway.kafka.protocol.cursor import (
    by_topic,
    compact_count_at,
    compact_text_at,
    count_at,
    ended,
    refusing,
    skip_tags_at,
    text_at,
)
from skidway.kafka.protocol.fetch import (
    COMPACT_TOPIC_BYTES_MIN,
    CONSUMER,
    FLEXIBLE_SINCE,
    NO_SESSION,
    SESSIONLESS,
    TOPIC_BYTES_MIN,
    VERSIONS,
)
from skidway.kafka.protocol.frames import request_frame
from skidway.kafka.protocol.primitives import (
    REQUEST_ELEMENTS_MAX,
    put_compact_count,
    put_compact_string,
    put_count,
    put_string,
)


class FetchTarget(NamedTuple):
    """A partition to fetch from. An epoch or log start offset of -1 means that the client does not
    state the value."""

    topic: str
    partition: int
    offset: int
    max_bytes: int
    current_leader_epoch: int = -1
    last_fetched_epoch: int = -1
    log_start_offset: int = -1


class Fetch(NamedTuple):
    """A Fetch request. `wanted` contains the partitions in the order of the request."""

    wanted: list[FetchTarget]
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    isolation_level: int = 0
    replica_id: int = CONSUMER
    session_id: int = NO_SESSION
    session_epoch: int = SESSIONLESS
    forgotten: tuple[tuple[str, tuple[int, ...]], ...] = ()
    rack_id: str = ""


_FRONT = Struct(">iiiib")
_FRONT_SESSION = Struct(">iiiibii")
_TARGET_4 = Struct(">iqi")
_TARGET_5 = Struct(">iqqi")
_TARGET_9 = Struct(">iiqqi")
_TARGET_12 = Struct(">iiqiqi")
_TWO = Struct(">ii")


@refusing
def parse_request(body: memoryview, version: int) -> Fetch:
    """Parses the body of a Fetch request. Raises ProtocolError, and UnsupportedVersion for an
    unknown version."""
    if version not in VERSIONS:
        raise UnsupportedVersion(f"Fetch is known in versions {VERSIONS}, not in {version}")
    return _parse_flexible(body) if version >= FLEXIBLE_SINCE else _parse_plain(body, version)


def _parse_plain(body: memoryview, version: int) -> Fetch:
    session_id, session_epoch, at = NO_SESSION, SESSIONLESS, _FRONT.size
    replica_id, max_wait_ms, min_bytes, max_bytes, isolation_level = _FRONT.unpack_from(body)
    if version >= 7:
        session_id, session_epoch = _TWO.unpack_from(body, at)
        at += 8
    topics, at = count_at(body, at, TOPIC_BYTES_MIN, REQUEST_ELEMENTS_MAX)
    wanted: list[FetchTarget] = []
    for _ in range(topics):
        topic, at = text_at(body, at)
        at = _plain_targets(body, at, version, topic, wanted)
    forgotten: list[tuple[str, tuple[int, ...]]] = []
    numbers = 0
    if version >= 7:
        topics, at = count_at(body, at, TOPIC_BYTES_MIN, REQUEST_ELEMENTS_MAX)
        for _ in range(topics):
            topic, at = text_at(body, at)
            count, at = count_at(body, at, 4, REQUEST_ELEMENTS_MAX - numbers)
            numbers += count
            forgotten.append((topic, Struct(f">{count}i").unpack_from(body, at)))
            at += 4 * count
    rack_id = ""
    if version >= 11:
        rack_id, at = text_at(body, at)
    ended(body, at)
    return Fetch(
        wanted, max_wait_ms, min_bytes, max_bytes, isolation_level, replica_id, session_id,
        session_epoch, tuple(forgotten), rack_id,
    )  # fmt: skip


def _plain_targets(
    body: memoryview, at: int, version: int, topic: str, wanted: list[FetchTarget]
) -> int:
    form = _TARGET_9 if version >= 9 else _TARGET_5 if version >= 5 else _TARGET_4
    count, at = count_at(body, at, form.size, REQUEST_ELEMENTS_MAX - len(wanted))
    end = at + count * form.size
    if version >= 9:
        for partition, epoch, offset, log_start, most in form.iter_unpack(body[at:end]):
            wanted.append(FetchTarget(topic, partition, offset, most, epoch, -1, log_start))
    elif version >= 5:
        for partition, offset, log_start, most in form.iter_unpack(body[at:end]):
            wanted.append(FetchTarget(topic, partition, offset, most, -1, -1, log_start))
    else:
        for partition, offset, most in form.iter_unpack(body[at:end]):
            wanted.append(FetchTarget(topic, partition, offset, most))
    return end


def _parse_flexible(body: memoryview) -> Fetch:
    (replica_id, max_wait_ms, min_bytes, max_bytes, isolation_level, session_id, session_epoch) = (
        _FRONT_SESSION.unpack_from(body)
    )
    topics, at = compact_count_at(
        body, _FRONT_SESSION.size, COMPACT_TOPIC_BYTES_MIN, REQUEST_ELEMENTS_MAX
    )
    wanted: list[FetchTarget] = []
    size = _TARGET_12.size
    for _ in range(topics):
        topic, at = compact_text_at(body, at)
        count, at = compact_count_at(body, at, size + 1, REQUEST_ELEMENTS_MAX - len(wanted))
        for _ in range(count):
            partition, epoch, offset, last, log_start, most = _TARGET_12.unpack_from(body, at)
            wanted.append(FetchTarget(topic, partition, offset, most, epoch, last, log_start))
            at = skip_tags_at(body, at + size)
        at = skip_tags_at(body, at)
    topics, at = compact_count_at(body, at, COMPACT_TOPIC_BYTES_MIN, REQUEST_ELEMENTS_MAX)
    forgotten: list[tuple[str, tuple[int, ...]]] = []
    numbers = 0
    for _ in range(topics):
        topic, at = compact_text_at(body, at)
        count, at = compact_count_at(body, at, 4, REQUEST_ELEMENTS_MAX - numbers)
        numbers += count
        forgotten.append((topic, Struct(f">{count}i").unpack_from(body, at)))
        at = skip_tags_at(body, at + 4 * count)
    rack_id, at = compact_text_at(body, at)
    ended(body, skip_tags_at(body, at))
    return Fetch(
        wanted, max_wait_ms, min_bytes, max_bytes, isolation_level, replica_id, session_id,
        session_epoch, tuple(forgotten), rack_id,
    )  # fmt: skip


def write_request(
    correlation_id: int, client_id: str | None, version: int, request: Fetch
) -> bytes:
    """Returns the whole frame of a request. If targets of the same topic are neighbours, the
    request contains the topic's name only once.
    """
    compact = version >= FLEXIBLE_SINCE
    put_text = put_compact_string if compact else put_string
    put_number = put_compact_count if compact else put_count
    out = bytearray()
    front = (request.replica_id, request.max_wait_ms, request.min_bytes, request.max_bytes)
    out += _FRONT.pack(*front, request.isolation_level)
    if version >= 7:
        out += _TWO.pack(request.session_id, request.session_epoch)
    groups = by_topic(request.wanted)
    put_number(out, len(groups))
    for topic, members in groups:
        put_text(out, topic)
        put_number(out, len(members))
        for target in members:
            out += _target(target, version)
        out += b"\0" if compact else b""
    if version >= 7:
        _put_forgotten(out, request.forgotten, compact)
    elif request.forgotten:
        raise ValueError("only version 7 and later can forget partitions of a session")
    if version >= 11:
        put_text(out, request.rack_id)
    out += b"\0" if compact else b""
    return request_frame(ApiKey.FETCH, version, correlation_id, client_id, bytes(out))


def _target(target: FetchTarget, version: int) -> bytes:
    _, partition, offset, most, epoch, last, log_start = target
    if version >= 12:
        return _TARGET_12.pack(partition, epoch, offset, last, log_start, most) + b"\0"
    if version >= 9:
        return _TARGET_9.pack(partition, epoch, offset, log_start, most)
    if version >= 5:
        return _TARGET_5.pack(partition, offset, log_start, most)
    return _TARGET_4.pack(partition, offset, most)


def _put_forgotten(
    out: bytearray, forgotten: Sequence[tuple[str, tuple[int, ...]]], compact: bool
) -> None:
    put_text = put_compact_string if compact else put_string
    put_number = put_compact_count if compact else put_count
    put_number(out, len(forgotten))
    for topic, partitions in forgotten:
        put_text(out, topic)
        put_number(out, len(partitions))
        out += Struct(f">{len(partitions)}i").pack(*partitions)
        out += b"\0" if compact else b""
