"""Owns the batches that are being sent. Gives the batches to the producer in order. When a broker
acknowledges a batch, notes this for the batch's flights. A flight is an intent that is being sent.
If the producer gives a batch back, sends it again; if a broker refuses a batch, halves it.

The producer keeps the order, and repeats failed requests. Two kinds of batches come back to this
module: a batch that the broker refused, and the later batches that the producer gave back because
of the refusal. A refused batch is halved until the refused record is alone. This record and its
flight wait until the agent knows whether the record arrived (agent.delivery.refused). The other
records of the batches that came back are sent again in their order. All copies of a record are
equal. So readers that drop repeats get the same counts, however the records are divided into
batches.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np

from skidway.agent.batches.press import Pressed
from skidway.agent.values.room import Room
from skidway.agent.values.tracked import Flight
from skidway.audit.counts.counts import Counts
from skidway.audit.topic.messages import Certainty
from skidway.dataclass import dataclass
from skidway.errors import ConfigurationRefused
from skidway.kafka import codecs
from skidway.kafka.batch import EncodedBatch, seal
from skidway.kafka.client import BufferFull, Delivery, Drained
from skidway.kafka.columns import Origins, decode, encode
from skidway.kafka.errors import ErrorCode, KafkaError
from skidway.kafka.source import Source
from skidway.kafka.types import TopicPartition


class Sink(Protocol):
    """Those methods of a producer that `Outbound` calls. Tests and models have their own
    implementations.
    """

    @property
    def has_room(self) -> bool:
        """Whether another batch may be sent."""
        ...

    def send(self, tp: TopicPartition, encoded: EncodedBatch, token: object) -> None:
        """Queues a batch for sending. The batch's delivery (its result) will have this token.
        Raises BufferFull if the producer accepts no further batch now."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Parcel:
    """A batch, and the flights that have records in it.

    topic: the data topic of the flights' files; the batch may belong to its rejected topic.
    was_sent: whether the records were sent before, in this batch or in a larger batch. Records that
    were sent before may have arrived.
    """

    tp: TopicPartition
    encoded: EncodedBatch
    flights: tuple[Flight, ...]
    topic: str
    source: Source
    is_rejected: bool
    was_sent: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Refusal:
    """A record that the broker refuses. The record's flight waits until the agent knows whether the
    record arrived. Positions are in bytes.

    was_sent: whether the record was sent before, so that an earlier attempt may have arrived.
    counts: what the record adds to its flight's outcome. is_rejected: whether that outcome counts
    the record as rejected by the agent.
    """

    tp: TopicPartition
    flight: Flight
    first: int
    length: int
    reason: str
    was_sent: bool
    counts: Counts
    is_rejected: bool

    @property
    def file(self) -> int:
        """The file id."""
        return self.flight.intent.file

    @property
    def end(self) -> int:
        """The position in the file after the record's last byte."""
        return self.first + self.length

    def land(self) -> None:
        """Notes that the brokers have the record, so the flight no longer waits for it. The
        flight's outcome already counts the record."""
        self.flight.waiting -= 1

    def set_apart(self, certainty: Certainty) -> None:
        """Counts the record's bytes in its flight as lost or uncertain, and no longer as
        acknowledged or rejected.
        """
        flight, outcome = self.flight, self.flight.outcome
        assert outcome is not None
        for key, sums in self.counts.items():
            outcome.counts.put(key, -sums)
        if self.is_rejected:
            left = replace(outcome, rejected_bytes=outcome.rejected_bytes - self.length)
        else:
            left = replace(outcome, delivered_bytes=outcome.delivered_bytes - self.length)
        flight.outcome = left
        if certainty is Certainty.LOST:
            flight.lost_bytes += self.length
        else:
            flight.uncertain_bytes += self.length
        flight.waiting -= 1


@dataclass(frozen=True, slots=True)
class Departure:
    """A batch that was just given to the producer. From now on a broker may have the batch.
    intents: the sequence numbers of the intents that have records in the batch.
    """

    tp: TopicPartition
    intents: tuple[int, ...]


@dataclass(slots=True)
class Settled:
    """What a call of `settle` found in its deliveries. offsets: the last acknowledged offset of
    each partition. refusals: the single records that a broker refused. acknowledged: how many
    batches were acknowledged.
    """

    offsets: dict[TopicPartition, int]
    refusals: list[Refusal]
    acknowledged: int = 0


class Outbound:
    """Owns every parcel (a batch, with the intents of its records) from the moment at which its
    batch is made until the brokers have acknowledged or refused the batch. Knows how many bytes the
    parcels of each topic have.

    The parcels of all topics wait in one queue. If a topic gets no acknowledgements, its parcels
    leave the queue nevertheless, because the producer has room for them: `room` limits how many
    bytes a topic has in the queue and in the producer together.
    """

    def __init__(self, sink: Sink, limit_bytes: int) -> None:
        """limit_bytes: at how many bytes of unacknowledged batches the agent stops reading."""
        self._sink = sink
        self._limit_bytes = limit_bytes
        self._queue: deque[Parcel] = deque()
        self._held: Counter[str] = Counter()  # by data topic: the bytes of its parcels

    @property
    def has_room(self) -> bool:
        """Whether the caller may make more batches: no batch waits in this object, and the producer
        accepts more batches.
        """
        return not self._queue and self._sink.has_room

    def room(self, stopped: Collection[str] = ()) -> Room:
        """Returns how many bytes of each topic's files the next turn may read. stopped: the topics
        of which it reads nothing."""
        return Room(self._limit_bytes - self._held.total(), self._held, stopped)

    @property
    def held_bytes(self) -> dict[str, int]:
        """For each data topic with unacknowledged batches, the bytes of these batches, including
        those of its rejected topic."""
        return {topic: size for topic, size in self._held.items() if size}

    def add(
        self, pressed: Pressed, flights: Sequence[Flight], sources: tuple[Source, Source]
    ) -> None:
        """Takes over the batches in `pressed`, which were made from the intents of these flights.
        (A flight is an intent that is being sent.) `pressed` also has one outcome for each flight.

        sources: the data topic and its rejected topic.
        """
        for flight, outcome in zip(flights, pressed.outcomes, strict=True):
            flight.outcome = outcome
        for batch in pressed.batches:
            mine = tuple(flights[index] for index in batch.readings)
            for flight in mine:
                flight.waiting += 1
            source = sources[batch.is_rejected]
            topic = sources[0].topic
            parcel = Parcel(batch.tp, batch.encoded, mine, topic, source, batch.is_rejected)
            self._held[topic] += batch.encoded.size_bytes
            self._queue.append(parcel)

    def pump(self) -> list[Departure]:
        """Gives the producer as many batches as it accepts, and returns a `Departure` for each of
        them: the batch's partition, and the intents that have records in the batch."""
        gone: list[Departure] = []
        while self._queue and self._sink.has_room:
            parcel = self._queue[0]
            try:
                self._sink.send(parcel.tp, parcel.encoded, parcel)
            except BufferFull:
                break
            self._queue.popleft()
            mine = tuple(flight.intent.sequence for flight in parcel.flights)
            gone.append(Departure(parcel.tp, mine))
        return gone

    def settle(self, deliveries: Iterable[Delivery]) -> Settled:
        """Notes the result of each delivery (the producer's answer about one batch). Some parcels
        (batches with their flights) have to be sent again: those that the producer gave back, and
        the halves of those that a broker refused. These parcels go to the head of the queue, in
        their order. Raises ConfigurationRefused if a broker refuses the compression.
        """
        settled = Settled({}, [])
        again: list[Parcel] = []
        for delivery in deliveries:
            parcel = delivery.token
            assert isinstance(parcel, Parcel)
            self._held[parcel.topic] -= parcel.encoded.size_bytes
            if delivery.error is None:
                settled.acknowledged += 1
                if delivery.base_offset >= 0:
                    last = delivery.base_offset + parcel.encoded.count - 1
                    settled.offsets[parcel.tp] = last
                _land(parcel)
            elif isinstance(delivery.error, Drained):
                again.append(replace(parcel, was_sent=parcel.was_sent or delivery.attempts > 0))
            else:
                was_sent = parcel.was_sent or delivery.attempts > 1
                again += self._refused(replace(parcel, was_sent=was_sent), delivery.error, settled)
        for parcel in again:
            self._held[parcel.topic] += parcel.encoded.size_bytes
        self._queue.extendleft(reversed(again))
        return settled

    def _refused(self, parcel: Parcel, error: KafkaError, settled: Settled) -> list[Parcel]:
        if error.code is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE:
            raise ConfigurationRefused(
                f"compression.type: the brokers do not take it for {parcel.tp.topic}; "
                "nothing is lost, start again with another one"
            )
        if parcel.encoded.count > 1:
            return _halves(parcel)
        settled.refusals.append(_refusal(parcel, str(error)))
        return []


def _land(parcel: Parcel) -> None:
    for flight in parcel.flights:
        flight.waiting -= 1


def _halves(parcel: Parcel) -> list[Parcel]:
    """Divides a batch into two batches that together have the same records. Each flight then waits
    for the halves that contain its records.
    """
    rows = decode(memoryview(seal(parcel.encoded)))
    assert rows.origins is not None
    origins, middle = rows.origins, parcel.encoded.count // 2
    keys = None if rows.keys.null_count == len(rows.keys) else rows.keys
    halves = []
    for part in (slice(0, middle), slice(middle, parcel.encoded.count)):
        mine = _cut(origins, part)
        encoded = encode(
            rows.values[part],
            rows.timestamps[part],
            origins=mine,
            keys=None if keys is None else keys[part],
            codec=codecs.BY_NUMBER[parcel.encoded.codec],
        )
        flights = tuple(flight for flight in parcel.flights if _has(mine, flight))
        halves.append(replace(parcel, encoded=encoded, flights=flights))
    for half in halves:
        for flight in half.flights:
            flight.waiting += 1
    _land(parcel)
    return halves


def _cut(origins: Origins, part: slice) -> Origins:
    return Origins(
        origins.agent[part], origins.file[part], origins.first[part], origins.length[part]
    )


def _has(origins: Origins, flight: Flight) -> bool:
    intent = flight.intent
    inside = (origins.first >= intent.first) & (origins.first < intent.end)
    return bool(np.any(inside & (origins.file == intent.file)))


def _refusal(parcel: Parcel, reason: str) -> Refusal:
    """Returns the refusal of the only record of a parcel (a batch). To save memory, the refusal
    does not keep the record's bytes: many large records may be refused.
    """
    (flight,) = parcel.flights
    rows = decode(memoryview(seal(parcel.encoded)))
    origins, outcome = rows.origins, flight.outcome
    assert origins is not None
    assert outcome is not None
    counts = Counts(outcome.counts.bucket_ms)
    counts.add(parcel.source, rows.timestamps, origins)
    first, length = int(origins.first[0]), int(origins.length[0])
    return Refusal(
        parcel.tp, flight, first, length, reason, parcel.was_sent, counts, parcel.is_rejected
    )
