"""Publishes numbered messages from a durable outbox, in order, and reads back the newest message.

The owner of an outbox is the program whose messages are in the outbox. One transaction puts a
message into the outbox and stores the owner's progress: how far the owner had counted when it made
the message. The message leaves the outbox once every in-sync replica has it. After a crash, all
messages that are still in the outbox are sent again. A message that is sent twice has the same key
and the same content, and the collector counts it once.

At start the owner reads its newest message back from the audit topic. If that message is newer than
the owner's state, the state is an old copy: the machine was restored or cloned. In this case the
owner stops, because its new messages would have the numbers of messages that were published
already.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
import pyarrow as pa
from prometheus_client import Counter

from skidway import log
from skidway.audit.signing.keys import KeyRefused
from skidway.audit.signing.signature import HEADER as SIGNATURE
from skidway.audit.signing.signer import Signer
from skidway.audit.topic import messages, topic
from skidway.audit.topic.messages import Delta, Heartbeat, MessageRefused, Seal, Tier
from skidway.clock import Clock
from skidway.dataclass import dataclass
from skidway.errors import SkidwayError, StateRefused
from skidway.kafka import columns
from skidway.kafka.batch import EncodedBatch
from skidway.kafka.client import Client, Drained, Fetcher, Producer
from skidway.kafka.columns import OneHeader
from skidway.kafka.errors import KafkaError
from skidway.kafka.types import TopicPartition
from skidway.rare_lines import RareLines

LIMIT_BYTES = 900_000
ENTRIES_MAX = 500
"""The publisher reads at most this many entries from the outbox at a time."""

FIRST_LOOK_OFFSETS = 1_000
"""A program searches a partition backwards for its own newest message. The first step reads this
many offsets, and each further step reads twice as many as the step before."""

_HEARTBEAT = "heartbeat"

_log = log.get(__name__)
_refused = RareLines("message_refused")

_PUBLISHED = Counter(
    "skidway_audit_messages_published_total", "Audit messages acknowledged by all in-sync replicas."
)


class Outbox(Protocol):
    """Durable messages that wait to be published, in the order of their sequence numbers."""

    def pending(self, after: int, limit: int) -> Sequence[tuple[int, bytes]]:
        """Returns at most `limit` entries with sequence numbers above `after`, in order, each as
        (sequence number, message)."""
        ...

    def published(self, up_to: int) -> None:
        """Deletes the entries up to and including this sequence number."""
        ...


class MemoryOutbox:
    """An outbox in memory. If the program ends early, the messages in the outbox are lost. So this
    class is only for messages that are also stored elsewhere, or that a person can send again.
    """

    def __init__(self, values: Sequence[bytes]) -> None:
        self._waiting = list(enumerate(values))

    def pending(self, after: int, limit: int) -> Sequence[tuple[int, bytes]]:
        """See Outbox."""
        return [each for each in self._waiting if each[0] > after][:limit]

    def published(self, up_to: int) -> None:
        self._waiting = [each for each in self._waiting if each[0] > up_to]


class PublishRefused(SkidwayError):
    """Raised if the cluster refuses an audit message permanently. The outbox still has the
    message."""


class Publisher:
    """Sends the messages of an outbox. Only one thread may use a publisher, and only the publisher
    may use its producer.
    """

    def __init__(
        self,
        producer: Producer,
        outbox: Outbox,
        partition: TopicPartition,
        clock: Clock,
        signer: Signer | None = None,
    ) -> None:
        """signer: signs the messages; None if this sender has no key."""
        self._producer = producer
        self._outbox = outbox
        self._partition = partition
        self._clock = clock
        self._signer = signer
        self._sent = self._published = -1

    def poll(self, timeout_ms: int = 0, *wake: int) -> None:
        """Sends waiting messages, and waits at most `timeout_ms` for acknowledgements. While the
        signer has no usable key, messages wait.

        wake: further file descriptors; the wait also ends when one of them becomes readable. Raises
        PublishRefused.
        """
        if self._signer is None or self._signer.refusal is None:
            self._send()
        refusal: KafkaError | None = None
        for delivery in self._producer.poll(timeout_ms, *wake):
            if delivery.error is None:
                self._acknowledged(delivery.token)
            else:
                self._sent = self._published  # the next `_send` sends unpublished messages again
                if not isinstance(delivery.error, Drained):
                    refusal = delivery.error
        if refusal is not None:
            raise PublishRefused(f"{self._partition.topic} refuses an audit message: {refusal}")

    @property
    def is_idle(self) -> bool:
        """Whether everything in the outbox is published."""
        return self._sent <= self._published and not self._outbox.pending(self._sent, 1)

    def flush(self, timeout_s: float) -> bool:
        """Publishes waiting messages until all are published or `timeout_s` has passed. Returns
        whether all are published. Raises PublishRefused."""
        deadline = self._clock.monotonic() + timeout_s
        while not self.is_idle and self._clock.monotonic() < deadline:
            self.poll(100)
        return self.is_idle

    def _send(self) -> None:
        while self._producer.has_room:
            entries = self._outbox.pending(self._sent, ENTRIES_MAX)
            if not entries:
                return
            signature_bytes = 0 if self._signer is None else self._signer.signature_bytes
            for last, values in _batches(entries, signature_bytes):
                if not self._producer.has_room:
                    return
                batch = batch_of(values, self._clock.time_ms(), self._signer)
                self._producer.send(self._partition, batch, last)
                self._sent = last

    def _acknowledged(self, token: object) -> None:
        assert isinstance(token, int)
        _PUBLISHED.inc(max(0, token - max(self._published, 0)))
        self._published = token
        self._outbox.published(token)


class Heartbeats:
    """Sends heartbeats and notes, with a producer (a client of the brokers) that nothing else uses.
    A heartbeat contains the number of the last numbered message, so it must arrive after that
    message. Therefore heartbeats are sent only while the publisher's outbox is empty."""

    def __init__(
        self,
        producer: Producer,
        publisher: Publisher,
        partition: TopicPartition,
        clock: Clock,
        signer: Signer | None = None,
    ) -> None:
        self._producer = producer
        self._publisher = publisher
        self._partition = partition
        self._clock = clock
        self._signer = signer

    def poll(self, due: Callable[[], bytes | None]) -> None:
        """Sends the heartbeat or note that `due` returns; nothing if `due` returns None. Does not
        call `due` while an earlier heartbeat or numbered messages are not acknowledged. If the
        cluster refuses a heartbeat, this object does not send it again."""
        self._producer.poll(0)
        if self._producer.pending_count or not self._publisher.is_idle:
            return
        message = due()
        if message is not None and self._producer.has_room:
            batch = batch_of([message], self._clock.time_ms(), signer_or_none(self._signer))
            self._producer.send(self._partition, batch, _HEARTBEAT)


def batch_of(values: Sequence[bytes], time_ms: int, signer: Signer | None) -> EncodedBatch:
    """Returns the messages as one batch. signer: signs them; None if nobody signs. Raises
    KeyRefused if the signer has no usable key."""
    header = None
    if signer is not None:
        header = OneHeader(SIGNATURE, pa.array(signer.sign(values), pa.binary()))
    times = np.full(len(values), time_ms, np.int64)
    return columns.encode(pa.array(values, pa.binary()), times, header=header)


def signer_or_none(signer: Signer | None) -> Signer | None:
    """Returns the signer; None if it has no usable key. A heartbeat or a note is then sent without
    a signature, so that the collector can say that this sender does not sign."""
    return signer if signer is not None and signer.refusal is None else None


@dataclass(frozen=True, slots=True)
class Newest:
    """Epoch, number and time of the newest message of a producer. needs_key: whether it was signed,
    and the program has no key now."""

    epoch: int
    number: int
    time_ms: int
    needs_key: bool = False


def newest_own(
    client: Client,
    fetcher: Fetcher,
    who: tuple[Tier, str],
    clock: Clock,
    signer: Signer | None = None,
) -> Newest | None:
    """The message of the sender `who` (tier and producer) with the highest (epoch, number).
    Searches the audit topic backwards from its end.

    signer: only messages that this signer has signed count; None if the sender has no key. Returns
    None if the topic has no message of this sender or does not exist. Raises KeyRefused if the
    signer has no usable key.
    """
    found = [
        _newest_in(client, fetcher, tp, offsets, _Own(*who, signer), clock)
        for tp, offsets in topic.bounds(client, [messages.TOPIC]).items()
    ]
    known = [newest for newest in found if newest is not None]
    return max(known, key=lambda x: (x.epoch, x.number), default=None)


def check_restored(newest: Newest | None, epoch: int, number: int, state: str) -> None:
    """Raises StateRefused if the program has published a message that is newer than its state, and
    KeyRefused if it has signed in this epoch, and has no key any more. newest: the program's newest
    message on the topic.

    epoch, number: those of the newest message that the state knows. state: words for the error's
    text that name the state and its path.
    """
    if newest is not None and newest.needs_key and newest.epoch == epoch:
        raise KeyRefused(
            f"audit.key.location is not set, but {state} belongs to a program that has signed its"
            " messages to the audit. Without a signature, the audit would refuse further ones, and"
            " never know what they counted. Set it again, or begin a new epoch."
        )
    if newest is None or (newest.epoch, newest.number) <= (epoch, number):
        return
    raise StateRefused(
        f"{state} is an older copy of itself: it knows of message {number} of epoch {epoch}, but"
        f" message {newest.number} of epoch {newest.epoch} was already published. What happened"
        " between is unknown to it, so it is not used until an operator decides."
    )


def _batches(
    entries: Sequence[tuple[int, bytes]], signature_bytes: int
) -> list[tuple[int, list[bytes]]]:
    sizes = np.array([len(value) + signature_bytes for _, value in entries], np.int64)
    batches, start = [], 0
    for end in columns.cuts(sizes, LIMIT_BYTES):
        batches.append((entries[end - 1][0], [value for _, value in entries[start:end]]))
        start = end
    return batches


def _newest_in(
    client: Client,
    fetcher: Fetcher,
    tp: TopicPartition,
    offsets: tuple[int, int],
    own: _Own,
    clock: Clock,
) -> Newest | None:
    """Returns the newest message of a sender in one partition, or None if there is none. Searches
    backwards from the end of the partition; each step reads twice as many offsets as the step
    before."""
    (first, end), step = offsets, FIRST_LOOK_OFFSETS
    while end > first:
        begin = max(first, end - step)
        found = [
            newest
            for record in topic.read(client, fetcher, {tp: (begin, end)}, clock)
            if (newest := own.newest(record)) is not None
        ]
        if found:
            return max(found, key=lambda x: (x.epoch, x.number))
        end, step = begin, step * 2
    return None


@dataclass(frozen=True, slots=True)
class _Own:
    """Recognizes the messages of one sender."""

    tier: Tier
    producer: str
    signer: Signer | None

    def newest(self, record: topic.Record) -> Newest | None:
        """Returns what a message says about its number, if it is one of this sender."""
        if self.producer.encode() not in record.value:  # saves decoding other producers' messages
            return None
        if self.signer is not None and not self.signer.is_own(record.value, record.signature):
            return None
        try:
            message = messages.decode(record.value)
        except MessageRefused as error:
            _refused.tell(self.producer, reason=str(error))
            return None
        if not isinstance(message, Delta | Seal | Heartbeat):
            return None
        if (message.sender.tier, message.sender.producer) != (self.tier, self.producer):
            return None
        needs_key = self.signer is None and record.signature is not None
        return Newest(message.sender.epoch, message.number, message.time_ms, needs_key)
