"""A run: successive Produce requests on one connection, each of which differs from an earlier
request on this connection only in its correlation id and records. Their batches are appended one by
one, and the requests are answered together.

A run lasts for one turn of the loop at most, and ends at the first request that cannot join it. A
connection sends its answers in the order of its requests; the answers of a run are sent as one
piece. With acks=1, the answers are sent at the end of the turn. With acks=all, all requests of a
run are for the same partition, their batches are flushed together, and the answers are sent when
the high watermark has passed all these batches.

The following requests do not join a run, but take the general path in `skidway.broker.api.produce`:
requests whose batch is a duplicate or must be refused, requests whose log cannot be written, and
requests to a topic with LogAppendTime or with a `min.insync.replicas` above 1.
"""

from __future__ import annotations

from typing import Final

from skidway.broker.api.produce_append import append
from skidway.broker.api.produce_shape import Shape, Shapes
from skidway.broker.broker import Broker
from skidway.broker.log.files import StorageFailed
from skidway.broker.log.producer_id import NotThisProducersId
from skidway.broker.log.producer_state import SequenceRefused
from skidway.broker.log.validation import BatchRefused
from skidway.broker.network.connection import Connection
from skidway.kafka.errors import ErrorCode
from skidway.kafka.protocol.produce import ProduceResult, write_response
from skidway.kafka.types import TopicPartition

ALL: Final = -1
_UNKNOWN_OFFSET: Final = -1
_Part = tuple[Shape, int, int, int]
"""A request of a run: (shape, correlation id, base offset, offset after the last record)."""


class Alike:
    """What this module stores for a connection: the shapes of its requests (see `produce_shape`),
    all of which the client may send; the run of this turn (requests that will be answered
    together); and when the client's login ends (`access.logins`; inf without one)."""

    __slots__ = ("ends_at", "run", "shapes")

    def __init__(self, ends_at: float) -> None:
        self.shapes = Shapes()
        self.run: Run | None = None
        self.ends_at = ends_at


class Run:
    """Valid requests that one connection has sent in one turn, in their order. All of them are
    answered together."""

    __slots__ = ("_alike", "_broker", "_connection", "_parts", "_slot", "acks", "shape")

    def __init__(self, broker: Broker, connection: Connection, alike: Alike, shape: Shape) -> None:
        self.shape = shape
        self.acks = shape.acks
        self._broker = broker
        self._connection = connection
        self._alike = alike
        self._slot = connection.reserve()
        self._parts: list[_Part] = []

    def takes(self, shape: Shape) -> bool:
        """Returns whether a request of this shape (see `produce_shape`) may join the run.

        With acks=all, only requests to the same partition are answered together, so that no answer
        waits for the flush of another log.
        """
        return shape is self.shape or (shape.acks == self.acks != ALL)

    def add(self, part: _Part) -> None:
        """Adds a request whose batch has been appended."""
        if self._parts:
            self._connection.reserve_in(self._slot)
        self._parts.append(part)

    def answer_written(self, broker: Broker) -> None:
        """Called at the end of the loop's turn, when the batches are written to files. With
        acks=all, lets the requests wait for the high watermark. Otherwise answers them."""
        self._alike.run = None
        if self._connection.closed:
            return
        if self.acks == ALL:
            self._await_watermark(broker)
        elif self.acks == 0:
            self._answer_nothing()
        else:
            self._send([_when_written(broker, part) for part in self._parts])

    def try_complete(self, changed: TopicPartition) -> bool:
        """Answers the requests, and returns True, if the high watermark has passed all their
        batches, or can no longer pass them (for example because this broker no longer serves the
        partition)."""
        replica, end = self.shape.replica, self._parts[-1][3]
        if replica.served and replica.log.written.offset >= end > replica.offset:
            return False
        self.expire()
        return True

    def expire(self) -> None:
        """Answers now, with an error (normally REQUEST_TIMED_OUT) for each batch that the high
        watermark has not passed."""
        if not self._connection.closed:
            self._send([self._at_watermark(part) for part in self._parts])

    def abandon(self) -> None:
        """Closes the connection instead of answering."""
        self._broker.loop.drop(self._connection, "failed")

    def _answer_nothing(self) -> None:
        if any(end > shape.replica.log.written.offset for shape, _, _, end in self._parts):
            self._broker.loop.drop(self._connection, "acks_0_refused")
        else:
            self._broker.loop.fill(self._connection, self._slot, ())

    def _await_watermark(self, broker: Broker) -> None:
        replica = self.shape.replica
        if self.try_complete(replica.partition):
            return
        deadline = broker.loop.now + max(self.shape.timeout_ms, 0) / 1000
        broker.purgatory.watch(self, (replica.partition,), deadline)
        broker.partitions.flush_if_due(replica)

    def _at_watermark(self, part: _Part) -> bytes:
        shape, correlation_id, base, end = part
        replica = shape.replica
        if replica.offset >= end:
            return shape.answer(correlation_id, base)
        if end > replica.log.written.offset:
            return _not_written(self._broker, part)
        if not replica.served:
            return _failed(part, self._broker.why_not_served(*replica.partition))
        return _failed(part, ErrorCode.REQUEST_TIMED_OUT)

    def _send(self, answers: list[bytes]) -> None:
        self._broker.loop.fill(self._connection, self._slot, (b"".join(answers),))


def handle_alike(broker: Broker, connection: Connection, frame: memoryview) -> bool:
    """Appends the batch of the request in `frame` and returns True, if the request is valid and
    differs from an earlier request on this connection only in its correlation id and records.
    Otherwise ends the connection's run, appends nothing and returns False, so that the general path
    can handle the request.
    """
    alike = connection.memo
    if not isinstance(alike, Alike):
        return False
    run, alike.run = alike.run, None
    matched = alike.shapes.match(frame)
    if matched is None or broker.stopping or broker.loop.now >= alike.ends_at:
        return False
    shape, correlation_id, records = matched
    replica = shape.replica
    if not replica.served:
        return False
    config = replica.log.config
    if not config.contiguous or config.append_time or config.min_insync_replicas > 1:
        return False
    try:
        base, last, duplicate = append(broker, connection, replica, records, shape.version)
    except (BatchRefused, SequenceRefused, NotThisProducersId, StorageFailed):
        return False
    if duplicate:
        return False
    if run is None or not run.takes(shape):
        run = Run(broker, connection, alike, shape)
        broker.appended.append(run)
    run.add((shape, correlation_id, base, last + 1))
    alike.run = run
    return True


def _when_written(broker: Broker, part: _Part) -> bytes:
    shape, correlation_id, base, end = part
    if end > shape.replica.log.written.offset:
        return _not_written(broker, part)
    return shape.answer(correlation_id, base)


def _not_written(broker: Broker, part: _Part) -> bytes:
    words = broker.not_written(part[0].replica.partition)
    return _failed(part, ErrorCode.KAFKA_STORAGE_ERROR, words)


def _failed(part: _Part, code: ErrorCode, words: str | None = None) -> bytes:
    shape, correlation_id, _, _ = part
    topic, partition = shape.replica.partition
    result = ProduceResult(topic, partition, code, _UNKNOWN_OFFSET, error_message=words)
    return bytes(write_response(correlation_id, shape.version, [result]))
