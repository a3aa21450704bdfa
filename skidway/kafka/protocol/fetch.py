"""Fetch (key 1), versions 4-12: record batches from partitions.

    4    isolation level, last stable offset, aborted transactions; record batch v2 (KIP-98)
    5    log start offsets (KIP-107)
    7    fetch sessions (KIP-227); a broker that always answers session 0 has none
    9    the leader epoch that the consumer knows (KIP-320)
    10   zstd is allowed from here on (KIP-110)
    11   rack and preferred read replica (KIP-392)
    12   flexible; last fetched epoch, diverging epoch, current leader

Version 13 names topics by id only and is left out. The order of partitions in a request matters to
the broker (KIP-74). Ignored on the hot path: the tagged fields of version 12 (cluster id, diverging
epoch, current leader, snapshot id), which only followers of a replicated log need; the dataclasses
have them.

The hot path: ``parse_request`` gives tuples; ``write_response`` gives a list of pieces, in which a
``FileSlice`` stands for bytes of a file that the network layer sends with sendfile; only its length
is looked at here. ``parse_response`` gives the records as views of the frame.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from struct import Struct
from typing import Annotated, NamedTuple, Protocol

from skidway.kafka.errors import BadValue, Truncated, UnsupportedVersion
from skidway.kafka.protocol.apis import ApiKey, VersionRange
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
from skidway.kafka.protocol.frames import request_frame, response_head
from skidway.kafka.protocol.messages import (
    REFUSED_IF_ABSENT,
    Int8,
    Int16,
    Int32,
    Int64,
    Request,
    Response,
    since,
    structure,
    tagged,
)
from skidway.kafka.protocol.primitives import (
    INT32,
    REQUEST_ELEMENTS_MAX,
    put_compact_string,
    put_string,
    put_uvarint,
)

VERSIONS = VersionRange(4, 12)
ZSTD_SINCE = 10
"""An older client cannot read zstd: it is told UNSUPPORTED_COMPRESSION_TYPE instead of records."""
_FLEXIBLE = 12

CONSUMER = -1
"""Replica id of whoever is no follower."""
NO_SESSION = 0
SESSIONLESS = -1
"""Session epoch of a fetch that neither has nor wants a session."""


@structure
class FetchPartition:
    """One partition and where to read on."""

    partition: Int32
    current_leader_epoch: Annotated[Int32, since(9)] = -1
    fetch_offset: Int64
    last_fetched_epoch: Annotated[Int32, since(12)] = -1
    log_start_offset: Annotated[Int64, since(5)] = -1
    partition_max_bytes: Int32


@structure
class FetchTopic:
    """The partitions of one topic."""

    topic: str
    partitions: tuple[FetchPartition, ...]


@structure
class ForgottenTopic:
    """Partitions to be taken out of the session."""

    topic: str
    partitions: tuple[Int32, ...]


@structure
class FetchRequest(Request):
    """Asks for records, waiting up to max_wait_ms for min_bytes of them."""

    API = ApiKey.FETCH
    VERSIONS = VERSIONS

    cluster_id: Annotated[str | None, since(12), tagged(0)] = None
    replica_id: Int32 = CONSUMER
    max_wait_ms: Int32
    min_bytes: Int32
    max_bytes: Int32
    isolation_level: Int8 = 0
    session_id: Annotated[Int32, since(7)] = NO_SESSION
    session_epoch: Annotated[Int32, since(7)] = SESSIONLESS
    topics: tuple[FetchTopic, ...]
    forgotten_topics_data: Annotated[tuple[ForgottenTopic, ...], since(7), REFUSED_IF_ABSENT] = ()
    rack_id: Annotated[str, since(11)] = ""


@structure
class EpochEndOffset:
    """Where a follower's log leaves the leader's."""

    epoch: Int32 = -1
    end_offset: Int64 = -1


@structure
class LeaderIdAndEpoch:
    """Who leads now."""

    leader_id: Int32 = -1
    leader_epoch: Int32 = -1


@structure
class SnapshotId:
    """The snapshot to fetch instead."""

    end_offset: Int64 = -1
    epoch: Int32 = -1


@structure
class AbortedTransaction:
    """Records of this producer from this offset on are to be skipped."""

    producer_id: Int64
    first_offset: Int64


@structure
class PartitionData:
    """The records of one partition; the last batch may be cut short."""

    partition_index: Int32
    error_code: Int16 = 0
    high_watermark: Int64
    last_stable_offset: Int64 = -1
    log_start_offset: Annotated[Int64, since(5)] = -1
    diverging_epoch: Annotated[EpochEndOffset | None, since(12), tagged(0)] = None
    current_leader: Annotated[LeaderIdAndEpoch | None, since(12), tagged(1)] = None
    snapshot_id: Annotated[SnapshotId | None, since(12), tagged(2)] = None
    aborted_transactions: tuple[AbortedTransaction, ...] | None = None
    preferred_read_replica: Annotated[Int32, since(11)] = -1
    records: bytes | None = b""


@structure
class FetchableTopicResponse:
    """The partitions of one topic."""

    topic: str
    partitions: tuple[PartitionData, ...]


@structure
class FetchResponse(Response):
    """The records found."""

    API = ApiKey.FETCH
    VERSIONS = VERSIONS

    throttle_time_ms: Int32 = 0
    error_code: Annotated[Int16, since(7)] = 0
    session_id: Annotated[Int32, since(7)] = NO_SESSION
    responses: tuple[FetchableTopicResponse, ...]


class HasFileno(Protocol):
    """The owner of a file descriptor; it keeps the file open while slices of it exist."""

    @property
    def path(self) -> Path:
        """What to call the file when it cannot be read."""

    def fileno(self) -> int:
        """The descriptor, for os.sendfile."""


@dataclass(frozen=True, slots=True)
class FileSlice:
    """Bytes of a file that stand in a response without having been read."""

    file: HasFileno
    position: int
    length: int

    def __len__(self) -> int:
        return self.length

    def behind(self, sent_bytes: int) -> FileSlice:
        """What is left after the first `sent_bytes`."""
        return FileSlice(self.file, self.position + sent_bytes, self.length - sent_bytes)


Piece = bytes | bytearray | memoryview | FileSlice


class FetchTarget(NamedTuple):
    """A partition asked for; epochs and log start offset -1 = not told."""

    topic: str
    partition: int
    offset: int
    max_bytes: int
    current_leader_epoch: int = -1
    last_fetched_epoch: int = -1
    log_start_offset: int = -1


class Fetch(NamedTuple):
    """A Fetch request, in the request's order."""

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


class FetchResult(NamedTuple):
    """The broker's answer for one partition. `records`: whole batches, in pieces.

    `aborted`: (producer id, first offset) of aborted transactions; None unless read committed.
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
    """The client's view of one partition's answer; `records` may end within a batch."""

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


_FRONT = Struct(">iiiib")
_FRONT_SESSION = Struct(">iiiibii")
_TARGET_4 = Struct(">iqi")
_TARGET_5 = Struct(">iqqi")
_TARGET_9 = Struct(">iiqqi")
_TARGET_12 = Struct(">iiqiqi")
_TOPIC_BYTES_MIN = 6
_COMPACT_TOPIC_BYTES_MIN = 3


@refusing
def parse_request(body: memoryview, version: int) -> Fetch:
    """A Fetch request's body. Raises ProtocolError."""
    if version not in VERSIONS:
        raise UnsupportedVersion(f"Fetch is known in versions {VERSIONS}, not in {version}")
    return _parse_flexible(body) if version >= _FLEXIBLE else _parse_plain(body, version)


def _parse_plain(body: memoryview, version: int) -> Fetch:
    session_id, session_epoch, at = NO_SESSION, SESSIONLESS, _FRONT.size
    replica_id, max_wait_ms, min_bytes, max_bytes, isolation_level = _FRONT.unpack_from(body)
    if version >= 7:
        session_id, session_epoch = _TWO.unpack_from(body, at)
        at += 8
    topics, at = count_at(body, at, _TOPIC_BYTES_MIN, REQUEST_ELEMENTS_MAX)
    wanted: list[FetchTarget] = []
    for _ in range(topics):
        topic, at = text_at(body, at)
        at = _plain_targets(body, at, version, topic, wanted)
    forgotten: list[tuple[str, tuple[int, ...]]] = []
    numbers = 0
    if version >= 7:
        topics, at = count_at(body, at, _TOPIC_BYTES_MIN, REQUEST_ELEMENTS_MAX)
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
        body, _FRONT_SESSION.size, _COMPACT_TOPIC_BYTES_MIN, REQUEST_ELEMENTS_MAX
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
    topics, at = compact_count_at(body, at, _COMPACT_TOPIC_BYTES_MIN, REQUEST_ELEMENTS_MAX)
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


_TWO = Struct(">ii")
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
    """A whole frame in pieces, in the order in which they are to be sent.

    Results of one topic should be neighbours.
    """
    compact = version >= _FLEXIBLE
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
    pieces: list[Piece] = []
    groups = by_topic(results)
    _put_count(out, len(groups), compact)
    for topic, members in groups:
        (put_compact_string if compact else put_string)(out, topic)
        _put_count(out, len(members), compact)
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
    _, partition, error, high_watermark, stable, log_start, records, aborted, preferred = result
    if version >= 5:
        out += _RESULT_5.pack(partition, error, high_watermark, stable, log_start)
    else:
        out += _RESULT_4.pack(partition, error, high_watermark, stable)
    _put_count(out, -1 if aborted is None else len(aborted), compact)
    for producer_id, first_offset in aborted or ():
        out += _ABORTED.pack(producer_id, first_offset)
        if compact:
            out.append(0)
    if version >= 11:
        out += INT32.pack(preferred)
    size = sum(map(len, records))
    _put_count(out, size, compact)
    return size


def _put_count(out: bytearray, count: int, compact: bool) -> None:
    if compact:
        put_uvarint(out, count + 1)
    else:
        out += INT32.pack(count)


def write_request(
    correlation_id: int, client_id: str | None, version: int, request: Fetch
) -> bytes:
    """A whole frame; targets of one topic should be neighbours."""
    compact = version >= _FLEXIBLE
    put_text = put_compact_string if compact else put_string
    out = bytearray()
    front = (request.replica_id, request.max_wait_ms, request.min_bytes, request.max_bytes)
    out += _FRONT.pack(*front, request.isolation_level)
    if version >= 7:
        out += _TWO.pack(request.session_id, request.session_epoch)
    groups = by_topic(request.wanted)
    _put_count(out, len(groups), compact)
    for topic, members in groups:
        put_text(out, topic)
        _put_count(out, len(members), compact)
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
    _put_count(out, len(forgotten), compact)
    for topic, partitions in forgotten:
        (put_compact_string if compact else put_string)(out, topic)
        _put_count(out, len(partitions), compact)
        out += Struct(f">{len(partitions)}i").pack(*partitions)
        out += b"\0" if compact else b""


@refusing
def parse_response(body: memoryview, version: int) -> FetchAnswer:
    """A Fetch response's body; the records are views of it. Raises ProtocolError."""
    error_code, session_id = 0, NO_SESSION
    if version >= 7:
        throttle_time_ms, error_code, session_id = _RESPONSE_FRONT_7.unpack_from(body)
        at = _RESPONSE_FRONT_7.size
    else:
        throttle_time_ms = _RESPONSE_FRONT_4.unpack_from(body)[0]
        at = _RESPONSE_FRONT_4.size
    if version >= _FLEXIBLE:
        partitions = _flexible_partitions(body, at)
    else:
        partitions = _plain_partitions(body, at, version)
    return FetchAnswer(throttle_time_ms, error_code, session_id, partitions)


def _plain_partitions(body: memoryview, at: int, version: int) -> list[FetchedPartition]:
    found: list[FetchedPartition] = []
    form = _RESULT_5 if version >= 5 else _RESULT_4
    least_bytes = form.size + (12 if version >= 11 else 8)
    topics, at = count_at(body, at, _TOPIC_BYTES_MIN)
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
    topics, at = compact_count_at(body, at, _COMPACT_TOPIC_BYTES_MIN)
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
