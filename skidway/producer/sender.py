"""The thread that owns the producer's connections. It takes ready batches from the buffer, sends
them, and reports the outcome of each batch."""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable, Iterable
from typing import Protocol

from skidway import log
from skidway.kafka import client as core
from skidway.kafka.batch import EncodedBatch
from skidway.kafka.codecs import Codec
from skidway.kafka.errors import ErrorCode, KafkaError
from skidway.kafka.types import TopicPartition
from skidway.producer.accumulator import PendingBatch

LOOK_EVERY_S = 1.0
TOO_LARGE = frozenset({ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE})

_log = log.get(__name__)


class Batches(Protocol):
    """Supplies batches to the sender's thread, and receives the outcome of each batch. Only the
    sender's thread calls the methods."""

    def ready(self) -> Iterable[PendingBatch]:
        """Returns the batches that are ready to be sent. The buffer no longer contains them."""
        ...

    def next_deadline(self) -> float:
        """Returns the time at which the next batch will be ready."""
        ...

    def delivered(self, batch: PendingBatch, base_offset: int) -> None:
        """Notes that the broker has the batch."""
        ...

    def failed(self, batch: PendingBatch, error: Exception) -> None:
        """Notes that the broker has refused the batch, and that the batch is not sent again."""
        ...

    def died(self, error: BaseException) -> None:
        """Notes that the sender's thread has failed with `error`: nothing will be sent any more."""
        ...


class Outgoing:
    """Encodes and sends the batches of one producer, and retries each batch until it is delivered
    or refused for good. Halves a batch if the broker finds it too large.
    """

    def __init__(self, producer: core.Producer, batches: Batches, codec: Codec) -> None:
        self._producer = producer
        self._batches = batches
        self._codec = codec

    @property
    def troubles(self) -> dict[TopicPartition, KafkaError]:
        """The partitions whose batches are being retried, each with the last error."""
        return self._producer.troubles

    def turn(self, timeout_s: float, wake: int) -> None:
        """Sends the ready batches. Then waits at most `timeout_s` for a result of these or of
        earlier batches, and handles the results that have come."""
        for batch in self._batches.ready():
            self._send(batch)
        for delivery in self._producer.poll(math.ceil(max(timeout_s, 0.0) * 1000), wake):
            self._take(delivery)

    def close(self) -> None:
        """Stops sending. Undelivered batches are dropped."""
        self._producer.close()

    def _send(self, batch: PendingBatch) -> None:
        encoded = batch.encode(self._codec)
        self._producer.send(batch.tp, encoded, (batch, encoded))

    def _take(self, delivery: core.Delivery) -> None:
        assert isinstance(delivery.token, tuple), "as it was sent"
        batch: PendingBatch
        encoded: EncodedBatch
        batch, encoded = delivery.token
        error = delivery.error
        if error is None:
            self._batches.delivered(batch, delivery.base_offset)
        elif isinstance(error, core.Drained):
            self._producer.send(batch.tp, encoded, delivery.token)
        elif error.code in TOO_LARGE and len(batch) > 1:
            for half in batch.halves():
                self._send(half)
        else:
            self._batches.failed(batch, error)


class Sender:
    """Runs an `Outgoing` on its own thread until it is stopped."""

    def __init__(self, connect: Callable[[], tuple[core.Client, Outgoing]], batches: Batches):
        self._connect = connect
        self._batches = batches
        self._wake = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        # `stop` closes the eventfd, and a file that is opened later may get the same descriptor
        # number. The lock prevents a late `wake` from writing to that file.
        self._wake_lock = threading.Lock()
        self._stopping = False
        self._ended = threading.Event()
        # Each turn stores a new dict here. A stored dict never changes, so other threads can read
        # it.
        self._troubles: dict[TopicPartition, KafkaError] = {}
        self._thread = threading.Thread(target=self._run, name="skidway-producer", daemon=True)
        self._thread.start()

    def wake(self) -> None:
        """Wakes the thread, so that it looks for ready batches. Any thread may call this method,
        even after `stop`."""
        with self._wake_lock:
            if self._wake >= 0:
                os.eventfd_write(self._wake, 1)

    def troubles(self) -> dict[TopicPartition, KafkaError]:
        """Returns the partitions whose batches are being retried, each with the last error."""
        return self._troubles

    def stop(self) -> None:
        """Ends the thread, even if batches are undelivered."""
        self._stopping = True
        self.wake()
        self._thread.join()
        with self._wake_lock:
            os.close(self._wake)
            self._wake = -1

    def _run(self) -> None:
        try:
            client, outgoing = self._connect()
            with client:
                while not self._stopping:
                    now = client.clock.monotonic()
                    wait_s = min(self._batches.next_deadline() - now, LOOK_EVERY_S)
                    outgoing.turn(wait_s, self._wake)
                    self._troubles = outgoing.troubles
                    self._hear()
                outgoing.close()
        except BaseException as error:  # noqa: BLE001 (the thread's outermost loop)
            _log.error("producer_thread_ended", why=repr(error))
            self._batches.died(error)

    def _hear(self) -> None:
        try:
            os.eventfd_read(self._wake)
        except BlockingIOError:
            pass
