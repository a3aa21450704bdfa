"""Keeps the undelivered batches of one partition. Decides which batch may be sent next, and what
the broker's answer to a batch means.

    queue    batches without a header, in send order
    flight   batches with a header: sent, to be sent again, acknowledged or refused;
             `settle` removes the acknowledged batches at the front
    doomed   batches that go back to the owner (the code that uses the producer): a refused batch
             and all batches after it

The module obeys the rules below (docs/delivery.md). If it broke even one of these rules, some order
of events would lead to missing records in the log:

* Sequences count records. A retried batch has the same bytes and sequence. A batch never expires.
* A broker accepts any first sequence from a producer that it does not know. If several batches are
  in flight, such a broker may refuse an earlier batch and accept a later batch. So only one batch
  is in flight after any of four events: a new identity (producer id and epoch), a lost connection,
  a change of leader, or an hour without an acknowledgement. This limit ends when the broker has
  acknowledged a batch. The same limit applies while the records' event times are over an hour old,
  because Apache Kafka forgets producers by event time.
* A drain begins when the broker refuses a batch for good, or answers with an error in
  `IDENTITY_LOST`, such as OUT_OF_ORDER_SEQUENCE_NUMBER (45) or UNKNOWN_PRODUCER_ID (59). During a
  drain nothing is sent. The drain ends when every batch in flight is answered or has lost its
  connection. Then the partition gets a new producer id. It sends the first unacknowledged batch and
  all later batches under the new id. But a batch that was refused for good goes back to the owner,
  with all batches after it.
* The owner gets acknowledgements in send order, and none is left out.

This module uses no I/O and no clock: times are parameters.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from enum import Enum
from typing import NamedTuple

from skidway.kafka.batch import OFFSET_MAX, EncodedBatch, next_sequence, seal_header
from skidway.kafka.client.backoff import Backoff
from skidway.kafka.client.cluster import Address, code_of
from skidway.kafka.client.delivery import Delivery, Drained
from skidway.kafka.errors import ErrorCode, KafkaError, error_for
from skidway.kafka.types import TopicPartition

IDLE_S = 3600.0
EVENT_AGE_MAX_MS = 3_600_000
CORRUPT_TIMES_MAX = 3

ACKNOWLEDGED = frozenset({ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER})
IDENTITY_LOST = frozenset(
    {
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.UNKNOWN_PRODUCER_ID,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ErrorCode.PRODUCER_FENCED,
    }
)
# Errors that stay the same if the same bytes are sent again. After any other error the batch is
# sent again (but see `CORRUPT_TIMES_MAX`). For example, an operator can still grant missing rights,
# or create a missing topic.
REFUSED_FOR_GOOD = frozenset(
    {
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.INVALID_TIMESTAMP,
        ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
        ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
        ErrorCode.INVALID_RECORD,
    }
)


class Identity(NamedTuple):
    """A producer id and epoch. `generation` counts the identities that a producer has had."""

    producer_id: int
    epoch: int
    generation: int


NO_IDENTITY = Identity(-1, -1, 0)


class BatchState(Enum):
    """The state of a batch between being queued and being delivered."""

    UNSENT = "unsent"
    SENT = "sent"
    ACKED = "acked"
    REFUSED = "refused"


class OutboxEntry:
    """One undelivered batch."""

    __slots__ = (
        "attempts",
        "base_offset",
        "corrupt_times",
        "encoded",
        "error",
        "header",
        "state",
        "token",
    )

    def __init__(self, token: object, encoded: EncodedBatch) -> None:
        self.token = token
        self.encoded = encoded
        self.header: bytes | None = None  # None before the first send under the present producer id
        self.state = BatchState.UNSENT
        self.base_offset = -1
        self.error: KafkaError | None = None
        self.corrupt_times = 0
        self.attempts = 0

    def start_again(self) -> None:
        """Resets the batch's header, state and offset, because they belong to the previous
        identity."""
        self.header, self.state, self.base_offset = None, BatchState.UNSENT, -1


class Outbox:
    """The undelivered batches of one partition. `trouble` is the error of the last refused batch,
    and None again once a batch is acknowledged."""

    __slots__ = (
        "_acked_at",
        "_acked_event_ms",
        "_acked_wall_ms",
        "_address",
        "_backoff",
        "_doomed",
        "_draining",
        "_flight",
        "_idempotent",
        "_identity",
        "_is_known",
        "_max_in_flight",
        "_queue",
        "_sequence",
        "generation_wanted",
        "retry_at",
        "tp",
        "trouble",
    )

    def __init__(
        self, tp: TopicPartition, *, idempotent: bool, max_in_flight: int, backoff: Backoff
    ) -> None:
        self.tp = tp
        self.retry_at = 0.0
        self.trouble: KafkaError | None = None
        self.generation_wanted = 1 if idempotent else 0
        self._idempotent = idempotent
        self._max_in_flight = max_in_flight
        self._backoff = backoff
        self._identity = None if idempotent else NO_IDENTITY
        self._sequence = 0
        self._is_known = False
        self._draining = False
        self._queue: deque[OutboxEntry] = deque()
        self._flight: deque[OutboxEntry] = deque()
        self._doomed: deque[OutboxEntry] = deque()
        self._address: Address | None = None
        self._acked_at = 0.0
        self._acked_wall_ms = 0
        self._acked_event_ms = 0

    @property
    def is_empty(self) -> bool:
        """Whether every batch is delivered."""
        return not (self._queue or self._flight or self._doomed)

    @property
    def wants_identity(self) -> bool:
        """Whether this partition has batches to send but no producer id."""
        return self._identity is None and bool(self._queue)

    def __iter__(self) -> Iterator[OutboxEntry]:
        """Yields every undelivered batch, in send order."""
        yield from self._flight
        yield from self._queue
        yield from self._doomed

    def add(self, entry: OutboxEntry) -> None:
        """Queues a batch. If a refused batch and the batches after it wait to go back to the user
        of the producer, the new batch is not sent, and goes back after them.
        """
        (self._doomed if self._doomed else self._queue).append(entry)

    def identify(self, identity: Identity) -> None:
        """Sets an identity that this partition has not had yet. Its sequences begin at 0."""
        assert identity.generation >= self.generation_wanted, "an identity is used once"
        self._identity = identity
        self._sequence, self._is_known = 0, False

    def next_entry(self, address: Address, now: float, wall_ms: int) -> OutboxEntry | None:
        """Returns the batch that may be sent to the leader at `address` now, or None."""
        if self._draining or self._identity is None or now < self.retry_at:
            return None
        sent = sum(entry.state is BatchState.SENT for entry in self._flight)
        if sent and address != self._address:
            return None  # wait for the answers of the previous leader
        window = self._window(address, now, wall_ms)
        if sent >= window:
            return None
        entry = next((each for each in self._flight if each.state is BatchState.UNSENT), None)
        if entry is None:
            if not self._queue or len(self._flight) >= window:
                return None
            entry = self._queue[0]
        if self._idempotent and sent and _is_old(entry.encoded.max_timestamp, wall_ms):
            return None
        return entry

    def send(self, entry: OutboxEntry, address: Address) -> bytes:
        """Marks a batch as sent. Returns its header, which has the same bytes at every retry."""
        if self._queue and entry is self._queue[0]:
            self._flight.append(self._queue.popleft())
        if entry.header is None:
            entry.header = self._seal(entry.encoded)
        entry.state = BatchState.SENT
        entry.attempts += 1
        self._address = address
        return entry.header

    def answer(
        self,
        entry: OutboxEntry,
        code: int,
        base_offset: int,
        message: str | None,
        now: float,
        wall_ms: int,
    ) -> bool:
        """Processes the answer to a sent batch. Returns False if the answer shows that the
        partition may have another leader now."""
        known_code = code_of(code)
        if known_code in ACKNOWLEDGED:
            is_told = code == 0 and base_offset <= OFFSET_MAX
            self._acknowledge(entry, base_offset if is_told else -1, now, wall_ms)
            return True
        error = error_for(code, message)
        self.trouble = error
        if now >= self.retry_at:  # a further refusal during a wait does not prolong the wait
            self.retry_at = now + self._backoff.next_s()
        if self._idempotent and known_code in IDENTITY_LOST:
            entry.state, self._draining = BatchState.REFUSED, True
        elif self._is_refused_for_good(entry, known_code):
            entry.state, entry.error, self._draining = BatchState.REFUSED, error, True
        else:
            entry.state = BatchState.UNSENT
            return False
        return True

    def lost(self, entry: OutboxEntry) -> None:
        """Notes that the connection on which a batch was sent is gone, and that the broker may have
        the batch."""
        entry.state, self._is_known = BatchState.UNSENT, False

    def settle(self) -> list[Delivery]:
        """Returns the deliveries for the user of the producer. First come the acknowledged batches
        that no unacknowledged batch precedes. Then come the batches that are given back without an
        acknowledgement."""
        found: list[Delivery] = []
        while self._flight and self._flight[0].state is BatchState.ACKED:
            entry = self._flight.popleft()
            found.append(Delivery(entry, self.tp, entry.base_offset, None, entry.attempts))
        if self._draining and not any(each.state is BatchState.SENT for each in self._flight):
            self._end_drain()
        if self._doomed and not self._flight and not self._queue:
            first = self._doomed.popleft()
            found.append(Delivery(first, self.tp, -1, first.error, first.attempts))
            drained = Drained(self.tp)
            found += [Delivery(each, self.tp, -1, drained, each.attempts) for each in self._doomed]
            self._doomed.clear()
        return found

    def _end_drain(self) -> None:
        """Ends the drain (see the module): asks for another producer id, under which the batches
        are sent again. Must only be called when no batch waits for an answer."""
        entries = [*self._flight, *self._queue]
        refused = next((i for i, each in enumerate(entries) if each.error), len(entries))
        self._flight.clear()
        self._queue = deque(entries[:refused])
        self._doomed.extendleft(reversed(entries[refused:]))
        for entry in self._queue:
            entry.start_again()
        self._draining = False
        if self._idempotent and self._identity is not None:
            self.generation_wanted = self._identity.generation + 1
            self._identity = None

    def _acknowledge(self, entry: OutboxEntry, base_offset: int, now: float, wall_ms: int) -> None:
        entry.state, entry.base_offset = BatchState.ACKED, base_offset
        self._is_known = True
        self._acked_at, self._acked_wall_ms = now, wall_ms
        self._acked_event_ms = entry.encoded.max_timestamp
        self._backoff.reset()
        self.trouble = None

    def _window(self, address: Address, now: float, wall_ms: int) -> int:
        """Returns how many batches may at most be in flight now (sent, but not answered yet)."""
        if not self._idempotent:
            return self._max_in_flight
        idle_ms = max((now - self._acked_at) * 1000, wall_ms - self._acked_wall_ms)
        if address != self._address or idle_ms > IDLE_S * 1000:
            self._is_known = False
        if not self._is_known or _is_old(self._acked_event_ms, wall_ms):
            return 1
        sent = (each for each in self._flight if each.state is BatchState.SENT)
        if any(_is_old(each.encoded.max_timestamp, wall_ms) for each in sent):
            return 1
        return self._max_in_flight

    def _seal(self, encoded: EncodedBatch) -> bytes:
        assert self._identity is not None, "a batch is sealed under an identity"
        if not self._idempotent:
            return seal_header(encoded)
        sequence = self._sequence
        self._sequence = next_sequence(sequence, encoded.count)
        return seal_header(encoded, self._identity.producer_id, self._identity.epoch, sequence)

    def _is_refused_for_good(self, entry: OutboxEntry, code: ErrorCode) -> bool:
        """Returns whether a retry of the batch is useless after the error `code`. A batch that has
        arrived damaged `CORRUPT_TIMES_MAX` times is not sent again: its bytes were probably damaged
        before they were sent."""
        if code is ErrorCode.CORRUPT_MESSAGE:
            entry.corrupt_times += 1
            return entry.corrupt_times >= CORRUPT_TIMES_MAX
        return code in REFUSED_FOR_GOOD


def _is_old(event_ms: int, wall_ms: int) -> bool:
    return wall_ms - event_ms > EVENT_AGE_MAX_MS
