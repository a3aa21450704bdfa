"""A small broker that runs in a thread, uses the protocol code of Skidway's broker, and misbehaves
in the way that a test chooses.

It keeps whole batches in memory, remembers the last five batches of each producer, and serves the
APIs of a partition leader over real sockets. A test prepares a list of faults for an API. When the
broker gets a request of this API, it removes the first fault from the list, and this fault happens
to the request.
"""

from __future__ import annotations

import selectors
import socket
import threading
import uuid
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from skidway.kafka.batch import BatchHeader, read_header, stamp
from skidway.kafka.errors import ErrorCode
from skidway.kafka.protocol import (
    api_versions,
    fetch_request,
    fetch_response,
    init_producer_id,
    list_offsets,
    metadata,
    offset_for_leader_epoch,
    produce,
)
from skidway.kafka.protocol.apis import ApiKey, VersionRange
from skidway.kafka.protocol.frames import (
    FrameReader,
    RequestHeader,
    read_request_header,
    response_frame,
)
from skidway.kafka.protocol.messages import Response, decode, encode
from skidway.kafka.protocol.pieces import FileSlice

SERVED = (
    ApiKey.PRODUCE,
    ApiKey.FETCH,
    ApiKey.LIST_OFFSETS,
    ApiKey.METADATA,
    ApiKey.API_VERSIONS,
    ApiKey.INIT_PRODUCER_ID,
    ApiKey.OFFSET_FOR_LEADER_EPOCH,
)


class HangUp(Exception):
    """A fault: the broker closes the connection instead of answering the request."""


class Silence(Exception):
    """A fault: the broker does not answer the request, and keeps the connection open. It answers in
    order, so it answers nothing more on this connection."""


@dataclass
class PartitionLog:
    """The batches of a partition with their offsets, and the last five batches of each producer.
    pending: how many records at the log's end are above the high watermark."""

    batches: list[bytes] = field(default_factory=list)
    end: int = 0
    start: int = 0
    pending: int = 0
    producers: dict[int, list[BatchHeader]] = field(default_factory=dict)
    bases: dict[tuple[int, int], int] = field(default_factory=dict)

    def append(self, raw: bytes) -> tuple[ErrorCode, int]:
        header = read_header(raw)
        known = self.producers.get(header.producer_id) if header.producer_id >= 0 else None
        if known:
            for each in known:
                if each.base_sequence == header.base_sequence:
                    return ErrorCode.NONE, self.bases[header.producer_id, header.base_sequence]
            if header.base_sequence != known[-1].last_sequence + 1:
                return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1
        base = self.end
        stamped = bytearray(raw)
        stamp(stamped, 0, base, 0)
        self.batches.append(bytes(stamped))
        self.end += header.last_offset_delta + 1
        if header.producer_id >= 0:
            self.producers[header.producer_id] = [*(known or []), header][-5:]
            self.bases[header.producer_id, header.base_sequence] = base
        return ErrorCode.NONE, base

    @property
    def high_watermark(self) -> int:
        return self.end - self.pending

    def read(self, offset: int, max_bytes: int) -> list[bytes]:
        found: list[bytes] = []
        for raw in self.batches:
            if offset <= read_header(raw).last_offset < self.high_watermark:
                if found and sum(map(len, found)) + len(raw) > max_bytes:
                    break
                found.append(raw)
        return found


Fault = ErrorCode | type[HangUp] | type[Silence] | Callable[[bytes], bytes]


class ScriptedBroker:
    """A broker that misbehaves in the way that a test chooses.

    `faults[api]`: the faults that happen to the next requests of an API before the requests take
    effect.
    `after[api]`: the faults that happen to the next requests of an API after the requests took
    effect.
    `requests`: all requests so far, in order.
    """

    def __init__(self, topics: dict[str, int], port: int = 0) -> None:
        """port: the port on which the broker listens; if it is 0, the kernel chooses a free one."""
        self._server = socket.create_server(("127.0.0.1", port))
        self.port: int = self._server.getsockname()[1]
        self.address = f"127.0.0.1:{self.port}"
        self.logs = {(t, p): PartitionLog() for t, count in topics.items() for p in range(count)}
        self.topics = topics
        self.faults: dict[ApiKey, deque[Fault]] = {key: deque() for key in SERVED}
        self.after: dict[ApiKey, deque[Fault]] = {key: deque() for key in SERVED}
        self.ranges: dict[ApiKey, VersionRange] = {key: key.broker for key in SERVED}
        self.requests: list[RequestHeader] = []
        self.connections = 0
        self._silent: set[socket.socket] = set()
        self.leader_host, self.leader_port = "127.0.0.1", self.port
        self.leader_epoch = 0
        self._stop_in, self._stop_out = socket.socketpair()
        self._next_producer_id = 1000
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop_in.send(b"x")
        self._thread.join(300)
        self._stop_in.close()
        assert not self._thread.is_alive()

    def count(self, api: ApiKey) -> int:
        return sum(header.api_key is api for header in self.requests)

    def _run(self) -> None:
        selector = selectors.DefaultSelector()
        selector.register(self._server, selectors.EVENT_READ)
        selector.register(self._stop_out, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():
                if key.fileobj is self._stop_out:
                    for each in list(selector.get_map().values()):
                        each.fileobj.close()  # type: ignore[union-attr]
                    selector.close()
                    return
                if key.fileobj is self._server:
                    connection, _ = self._server.accept()
                    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    self.connections += 1
                    selector.register(connection, selectors.EVENT_READ, FrameReader())
                else:
                    assert isinstance(key.fileobj, socket.socket)
                    if not self._serve(key.fileobj, key.data):
                        selector.unregister(key.fileobj)
                        key.fileobj.close()

    def _serve(self, connection: socket.socket, reader: FrameReader) -> bool:
        try:
            count = connection.recv_into(reader.space())
            if count == 0:
                return False
            for frame in list(reader.received(count)):
                header, body = read_request_header(frame)
                self.requests.append(header)
                if connection in self._silent:
                    continue
                try:
                    connection.sendall(self._answer(header, body))
                except Silence:
                    self._silent.add(connection)
        except (HangUp, OSError):
            return False
        return True

    def _answer(self, header: RequestHeader, body: memoryview) -> bytes:
        error = ErrorCode.NONE
        change: Callable[[bytes], bytes] = bytes
        if self.faults[header.api_key]:
            fault = self.faults[header.api_key].popleft()
            if isinstance(fault, ErrorCode):
                error = fault
            elif isinstance(fault, type):
                raise fault
            else:
                change = fault
        answer = getattr(self, f"_{header.api_key.name.lower()}")(header, body, error)
        if self.after[header.api_key]:
            fault = self.after[header.api_key].popleft()
            assert isinstance(fault, type), "after a request's effect only its answer can be lost"
            raise fault
        return change(answer)

    def _api_versions(self, header: RequestHeader, _: memoryview, __: ErrorCode) -> bytes:
        return response_frame(header, api_versions.answer(header.api_version, self.ranges))

    def _metadata(self, header: RequestHeader, body: memoryview, error: ErrorCode) -> bytes:
        request = decode(metadata.MetadataRequest, body, header.api_version)
        names = [t.name for t in request.topics] if request.topics is not None else [*self.topics]
        me = metadata.MetadataResponseBroker(
            node_id=7, host=self.leader_host, port=self.leader_port
        )
        topics = tuple(self._topic(name or "", error) for name in names)
        response = metadata.MetadataResponse(
            brokers=(me,), cluster_id="scripted", controller_id=7, topics=topics
        )
        return _message(header, response)

    def _topic(self, name: str, error: ErrorCode) -> metadata.MetadataResponseTopic:
        if error or name not in self.topics:
            code = error or ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            return metadata.MetadataResponseTopic(name=name, error_code=code)
        partitions = tuple(
            metadata.MetadataResponsePartition(
                partition_index=i,
                leader_id=7,
                leader_epoch=self.leader_epoch,
                replica_nodes=(7,),
                isr_nodes=(7,),
            )
            for i in range(self.topics[name])
        )
        topic_id = uuid.uuid5(uuid.NAMESPACE_DNS, name)
        return metadata.MetadataResponseTopic(name=name, topic_id=topic_id, partitions=partitions)

    def _init_producer_id(self, header: RequestHeader, _: memoryview, error: ErrorCode) -> bytes:
        self._next_producer_id += 1
        response = init_producer_id.InitProducerIdResponse(
            error_code=error, producer_id=self._next_producer_id, producer_epoch=0
        )
        return _message(header, response)

    def _list_offsets(self, header: RequestHeader, body: memoryview, error: ErrorCode) -> bytes:
        request = decode(list_offsets.ListOffsetsRequest, body, header.api_version)
        topics = []
        for topic in request.topics:
            rows = []
            for row in topic.partitions:
                log = self.logs[topic.name, row.partition_index]
                at = log.high_watermark if row.timestamp == list_offsets.LATEST else log.start
                rows.append(
                    list_offsets.ListOffsetsPartitionResponse(
                        partition_index=row.partition_index, error_code=error, offset=at
                    )
                )
            topics.append(
                list_offsets.ListOffsetsTopicResponse(name=topic.name, partitions=tuple(rows))
            )
        return _message(header, list_offsets.ListOffsetsResponse(topics=tuple(topics)))

    def _offset_for_leader_epoch(
        self, header: RequestHeader, body: memoryview, error: ErrorCode
    ) -> bytes:
        """Answers that only the present leader epoch has an end: the log end."""
        request = decode(
            offset_for_leader_epoch.OffsetForLeaderEpochRequest, body, header.api_version
        )
        topics = []
        for topic in request.topics:
            rows = []
            for row in topic.partitions:
                known, code = row.current_leader_epoch, error
                if known not in (-1, self.leader_epoch):
                    code = code or ErrorCode.FENCED_LEADER_EPOCH
                is_known = not code and row.leader_epoch == self.leader_epoch
                log = self.logs[topic.topic, row.partition]
                rows.append(
                    offset_for_leader_epoch.EpochEndOffset(
                        error_code=code,
                        partition=row.partition,
                        leader_epoch=row.leader_epoch if is_known else -1,
                        end_offset=log.end if is_known else -1,
                    )
                )
            topics.append(
                offset_for_leader_epoch.OffsetForLeaderTopicResult(
                    topic=topic.topic, partitions=tuple(rows)
                )
            )
        response = offset_for_leader_epoch.OffsetForLeaderEpochResponse(topics=tuple(topics))
        return _message(header, response)

    def _produce(self, header: RequestHeader, body: memoryview, error: ErrorCode) -> bytes:
        request = produce.parse_request(body, header.api_version)
        results = []
        for topic, partition, records in request.data:
            if error:
                results.append(produce.ProduceResult(topic, partition, error, -1))
                continue
            code, base = self.logs[topic, partition].append(bytes(records or b""))
            results.append(produce.ProduceResult(topic, partition, code, base))
        if request.acks == 0:
            return b""
        return produce.write_response(header.correlation_id, header.api_version, results)

    def _fetch(self, header: RequestHeader, body: memoryview, error: ErrorCode) -> bytes:
        request = fetch_request.parse_request(body, header.api_version)
        results, used = [], 0
        for target in request.wanted:
            log = self.logs[target.topic, target.partition]
            code = error
            if not log.start <= target.offset <= log.end:
                code = ErrorCode.OFFSET_OUT_OF_RANGE
            room = min(target.max_bytes, request.max_bytes - used)
            records = [] if code or (used and room <= 0) else log.read(target.offset, room)
            used += sum(map(len, records))
            watermark = log.high_watermark
            results.append(
                fetch_response.FetchResult(
                    target.topic, target.partition, code, watermark, watermark, log.start, records
                )
            )
        pieces = fetch_response.write_response(header.correlation_id, header.api_version, results)
        return b"".join(bytes(piece) for piece in pieces if not isinstance(piece, FileSlice))


def _message(header: RequestHeader, response: Response) -> bytes:
    return response_frame(header, encode(response, header.api_version))


@contextmanager
def scripted(topics: dict[str, int], port: int = 0) -> Iterator[ScriptedBroker]:
    """A running broker. `topics` gives the number of partitions of each topic."""
    broker = ScriptedBroker(topics, port)
    broker.start()
    try:
        yield broker
    finally:
        broker.stop()
