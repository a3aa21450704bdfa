"""The shape of a producer's requests: the bytes that are the same in all of them. Requests of one
shape differ only in their correlation ids and records.

For each connection and partition, the broker parses the bytes before the records only once, and
compares later requests with these bytes. The answers to requests of one shape differ only in
correlation id and offsets, so the broker encodes the other bytes of the answers only once, too. A
request that differs in anything but correlation id and records takes the general path. Only
requests with one batch have a shape, because only a producer of many small requests needs this fast
path::

    int16 key, int16 version | int32 correlation id | prefix | size | records | tail
    ^ compared                                        ^ compared              ^ compared
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from skidway.broker.partitions.replica import Replica
from skidway.kafka.protocol.apis import ApiKey
from skidway.kafka.protocol.produce import Produce, ProduceResult, write_response

SHAPES_MAX: Final = 64
"""A shape is what requests have in common (see the module's docstring). The broker remembers at
most this many shapes for one connection. If the requests of a connection have more shapes, the
broker forgets all shapes of the connection, and learns them again from later requests.
"""
PREFIX_BYTES_MAX: Final = 1024
"""The broker stores no shape for a request with a longer prefix, because the prefix would take too
much memory. The prefix contains the client id, which may be long.
"""

_INT32: Final = Struct(">i")
_INT64: Final = Struct(">q")
_PREFIX_START: Final = 8
_FLEXIBLE_SINCE: Final = ApiKey.PRODUCE.flexible_since
_TAGS: Final = b"\0\0\0"  # the partition, the topic and the request have no tags
_LOG_START_SINCE: Final = 5
_BASE_MARK: Final = 0x1122334455667788
_START_MARK: Final = 0x0123456789ABCDEF


class Shape:
    """What the requests of one shape have in common: everything except correlation ids and records.
    Also what the answers to successful requests have in common: everything except correlation ids
    and offsets.
    """

    __slots__ = (
        "_answer_form",
        "_answer_parts",
        "_flexible",
        "_has_log_start",
        "_size_at",
        "acks",
        "key_version",
        "prefix",
        "replica",
        "timeout_ms",
        "version",
    )

    def __init__(
        self, frame: memoryview, size_at: int, version: int, request: Produce, replica: Replica
    ) -> None:
        self.version = version
        self.acks = request.acks
        self.timeout_ms = request.timeout_ms
        self.replica = replica
        self.key_version: int = _INT32.unpack_from(frame)[0]
        self.prefix = bytes(frame[_PREFIX_START:size_at])
        self._size_at = size_at
        self._flexible = version >= _FLEXIBLE_SINCE
        self._has_log_start = version >= _LOG_START_SINCE
        self._learn_answer()

    def records(self, frame: memoryview) -> memoryview | None:
        """frame: a request with this shape's key, version and prefix. Returns the records of the
        request; None if its other bytes do not match the shape.
        """
        at = self._size_at
        if not self._flexible:
            size = len(frame) - at - _INT32.size
            return frame[at + _INT32.size :] if _INT32.unpack_from(frame, at)[0] == size else None
        size, start = _compact_size(frame, at)
        end = start + size
        if size < 0 or len(frame) - end != len(_TAGS) or bytes(frame[end:]) != _TAGS:
            return None
        return frame[start:end]

    def answer(self, correlation_id: int, base_offset: int) -> bytes:
        """Returns the frame of the answer, which states that the records were stored from
        `base_offset` on.
        """
        size, middle, between, rest = self._answer_parts
        form = self._answer_form
        if not self._has_log_start:
            return form.pack(size, correlation_id, middle, base_offset, between, rest)
        start = self.replica.log.log_start_offset
        return form.pack(size, correlation_id, middle, base_offset, between, start, rest)

    def _learn_answer(self) -> None:
        topic, partition = self.replica.partition
        mark = ProduceResult(topic, partition, 0, _BASE_MARK, -1, _START_MARK)
        whole = write_response(0, self.version, [mark])
        base_at = whole.rindex(_INT64.pack(_BASE_MARK))
        behind = start_at = base_at + _INT64.size
        if self._has_log_start:
            start_at = whole.rindex(_INT64.pack(_START_MARK))
        middle, between = whole[_PREFIX_START:base_at], whole[behind:start_at]
        rest = whole[start_at + (_INT64.size if self._has_log_start else 0) :]
        start = "q" if self._has_log_start else ""
        self._answer_form = Struct(f">4si{len(middle)}sq{len(between)}s{start}{len(rest)}s")
        self._answer_parts = (whole[: _INT32.size], middle, between, rest)


class Shapes:
    """The shapes of the requests on one connection. A shape is what a producer's requests for one
    partition have in common."""

    __slots__ = ("_heads", "_shapes")

    def __init__(self) -> None:
        self._shapes: dict[bytes, Shape] = {}
        self._heads: dict[int, Struct] = {}

    def match(self, frame: memoryview) -> tuple[Shape, int, memoryview] | None:
        """Returns the shape, the correlation id and the records of a request of a known shape; None
        for any other request.
        """
        for head_bytes, head in self._heads.items():
            if len(frame) < head_bytes:
                continue
            key_version, correlation_id, prefix = head.unpack_from(frame)
            shape = self._shapes.get(prefix)
            if shape is not None and shape.key_version == key_version:
                records = shape.records(frame)
                return None if records is None else (shape, correlation_id, records)
        return None

    def add(self, shape: Shape) -> None:
        """Adds the shape of a request, so that `match` finds it for later requests."""
        if len(self._shapes) >= SHAPES_MAX:
            self._shapes = {}
            self._heads = {}
        size = len(shape.prefix)
        self._shapes[shape.prefix] = shape
        # Each key of `_heads` is a number of bytes: how long a frame is up to and including the
        # field that has the size of the records. (This field follows the prefix.) A frame with
        # fewer bytes cannot have this shape.
        self._heads[_PREFIX_START + size + _INT32.size] = Struct(f">ii{size}s")


def learn(frame: memoryview, version: int, request: Produce, replica: Replica) -> Shape | None:
    """Returns the shape of a parsed request. Returns None in three cases: if the request does not
    have the records of exactly one partition, if it does not consist of the parts that the module's
    docstring shows, or if its prefix is too long.
    """
    if len(request.data) != 1 or request.transactional_id is not None:
        return None
    records = request.data[0].records
    tail = _TAGS if version >= _FLEXIBLE_SINCE else b""
    if records is None or frame[len(frame) - len(tail) :] != tail:
        return None
    start = len(frame) - len(tail) - len(records)
    if start > PREFIX_BYTES_MAX:
        return None
    size_bytes = _INT32.size if not tail else _compact_bytes(len(records))
    shape = Shape(frame, start - size_bytes, version, request, replica)
    return shape if shape.records(frame) == records else None


def _compact_size(frame: memoryview, at: int) -> tuple[int, int]:
    """Decodes the size of the records, which is encoded at position `at` as a Kafka compact length
    of at most four bytes. Returns the size, and the position after the compact length. If the
    length has more than four bytes, the returned size is -1."""
    size = shift = 0
    for position in range(at, at + 4):
        byte = frame[position]
        size |= (byte & 0x7F) << shift
        if byte < 0x80:
            return size - 1, position + 1
        shift += 7
    return -1, at


def _compact_bytes(size: int) -> int:
    return max((size + 1).bit_length() + 6, 7) // 7
