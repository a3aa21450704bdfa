"""Creates the audit topic of a cluster, and reads values from it.

All messages of a producer go to one partition, so they keep their order. The producer's name
determines the partition. Readers do not rely on the order, because messages have numbers.

A batch with a wrong CRC is damaged: somebody may have written messages in it, so nobody reads over
it. The records of a batch with a good CRC are what its writer sent. If they cannot be decoded, they
are one record without content, which is no message to any reader.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np

from skidway.audit.signing.signature import HEADER as SIGNATURE_HEADER
from skidway.audit.topic.messages import TOPIC
from skidway.clock import Clock
from skidway.errors import Unreachable
from skidway.kafka import columns
from skidway.kafka.batch import (
    CONTROL,
    LOG_APPEND_TIME,
    CorruptBatch,
    check,
    read_header,
    unpack_header,
)
from skidway.kafka.client import (
    EARLIEST,
    LATEST,
    Client,
    Fetched,
    Fetcher,
    NewTopic,
    ensure_topics,
)
from skidway.kafka.columns import TOGETHER_BYTES, ValueColumns, Workspace, joined
from skidway.kafka.errors import OffsetOutOfRange
from skidway.kafka.types import TopicPartition

PARTITIONS = 1
STALLED_AFTER_S = 30.0
POLL_MS = 500

TOGETHER_MAX = 256
"""At most this many batches are decoded together."""

RECORDS_MAX = 65_536
"""No program of Skidway writes a batch of more records. A small batch could have millions of equal
ones, so a larger batch counts as one that cannot be decoded."""

_NO_MESSAGE = b""
"""The value of the record that takes the place of records that cannot be decoded."""


def is_audit_topic(name: str) -> bool:
    """Whether a topic of this name is a cluster's own audit topic, or the mirrored audit topic of
    another cluster."""
    prefix, _, rest = name.rpartition(TOPIC)
    return rest == "" and name.endswith(TOPIC) and (prefix == "" or _is_cluster_prefix(prefix))


def partition_of(producer: str, partition_count: int) -> int:
    """The partition to which all messages of a producer go."""
    return zlib.crc32(producer.encode()) % partition_count


def ensure(client: Client, pause: Callable[[float], object]) -> int:
    """Creates the audit topic if it is missing, waits until its partitions have leaders, and
    returns the number of partitions.

    pause: a function that sleeps for the given number of seconds, or for a shorter time if the
    program must stop. Raises Unreachable if the topic is not ready in time, and KafkaError if the
    cluster refuses to create the topic.
    """
    found = ensure_topics(client, [NewTopic(TOPIC, PARTITIONS)], pause)
    return len(found[TOPIC].partitions)


class TopicBatch(NamedTuple):
    """A record batch of an audit topic as the broker sent it. begin: the end of the batch before
    it or the first offset that is wanted, whichever is greater. Records with lower offsets are not
    wanted."""

    tp: TopicPartition
    begin: int
    raw: bytes


class DamagedBatch(CorruptBatch):
    """A damaged record batch of an audit topic. offset: the offset from which on the partition
    cannot be read. This offset does not come from the batch itself, because any byte of the batch
    may be wrong."""

    def __init__(self, tp: TopicPartition, offset: int, error: CorruptBatch) -> None:
        super().__init__(f"{tp} cannot be read at offset {offset}: {error}")
        self.tp = tp
        self.offset = offset


Row = tuple[int, bytes | None, int, bytes | None]
"""Offset, value, timestamp and signature of a record. Value and signature are None if the record
has none."""


class DecodedBatches(NamedTuple):
    """Batches that were decoded together, perhaps of several partitions. indexes: the index of each
    batch. counts: the number of its records; 0 for a control batch. are_appended: whether the
    broker has written the timestamps of its records (LogAppendTime). rows: the records of all
    batches."""

    indexes: Sequence[int]
    counts: Sequence[int]
    are_appended: Sequence[bool]
    rows: Iterator[Row]


def decoded(batches: Sequence[TopicBatch]) -> Iterator[DecodedBatches]:
    """Decodes batches, one partition after the other, many of them at a time. If a batch is
    damaged, yields all batches that come before it in this order, and then raises DamagedBatch. The
    caller must use the rows of one result before it asks for the next one.

    A program that counts sends most of its messages alone, so most batches have one record. To
    decode such batches one by one takes twenty times as long as to decode them together.
    """
    space = Workspace(2 * TOGETHER_BYTES)
    order = sorted(range(len(batches)), key=lambda index: batches[index].tp)
    at, together = 0, TOGETHER_MAX
    while at < len(order):
        found = _decoded(batches, order[at : at + together], space)
        yield found
        at += len(found.indexes)
        # Where one batch cannot be decoded, others may follow: each of them would spoil a run.
        together = min(2 * len(found.indexes), TOGETHER_MAX)


def _decoded(
    batches: Sequence[TopicBatch], indexes: Sequence[int], space: Workspace
) -> DecodedBatches:
    """Takes the batches with these indexes, in this order. Decodes together as many of them as
    possible, but at least the first.
    """
    raws = [memoryview(batches[index].raw) for index in indexes]
    taken = columns.unpack_run(raws, TOGETHER_BYTES, space, RECORDS_MAX)
    if not len(taken.headers):
        return _decoded_alone(batches[indexes[0]], indexes[0])
    try:
        records = columns.decode_values(taken.run, SIGNATURE_HEADER)
    except CorruptBatch:  # the records of one of these batches are damaged
        return _decoded_alone(batches[indexes[0]], indexes[0])
    attributes = taken.headers["attributes"]
    counts = np.where(attributes & CONTROL != 0, 0, taken.headers["count"]).tolist()
    are_appended = (attributes & LOG_APPEND_TIME != 0).tolist()
    return DecodedBatches(indexes[: len(counts)], counts, are_appended, _rows(records))


def _decoded_alone(batch: TopicBatch, index: int) -> DecodedBatches:
    """Decodes a batch that cannot be decoded together with others. Raises DamagedBatch."""
    try:
        header = read_header(batch.raw)
        check(batch.raw, 0, header)
    except CorruptBatch as error:
        raise DamagedBatch(batch.tp, batch.begin, error) from error
    rows = _rows_alone(batch) if header.count <= RECORDS_MAX else None
    if rows is None:
        rows = [(batch.begin, _NO_MESSAGE, header.max_timestamp, None)]
    return DecodedBatches([index], [len(rows)], [header.has_log_append_time], iter(rows))


def _rows_alone(batch: TopicBatch) -> list[Row] | None:
    try:
        alone = joined([columns.unpack(batch.raw)])
        return list(_rows(columns.decode_values(alone, SIGNATURE_HEADER)))
    except CorruptBatch:
        return None


def _rows(records: ValueColumns) -> Iterator[Row]:
    offsets, times = records.offsets.tolist(), records.timestamps.tolist()
    return zip(offsets, records.values.to_pylist(), times, records.header, strict=True)


class Record(NamedTuple):
    """A record of an audit topic. signature: the value of its header SIGNATURE_HEADER; None if it
    is not signed."""

    tp: TopicPartition
    offset: int
    value: bytes
    signature: bytes | None


def records_of(batches: Sequence[TopicBatch]) -> Iterator[Record]:
    """Yields the records of these batches. Leaves out records without a value, and those that are
    not wanted. Raises DamagedBatch."""
    for part in decoded(batches):
        for index, count in zip(part.indexes, part.counts, strict=True):
            tp, begin, _ = batches[index]
            for offset, value, _, signature in islice(part.rows, count):
                if offset >= begin and value is not None:
                    yield Record(tp, offset, value, signature)


def bounds(client: Client, topics: Iterable[str]) -> dict[TopicPartition, tuple[int, int]]:
    """The first offset and the high watermark of each partition of these topics. Topics that do not
    exist are left out."""
    found = client.metadata(sorted(topics)).topics
    tps = [TopicPartition(name, p.index) for name in found for p in found[name].partitions]
    if not tps:
        return {}
    first = client.list_offsets(dict.fromkeys(tps, EARLIEST))
    end = client.list_offsets(dict.fromkeys(tps, LATEST))
    return {tp: (first[tp].offset, end[tp].offset) for tp in tps}


def read(
    client: Client,
    fetcher: Fetcher,
    ranges: Mapping[TopicPartition, tuple[int, int]],
    clock: Clock,
    *,
    stalled_after_s: float = STALLED_AFTER_S,
) -> Iterator[Record]:
    """Yields the records at the offsets [begin, end) that `ranges` has for each partition. Skips
    records without a value, and records that expire while this function reads.

    Raises Unreachable if nothing arrives for `stalled_after_s`, and DamagedBatch.
    """
    todo = {tp: end for tp, (begin, end) in ranges.items() if begin < end}
    begins = {tp: ranges[tp][0] for tp in todo}
    for tp, begin in begins.items():
        fetcher.seek(tp, begin)
    deadline = clock.monotonic() + stalled_after_s
    while todo:
        for record in records_of(poll(client, fetcher, begins)):
            if record.tp in todo and record.offset < todo[record.tp]:
                yield record
        positions = fetcher.positions
        if any(positions.get(tp, 0) > begins[tp] for tp in todo):
            deadline = clock.monotonic() + stalled_after_s
        begins.update({tp: positions[tp] for tp in todo if tp in positions})
        for tp in [tp for tp, end in todo.items() if positions.get(tp, 0) >= end]:
            del todo[tp]
            fetcher.remove(tp)
        if todo and clock.monotonic() > deadline:
            raise Unreachable(f"Nothing of {sorted(todo)[0]} came for {stalled_after_s:.0f} s.")


def poll(
    client: Client,
    fetcher: Fetcher,
    begins: Mapping[TopicPartition, int],
    timeout_ms: int = POLL_MS,
    *wake: int,
) -> list[TopicBatch]:
    """Waits at most `timeout_ms`, and returns the batches that have arrived. begins: for each
    partition, the first offset that is wanted. If a partition no longer has the offset at which
    `fetcher` reads (because it expired, or because the topic was deleted and created again), the
    next call reads from the partition's first offset. If messages are lost in this way, the audit
    notices that their numbers are missing. Raises OffsetOutOfRange if the topic does not exist any
    more."""
    try:
        fetched = fetcher.poll(timeout_ms, *wake)
    except OffsetOutOfRange as error:
        found = bounds(client, [error.tp.topic])
        if error.tp not in found:
            raise  # the topic was deleted
        fetcher.seek(error.tp, found[error.tp][0])
        return []
    return [each for part in fetched for each in _batches(part, begins.get(part.tp, 0))]


def _batches(part: Fetched, begin: int) -> Iterator[TopicBatch]:
    for raw in part.batches:
        yield TopicBatch(part.tp, begin, bytes(raw))
        begin = max(begin, unpack_header(raw).last_offset + 1)


def _is_cluster_prefix(prefix: str) -> bool:
    return prefix.endswith(".") and prefix.count(".") == 1 and len(prefix) > 1
