"""Decodes the most frequent kinds of messages, without the generic Avro decoder.

Nearly all messages are deltas, seals and heartbeats with the current schema, and without losses,
gaps and filtered records. This module decodes only these messages, and only if their bytes are
exactly those that Skidway writes. It leaves all other bytes to `messages.decode`. So both decoders
agree about every message, and only `messages.decode` raises errors.

Most messages of a sender have the same names, the same bounds (see messages.Bounds) and the same
source topics. So this module keeps the decoded values in a cache, by their bytes, instead of
decoding the same bytes again.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from skidway.audit.topic import field_bounds, messages
from skidway.audit.topic.count_columns import NO_COUNTS, CountColumns
from skidway.audit.topic.field_bounds import MESSAGE_BYTES_MAX, NUMBERS, PARTITIONS, TIMES
from skidway.audit.topic.messages import (
    AUDIT_SCHEMA,
    Bounds,
    Delta,
    Heartbeat,
    Message,
    Range,
    Seal,
    Sender,
    Tier,
    sender_of,
)
from skidway.audit.topic.seal_columns import SealColumns
from skidway.kafka.source import Source
from skidway.schemas import single_object

_HEADER: Final = single_object.shipped().schema(AUDIT_SCHEMA).header
_BODY: Final = len(_HEADER)
_DELTA, _SEAL, _HEARTBEAT = 0, 2, 4
_TIERS: Final = tuple(Tier)
_NOTHINGS: Final = bytes(8)
_SOMETHING: Final = 2
"""A null or an empty array is encoded as a zero byte. The byte _SOMETHING comes before an optional
value that is not null."""

_LONG_END: Final = 1 << 64

_SENDERS_MAX = 1 << 16
_NAMES_MAX = 1 << 10


class _Unusual(ValueError):
    """Raised for bytes that this module leaves to the generic decoder."""


def decode(value: bytes) -> Message:
    """Decodes the message in a record's value. Raises the errors of `messages.decode`."""
    if value.startswith(_HEADER) and len(value) <= MESSAGE_BYTES_MAX:
        try:
            return _decode(value)
        except (ValueError, IndexError):
            pass
    return messages.decode(value)


def _decode(value: bytes) -> Delta | Seal | Heartbeat:
    at = _BODY + 2  # after the bytes of kind and tier
    for _ in ("cluster", "producer", "host"):
        length = value[at]
        at = _past(value, at) if length & 0x81 else at + 1 + (length >> 1)
    _, at = _long(value, at)
    sender = value[_BODY + 1 : at]
    number, at = _long(value, at)
    time_ms, at = _long(value, at)
    if number not in NUMBERS or time_ms not in TIMES:
        raise _Unusual
    if value[_BODY] == _DELTA:
        return _delta(value, at, sender, number, time_ms)
    if value[_BODY] == _SEAL:
        return _seal(value, at, sender, number, time_ms)
    if value[_BODY] != _HEARTBEAT:
        raise _Unusual
    at = _skip(value, at, "ranges", "columns", "losses", "gaps", "sealed")
    lag_ms, at = _long(value, at)
    if lag_ms not in TIMES:
        raise _Unusual
    at = _skip(value, at, "behind")
    return Heartbeat(_sender(sender, value[at:]), number, time_ms, lag_ms)


def _delta(value: bytes, at: int, sender: bytes, number: int, time_ms: int) -> Delta:
    ranges, at = _ranges(value, at)
    counts = NO_COUNTS
    if value[at] == _SOMETHING:
        names, at = _bytes(value, at + 1)
        table, at = _bytes(value, at)
        counts = CountColumns.from_bytes(_text(names), table)
    at = _skip(value, at, "columns or filtered", "losses", "gaps", "sealed", "lag", "behind")
    return Delta(_sender(sender, value[at:]), number, time_ms, ranges, counts)


def _seal(value: bytes, at: int, sender: bytes, number: int, time_ms: int) -> Seal:
    at = _skip(value, at, "ranges", "columns", "losses", "gaps")
    if value[at] != _SOMETHING:
        raise _Unusual
    names, at = _bytes(value, at + 1)
    table, at = _bytes(value, at)
    offsets, at = _bytes(value, at)
    at = _skip(value, at, "lag", "behind")
    seals = SealColumns.from_bytes(_text(names), table, offsets)
    return Seal(_sender(sender, value[at:]), number, time_ms, seals)


def _ranges(value: bytes, at: int) -> tuple[tuple[Range, ...], int]:
    count, at = _long(value, at)
    if count < 0:
        raise _Unusual
    found = []
    for _ in range(count):
        begin = at
        for _ in ("cluster", "cluster_id", "topic", "topic_id"):
            at = _past(value, at)
        source = _source(value[begin:at])
        partition, at = _long(value, at)
        first, at = _long(value, at)
        end, at = _long(value, at)
        if partition not in PARTITIONS or first not in NUMBERS or end not in NUMBERS:
            raise _Unusual
        found.append(Range(source, partition, first, end))
    return tuple(found), _skip(value, at, "end of the array") if count else at


@lru_cache(_SENDERS_MAX)
def _sender(sender: bytes, bounds: bytes) -> Sender:
    """The sender of a message. sender: the bytes of the message that encode the tier, the names and
    the epoch. bounds: the last bytes of the message, which encode the sender's bounds."""
    if sender[0] % 2 or sender[0] >= 2 * len(_TIERS):
        raise _Unusual
    cluster, at = _bytes(sender, 1)
    producer, at = _bytes(sender, at)
    host, at = _bytes(sender, at)
    epoch, at = _long(sender, at)
    lateness_ms, end = _long(bounds, 0)
    ahead_ms, end = _long(bounds, end)
    if end != len(bounds):
        raise _Unusual
    names = cluster.decode(), producer.decode(), host.decode()
    said = {"epoch": epoch, "lateness_ms": lateness_ms, "ahead_ms": ahead_ms, "names": [*names]}
    field_bounds.check(said)
    return sender_of(_TIERS[sender[0] // 2], *names, epoch, Bounds(lateness_ms, ahead_ms))


@lru_cache(_NAMES_MAX)
def _source(value: bytes) -> Source:
    names, at = [], 0
    for _ in ("cluster", "cluster_id", "topic", "topic_id"):
        name, at = _bytes(value, at)
        names.append(name.decode())
    field_bounds.check({"names": names})
    return Source(*names)


@lru_cache(_NAMES_MAX)
def _text(value: bytes) -> str:
    return value.decode()


def _skip(value: bytes, at: int, *fields: str) -> int:
    """Returns the position after these fields, each of which is null or an empty array. Raises
    _Unusual if one of them has another value."""
    end = at + len(fields)
    if value[at:end] != _NOTHINGS[: len(fields)]:
        raise _Unusual
    return end


def _past(value: bytes, at: int) -> int:
    length = value[at]
    if length & 0x81:  # the length is negative, or takes more than one byte
        length, at = _long(value, at)
        if length < 0:
            raise _Unusual
        return at + length
    return at + 1 + (length >> 1)


def _bytes(value: bytes, at: int) -> tuple[bytes, int]:
    length, at = _long(value, at)
    if length < 0:
        raise _Unusual
    return value[at : at + length], at + length


def _long(value: bytes, at: int) -> tuple[int, int]:
    """Returns the integer that begins at `at`, and the position after it. Raises _Unusual if its
    encoding has more bytes than needed, because Skidway never writes such an encoding."""
    byte = value[at]
    if byte < 0x80:  # mostly
        return (byte >> 1) ^ -(byte & 1), at + 1
    number, shift = byte & 0x7F, 7
    while byte & 0x80:
        at += 1
        byte = value[at]
        number |= (byte & 0x7F) << shift
        shift += 7
        if not byte or number >= _LONG_END:
            raise _Unusual
    return (number >> 1) ^ -(number & 1), at + 1
