"""Creates the audit topic of a cluster, and reads values from it.

All messages of a producer go to one partition, so they keep their order. The producer's name
determines the partition. Readers do not rely on the order, because messages have numbers.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping

from skidway.audit.topic.messages import TOPIC
from skidway.clock import Clock
from skidway.dataclass import dataclass
from skidway.errors import Unreachable
from skidway.kafka import columns
from skidway.kafka.batch import read_header
from skidway.kafka.client import EARLIEST, LATEST, Client, Fetcher, NewTopic, ensure_topics
from skidway.kafka.errors import OffsetOutOfRange
from skidway.kafka.types import TopicPartition

PARTITIONS = 1
STALLED_AFTER_S = 30.0
POLL_MS = 500


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
    program must stop. Raises Unreachable if the topic is not ready in time.
    """
    found = ensure_topics(client, [NewTopic(TOPIC, PARTITIONS)], pause)
    return len(found[TOPIC].partitions)


@dataclass(frozen=True, slots=True)
class Record:
    """A record of an audit topic. The record's timestamp is either `sent_ms`, which the sender has
    set, or `appended_ms`: the time of the append, with which the broker has replaced the sender's
    timestamp. The other of the two fields is None.
    """

    tp: TopicPartition
    offset: int
    value: bytes
    sent_ms: int | None
    appended_ms: int | None = None


def values_of(batch: memoryview, begin: int) -> Iterator[tuple[int, bytes, int]]:
    """Yields (offset, value, timestamp) for the batch's records from offset `begin` on. Records
    without a value are left out."""
    decoded = columns.decode(batch)
    offsets, values = decoded.offsets.tolist(), decoded.values.to_pylist()
    for offset, value, time_ms in zip(offsets, values, decoded.timestamps.tolist(), strict=True):
        if offset >= begin and value is not None:
            yield offset, value, time_ms


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
) -> Iterator[tuple[TopicPartition, int, bytes]]:
    """Yields (partition, offset, value) for the records at the offsets [begin, end) that `ranges`
    has for each partition. Skips records that expire while this function reads.

    Raises Unreachable if nothing arrives for `stalled_after_s`.
    """
    todo = {tp: end for tp, (begin, end) in ranges.items() if begin < end}
    begins = {tp: ranges[tp][0] for tp in todo}
    for tp, begin in begins.items():
        fetcher.seek(tp, begin)
    deadline = clock.monotonic() + stalled_after_s
    while todo:
        for each in poll(client, fetcher, begins):
            if each.tp in todo and each.offset < todo[each.tp]:
                yield each.tp, each.offset, each.value
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
) -> Iterator[Record]:
    """Waits at most `timeout_ms`, and yields the records that have arrived. begins: for each
    partition, the first offset that is wanted. If a partition no longer has the offset at which
    `fetcher` reads (because it expired, or because the topic was deleted and created again), the
    next call reads from the partition's first offset. If messages are lost in this way, the audit
    notices that their numbers are missing."""
    try:
        fetched = fetcher.poll(timeout_ms, *wake)
    except OffsetOutOfRange as error:
        found = bounds(client, [error.tp.topic])
        if error.tp not in found:
            raise  # the topic was deleted
        fetcher.seek(error.tp, found[error.tp][0])
        return
    for part in fetched:
        for batch in part.batches:
            header = read_header(batch)
            appended_ms = header.max_timestamp if header.has_log_append_time else None
            for offset, value, time_ms in values_of(batch, begins.get(part.tp, 0)):
                sent_ms = time_ms if appended_ms is None else None
                yield Record(part.tp, offset, value, sent_ms, appended_ms)


def _is_cluster_prefix(prefix: str) -> bool:
    return prefix.endswith(".") and prefix.count(".") == 1 and len(prefix) > 1
