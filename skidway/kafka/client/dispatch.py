"""The producer's decisions: how batches are put into requests, and when each request is sent.

This module does no I/O. `plan` returns the requests to send now. The driver (`producer`) does the
I/O, fetches producer ids, and passes the outcomes of requests to `answered` and `lost`.
`deliveries` reports to the owner, that is, to the code that uses the producer.

A request contains at most one batch of each partition. At most `max_in_flight` requests are open to
one leader. Partitions take turns.
"""

from __future__ import annotations

import itertools
from collections import Counter, deque
from collections.abc import Callable, Iterable
from typing import NamedTuple

from skidway.kafka.batch import EncodedBatch
from skidway.kafka.client.backoff import Backoff
from skidway.kafka.client.cluster import Address
from skidway.kafka.client.delivery import BufferFull, Delivery
from skidway.kafka.client.outbox import BatchState, Identity, Outbox, OutboxEntry
from skidway.kafka.errors import ErrorCode, KafkaError
from skidway.kafka.protocol.produce import ProduceResult, TopicBuffers
from skidway.kafka.types import TopicPartition

REQUEST_BYTES_MAX = 4 * 1024 * 1024  # a larger batch is sent in a request of its own

Leaders = Callable[[TopicPartition], Address | None]


class Planned(NamedTuple):
    """A Produce request that must be sent to an address now. Its batches are sorted by topic."""

    id: int
    address: Address
    data: list[TopicBuffers]


class _Open(NamedTuple):
    address: Address
    entries: dict[TopicPartition, OutboxEntry]


class Dispatch:
    """The outboxes (undelivered batches) of all partitions, and the requests without an answer."""

    def __init__(
        self,
        *,
        idempotent: bool,
        max_in_flight: int,
        max_buffered_bytes: int,
        random: Callable[[], float],
    ) -> None:
        self._idempotent = idempotent
        self._max_in_flight = max_in_flight
        self._max_buffered_bytes = max_buffered_bytes
        self._random = random
        self._outboxes: dict[TopicPartition, Outbox] = {}
        # The partitions with undelivered batches. The first of them has its turn next.
        self._active: dict[TopicPartition, None] = {}
        self._ids = itertools.count()
        self._open: dict[int, _Open] = {}
        self._open_count: Counter[Address] = Counter()
        self._identity: Identity | None = None
        self._deliveries: deque[Delivery] = deque()
        self._changed: set[TopicPartition] = set()
        self.buffered_bytes = 0
        self.pending_count = 0
        self.has_stale_leaders = False
        # Whether the last call of `plan` found a partition without a leader or a usable connection.
        self.is_stalled = False

    @property
    def has_room(self) -> bool:
        """Whether another batch may be added."""
        return self.buffered_bytes < self._max_buffered_bytes

    def add(self, tp: TopicPartition, encoded: EncodedBatch, token: object) -> None:
        """Queues a batch. `token` comes back in the batch's `Delivery`. Raises BufferFull if
        `has_room` is False. If `has_room` is True, the batch is queued even if the buffered bytes
        then exceed the limit.
        """
        size = encoded.size_bytes
        if not self.has_room:
            raise BufferFull(f"{self.buffered_bytes} bytes wait to be sent already")
        outbox = self._outboxes.get(tp)
        if outbox is None:
            outbox = self._outboxes[tp] = Outbox(
                tp,
                idempotent=self._idempotent,
                max_in_flight=self._max_in_flight,
                backoff=Backoff(self._random),
            )
        self.buffered_bytes += size
        self.pending_count += 1
        outbox.add(OutboxEntry(token, encoded))
        self._active.setdefault(tp)

    def plan(
        self, leader: Leaders, usable: Callable[[Address], bool], now: float, wall_ms: int
    ) -> list[Planned]:
        """Returns the requests to send now, in the order of sending. From then on, this object
        treats these requests as sent.
        """
        self._settle_changed()
        requests: list[Planned] = []
        places = self._places(leader, usable)
        while places:
            for address in list(places):
                planned = None
                if self._open_count[address] < self._max_in_flight:
                    planned = self._request(address, places[address], now, wall_ms)
                if planned is None:
                    del places[address]
                else:
                    requests.append(planned)
        return requests

    def answered(
        self, request_id: int, results: Iterable[ProduceResult], now: float, wall_ms: int
    ) -> None:
        """Processes a response. A batch without a result in the response is sent again."""
        opened = self._closed(request_id)
        for result in results:
            tp = TopicPartition(result.topic, result.partition)
            entry = opened.entries.pop(tp, None)
            if entry is not None:
                self._answer(tp, entry, result, now, wall_ms)
        for tp, entry in opened.entries.items():
            missing = ProduceResult(*tp, ErrorCode.UNKNOWN_SERVER_ERROR, -1)
            self._answer(tp, entry, missing, now, wall_ms)

    def written(self, request_id: int, now: float, wall_ms: int) -> None:
        """Notes that a request with acks 0 was sent: the broker will send no response."""
        opened = self._closed(request_id)
        for tp, entry in opened.entries.items():
            result = ProduceResult(*tp, ErrorCode.NONE, -1)
            self._answer(tp, entry, result, now, wall_ms)

    def lost(self, request_id: int) -> None:
        """Notes that a request will get no response, usually because its connection ended."""
        self.has_stale_leaders = True
        for tp, entry in self._closed(request_id).entries.items():
            self._outboxes[tp].lost(entry)
            self._changed.add(tp)

    def deliveries(self) -> list[Delivery]:
        """Returns the batches whose outcomes have become known since the last call, with these
        outcomes. The outcomes for one partition are in the order in which its batches were sent."""
        self._settle_changed()
        found = list(self._deliveries)
        self._deliveries.clear()
        return found

    @property
    def identity_wanted(self) -> bool:
        """Whether some partition waits for a new producer id."""
        return any(self._outboxes[tp].wants_identity for tp in self._active)

    def identified(self, producer_id: int, epoch: int) -> None:
        """Receives a new producer id, which nobody has used before."""
        generation = 1 if self._identity is None else self._identity.generation + 1
        self._identity = Identity(producer_id, epoch, generation)

    def next_deadline(self, now: float) -> float | None:
        """Returns the time (monotonic seconds) at which the next refused batch may be sent again,
        or None if no batch waits for a retry."""
        times = (self._outboxes[tp].retry_at for tp in self._active)
        return min((each for each in times if each > now), default=None)

    @property
    def waiting(self) -> frozenset[TopicPartition]:
        """The partitions with batches that are not acknowledged yet."""
        return frozenset(self._active)

    @property
    def troubles(self) -> dict[TopicPartition, KafkaError]:
        """The partitions whose batches are being retried, each with the last error."""
        boxes = (self._outboxes[tp] for tp in self._active)
        return {box.tp: box.trouble for box in boxes if box.trouble is not None}

    def _places(
        self, leader: Leaders, usable: Callable[[Address], bool]
    ) -> dict[Address, list[Outbox]]:
        places: dict[Address, list[Outbox]] = {}
        self.is_stalled = False
        for tp in self._active:
            outbox = self._outboxes[tp]
            address = leader(tp)
            if address is None or not usable(address):
                self.is_stalled = True
            elif self._has_identity(outbox):
                places.setdefault(address, []).append(outbox)
        return places

    def _has_identity(self, outbox: Outbox) -> bool:
        if not outbox.wants_identity:
            return True
        if self._identity is None or self._identity.generation < outbox.generation_wanted:
            return False
        outbox.identify(self._identity)
        return True

    def _request(
        self, address: Address, boxes: list[Outbox], now: float, wall_ms: int
    ) -> Planned | None:
        """Returns one request that contains a batch of each partition that may send a batch now, up
        to the size limit of a request. Returns None if no partition may send."""
        entries: dict[TopicPartition, OutboxEntry] = {}
        data: list[TopicBuffers] = []
        size = 0
        for outbox in boxes:
            entry = outbox.next_entry(address, now, wall_ms)
            if entry is None:
                continue
            if data and size + entry.encoded.size_bytes > REQUEST_BYTES_MAX:
                break
            header = outbox.send(entry, address)
            entries[outbox.tp] = entry
            data.append(TopicBuffers(*outbox.tp, (header, entry.encoded.body)))
            size += entry.encoded.size_bytes
            self._active.pop(outbox.tp)
            # `outbox.tp` becomes the last partition, so that all other partitions come first.
            self._active[outbox.tp] = None
        if not data:
            return None
        request_id = next(self._ids)
        self._open[request_id] = _Open(address, entries)
        self._open_count[address] += 1
        return Planned(request_id, address, sorted(data, key=lambda part: part.topic))

    def _closed(self, request_id: int) -> _Open:
        opened = self._open.pop(request_id)
        self._open_count[opened.address] -= 1
        return opened

    def _answer(
        self,
        tp: TopicPartition,
        entry: OutboxEntry,
        result: ProduceResult,
        now: float,
        wall_ms: int,
    ) -> None:
        assert entry.state is BatchState.SENT, "a batch is answered once for each time it is sent"
        code, offset, message = result.error_code, result.base_offset, result.error_message
        if not self._outboxes[tp].answer(entry, code, offset, message, now, wall_ms):
            self.has_stale_leaders = True
        self._changed.add(tp)

    def _settle_changed(self) -> None:
        for tp in self._changed:
            self._settle(self._outboxes[tp])
        self._changed.clear()

    def _settle(self, outbox: Outbox) -> None:
        for delivery in outbox.settle():
            entry = delivery.token
            assert isinstance(entry, OutboxEntry), "outboxes deliver their entries"
            self.buffered_bytes -= entry.encoded.size_bytes
            self.pending_count -= 1
            self._deliveries.append(delivery._replace(token=entry.token))
        if outbox.is_empty:
            self._active.pop(outbox.tp, None)
