"""A client with one blocking connection. It sends exactly the bytes that a test gives it, and
receives every answer."""

from __future__ import annotations

import itertools
import socket
import struct
from types import TracebackType

from skidway.kafka.protocol import fetch_request, fetch_response, produce
from skidway.kafka.protocol.apis import ApiKey
from skidway.kafka.protocol.frames import request_frame, response_body
from skidway.kafka.protocol.messages import Request, Response, decode, encode
from skidway.kafka.protocol.messages import Response as AnyResponse
from skidway.security.contexts import TlsFiles, client_context

LENGTH = struct.Struct(">i")


class RawClient:
    """The client. The test calls `receive` once for each answer."""

    def __init__(self, port: int, timeout_s: float = 60.0, source: str = "127.0.0.1") -> None:
        self.socket: socket.socket = socket.create_connection(
            ("127.0.0.1", port), timeout_s, (source, 0)
        )
        self._ids = itertools.count(1)

    def __enter__(self) -> RawClient:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.socket.close()

    def send(self, data: bytes) -> None:
        """Sends bytes unchanged."""
        self.socket.sendall(data)

    def receive(self) -> bytes:
        """Returns the next answer without its length field, or b"" if the broker has closed the
        connection."""
        head = self._exactly(4)
        return self._exactly(LENGTH.unpack(head)[0]) if head else b""

    def ask(self, request: Request, version: int, answer: type[AnyResponse]) -> Response:
        """Sends a request, and returns its answer."""
        number = next(self._ids)
        key = request.API
        self.send(request_frame(key, version, number, "raw", encode(request, version)))
        frame = memoryview(self.receive())
        if not frame:
            raise EOFError("the broker has closed the connection")
        assert LENGTH.unpack_from(frame)[0] == number
        return decode(answer, response_body(frame, key, version), version)

    def send_produce(
        self, topic: str, batch: bytes | bytearray, *, acks: int = -1, partition: int = 0,
        version: int = 9, timeout_ms: int = 10_000,
    ) -> int:  # fmt: skip
        """Sends a Produce request with one batch, and returns the request's correlation id."""
        number = next(self._ids)
        data = [produce.TopicBuffers(topic, partition, (batch,))]
        pieces = produce.write_request(number, "raw", version, acks, timeout_ms, data)
        self.send(b"".join(bytes(each) for each in pieces))
        return number

    def produced(self, version: int = 9) -> produce.ProduceResult:
        """Receives the answer to a Produce request of this version for one partition. Returns this
        partition's part of the answer."""
        body = response_body(memoryview(self.receive()), ApiKey.PRODUCE, version)
        return produce.parse_response(body, version).results[0]

    def produce(
        self, topic: str, batch: bytes | bytearray, **options: int
    ) -> produce.ProduceResult:
        """Sends a Produce request with one batch, and returns the partition's part of the
        answer."""
        self.send_produce(topic, batch, **options)
        return self.produced(options.get("version", 9))

    def send_fetch(
        self, topic: str, offset: int, *, partition: int = 0, max_wait_ms: int = 0,
        min_bytes: int = 1, max_bytes: int = 1 << 20, version: int = 11,
    ) -> int:  # fmt: skip
        """Sends a Fetch request for one partition, and returns the request's correlation id."""
        number = next(self._ids)
        wanted = [fetch_request.FetchTarget(topic, partition, offset, max_bytes)]
        request = fetch_request.Fetch(wanted, max_wait_ms, min_bytes, max_bytes)
        self.send(fetch_request.write_request(number, "raw", version, request))
        return number

    def fetched(self, version: int = 11) -> fetch_response.FetchedPartition:
        """Receives the answer to a Fetch request of this version for one partition. Returns this
        partition's part of the answer."""
        body = response_body(memoryview(self.receive()), ApiKey.FETCH, version)
        return fetch_response.parse_response(body, version).partitions[0]

    def fetch(self, topic: str, offset: int, **options: int) -> fetch_response.FetchedPartition:
        """Sends a Fetch request for one partition, and returns the partition's part of the
        answer."""
        self.send_fetch(topic, offset, **options)
        return self.fetched(options.get("version", 11))

    def _exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            try:
                more = self.socket.recv(size - len(data))
            except ConnectionResetError:
                return b""
            if not more:
                return b""
            data += more
        return data


class TlsClient(RawClient):
    """A raw client with TLS."""

    def __init__(self, port: int, files: TlsFiles) -> None:
        super().__init__(port)
        self.socket = client_context(files).wrap_socket(self.socket, server_hostname="localhost")
