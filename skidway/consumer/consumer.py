"""Defines `Consumer`. An application gives it only the addresses of brokers, a group and topics."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Self, Unpack

import pyarrow as pa

from skidway.clock import Clock, SystemClock
from skidway.consumer.chunk import Record
from skidway.consumer.nodes import STREAMS_MAX, check_group
from skidway.consumer.reader import StreamReader
from skidway.consumer.registration import Registration
from skidway.consumer.settings import ConsumerOptions, ConsumerSettings
from skidway.consumer.share import Subscription
from skidway.consumer.stream import Stream
from skidway.consumer.tree import zookeeper_of
from skidway.coordination import OPEN, ZooKeeperConnection, ZooKeeperSecurity
from skidway.errors import SkidwayError, UsageError
from skidway.kafka.client import Client
from skidway.kafka.client.cluster import parse_bootstrap
from skidway.kafka.connection import KafkaConnection
from skidway.kafka.security import NO_SECURITY, KafkaSecurity
from skidway.kafka.types import TopicPartition
from skidway.own_process import OwnProcess


class Consumer:
    """A member of a consumer group. Iterate over it on one thread. By default, the iteration does
    not end by itself.

        with Consumer("broker:9092", "reports", ["clicks"]) as consumer:
            for record in consumer:
                ...

    Members of one group share the partitions of the topics; each group gets every record. If the
    consumer has one stream, and the `with` block ends without an exception, the last record counts
    as done. Otherwise the last record does not count as done. The settings in `ConsumerSettings`
    are keyword arguments. For several threads, see `create_message_streams`.

    Raises UsageError for invalid settings, ConfigurationRefused for an invalid address of ZooKeeper
    or a `security` that cannot be used, and Unreachable if ZooKeeper, or a broker that is asked for
    ZooKeeper's address, does not answer at the start, or does not let the consumer in. If brokers
    or ZooKeeper stop answering later, the consumer waits until they answer again.
    """

    def __init__(
        self,
        bootstrap_servers: str,
        group_id: str,
        topics: str | Sequence[str] = (),
        *,
        zookeeper_connect: str | None = None,
        security: KafkaSecurity = NO_SECURITY,
        zookeeper_security: ZooKeeperSecurity = OPEN,
        clock: Clock | None = None,
        **settings: Unpack[ConsumerOptions],
    ) -> None:
        """`zookeeper_connect` is host:port[,...][/chroot]. Without it, the consumer asks a broker
        for the address of the brokers' ZooKeeper. security, zookeeper_security: how it reaches
        brokers, and a ZooKeeper, that do not let in everybody."""
        parse_bootstrap(bootstrap_servers)
        security.check()
        zookeeper_security.check()
        check_group(group_id)
        self._process = OwnProcess("consumer")
        self._bootstrap, self._security = bootstrap_servers, security
        self._settings = _settings(settings)
        self._clock: Clock = SystemClock() if clock is None else clock
        self._streams: list[Stream] = []
        timeout_s = self._settings.session_timeout_ms / 1000
        zookeeper = ZooKeeperConnection(
            zookeeper_connect or self._ask_zookeeper(), timeout_s, security=zookeeper_security
        )
        self._registration = Registration(
            zookeeper.open(),
            group_id,
            session_timeout_s=timeout_s,
            clock=self._clock,
        )
        if topics:
            try:
                self.create_message_streams(topics)
            except SkidwayError:
                self._registration.close()
                raise

    def create_message_streams(self, topics: str | Sequence[str], streams: int = 1) -> list[Stream]:
        """Returns new streams, which share the partitions of this member. Iterate over each stream
        on its own thread.

        A partition is read by one stream of one member at a time. Call this method at most once for
        a consumer, and only if the consumer was created without topics. Source: the 2011 Kafka
        paper, section 3.2.
        """
        self._process.require()
        if self._streams:
            raise UsageError("a consumer can make its streams only once")
        if not 1 <= streams <= STREAMS_MAX:
            raise UsageError(f"1 to {STREAMS_MAX} streams")
        names = _topic_names(topics)
        registration, settings = self._registration, self._settings
        readers = [
            StreamReader(self._client(), registration, settings, Subscription(names, number))
            for number in range(streams)
        ]
        registration.begin(dict.fromkeys(names, streams), tuple(each.bell for each in readers))
        timeout_ms = settings.consumer_timeout_ms
        self._streams = [Stream(reader, timeout_ms=timeout_ms) for reader in readers]
        return list(self._streams)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._close(done=kind is None and len(self._streams) == 1)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Record:
        """See `Stream`."""
        return next(self._stream)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """See `Stream.batches`."""
        return self._stream.batches()

    def poll(self, timeout_ms: int = 0, *, max_records: int = 500) -> list[Record]:
        """See `Stream.poll`."""
        return self._stream.poll(timeout_ms, max_records=max_records)

    def commit(self) -> None:
        """See `Stream.commit`."""
        self._stream.commit()

    def seek(self, tp: TopicPartition, offset: int) -> None:
        """See `Stream.seek`."""
        self._stream.seek(tp, offset)

    def rewind(self, timestamp_ms: int | None = None) -> None:
        """See `Stream.rewind`."""
        self._stream.rewind(timestamp_ms)

    def assignment(self) -> list[TopicPartition]:
        """See `Stream.assignment`."""
        return self._stream.assignment()

    def position(self, tp: TopicPartition) -> int:
        """See `Stream.position`."""
        return self._stream.position(tp)

    def committed(self, tp: TopicPartition) -> int | None:
        """See `Stream.committed`."""
        return self._stream.committed(tp)

    def close(self) -> None:
        """Leaves the group at once. Without a call of `close`, the other members have to wait until
        this member's session with ZooKeeper ends.

        With auto commit, commits the offsets of the done records. The last record that the
        application got does not count as done.
        """
        self._close(done=False)

    def _close(self, *, done: bool) -> None:
        self._process.require()
        with contextlib.ExitStack() as ending:  # all callbacks run, even if one raises an error
            ending.callback(self._registration.close)
            for stream in reversed(self._streams):
                ending.callback(stream.close, done=done)

    def _ask_zookeeper(self) -> str:
        with self._client() as client:
            return zookeeper_of(client)

    def _client(self) -> Client:
        settings = self._settings
        kafka = KafkaConnection(
            self._bootstrap, settings.client_id, settings.request_timeout_ms,
            security=self._security,
        )  # fmt: skip
        return kafka.client(clock=self._clock)

    @property
    def _stream(self) -> Stream:
        if len(self._streams) != 1:
            raise UsageError("iterate the streams of create_message_streams, one on each thread")
        return self._streams[0]


def _settings(settings: ConsumerOptions) -> ConsumerSettings:
    try:
        return ConsumerSettings(**settings)
    except TypeError as error:
        raise UsageError(f"consumer settings: {error}") from error


def _topic_names(topics: str | Sequence[str]) -> tuple[str, ...]:
    names = (topics,) if isinstance(topics, str) else tuple(dict.fromkeys(topics))
    if not names or not all(names):
        raise UsageError("a consumer needs topics")
    return names
