"""Stands between clients and a real broker, and adds topics with names of its own to each answer
that lists topics."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import replace

from skidway.kafka.protocol.apis import ApiKey
from skidway.kafka.protocol.frames import (
    FrameReader,
    RequestHeader,
    read_request_header,
    response_body,
    response_frame,
)
from skidway.kafka.protocol.messages import decode, encode
from skidway.kafka.protocol.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)


class LyingBroker:
    """Listens on a free port of the loopback interface. names: the topics that it adds. brokers:
    how many brokers it adds. In its answers, each broker has its own address, so that clients ask
    only it."""

    def __init__(self, target: str, names: Sequence[str], brokers: int = 0) -> None:
        host, _, port = target.rpartition(":")
        self._target, self._names = (host, int(port)), names
        self._brokers = brokers
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._server.getsockname()[1])
        self.address = f"127.0.0.1:{self.port}"
        self.lies = 0
        self._sockets = [self._server]
        threading.Thread(target=self._accept, daemon=True).start()

    def stop(self) -> None:
        for each in self._sockets:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._server.accept()
                broker = socket.create_connection(self._target)
                self._sockets += [client, broker]
                asked: deque[RequestHeader] = deque()
                for work, args in (
                    (self._ask, (client, broker, asked)),
                    (self._answer, (broker, client, asked)),
                ):
                    threading.Thread(target=work, args=args, daemon=True).start()

    def _ask(
        self, client: socket.socket, broker: socket.socket, asked: deque[RequestHeader]
    ) -> None:
        for frame in _frames(client):
            asked.append(read_request_header(memoryview(frame))[0])
            broker.sendall(len(frame).to_bytes(4) + frame)

    def _answer(
        self, broker: socket.socket, client: socket.socket, asked: deque[RequestHeader]
    ) -> None:
        for frame in _frames(broker):
            header, answer = asked.popleft(), len(frame).to_bytes(4) + frame
            if header.api_key is ApiKey.METADATA:
                answer = self._lie(header, frame)
            with contextlib.suppress(OSError):  # the client may have left
                client.sendall(answer)

    def _lie(self, header: RequestHeader, frame: bytes) -> bytes:
        version = header.api_version
        body = response_body(memoryview(frame), ApiKey.METADATA, version)
        true: MetadataResponse = decode(MetadataResponse, body, version)
        me = MetadataResponseBroker(
            node_id=true.brokers[0].node_id, host="127.0.0.1", port=self.port
        )
        false = tuple(_topic(name, me.node_id) for name in self._names)
        self.lies += 1
        more = tuple(replace(me, node_id=1000 + number) for number in range(self._brokers))
        told = replace(true, brokers=(me, *more), topics=true.topics + false)
        return response_frame(header, encode(told, version))


def _frames(connection: socket.socket) -> Iterator[bytes]:
    reader = FrameReader()
    with contextlib.suppress(OSError):
        while count := connection.recv_into(reader.space()):
            for frame in reader.received(count):
                yield bytes(frame)


def _topic(name: str, leader: int) -> MetadataResponseTopic:
    partition = MetadataResponsePartition(
        partition_index=0, leader_id=leader, leader_epoch=0, replica_nodes=(leader,),
        isr_nodes=(leader,),
    )  # fmt: skip
    return MetadataResponseTopic(name=name, partitions=(partition,))


@contextlib.contextmanager
def lying(target: str, names: Sequence[str], brokers: int = 0) -> Iterator[LyingBroker]:
    """A liar in front of the broker at `target`."""
    made = LyingBroker(target, names, brokers)
    try:
        yield made
    finally:
        made.stop()
