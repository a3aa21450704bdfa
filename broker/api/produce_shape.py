"""A producer's requests are alike: only correlation id and records differ from one to the next.

So what stands in front of the records is parsed once a connection, and later requests are compared
with it; what stands around the offsets of the answer is written once. A request that differs in any
byte takes the general way. For requests with one batch, which is what matters: many small ones::

    int16 key, int16 version | int32 correlation id | prefix | size | records | tail
                                                      ^ compared              ^ compared
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from broker.partitions.replica import Replica
from skidway.kafka.protocol.apis import APIS, ApiKey
from skidway.kafka.protocol.produce import Produce, ProduceResult, write_response

_HEAD: Final = Struct(">ii")  # key and version as one number, correlation id
_INT32: Final = Struct(">i")
_INT64: Final = Struct(">q")
_PREFIX_START: Final = 8
_CORRELATION_AT: Final = 4
_FLEXIBLE_SINCE: Final = APIS[ApiKey.PRODUCE].flexible_since
_TAGS: Final = b"\0\0\0"  # of the partition, the topic and the request: none
_LOG_START_SINCE: Final = 5
_BASE_MARK: Final = 0x1122334455667788
_START_MARK: Final = 0x0123456789ABCDEF


class Shape:
    """All of a request but correlation id and records, and its good answer but the offsets."""

    __slots__ = (
        "_answer",
        "_base_at",
        "_flexible",
        "_key_version",
        "_prefix",
        "_size_at",
        "_start_at",
        "_tail",
        "acks",
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
        self._key_version = _INT32.unpack_from(frame)[0]
        self._prefix = bytes(frame[_PREFIX_START:size_at])
        self._size_at = size_at
        self._flexible = version >= _FLEXIBLE_SINCE
        self._tail = _TAGS if self._flexible else b""
        topic, partition = replica.partition
        mark = ProduceResult(topic, partition, 0, _BASE_MARK, -1, _START_MARK)
        self._answer = bytes(write_response(0, version, [mark]))
        self._base_at = self._answer.rindex(_INT64.pack(_BASE_MARK))
        self._start_at = 0
        if version >= _LOG_START_SINCE:
            self._start_at = self._answer.rindex(_INT64.pack(_START_MARK))

    def match(self, frame: memoryview) -> tuple[int, memoryview] | None:
        """Correlation id and records of a request of this shape; None for any other."""
        at = self._size_at
        if len(frame) < at + _INT32.size or frame[_PREFIX_START:at] != self._prefix:
            return None
        key_version, correlation_id = _HEAD.unpack_from(frame)
        if key_version != self._key_version:
            return None
        if self._flexible:
            size, start = _compact_size(frame, at)
        else:
            size, start = _INT32.unpack_from(frame, at)[0], at + _INT32.size
        end = start + size
        if size < 0 or frame[end:] != self._tail or end > len(frame):
            return None
        return correlation_id, frame[start:end]

    def answer(self, correlation_id: int, base_offset: int) -> bytearray:
        """The frame that says that the records were stored from an offset on."""
        out = bytearray(self._answer)
        _INT32.pack_into(out, _CORRELATION_AT, correlation_id)
        _INT64.pack_into(out, self._base_at, base_offset)
        if self._start_at:
            _INT64.pack_into(out, self._start_at, self.replica.log.log_start_offset)
        return out


def learn(frame: memoryview, version: int, request: Produce, replica: Replica) -> Shape | None:
    """The shape of a request that was parsed; None if it has not one batch in the usual place."""
    if len(request.data) != 1 or request.transactional_id is not None:
        return None
    records = request.data[0].records
    tail = _TAGS if version >= _FLEXIBLE_SINCE else b""
    if records is None or frame[len(frame) - len(tail) :] != tail:
        return None
    start = len(frame) - len(tail) - len(records)
    size_bytes = _INT32.size if not tail else _compact_bytes(len(records))
    shape = Shape(frame, start - size_bytes, version, request, replica)
    matched = shape.match(frame)
    return shape if matched is not None and matched[1] == records else None


def _compact_size(frame: memoryview, at: int) -> tuple[int, int]:
    """The size that a compact length of at most four bytes says, and the position behind it."""
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
