"""Remembers the last batches of each idempotent producer, and decides which batch the producer may
send next.

The log remembers for each producer id its epoch, the time of its last append, and its last five
batches with their sequences, offsets and CRCs (KIP-98). Five batches are enough, as in Kafka,
because a client has at most five in flight. A new batch from an idempotent producer is checked like
this::

    unknown producer              any first sequence is accepted, as its state may have expired
    lower epoch                   InvalidProducerEpoch
    higher epoch                  accepted if the batch begins at sequence 0
    sequences of one of the five  a duplicate if the CRC is the same, or if the stored CRC is
                                  unknown (see CRC_UNKNOWN)
    exactly the next sequence     accepted
    anything else                 OutOfOrderSequence: the batch is older than the last five, or
                                  follows a gap

CRCs are computed over the bytes that the producer sent. If a batch has the sequence of a stored
batch, but another CRC, the producer has mixed up its batches. This batch is no duplicate, so the
broker must not answer that it is stored. The producer gets OutOfOrderSequence. After this error,
the producer waits for its batches in flight, and starts its sequence again.

The entry of a producer is immutable, so a failed append is undone by restoring the old entry. The
state is derived from the log. If there is a snapshot of the state (`.producers`), a starting broker
need not read the whole log. The format of a snapshot is::

    magic "SKP1" | crc32c u32 of the rest | time of the first append ms i64 | highest id i64 | n u32
    n times: producer id i64 | epoch i16 | last append ms i64 | k u8
             k times: base sequence i32 | last sequence i32 | base offset i64 | last offset i64
                      | crc u32
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import NamedTuple

import google_crc32c

from skidway.broker.log.producer_id import ID_END
from skidway.kafka.batch import NO_PRODUCER_ID, BatchHeader, next_sequence

BATCHES_KEPT = 5
CRC_UNKNOWN = 0
"""The value for an unknown CRC. With LogAppendTime, the broker changes the timestamps in a
producer's batch, and replaces the batch's CRC. So when the log is read again, the CRC of the bytes
that the producer sent is unknown.
"""
_MAGIC = b"SKP1"
_SUM = struct.Struct(">4sI")
_HEAD = struct.Struct(">qqI")
_PRODUCER = struct.Struct(">qhqB")
_BATCH = struct.Struct(">iiqqI")


class SequenceRefused(Exception):
    """Raised if an idempotent producer has sent a batch that cannot be its next batch."""


class OutOfOrderSequence(SequenceRefused):
    """Raised if a batch does not begin at the producer's next sequence and is no duplicate: it
    follows a gap, it is older than the last five batches, or it has the sequence of a stored batch
    but other bytes.
    """


class InvalidProducerEpoch(SequenceRefused):
    """Raised if a batch's epoch is lower than the last known epoch of the producer id."""


class SnapshotDamaged(Exception):
    """Raised for a snapshot with invalid bytes. The broker ignores such a snapshot, and computes
    the state from the log instead."""


class StoredBatch(NamedTuple):
    """What the log remembers of one of a producer's last batches."""

    base_sequence: int
    last_sequence: int
    base_offset: int
    last_offset: int
    crc: int


class Producer(NamedTuple):
    """The state of one producer id. `batches` has at most five batches, in ascending order."""

    epoch: int
    last_append_ms: int
    batches: tuple[StoredBatch, ...]


@dataclass(slots=True)
class ProducerState:
    """All producers of one partition, and the highest of their ids that is below ID_END."""

    producers: dict[int, Producer] = field(default_factory=dict)
    highest_id: int = NO_PRODUCER_ID

    def check(self, header: BatchHeader) -> StoredBatch | None:
        """Checks a batch. If the batch is a duplicate, returns the original, which is already
        stored. Returns None if the batch may be appended.

        Raises SequenceRefused. Changes nothing.
        """
        known = self.producers.get(header.producer_id)
        if known is None:
            return None
        if header.producer_epoch != known.epoch:
            _check_new_epoch(header, known)
            return None
        last = known.batches[-1]
        if header.base_sequence == next_sequence(last.last_sequence, 1):
            return None
        return _duplicate(header, known)

    def update(self, header: BatchHeader, base_offset: int, now_ms: int) -> None:
        """Notes the append of a batch. The batch has passed `check`, or was read from the log when
        the broker started."""
        producer_id = header.producer_id
        crc = CRC_UNKNOWN if header.has_log_append_time else header.crc
        batch = StoredBatch(
            header.base_sequence,
            header.last_sequence,
            base_offset,
            base_offset + header.last_offset_delta,
            crc,
        )
        known = self.producers.get(producer_id)
        if known is None or known.epoch != header.producer_epoch:
            batches: tuple[StoredBatch, ...] = (batch,)
        else:
            batches = (*known.batches[1 - BATCHES_KEPT :], batch)
        self.producers[producer_id] = Producer(header.producer_epoch, now_ms, batches)
        if producer_id < ID_END:
            self.highest_id = max(self.highest_id, producer_id)

    def go_on(self, later: ProducerState) -> None:
        """Adds the state `later`, which was computed from the batches after those of this state.
        The result is the same as if `update` had been called on this state for each of these
        batches, because a producer's epoch never decreases.
        """
        for producer_id, each in later.producers.items():
            known = self.producers.get(producer_id)
            if known is not None and known.epoch == each.epoch:
                each = each._replace(batches=(*known.batches, *each.batches)[-BATCHES_KEPT:])
            self.producers[producer_id] = each
        self.highest_id = max(self.highest_id, later.highest_id)

    def expire(self, before_ms: int) -> int:
        """Forgets producers whose last append was before this time. Returns how many were
        forgotten."""
        old = [key for key, each in self.producers.items() if each.last_append_ms < before_ms]
        for key in old:
            del self.producers[key]
        return len(old)

    def forget_oldest(self, count: int) -> None:
        """Forgets so many of the producers whose last append was the longest ago."""
        by_age = sorted(self.producers, key=lambda each: self.producers[each].last_append_ms)
        for key in by_age[:count]:
            del self.producers[key]


def _check_new_epoch(header: BatchHeader, known: Producer) -> None:
    if header.producer_epoch < known.epoch:
        raise InvalidProducerEpoch(
            f"producer {header.producer_id} has epoch {known.epoch}, not {header.producer_epoch}"
        )
    if header.base_sequence != 0:
        raise OutOfOrderSequence(
            f"producer {header.producer_id} begins epoch {header.producer_epoch} with sequence "
            f"{header.base_sequence}"
        )


def _duplicate(header: BatchHeader, known: Producer) -> StoredBatch:
    for stored in known.batches:
        if stored.base_sequence != header.base_sequence:
            continue
        same = stored.crc in (header.crc, CRC_UNKNOWN)
        if stored.last_sequence == header.last_sequence and same:
            return stored
        raise OutOfOrderSequence(
            f"producer {header.producer_id} sent other records under sequence "
            f"{header.base_sequence}"
        )
    raise OutOfOrderSequence(
        f"producer {header.producer_id} sent sequence {header.base_sequence} where "
        f"{next_sequence(known.batches[-1].last_sequence, 1)} is next"
    )


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What a `.producers` file contains: the state of the producers before an offset, and the time
    of the first append to a segment (see `PartitionLog.save_producers`).
    """

    first_append_ms: int
    state: ProducerState


def encode_snapshot(state: ProducerState, first_append_ms: int) -> bytes:
    """Returns the bytes of a `.producers` file."""
    parts = [_HEAD.pack(first_append_ms, state.highest_id, len(state.producers))]
    for producer_id, each in state.producers.items():
        parts.append(
            _PRODUCER.pack(producer_id, each.epoch, each.last_append_ms, len(each.batches))
        )
        parts.extend(_BATCH.pack(*batch) for batch in each.batches)
    body = b"".join(parts)
    return _SUM.pack(_MAGIC, google_crc32c.value(body)) + body


def decode_snapshot(data: bytes) -> Snapshot:
    """Returns the snapshot in a `.producers` file. Raises SnapshotDamaged."""
    if len(data) < _SUM.size + _HEAD.size or data[:4] != _MAGIC:
        raise SnapshotDamaged("it is no snapshot of producers")
    body = data[_SUM.size :]
    if google_crc32c.value(body) != _SUM.unpack_from(data)[1]:
        raise SnapshotDamaged("its checksum is wrong")
    first_append_ms, highest_id, count = _HEAD.unpack_from(body)
    state, at = ProducerState(highest_id=highest_id), _HEAD.size
    for _ in range(count):
        producer_id, epoch, last_append_ms, kept = _PRODUCER.unpack_from(body, at)
        at += _PRODUCER.size
        end = at + kept * _BATCH.size
        batches = tuple(StoredBatch._make(each) for each in _BATCH.iter_unpack(body[at:end]))
        state.producers[producer_id] = Producer(epoch, last_append_ms, batches)
        at = end
    return Snapshot(first_append_ms, state)
