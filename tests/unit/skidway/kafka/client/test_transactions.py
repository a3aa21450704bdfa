"""Readers of committed records get no record of an aborted transaction, and nothing behind an open
one."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import google_crc32c
import numpy as np
import pyarrow as pa
import pytest

from skidway.kafka import columns
from skidway.kafka.batch import (
    CONTROL,
    CRC_START,
    HEADER_BYTES,
    TRANSACTIONAL,
    check,
    read_header,
    seal,
    stamp,
)
from skidway.kafka.client.cluster import Address
from skidway.kafka.client.fetching import Fetched, Fetching, LogEnd
from skidway.kafka.client.transactions import OpenTransaction, committed
from skidway.kafka.codecs import LZ4, NONE, ZSTD, Codec
from skidway.kafka.protocol.fetch import READ_COMMITTED, READ_UNCOMMITTED
from skidway.kafka.protocol.fetch_response import FetchAnswer, FetchedPartition
from skidway.kafka.types import TopicPartition

TP = TopicPartition("t", 0)
CODECS = (NONE, ZSTD, LZ4)


@dataclass
class Log:
    """A partition as a leader of Apache Kafka keeps it, with the transactions of its producers."""

    batches: list[memoryview] = field(default_factory=list)
    end: int = 0
    open: dict[int, tuple[int, list[int]]] = field(default_factory=dict)
    aborted: list[tuple[int, int, int]] = field(default_factory=list)
    committed: set[int] = field(default_factory=set)

    def append(self, count: int, producer: int, kind: int, codec: Codec = NONE) -> list[int]:
        offsets = list(range(self.end, self.end + count))
        values = pa.array([b"value %d" % each for each in offsets], pa.binary())
        encoded = columns.encode(values, np.arange(count, dtype=np.int64), codec=codec)
        raw = bytearray(seal(encoded, producer, 0, 0))
        raw[CRC_START + 1] |= kind
        stamp(raw, 0, self.end, 0)
        crc = google_crc32c.value(bytes(raw[CRC_START:]))
        raw[CRC_START - 4 : CRC_START] = crc.to_bytes(4, "big")
        self.batches.append(memoryview(bytes(raw)))
        self.end += count
        return offsets

    def send(self, count: int, producer: int, codec: Codec) -> None:
        first, known = self.open.get(producer, (self.end, []))
        self.open[producer] = first, known + self.append(count, producer, TRANSACTIONAL, codec)

    def finish(self, producer: int, *, commits: bool) -> None:
        first, offsets = self.open.pop(producer)
        [marker] = self.append(1, producer, TRANSACTIONAL | CONTROL)
        if commits:
            self.committed |= set(offsets)
        else:
            self.aborted.append((producer, first, marker))

    @property
    def stable(self) -> int:
        return min((first for first, _ in self.open.values()), default=self.end)

    def fetch(self, offset: int, count: int) -> FetchedPartition:
        """Returns the answer to a fetch: at most `count` batches, and the aborted transactions that
        overlap with them."""
        found = [x for x in self.batches if read_header(x).last_offset >= offset]
        found = [x for x in found if read_header(x).base_offset < self.stable][:count]
        end = read_header(found[-1]).last_offset + 1 if found else offset
        listed = [(p, first) for p, first, last in self.aborted if last >= offset and first < end]
        records = memoryview(b"".join(found))
        return FetchedPartition(*TP, 0, self.end, self.stable, 0, records, tuple(listed), -1)


def random_log(chance: random.Random) -> Log:
    log = Log()
    for _ in range(chance.randrange(60)):
        producer, count = chance.randrange(1, 5), chance.randrange(1, 4)
        if producer in log.open and chance.random() < 0.4:
            log.finish(producer, commits=chance.random() < 0.5)
        elif chance.random() < 0.2:
            log.committed |= set(log.append(count, producer + 100, 0))
        else:
            log.send(count, producer, chance.choice(CODECS))
    return log


def fetching(level: int = READ_COMMITTED) -> Fetching:
    made = Fetching(
        max_bytes=1 << 20, max_wait_ms=0, min_bytes=1, random=lambda: 0.5, isolation_level=level
    )
    made.seek(TP, 0)
    return made


def fetch(reader: Fetching, log: Log, count: int, now: float = 1.0) -> list[Fetched]:
    [planned] = reader.plan(lambda _: Address("a", 1), lambda _: True, now)
    [wanted] = planned.request.wanted
    assert planned.request.isolation_level == READ_COMMITTED
    reader.answered(planned.id, FetchAnswer(0, 0, 0, [log.fetch(wanted.offset, count)]), now)
    return reader.take()


def values(batches: list[memoryview]) -> dict[int, bytes]:
    found: dict[int, bytes] = {}
    for raw in batches:
        batch = columns.decode(raw)
        found.update(zip(batch.offsets.tolist(), batch.values.to_pylist(), strict=True))
    return found


@pytest.mark.parametrize("seed", range(40), indirect=True)
def test_exactly_the_committed_records_below_the_last_stable_offset(seed: int) -> None:
    """However transactions of several producers overlap, and wherever an answer begins and ends, a
    reader gets the committed records below the last stable offset, and no other. No offset is
    missing between its batches, and the aborted records are known by number."""
    chance = random.Random(seed)
    log = random_log(chance)
    reader, batches = fetching(), list[memoryview]()
    reader.seek(TP, begin := chance.randrange(log.stable + 1))
    while found := fetch(reader, log, chance.randrange(1, 6)):
        batches += found[0].batches
    wanted = {x: b"value %d" % x for x in log.committed if x < log.stable}
    first = read_header(batches[0]).base_offset if batches else begin
    assert values(batches) == {x: each for x, each in wanted.items() if x >= first}
    at = first
    for raw in batches:
        header = read_header(raw)
        check(raw, 0, header)
        assert header.base_offset == at
        assert header.is_whole
        at = header.last_offset + 1
    assert at == log.stable
    lost = sum(h.last_offset_delta + 1 for h in map(read_header, batches) if h.is_aborted)
    markers = sum(read_header(raw).is_control for raw in batches)
    assert lost == log.stable - first - markers - sum(first <= x for x in wanted)


def test_the_end_is_where_the_first_transaction_is_open() -> None:
    """While a transaction is open, the reader's high watermark is its first offset, and the reader
    knows since when. When the transaction has ended, the reader goes on to the real end."""
    log, reader = Log(), fetching()
    log.append(3, -1, 0)
    log.send(2, 1, NONE)
    log.append(4, -1, 0)
    assert [x.high_watermark for x in fetch(reader, log, 9, now=5.0)] == [3]
    assert (reader.high_watermarks, reader.ends) == ({TP: 3}, {TP: LogEnd(9, 5.0)})
    log.append(1, -1, 0)
    assert fetch(reader, log, 9, now=7.0) == []
    assert reader.open_transactions == {TP: OpenTransaction(3, 5.0)}
    log.finish(1, commits=False)
    [last] = fetch(reader, log, 9, now=8.0)
    assert (last.high_watermark, reader.open_transactions) == (11, {})
    assert reader.ends == {TP: LogEnd(11, 8.0)}
    assert [*values(last.batches)] == [5, 6, 7, 8, 9]
    log.send(1, 1, NONE)
    assert fetch(reader, log, 9, now=9.0) == []
    assert reader.open_transactions == {TP: OpenTransaction(11, 9.0)}


def test_a_damaged_batch_of_an_aborted_transaction_is_found() -> None:
    """A reader leaves out no batch whose checksum is wrong, because its header may be wrong, too:
    the batch stays as it is, and whoever decodes it finds the damage."""
    log = Log()
    log.send(2, 1, NONE)
    log.finish(1, commits=False)
    damaged = bytearray(log.batches[0])
    damaged[HEADER_BYTES + 3] ^= 1
    found = committed([memoryview(bytes(damaged)), log.batches[1]], [(1, 0)])
    assert found == [damaged, log.batches[1]]


def test_a_mirror_sees_the_log_as_it_is() -> None:
    """A reader of uncommitted records gets every batch as it is in the log, up to the high
    watermark."""
    log, reader = Log(), fetching(READ_UNCOMMITTED)
    log.send(2, 1, NONE)
    [planned] = reader.plan(lambda _: Address("a", 1), lambda _: True, 1.0)
    assert planned.request.isolation_level == READ_UNCOMMITTED
    part = log.fetch(0, 9)._replace(records=memoryview(b"".join(log.batches)), aborted=None)
    reader.answered(planned.id, FetchAnswer(0, 0, 0, [part]), 1.0)
    [found] = reader.take()
    assert (found.batches, found.high_watermark) == (log.batches, 2)
