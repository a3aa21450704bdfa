"""Produce (0), versions 3-9. Requests of versions 0-2 are answered with UNSUPPORTED_VERSION.

    acks 0    no answer; if there is an error, the broker closes the connection, so that the client
              notices the error
    acks 1    answered when the batch is written, at the end of the loop's turn
    acks -1   answered when the high watermark has passed the batch: then each in-sync replica has
              flushed it

A duplicate batch (KIP-98) is answered with the offset of the batch that is already stored (the
original). The broker answers only when the high watermark has passed the original, even with acks
1, because until then a crash could lose the original.

ApiVersions offers Produce from version 0 on. If it offered only versions 3-9, librdkafka before
2.11.1 would not compress its batches (KAFKA-18659).

This module is the general path of a request. A valid request that differs from an earlier request
on its connection only in its correlation id and records takes a shorter path,
`skidway.broker.api.produce_run`.

If a topic uses LogAppendTime, the broker writes the time of the append into each batch and computes
the CRC again. The answer contains this time.

Transactions are not supported: a request with a transactional id is refused.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from skidway.broker.api.errors import code_of
from skidway.broker.api.exchange import Exchange
from skidway.broker.api.produce_append import append
from skidway.broker.api.produce_run import ALL, Alike
from skidway.broker.api.produce_shape import learn
from skidway.broker.api.registration import Api
from skidway.broker.broker import Broker
from skidway.broker.log.files import StorageFailed
from skidway.broker.log.producer_id import NotThisProducersId
from skidway.broker.log.producer_state import SequenceRefused
from skidway.broker.log.validation import (
    BatchInvalid,
    BatchRefused,
    ReadOnlyTopic,
)
from skidway.broker.partitions.replica import NotEnoughReplicas, Replica
from skidway.kafka.errors import ErrorCode
from skidway.kafka.protocol.apis import PRODUCE_SERVED_SINCE, ApiKey
from skidway.kafka.protocol.frames import read_request_header
from skidway.kafka.protocol.produce import (
    Produce,
    ProduceResult,
    TopicRecords,
    parse_request,
    write_response,
)
from skidway.kafka.types import TopicPartition

Appended = tuple[Replica, int, int, bool]
"""An appended batch: (replica, base offset, offset after the last record, whether it is a
duplicate)."""
_UNKNOWN_OFFSET = -1
_REFUSALS = (BatchRefused, NotEnoughReplicas, SequenceRefused, NotThisProducersId, StorageFailed)


class Appending:
    """A request whose batches are appended to logs, but not yet written to files."""

    __slots__ = ("acks", "append_time_ms", "appended", "exchange", "refused", "timeout_ms")

    def __init__(self, exchange: Exchange, acks: int, timeout_ms: int) -> None:
        self.exchange = exchange
        self.acks = acks
        self.timeout_ms = timeout_ms
        self.appended: list[Appended] = []
        self.refused: list[ProduceResult] = []
        self.append_time_ms = -1

    def abandon(self) -> None:
        """Closes the connection instead of answering."""
        self.exchange.close("failed")

    def answer_written(self, broker: Broker) -> None:
        """Called at the end of the loop's turn, when the batches are written to files. If the
        request has acks -1, or if a batch is a duplicate, lets the request wait for the high
        watermark. Otherwise answers it."""
        if self.exchange.connection.closed:
            return
        if self.acks == 0:
            _answer_nothing(self)
        elif self.acks == ALL or any(duplicate for *_, duplicate in self.appended):
            _await_watermark(broker, self)
        else:
            _send(self, [_when_written(broker, each, self) for each in self.appended])


class DelayedProduce:
    """A request that waits until the high watermark has passed its records."""

    __slots__ = ("_broker", "_request")

    def __init__(self, broker: Broker, request: Appending) -> None:
        self._broker = broker
        self._request = request

    def try_complete(self, changed: TopicPartition) -> bool:
        """Answers the request, and returns True, if none of its batches waits any more. A batch
        waits until the high watermark of its partition has passed it, or can no longer pass it (for
        example because this broker no longer serves the partition).
        """
        return self.try_at_once()

    def try_at_once(self) -> bool:
        """Does the same as `try_complete`. Called directly when the request begins to wait."""
        if any(_waits(each) for each in self._request.appended):
            return False
        self._answer()
        return True

    def expire(self) -> None:
        """Answers now, with an error (normally REQUEST_TIMED_OUT) for each batch that the high
        watermark has not passed."""
        self._answer()

    def abandon(self) -> None:
        self._request.abandon()

    def _answer(self) -> None:
        request = self._request
        results = [_at_watermark(self._broker, each, request) for each in request.appended]
        _send(request, results)


def handle(broker: Broker, exchange: Exchange) -> None:
    """Appends every valid batch. The answer is sent at the end of the loop's turn, or when the high
    watermark has passed the batches."""
    request = parse_request(exchange.body, exchange.version)
    refusal = _refusal(exchange.version, request)
    appending = Appending(exchange, request.acks, request.timeout_ms)
    broker.appended.append(appending)
    if refusal is ErrorCode.UNSUPPORTED_VERSION:
        _note_version(broker, exchange)
    if refusal is not None:
        appending.refused = [_error(each, refusal) for each in request.data]
        return
    seen: set[tuple[str, int]] = set()
    for each in request.data:
        partition = TopicPartition(each.topic, each.partition)
        replica = broker.partitions.replicas.get(partition)
        if not exchange.may_topic(each.topic):
            appending.refused.append(_error(each, ErrorCode.TOPIC_AUTHORIZATION_FAILED))
        elif partition in seen:
            appending.refused.append(_error(each, ErrorCode.INVALID_REQUEST))
        elif replica is None or broker.stopping:
            appending.refused.append(_error(each, broker.why_not_served(*partition)))
        else:
            _append(broker, replica, each.records, appending)
            _remember(exchange, request, replica)
        seen.add(partition)


def _note_version(broker: Broker, exchange: Exchange) -> None:
    frame, peer = exchange.frame, exchange.connection.peer
    client_id = None if frame is None else read_request_header(frame)[0].client_id
    broker.refusals.note(peer, client_id, exchange.key.name, exchange.version)


def _remember(exchange: Exchange, request: Produce, replica: Replica) -> None:
    """Remembers the shape of a request (the bytes that do not change from request to request), so
    that later requests of the same shape take the shorter path."""
    if exchange.frame is None or exchange.is_denied:
        return
    shape = learn(exchange.frame, exchange.version, request, replica)
    if shape is not None:
        connection = exchange.connection
        if not isinstance(connection.memo, Alike):
            login = connection.login
            connection.memo = Alike(math.inf if login is None else login.ends_at)
        connection.memo.shapes.add(shape)


def _answer_nothing(request: Appending) -> None:
    lost = any(end > replica.log.written.offset for replica, _, end, _ in request.appended)
    if request.refused or lost:
        request.exchange.close("acks_0_refused")
    else:
        request.exchange.stay_silent()


def _append(
    broker: Broker, replica: Replica, records: memoryview | None, request: Appending
) -> None:
    config = replica.log.config
    try:
        if records is None:
            raise BatchInvalid("no records")
        if not config.contiguous:
            raise ReadOnlyTopic(
                f"{replica.partition.topic} mirrors a topic of another cluster and takes no "
                "records from producers"
            )
        if request.acks == ALL:
            replica.check_insync()
        exchange = request.exchange
        base, last, is_duplicate = append(
            broker, exchange.connection, replica, records, exchange.version
        )
    except _REFUSALS as error:
        if isinstance(error, StorageFailed):
            broker.partitions.touch(replica)
        broker.count_refused(replica.partition, type(error))
        request.refused.append(_refused(replica, error))
        return
    if config.append_time:
        request.append_time_ms = broker.now_ms
    request.appended.append((replica, base, last + 1, is_duplicate))


def _refusal(version: int, request: Produce) -> ErrorCode | None:
    if version < PRODUCE_SERVED_SINCE:
        return ErrorCode.UNSUPPORTED_VERSION
    if request.acks not in (ALL, 0, 1):
        return ErrorCode.INVALID_REQUIRED_ACKS
    if request.transactional_id is not None:
        return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    return None


def _await_watermark(broker: Broker, request: Appending) -> None:
    delayed = DelayedProduce(broker, request)
    if delayed.try_at_once():
        return
    partitions = [replica.partition for replica, *_ in request.appended]
    deadline = broker.loop.now + max(request.timeout_ms, 0) / 1000
    broker.purgatory.watch(delayed, partitions, deadline)
    for replica, *_ in request.appended:
        broker.partitions.flush_if_due(replica)


def _waits(appended: Appended) -> bool:
    replica, _, end, _ = appended
    return replica.served and replica.log.written.offset >= end > replica.offset


def _when_written(broker: Broker, appended: Appended, request: Appending) -> ProduceResult:
    replica, base, end, _ = appended
    if end > replica.log.written.offset:
        return _not_written(broker, replica)
    return _good(replica, base, request.append_time_ms)


def _at_watermark(broker: Broker, appended: Appended, request: Appending) -> ProduceResult:
    replica, base, end, _ = appended
    if replica.offset >= end:
        return _good(replica, base, request.append_time_ms)
    if end > replica.log.written.offset:
        return _not_written(broker, replica)
    if not replica.served:
        return _failed(replica, broker.why_not_served(*replica.partition))
    return _failed(replica, ErrorCode.REQUEST_TIMED_OUT)


def _good(replica: Replica, base: int, append_time_ms: int) -> ProduceResult:
    topic, partition = replica.partition
    if not replica.log.config.append_time:
        append_time_ms = -1
    start = replica.log.log_start_offset
    return ProduceResult(topic, partition, 0, base, append_time_ms, start)


def _failed(replica: Replica, code: ErrorCode) -> ProduceResult:
    topic, partition = replica.partition
    return ProduceResult(topic, partition, code, _UNKNOWN_OFFSET)


def _not_written(broker: Broker, replica: Replica) -> ProduceResult:
    topic, partition = replica.partition
    code, words = ErrorCode.KAFKA_STORAGE_ERROR, broker.not_written(replica.partition)
    return ProduceResult(topic, partition, code, _UNKNOWN_OFFSET, error_message=words)


def _refused(replica: Replica, error: Exception) -> ProduceResult:
    topic, partition = replica.partition
    code = code_of(error)
    return ProduceResult(topic, partition, code, _UNKNOWN_OFFSET, error_message=str(error))


def _error(wanted: TopicRecords, code: ErrorCode) -> ProduceResult:
    return ProduceResult(wanted.topic, wanted.partition, code, _UNKNOWN_OFFSET)


def _send(request: Appending, results: list[ProduceResult]) -> None:
    exchange = request.exchange
    if request.refused:
        results = _by_topic([*results, *request.refused])
    if exchange.connection.closed:
        return
    exchange.send([write_response(exchange.correlation_id, exchange.version, results)])


def _by_topic(results: Iterable[ProduceResult]) -> list[ProduceResult]:
    return sorted(results, key=lambda each: each.topic)


API = Api(ApiKey.PRODUCE, handle)
