"""Fetch (1), versions 4-12.

The answer contains whole batches. In each partition, the first batch is the one that contains the
wanted offset, and no batch is beyond the high watermark. Sendfile sends the batches from the
segments' files. The broker reads the partitions in the order of the request. It sends the first
batch that it finds even if the batch is larger than the limits on bytes in the request (KIP-74). If
fewer than `min_bytes` bytes can be read, the broker parks the request until enough bytes can be
read or `max_wait_ms` have passed. When the broker parks a request, it flushes the request's
partitions at once, because consumers can read only flushed records. The answer reports these errors
of a partition:

    offset below the log start or above the log end    OFFSET_OUT_OF_RANGE, with the log start
    client's leader epoch older than this broker's     FENCED_LEADER_EPOCH
    client's leader epoch newer than this broker's     UNKNOWN_LEADER_EPOCH

Fetch sessions (KIP-227) are not supported: every answer has session 0, which means to clients that
there is no session. Followers of the replication protocol are not supported. The answer has no
aborted transactions, because there are no transactions.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from skidway.broker.api.exchange import Exchange
from skidway.broker.api.registration import Api
from skidway.broker.broker import Broker
from skidway.broker.log.files import DamagedLog, StorageFailed
from skidway.broker.log.offset_lookup import OffsetOutside
from skidway.broker.partitions.replica import Replica
from skidway.kafka.errors import ErrorCode
from skidway.kafka.protocol.apis import ApiKey
from skidway.kafka.protocol.fetch import READ_COMMITTED, SESSIONLESS
from skidway.kafka.protocol.fetch_request import Fetch, FetchTarget, parse_request
from skidway.kafka.protocol.fetch_response import FetchResult, write_response
from skidway.kafka.protocol.pieces import FileSlice
from skidway.kafka.types import TopicPartition

WAIT_MS_MAX = 60_000
"""The greatest `max_wait_ms` that the broker uses. Without this limit, a parked request could stay
in memory long after its connection is closed."""
_UNKNOWN = -1


class DelayedFetch:
    """A parked request: it waits until enough bytes can be read. The object stores how many bytes
    can be read in each partition of the request, and the sum of these numbers.
    """

    __slots__ = ("_broker", "_exchange", "_found", "_request", "_targets", "_total")

    def __init__(
        self, broker: Broker, exchange: Exchange, request: Fetch, found: dict[TopicPartition, int]
    ) -> None:
        self._broker = broker
        self._exchange = exchange
        self._request = request
        self._found = found
        self._total = sum(found.values())
        self._targets: dict[TopicPartition, tuple[FetchTarget, ...]] = {}
        for target in request.wanted:
            partition = TopicPartition(target.topic, target.partition)
            self._targets[partition] = (*self._targets.get(partition, ()), target)

    @property
    def partitions(self) -> Collection[TopicPartition]:
        """The partitions for which the request waits."""
        return self._targets.keys()

    def try_complete(self, changed: TopicPartition) -> bool:
        """Answers, and returns True, if enough bytes can be read now or reading causes an error.
        Computes again how many bytes can be read, but only for the partition `changed`."""
        if self._exchange.connection.closed:
            return True
        least_bytes = self._request.min_bytes
        found = sum(
            available(self._broker, self._exchange, changed, each, least_bytes)
            for each in self._targets[changed]
        )
        self._total += found - self._found.get(changed, 0)
        self._found[changed] = found
        if self._total < least_bytes:
            return False
        self.expire()
        return True

    def expire(self) -> None:
        """Answers with the data that can be read now. Called when the request has waited long
        enough."""
        if not self._exchange.connection.closed:
            _send(self._exchange, _read_all(self._broker, self._exchange, self._request))

    def abandon(self) -> None:
        """Closes the connection instead of answering the request."""
        self._exchange.close("failed")


def handle(broker: Broker, exchange: Exchange) -> None:
    """Answers at once if enough bytes can be read, if the request asks not to wait, or if there is
    no room for another parked request. Otherwise parks the request.
    """
    request = parse_request(exchange.body, exchange.version)
    broker.counts.fetches += 1
    if len(request.wanted) > 1:
        # If a request names a partition several times, only the last entry is used, as in Kafka. So
        # a single request cannot make the broker read the same partition many times.
        wanted = {(each.topic, each.partition): each for each in request.wanted}
        if len(wanted) < len(request.wanted):
            request = request._replace(wanted=list(wanted.values()))
    if request.session_id and request.session_epoch > 0:
        # This broker has no fetch sessions. When the client gets this error, it begins again
        # without a session.
        code = ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        exchange.send(
            write_response(exchange.correlation_id, exchange.version, (), error_code=code)
        )
        return
    found: dict[TopicPartition, int] = {}
    may_wait = request.max_wait_ms > 0 and broker.purgatory.has_room(len(request.wanted))
    if not may_wait or not request.wanted or enough(broker, exchange, request, found):
        _send(exchange, _read_all(broker, exchange, request))
        return
    delayed = DelayedFetch(broker, exchange, request, found)
    deadline = broker.loop.now + min(request.max_wait_ms, WAIT_MS_MAX) / 1000
    login = exchange.connection.login
    if login is not None:  # after its end, nobody gets records
        deadline = min(deadline, login.ends_at)
    broker.purgatory.watch(delayed, delayed.partitions, deadline)
    for partition in delayed.partitions:
        replica = broker.partitions.get(partition)
        if replica is not None and replica.log.unflushed_messages:
            broker.partitions.flush_if_due(replica)


def enough(
    broker: Broker, exchange: Exchange, request: Fetch, found: dict[TopicPartition, int]
) -> bool:
    """Returns True if at least `min_bytes` bytes can be read, or if reading a partition causes an
    error. Otherwise returns False, and stores in `found`, for each partition in which any bytes can
    be read, how many bytes can be read.
    """
    total, least_bytes = 0, request.min_bytes
    if least_bytes <= 0:
        return True
    for target in request.wanted:
        partition = TopicPartition(target.topic, target.partition)
        size = available(broker, exchange, partition, target, least_bytes)
        if size:
            total += size
            if total >= least_bytes:
                return True
            found[partition] = found.get(partition, 0) + size
    return False


def available(
    broker: Broker,
    exchange: Exchange,
    partition: TopicPartition,
    target: FetchTarget,
    least_bytes: int,
) -> int:
    """Returns how many bytes can be read in a partition now. If reading the partition causes an
    error, returns at least `least_bytes`, so that the error is answered at once.
    """
    replica = broker.partitions.replicas.get(partition)
    if replica is None or _epoch_error(replica, target) or not exchange.may_topic(target.topic):
        return least_bytes
    log = replica.log
    if target.offset >= replica.offset:
        return least_bytes if target.offset > log.log_end_offset else 0
    if target.offset < log.log_start_offset:
        return least_bytes
    try:
        size = log.bytes_between(target.offset, replica.high_watermark, least_bytes)
    except (StorageFailed, DamagedLog):
        return least_bytes
    return min(size, target.max_bytes) if target.max_bytes > 0 else size


def _read_all(broker: Broker, exchange: Exchange, request: Fetch) -> list[FetchResult]:
    left = min(request.max_bytes, broker.settings.fetch_bytes_max)
    results, found = [], False
    for target in request.wanted:
        if not exchange.may_topic(target.topic):
            results.append(_error(target, ErrorCode.TOPIC_AUTHORIZATION_FAILED))
            continue
        result = _read(broker, target, left, request.isolation_level, at_least_one=not found)
        if result.records:
            found = True
            left -= len(result.records[0])
        results.append(result)
    return results


def _read(
    broker: Broker, target: FetchTarget, left: int, isolation_level: int, *, at_least_one: bool
) -> FetchResult:
    partition = TopicPartition(target.topic, target.partition)
    replica = broker.partitions.replicas.get(partition)
    if replica is None:
        return _error(target, broker.why_not_served(*partition))
    stale = _epoch_error(replica, target)
    if stale is not None:
        return _error(target, stale)
    try:
        found = replica.log.read(
            target.offset,
            max(min(target.max_bytes, left), 0),
            replica.high_watermark,
            at_least_one=at_least_one,
        )
    except OffsetOutside:
        return _error(target, ErrorCode.OFFSET_OUT_OF_RANGE, replica)
    except DamagedLog as error:
        broker.partitions.damaged(partition, error)
        return _error(target, ErrorCode.KAFKA_STORAGE_ERROR)
    except StorageFailed as error:
        broker.partitions.storage_failed(error)
        return _error(target, ErrorCode.KAFKA_STORAGE_ERROR)
    records: Sequence[FileSlice] = () if found is None else (found,)
    if found is not None:
        broker.counts.fetched_bytes += found.length
    return FetchResult(
        target.topic,
        target.partition,
        0,
        replica.offset,
        replica.offset,
        replica.log.log_start_offset,
        records,
        () if isolation_level == READ_COMMITTED else None,
    )


def _epoch_error(replica: Replica, target: FetchTarget) -> ErrorCode | None:
    known = target.current_leader_epoch
    if known in (_UNKNOWN, replica.leader_epoch):
        return None
    if known < replica.leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    return ErrorCode.UNKNOWN_LEADER_EPOCH


def _error(target: FetchTarget, code: ErrorCode, replica: Replica | None = None) -> FetchResult:
    watermark = _UNKNOWN if replica is None else replica.offset
    start = _UNKNOWN if replica is None else replica.log.log_start_offset
    return FetchResult(target.topic, target.partition, code, watermark, watermark, start)


def _send(exchange: Exchange, results: list[FetchResult]) -> None:
    exchange.send(write_response(exchange.correlation_id, exchange.version, results))


assert SESSIONLESS == _UNKNOWN, "an epoch of -1 is a fetch without session"
API = Api(ApiKey.FETCH, handle)
