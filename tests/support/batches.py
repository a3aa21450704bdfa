"""Makes record batches and logs for the broker's tests. Needs no socket and no numpy."""

from __future__ import annotations

from pathlib import Path

from skidway.broker.log.config import LogConfig
from skidway.broker.log.opening import Opening
from skidway.broker.log.partition_log import Flush, PartitionLog
from skidway.broker.log.recovery import Recovered, open_log
from skidway.broker.log.validation import validate
from skidway.kafka.batch import EncodedBatch, headers, seal, stamp
from skidway.kafka.codecs import NONE, Codec
from skidway.kafka.types import TopicPartition

PARTITION = TopicPartition("logs", 0)
NOW_MS = 1_700_000_000_000


def varint(value: int) -> bytes:
    """Encodes a number as a zigzag varint, as in Kafka's records."""
    value = (value << 1) ^ (value >> 63)
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def record(value: bytes, timestamp_delta: int, offset_delta: int) -> bytes:
    """Returns one record in the format v2 of Kafka's record batches, without a key and without
    headers."""
    body = b"\0" + varint(timestamp_delta) + varint(offset_delta) + varint(-1)
    body += varint(len(value)) + value + varint(0)
    return varint(len(body)) + body


def batch(
    *values: bytes,
    timestamps: list[int] | None = None,
    codec: Codec = NONE,
    producer_id: int = -1,
    epoch: int = -1,
    sequence: int = -1,
) -> bytearray:
    """Returns a batch with one record for each of the values, as a producer sends it. Its base
    offset is 0. `timestamps` has one time for each record; by default all times are NOW_MS."""
    values = values or (b"value",)
    times = timestamps or [NOW_MS] * len(values)
    body = b"".join(
        record(value, at - times[0], i)
        for i, (value, at) in enumerate(zip(values, times, strict=True))
    )
    encoded = EncodedBatch(
        codec.compress(body), codec.number, len(values), times[0], max(times), len(body)
    )
    return bytearray(seal(encoded, producer_id, epoch, sequence))


def sized(size_bytes: int, count: int = 1) -> bytearray:
    """Returns a batch of exactly `size_bytes` bytes, that is, a header of 61 bytes and then
    meaningless bytes."""
    encoded = EncodedBatch(
        b"x" * (size_bytes - 61), NONE.number, count, NOW_MS, NOW_MS, size_bytes - 61
    )
    return bytearray(seal(encoded))


def batch_at(offset: int, count: int = 1, *, epoch: int = 0, body: bytes = b"opaque") -> bytes:
    """Returns a batch of `count` records as it lies in a log from `offset` on. `body` is in place
    of the records, which are meaningless."""
    raw = bytearray(seal(EncodedBatch(body, NONE.number, count, 0, 0, len(body))))
    stamp(raw, 0, offset, epoch)
    return bytes(raw)


def opening(directory: Path, config: LogConfig | None = None, **changes: object) -> Opening:
    return Opening(PARTITION, directory, config or LogConfig(), NOW_MS, **changes)  # type: ignore[arg-type]


def open_in(directory: Path, config: LogConfig | None = None, **changes: object) -> PartitionLog:
    return recover_in(directory, config, **changes).log


def recover_in(directory: Path, config: LogConfig | None = None, **changes: object) -> Recovered:
    return open_log(opening(directory, config, **changes))


def append(log: PartitionLog, data: bytearray, now_ms: int = NOW_MS, epoch: int = 0) -> int:
    """Validates one batch, appends it to the log and writes it to the segment file. Returns the
    batch's base offset."""
    base = put(log, data, now_ms, epoch)
    log.write()
    return base


def put(log: PartitionLog, data: bytearray, now_ms: int = NOW_MS, epoch: int = 0) -> int:
    """Validates one batch and appends it to the log, but does not write it to the segment file.
    Returns the batch's base offset."""
    view = memoryview(data)
    header = validate(view, LogConfig(max_message_bytes=1 << 30), now_ms, 9)
    return log.append(view, header, epoch, now_ms).base_offset


def flush(log: PartitionLog) -> Flush:
    """Makes all written batches of the log durable (fsync), without the broker's flusher thread."""
    from skidway.broker.log.flusher import sync

    work = log.begin_flush()
    assert work is not None
    sync(work)
    log.finish_flush(work)
    return work


def contents(log: PartitionLog) -> list[tuple[int, int]]:
    """Returns the base offset and the number of records of every batch that a consumer can read,
    from the log start on.
    """
    found: list[tuple[int, int]] = []
    offset = log.log_start_offset
    while True:
        piece = log.read(offset, 1 << 30, log.flushed, at_least_one=True)
        if piece is None:
            return found
        with open(piece.file.path, "rb") as file:
            file.seek(piece.position)
            data = file.read(piece.length)
        for _, header in headers(data):
            found.append((header.base_offset, header.count))
            offset = header.last_offset + 1


def stored(directory: Path) -> list[tuple[int, int]]:
    """Returns two numbers for every batch in a directory's segment files, as they are on disk: its
    base offset and its number of records. Does not run recovery.
    """
    found = []
    for path in sorted(directory.glob("*.log")):
        found += [(h.base_offset, h.count) for _, h in headers(path.read_bytes())]
    return found
