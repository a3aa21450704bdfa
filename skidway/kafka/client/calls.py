"""Requests that are not encoded yet. A connection first agrees with the broker on the version of
each API, and then encodes the requests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from skidway.dataclass import dataclass
from skidway.kafka.protocol import fetch_request, fetch_response, produce
from skidway.kafka.protocol.apis import ApiKey
from skidway.kafka.protocol.frames import request_frame
from skidway.kafka.protocol.messages import Request, Response, decode, encode

Buffer = bytes | bytearray | memoryview


class Call(Protocol):
    """One request. A call encodes the request in a given version, and decodes the response."""

    @property
    def api(self) -> ApiKey:
        """The API of the request."""
        ...

    @property
    def is_answered(self) -> bool:
        """Whether the broker sends a response to this request."""
        ...

    def frame(self, version: int, correlation_id: int, client_id: str) -> Sequence[Buffer]:
        """Returns the whole request as a list of buffers, in the order of sending."""
        ...

    def read(self, body: memoryview, version: int) -> Any:
        """Returns the response. Raises ProtocolError if the body is not a valid response."""
        ...


@dataclass(frozen=True, slots=True)
class MessageCall:
    """A request to any API. `skidway.kafka.protocol` encodes the request and decodes the
    response."""

    api: ApiKey
    build: Callable[[int], Request]
    """Makes the request for a given version. Some fields exist only in some versions."""
    response: type[Response]
    is_answered: bool = True

    def frame(self, version: int, correlation_id: int, client_id: str) -> Sequence[Buffer]:
        """Returns the request in one piece: length, header and body."""
        body = encode(self.build(version), version)
        return [request_frame(self.api, version, correlation_id, client_id, body)]

    def read(self, body: memoryview, version: int) -> Response:
        """Returns the response message."""
        return decode(self.response, body, version)


@dataclass(frozen=True, slots=True)
class ProduceCall:
    """A Produce request with batches for partitions of one leader, at most one per partition.
    `data` contains the batches, sorted by topic.
    """

    acks: int
    timeout_ms: int
    data: Sequence[produce.TopicBuffers]

    @property
    def api(self) -> ApiKey:
        """The API of the request: Produce."""
        return ApiKey.PRODUCE

    @property
    def is_answered(self) -> bool:
        """Whether the broker sends a response. With acks 0, it sends no response."""
        return self.acks != 0

    def frame(self, version: int, correlation_id: int, client_id: str) -> Sequence[Buffer]:
        """Returns the request as a list of buffers. Batches are not copied."""
        return produce.write_request(
            correlation_id, client_id, version, self.acks, self.timeout_ms, self.data
        )

    def read(self, body: memoryview, version: int) -> produce.ProduceAnswer:
        """Returns the result of each batch."""
        return produce.parse_response(body, version)


@dataclass(frozen=True, slots=True)
class FetchCall:
    """A Fetch request for partitions of one leader."""

    request: fetch_request.Fetch
    is_answered: bool = True

    @property
    def api(self) -> ApiKey:
        """The API of the request: Fetch."""
        return ApiKey.FETCH

    def frame(self, version: int, correlation_id: int, client_id: str) -> Sequence[Buffer]:
        return [fetch_request.write_request(correlation_id, client_id, version, self.request)]

    def read(self, body: memoryview, version: int) -> fetch_response.FetchAnswer:
        """Returns the response; its batches are views of the body."""
        return fetch_response.parse_response(body, version)
