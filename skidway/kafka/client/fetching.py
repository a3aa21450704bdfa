"""The fetcher's decisions: each partition's position, and what to fetch from which leader.

This module does no I/O. `plan` returns the fetches to send now. The outcomes of these fetches are
passed to `answered` and `lost`. `take` returns the batches to the owner, that is, to the code that
reads the partitions. At most one fetch is open to a leader at a time. While batches from a leader
wait to be taken, no fetch is sent to that leader. So at most one response per leader is in memory.
Partitions take turns at the front of the requests, because a broker fills a response from the
front.

The owner gets whole batches. The first batch of a response may begin before the position from which
the partition is fetched, so this batch may also have records before the position. A partial last
batch is dropped and fetched again. The next position is after the last whole batch, so no batch is
skipped, and no batch comes twice. Offsets may be missing between two batches if the log was
compacted.

If the isolation level is READ_COMMITTED, the batches of aborted transactions have no records (see
`transactions`), and the last stable offset takes the place of the high watermark.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Mapping
from typing import NamedTuple

from skidway.dataclass import dataclass
from skidway.errors import SkidwayError, UsageError
from skidway.kafka.batch import (
    HEADER_BYTES,
    OFFSET_MAX,
    BatchHeader,
    CorruptBatch,
    check,
    headers,
    read_header,
)
from skidway.kafka.client.backoff import Backoff
from skidway.kafka.client.cluster import Address, code_of
from skidway.kafka.client.transactions import OpenTransaction, committed
from skidway.kafka.errors import RETRIABLE, ErrorCode, OffsetOutOfRange, error_for
from skidway.kafka.protocol.fetch import READ_COMMITTED, READ_UNCOMMITTED
from skidway.kafka.protocol.fetch_request import Fetch, FetchTarget
from skidway.kafka.protocol.fetch_response import FetchAnswer, FetchedPartition
from skidway.kafka.types import TopicPartition

PARTITIONS_AT_ONCE = 100
REST_S_A_PARTITION = 25e-6
REST_S_MAX = 0.1
"""A fetch lists all partitions of a leader. If a leader has many partitions and its last response
had few bytes, the next fetch is sent after a short wait of at most this many seconds. Without the
wait, client and broker would look at all partitions for each small batch.
"""
RESPONSE_BYTES_MAX = 128 * 1024 * 1024  # max_bytes grows up to this limit to fetch a large batch

Leaders = Callable[[TopicPartition], Address | None]
Place = tuple[Address, int]
"""Identifies a connection: its address, and how many earlier connections to this address have
ended."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """Whole batches of one partition, in offset order. The batches are views of one response's
    memory.

    The first batch may begin before the requested position. Its records before that position were
    not requested. high_watermark: the end of what can be read. `unbroken` is True if these batches
    came on the same connection as the partition's previous batches, and the partition was not
    interrupted in between (see `take_interruptions`). `unbroken` is False for the first batches
    after a seek.
    """

    tp: TopicPartition
    high_watermark: int
    log_start_offset: int
    batches: list[memoryview]
    unbroken: bool = False


class LogEnd(NamedTuple):
    """The high watermark of a partition, from its last answer. asked: when the answer was asked
    for, in monotonic seconds. Every record that was committed before then is below the high
    watermark.
    """

    high_watermark: int
    asked: float


class PlannedFetch(NamedTuple):
    """A Fetch request that must be sent to an address now."""

    id: int
    address: Address
    request: Fetch


class _Reading:
    __slots__ = (
        "backoff",
        "generation",
        "is_halted",
        "max_bytes",
        "next_offset",
        "place",
        "position",
        "retry_at",
    )

    def __init__(self, offset: int, generation: int, max_bytes: int, backoff: Backoff) -> None:
        self.position = offset  # the offset after the last batch that `take` has returned
        self.next_offset = offset  # the offset after the last batch that was fetched
        self.generation = generation
        self.max_bytes = max_bytes
        self.retry_at = 0.0
        self.backoff = backoff
        self.is_halted = False
        self.place: Place | None = None  # the connection that brought the last batches


class _Ready(NamedTuple):
    address: Address
    generation: int
    end: int
    fetched: Fetched


class _Open(NamedTuple):
    address: Address
    generations: dict[TopicPartition, int]
    asked: float


class Fetching:
    """The partitions that are read. They take turns at the front of the requests."""

    def __init__(
        self,
        *,
        max_bytes: int,
        max_wait_ms: int,
        min_bytes: int,
        random: Callable[[], float],
        isolation_level: int = READ_UNCOMMITTED,
    ) -> None:
        self._isolation_level = isolation_level
        self._max_bytes = max_bytes
        self._max_wait_ms = max_wait_ms
        self._min_bytes = min_bytes
        self._random = random
        self._readings: dict[TopicPartition, _Reading] = {}
        self._generations = itertools.count()
        self._ids = itertools.count()
        self._open: dict[int, _Open] = {}
        self._ready: deque[_Ready] = deque()
        self._errors: deque[tuple[TopicPartition, int, SkidwayError]] = deque()
        self._resting: dict[Address, float] = {}
        self._interruptions: dict[TopicPartition, str] = {}
        self._refusals: dict[TopicPartition, tuple[float, str]] = {}
        self.high_watermarks: dict[TopicPartition, int] = {}
        self.ends: dict[TopicPartition, LogEnd] = {}
        self.open_transactions: dict[TopicPartition, OpenTransaction] = {}
        """The partitions in which an open transaction keeps committed records back."""
        self.has_stale_leaders = False
        # Whether the last call of `plan` found a partition without a leader or a usable connection.
        self.is_stalled = False

    @property
    def positions(self) -> dict[TopicPartition, int]:
        """The next offset of every partition: after the last batch that `take` returned, or from
        `seek`."""
        return {tp: reading.position for tp, reading in self._readings.items()}

    def seek(self, tp: TopicPartition, offset: int) -> None:
        """Reads a partition from an offset on. Batches of the partition that were fetched and not
        taken are dropped. The partition's high watermark is unknown until the next answer."""
        if offset < 0:
            raise ValueError("a position is an offset, not negative")
        if offset > OFFSET_MAX:
            raise UsageError(f"no log has the offset {offset}")
        backoff = Backoff(self._random)
        generation = next(self._generations)
        self.high_watermarks.pop(tp, None)
        self.ends.pop(tp, None)
        self.open_transactions.pop(tp, None)
        self._readings[tp] = _Reading(offset, generation, self._max_bytes, backoff)

    def remove(self, tp: TopicPartition) -> None:
        """Stops reading a partition."""
        self._readings.pop(tp, None)
        self._interruptions.pop(tp, None)
        self._refusals.pop(tp, None)
        self.high_watermarks.pop(tp, None)
        self.ends.pop(tp, None)
        self.open_transactions.pop(tp, None)

    @property
    def refusals(self) -> Mapping[TopicPartition, tuple[float, str]]:
        """The partitions of which the brokers send nothing now, because the brokers refuse the
        fetches or cannot be reached: since when (monotonic seconds), and the newest reason. These
        partitions are requested again until their brokers answer."""
        return self._refusals

    def plan(
        self, leader: Leaders, usable: Callable[[Address], bool], now: float
    ) -> list[PlannedFetch]:
        """Returns the fetches to send now. From then on, this object treats these fetches as
        sent."""
        busy = {each.address for each in self._open.values()}
        busy |= {each.address for each in self._ready if self._reading_of(each) is not None}
        self._resting = {where: until for where, until in self._resting.items() if now < until}
        busy |= self._resting.keys()
        places: dict[Address, list[TopicPartition]] = {}
        self.is_stalled = False
        for tp, reading in self._readings.items():
            if reading.is_halted or now < reading.retry_at:
                continue
            address = leader(tp)
            if address is None or not (address in busy or usable(address)):
                self.is_stalled = True
                self._note_refusal(tp, now, "its leader is not known, or cannot be reached")
            elif address not in busy:
                places.setdefault(address, []).append(tp)
        return [self._fetch(address, tps, now) for address, tps in places.items()]

    def answered(
        self, request_id: int, answer: FetchAnswer, now: float, place: Place | None = None
    ) -> None:
        """Processes a response that came on the given connection. Skips partitions for which `seek`
        or `remove` was called since the request.
        """
        opened = self._open.pop(request_id)
        self._rest(opened.address, answer, now)
        for part in answer.partitions:
            tp = TopicPartition(part.topic, part.partition)
            generation = opened.generations.pop(tp, -1)
            reading = self._readings.get(tp)
            if reading is None or reading.generation != generation:
                continue
            highest = max(part.high_watermark, part.last_stable_offset, part.log_start_offset)
            if highest > OFFSET_MAX:
                why = f"{tp} cannot be read: its leader says that it has the offset {highest}"
                self._halt(tp, reading, CorruptBatch(why))
                continue
            if part.error_code == ErrorCode.NONE:
                self.ends[tp] = LogEnd(part.high_watermark, opened.asked)
            self._take_part(place or (opened.address, 0), tp, reading, part, now)
        for tp, generation in opened.generations.items():  # partitions that the response lacks
            self._later(tp, generation, now, "left out of the broker's answer")

    def lost(self, request_id: int, now: float, why: str = "the connection ended") -> None:
        """Notes that a request will get no response, for the reason `why`."""
        self.has_stale_leaders = True
        for tp, generation in self._open.pop(request_id).generations.items():
            self._later(tp, generation, now, why)

    def take(self) -> list[Fetched]:
        """Returns the batches that were fetched. Moves the positions past them."""
        found: list[Fetched] = []
        while self._ready:
            ready = self._ready.popleft()
            reading = self._reading_of(ready)
            if reading is not None:
                reading.position = ready.end
                found.append(ready.fetched)
        return found

    def take_error(self) -> tuple[TopicPartition, SkidwayError] | None:
        """Returns the next error that stopped a partition, or None if there is none; each error is
        returned once. Call this method after `take`, because the batches that were fetched before
        an error come first.

        The error is `OffsetOutOfRange`, `CorruptBatch`, or a `KafkaError` that does not go away
        with time. To read the partition again, the caller has to call `seek` for it.
        """
        while self._errors:
            tp, generation, error = self._errors.popleft()
            reading = self._readings.get(tp)
            if reading is not None and reading.generation == generation:
                return tp, error
        return None

    @property
    def error_count(self) -> int:
        """How many errors `take_error` may still return."""
        return len(self._errors)

    def interrupt(self, why: str) -> None:
        """Marks every partition as interrupted, for the reason `why`. The next batches of an
        interrupted partition may come from another log than its previous batches (see
        `take_interruptions`).
        """
        for tp in self._readings:
            self._interrupt(tp, why)

    def take_interruptions(self) -> dict[TopicPartition, str]:
        """Returns the partitions that were interrupted since the last call, each with the newest
        reason: a fetch was lost or refused, another connection answered, or `interrupt` was called.
        Their next batches may come from another log than their earlier batches. These partitions
        are still fetched; the caller need not call `seek`. But a mirror or a counter must again
        compare the last batch that it has with the log.
        """
        found, self._interruptions = self._interruptions, {}
        return found

    @property
    def has_something(self) -> bool:
        """Whether `take` may return batches, or `take_error` may return an error."""
        return bool(self._ready or self._errors)

    def next_deadline(self, now: float) -> float | None:
        """Some fetches must wait before they are sent. Returns the time (monotonic seconds) at
        which the first such wait ends, or None if no fetch waits."""
        times = [reading.retry_at for reading in self._readings.values() if not reading.is_halted]
        times += self._resting.values()
        return min((each for each in times if each > now), default=None)

    def _rest(self, address: Address, answer: FetchAnswer, now: float) -> None:
        count = len(answer.partitions)
        size_bytes = sum(len(part.records) for part in answer.partitions)
        if count > PARTITIONS_AT_ONCE and size_bytes < self._max_bytes // 2:
            self._resting[address] = now + min(count * REST_S_A_PARTITION, REST_S_MAX)

    def _reading_of(self, ready: _Ready) -> _Reading | None:
        reading = self._readings.get(ready.fetched.tp)
        current = reading is not None and reading.generation == ready.generation
        return reading if current else None

    def _fetch(self, address: Address, tps: list[TopicPartition], now: float) -> PlannedFetch:
        targets: dict[str, list[FetchTarget]] = {}  # in the order in which `tps` names topics
        for tp in tps:
            reading = self._readings[tp]
            target = FetchTarget(*tp, reading.next_offset, reading.max_bytes)
            targets.setdefault(tp.topic, []).append(target)
        wanted = [target for group in targets.values() for target in group]
        most = max(self._max_bytes, *(target.max_bytes for target in wanted))
        request = Fetch(wanted, self._max_wait_ms, self._min_bytes, most, self._isolation_level)
        request_id = next(self._ids)
        generations = {tp: self._readings[tp].generation for tp in tps}
        self._open[request_id] = _Open(address, generations, now)
        return PlannedFetch(request_id, address, request)

    def _later(self, tp: TopicPartition, generation: int, now: float, why: str) -> None:
        reading = self._readings.get(tp)
        if reading is not None and reading.generation == generation:
            reading.retry_at = now + reading.backoff.next_s()
            self._note_refusal(tp, now, why)
            self._interrupt(tp, why)

    def _note_refusal(self, tp: TopicPartition, now: float, why: str) -> None:
        since, _ = self._refusals.get(tp, (now, why))
        self._refusals[tp] = since, why

    def _interrupt(self, tp: TopicPartition, why: str) -> None:
        reading = self._readings.get(tp)
        if reading is not None:
            reading.place = None
            self._interruptions[tp] = why

    def _take_part(
        self,
        place: Place,
        tp: TopicPartition,
        reading: _Reading,
        part: FetchedPartition,
        now: float,
    ) -> None:
        if part.error_code != ErrorCode.NONE:
            self._refused(tp, reading, part, now)
            return
        reading.backoff.reset()
        self._refusals.pop(tp, None)
        if reading.place not in (None, place):
            self._interrupt(tp, "another connection answered")
        watermark = self.high_watermarks[tp] = self._end_of(tp, part, now)
        try:
            batches, end = whole_batches(part.records, reading.next_offset)
        except CorruptBatch as error:
            where = f"{tp} cannot be read at offset {reading.next_offset}: {error}"
            self._halt(tp, reading, CorruptBatch(where))
            return
        if not batches:
            if len(part.records):
                self._ask_for_more(tp, reading, part.records)
            return
        reading.next_offset, reading.max_bytes = end, self._max_bytes
        if self._isolation_level == READ_COMMITTED:
            batches = committed(batches, part.aborted)
        unbroken = reading.place == place
        fetched = Fetched(tp, watermark, part.log_start_offset, batches, unbroken)
        reading.place = place
        self._ready.append(_Ready(place[0], reading.generation, end, fetched))
        self._readings[tp] = self._readings.pop(tp)  # so that the next fetch lists `tp` last

    def _end_of(self, tp: TopicPartition, part: FetchedPartition, now: float) -> int:
        """Returns the end of what can be read of a partition. Notes whether this is below the high
        watermark, because a transaction is open."""
        end, stable = part.high_watermark, part.last_stable_offset
        if self._isolation_level != READ_COMMITTED or not 0 <= stable < end:
            self.open_transactions.pop(tp, None)
            return end
        known = self.open_transactions.get(tp)
        if known is None or known.offset != stable:
            known = OpenTransaction(stable, now)
        self.open_transactions[tp] = known
        return stable

    def _refused(
        self, tp: TopicPartition, reading: _Reading, part: FetchedPartition, now: float
    ) -> None:
        code = code_of(part.error_code)
        if code is ErrorCode.OFFSET_OUT_OF_RANGE:
            bounds = (part.log_start_offset, part.high_watermark)
            self._halt(tp, reading, OffsetOutOfRange(tp, reading.next_offset, *bounds))
        elif code in RETRIABLE or code is ErrorCode.UNKNOWN_SERVER_ERROR:
            self.has_stale_leaders = True
            self._later(tp, reading.generation, now, f"the broker answered {code.name}")
        else:
            self._halt(tp, reading, error_for(part.error_code, f"{tp} cannot be read"))

    def _halt(self, tp: TopicPartition, reading: _Reading, error: SkidwayError) -> None:
        reading.is_halted = True
        self._refusals.pop(tp, None)
        self._errors.append((tp, reading.generation, error))

    def _ask_for_more(self, tp: TopicPartition, reading: _Reading, records: memoryview) -> None:
        """Increases the partition's `max_bytes` for the next fetch, because the answer did not
        contain the whole batch that is needed next. If `max_bytes` has its highest value already,
        stops the partition with CorruptBatch."""
        needed = 2 * len(records)
        if len(records) >= HEADER_BYTES:
            needed = max(needed, read_header(records).size_bytes)
        if reading.max_bytes >= RESPONSE_BYTES_MAX:
            where = f"{tp} cannot be read at offset {reading.next_offset}"
            limit = f"no whole batch in {RESPONSE_BYTES_MAX} bytes"
            self._halt(tp, reading, CorruptBatch(f"{where}: {limit}"))
        reading.max_bytes = min(max(needed, 2 * reading.max_bytes), RESPONSE_BYTES_MAX)


def whole_batches(records: memoryview, position: int) -> tuple[list[memoryview], int]:
    """Returns the whole batches that contain a position or come after it, and the position after
    these batches.

    A batch is bad if its header is damaged, or if offsets do not rise. The CRC is checked only for
    batches before the position; the caller checks the others. If good batches come before a bad
    batch, only the good batches are returned, and a later call finds the bad batch. If no good
    batch comes before a bad batch, CorruptBatch is raised.
    """
    found: list[memoryview] = []
    end = position
    try:
        for at, header in headers(records):
            if header.last_offset < position:
                check(records, at, header)  # a damaged header may hide wanted records
                continue
            _check_order(header, end if found else 0)
            found.append(records[at : at + header.size_bytes])
            end = header.last_offset + 1
    except CorruptBatch:
        if not found:
            raise
    return found, end


def _check_order(header: BatchHeader, lowest: int) -> None:
    if header.base_offset < lowest or header.last_offset_delta < 0:
        raise CorruptBatch(f"a batch begins at {header.base_offset}, {lowest} was expected")
