"""The public interface of the producer."""

from __future__ import annotations

import atexit
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from types import TracebackType
from typing import Any, Self, Unpack, overload

from skidway.clock import Clock, SystemClock
from skidway.errors import SkidwayError, Unreachable, UsageError
from skidway.kafka import client as core
from skidway.kafka.client.cluster import parse_bootstrap
from skidway.kafka.connection import KafkaConnection
from skidway.kafka.security import NO_SECURITY, KafkaSecurity
from skidway.own_process import OwnProcess
from skidway.producer.accumulator import Messages
from skidway.producer.buffer import Buffer
from skidway.producer.directory import Directory
from skidway.producer.partitioner import Partitioner, segments
from skidway.producer.sender import Outgoing, Sender
from skidway.producer.sending import RecordMetadata
from skidway.producer.settings import ProducerOptions, ProducerSettings

Value = bytes | None


class Producer:
    """Sends messages to topics. Several threads may use it.

        with Producer("broker:9092") as producer:
            where = producer.send("clicks", b"a message", key=b"user-7").result()

    At the end of the `with` block the producer waits until every message is delivered or refused,
    but at most `delivery_timeout_ms`. A producer that is still open at a normal end of the
    interpreter, or of a child of multiprocessing, waits likewise, and then says on standard error
    what was not delivered. After a fork, every method raises UsageError in the child. The settings
    in `ProducerSettings` are keyword arguments.
    """

    def __init__(
        self,
        bootstrap_servers: str,
        *,
        security: KafkaSecurity = NO_SECURITY,
        clock: Clock | None = None,
        **settings: Unpack[ProducerOptions],
    ) -> None:
        """The producer connects at its first use. security: how it reaches a cluster that does not
        let in everybody. Raises UsageError if a setting is invalid, or contradicts another setting,
        and ConfigurationRefused if `security` cannot be used."""
        parse_bootstrap(bootstrap_servers)
        security.check()
        self._bootstrap, self._security = bootstrap_servers, security
        self._settings = _settings(settings)
        self._clock: Clock = SystemClock() if clock is None else clock
        self._process = OwnProcess("producer")
        self._closing = threading.Lock()
        self._closed = False
        self._buffer = Buffer(self._settings, self._clock, lambda: self._sender.wake())
        self._directory = Directory(
            self._client(asked_within_ms=max(self._settings.max_block_ms, ASKED_LEAST_MS)),
            batch_size=self._settings.batch_size,
            age_max_s=self._settings.metadata_max_age_ms / 1000,
            clock=self._clock,
        )
        self._sender = Sender(self._connect, self._buffer)
        atexit.register(self._finish)
        self._forget_child = _at_end_of_child(self._finish)

    @overload
    def send(
        self,
        topic: str,
        messages: Value,
        *,
        key: bytes | None = None,
        partition: int | None = None,
        partitioner: Partitioner | None = None,
        timestamp_ms: int | None = None,
    ) -> Future[RecordMetadata]: ...

    @overload
    def send(
        self,
        topic: str,
        messages: Sequence[Value],
        *,
        key: bytes | Sequence[bytes | None] | None = None,
        partition: int | None = None,
        partitioner: Partitioner | None = None,
        timestamp_ms: int | None = None,
    ) -> Future[Sequence[RecordMetadata]]: ...

    def send(
        self,
        topic: str,
        messages: Value | Sequence[Value],
        *,
        key: bytes | Sequence[bytes | None] | None = None,
        partition: int | None = None,
        partitioner: Partitioner | None = None,
        timestamp_ms: int | None = None,
    ) -> Future[Any]:
        """Queues one message, or a set of messages, and returns a future. The future's result says
        where the messages are in the log. If a message was not delivered, the future raises the
        error.

        If `partition` is given, the messages go to this partition. Otherwise the function
        `partitioner`, if given, chooses the partition of each message. If neither is given, the key
        decides, as in Kafka; a message without a key goes to any partition. `key` is one key for
        all messages, or a list with one key for each message. `timestamp_ms` is by default the
        present time.

        Waits at most about `max_block_ms` for what the brokers know of the topic, and then at most
        `max_block_ms` each time the buffer is full. After such a wait, raises KafkaError if the
        topic still does not exist, Unreachable if no broker has answered, or BufferFull if the
        buffer is still full. Raises UsageError for an invalid argument, such as a message that is
        not bytes or a partition that the topic does not have, and SkidwayError if the producer has
        ended.
        """
        self._process.require()
        self._buffer.require_open()
        single = messages is None or isinstance(messages, bytes | bytearray | memoryview)
        values: Sequence[Any] = [messages] if single else messages  # type: ignore[assignment]
        keys = _keys_of(key, len(values))
        known = self._directory.topic(topic, self._settings.max_block_ms / 1000, partition or 0)
        where = segments(topic, known.partitions, keys, values, partition, partitioner)
        timestamp = self._clock.time_ms() if timestamp_ms is None else _time(timestamp_ms)
        own_keys = None if key is None else keys
        messages_ = Messages(own_keys, _all_bytes(values), timestamp)
        return self._buffer.queue(topic, known, messages_, where, single=single)

    def flush(self, timeout_ms: int | None = None) -> None:
        """Waits until all earlier sends are delivered or refused. Each send's future says whether
        the send was delivered or refused.

        Raises Unreachable if the wait takes longer than `timeout_ms` (default:
        delivery_timeout_ms), and SkidwayError if the producer has ended with undelivered messages.
        """
        self._process.require()
        timeout_ms = self._settings.delivery_timeout_ms if timeout_ms is None else timeout_ms
        done, left = self._buffer.flush(timeout_ms / 1000)
        end = self._buffer.end
        if end is not None and left:
            raise SkidwayError(f"{left} sends not delivered, the producer has ended: {end}")
        if not done:
            trouble = next(iter(self._sender.troubles().values()), "no broker answers")
            raise Unreachable(f"{left} sends not acknowledged after {timeout_ms} ms: {trouble}")

    def close(self, timeout_ms: int | None = None) -> None:
        """Waits for all sends as `flush` does, and then stops the producer. A send that is still
        not delivered fails when the producer stops. Raises the same errors as `flush`."""
        self._process.require()
        try:
            if not self._closed:
                self.flush(timeout_ms)
        finally:
            self._shut()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _finish(self) -> None:
        """Closes the producer at the end of the interpreter."""
        if not self._process.is_here:
            return
        try:
            self.close()
        except SkidwayError as error:
            sys.stderr.write(f"skidway: at the end of this program, {error}\n")

    def _shut(self) -> None:
        """Ends the sender's thread. Sends that are not delivered fail."""
        with self._closing:
            if self._closed:
                return
            self._closed = True
        atexit.unregister(self._finish)
        self._forget_child()
        self._buffer.close(SkidwayError("the producer was closed"))
        self._sender.stop()
        self._directory.close()
        self._buffer.abandon("the producer was closed before the broker acknowledged")

    def _client(self, *, asked_within_ms: int | None = None) -> core.Client:
        timeout_ms = self._settings.request_timeout_ms
        timeout_ms = min(timeout_ms, asked_within_ms or timeout_ms)
        kafka = KafkaConnection(
            self._bootstrap, self._settings.client_id, timeout_ms, security=self._security
        )
        return kafka.client(clock=self._clock)

    def _connect(self) -> tuple[core.Client, Outgoing]:
        """Opens the client, and returns it with its `Outgoing`. The sender's thread calls this
        method."""
        settings, client = self._settings, self._client()
        producer = core.Producer(
            client,
            acks=settings.acks_number,
            idempotent=settings.enable_idempotence,
            max_in_flight=settings.max_in_flight_requests_per_connection,
            max_buffered_bytes=_UNBOUNDED,  # `buffer_memory` limits the bytes instead
        )
        return client, Outgoing(producer, self._buffer, settings.codec)


_UNBOUNDED = 1 << 62
ASKED_LEAST_MS = 100
"""A broker has at least this time to answer about a topic, even if `max.block.ms` is shorter."""
TIMESTAMP_MAX_MS = (1 << 62) - 1
"""The highest timestamp. It is limited because a batch stores differences of timestamps as 64-bit
numbers."""


def _at_end_of_child(finish: Callable[[], None]) -> Callable[[], None]:
    """Has `finish` called at the end of this process if it is a child of multiprocessing, which may
    end without atexit. Returns the function that revokes this."""
    process = sys.modules.get("multiprocessing.process")
    util = sys.modules.get("multiprocessing.util")  # every child has imported both
    if process is None or util is None or process.parent_process() is None:
        return lambda: None
    revoke: Callable[[], None] = util.Finalize(None, finish, exitpriority=0).cancel
    return revoke


def _settings(options: ProducerOptions) -> ProducerSettings:
    try:
        return ProducerSettings(**options)
    except TypeError as error:
        raise UsageError(f"producer settings: {error}") from error


def _keys_of(key: Any, count: int) -> Sequence[bytes | None]:
    if key is None or isinstance(key, bytes | bytearray | memoryview):
        return [_bytes(key)] * count
    if len(key) != count:
        raise UsageError(f"{len(key)} keys for {count} messages")
    return _all_bytes(key)


def _time(timestamp_ms: int) -> int:
    """Checks a timestamp, and returns it. A batch with an invalid timestamp could not be encoded,
    so its other messages would fail, too."""
    if isinstance(timestamp_ms, int) and -1 <= timestamp_ms <= TIMESTAMP_MAX_MS:
        return timestamp_ms
    raise UsageError(f"timestamp_ms is a whole number of milliseconds, not {timestamp_ms!r:.50}")


def _all_bytes(data: Sequence[Any]) -> list[bytes | None]:
    if set(map(type, data)) <= {bytes, type(None)}:  # the usual case, checked without a loop
        return list(data)
    return [_bytes(each) for each in data]


def _bytes(data: Any) -> bytes | None:
    if data is None or isinstance(data, bytes):
        return data
    if isinstance(data, bytearray | memoryview):
        return bytes(data)
    raise UsageError(f"messages and keys are bytes or None, not {type(data).__name__}")
