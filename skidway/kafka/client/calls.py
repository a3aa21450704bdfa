"""Requests as values that a connection can send once it has agreed on a version."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from skidway.kafka.protocol import fetch_request, fetch_response, produce
from skidway.kafka.protocol.apis import ApiKey
from skidway.kafka.protocol.frames import request_frame
from skidway.kafka.protocol.messages import Request, Response, decode, encode

Buffer = bytes | bytearray | memoryview


class Call(Protocol):
    """One request: how to write it in a version, and how to read its response."""

    @property
    def api(self) -> ApiKey:
        """Which API."""
        ...

    @property
    def is_answered(self) -> bool:
        """Whether the broker sends a response at all."""
        ...

    def frame(self, version: int, correlation_id: int, client_id: str) -> Sequence[Buffer]:
        """The whole request, in pieces that are sent as they are."""
        ...

    def read(self, body: memoryview, version: int) -> Any:
        """The response. ProtocolError if the body is not one."""
        ...


@dataclass(frozen=True, slots=True)
class MessageCall:
    """Any request that is written and read by the tables of `skidway.kafka.protocol`."""

    api: ApiKey
    build: Callable[[int], Request]
    """Makes the request for a version (some fields exist in some versions only)."""
    response: type[Response]
    is_answered: bool = True

    def frame(self, version: int, correlation_id: int, client_id: str) -> Sequence[Buffer]:
        """Length, header and body in one piece."""
        body = encode(self.build(version), version)
        return [request_frame(self.api, version, correlation_id, client_id, body)]

    def read(self, body: memoryview, version: int) -> Response:
        """The response message."""
        return decode(self.response, body, version)


@dataclass(frozen=True, slots=True)
class ProduceCall:
    """Batches for partitions of one leader, at most one each; `data` in order of topics."""

    acks: int
    timeout_ms: int
    data: Sequence[produce.TopicBuffers]

    @property
    def api(self) -> ApiKey:
        """Produce."""
        return ApiKey.PRODUCE

    @property
    def is_answered(self) -> bool:
        """With acks 0 there is no response."""
        return self.acks != 0

    def frame(self, version: int, correlation_id: int, client_id: str) -> Sequence[Buffer]:
        """The batches are pieces of their own and not copied."""
        return produce.write_request(
            correlation_id, client_id, version, self.acks, self.timeout_ms, self.data
        )

    def read(self, body: memoryview, version: int) -> produce.ProduceAnswer:
        """What became of each batch."""
        return produce.parse_response(body, version)


@dataclass(frozen=True, slots=True)
class FetchCall:
    """A fetch from partitions of one leader."""

    request: fetch_request.Fetch
    is_answered: bool = True

    @property
    def api(self) -> ApiKey:
        """Fetch."""
        return ApiKey.FETCH

    def frame(self, version: int, correlation_id: int, client_id: str) -> Sequence[Buffer]:
        """Length, header and body in one piece."""
        return [fetch_request.write_request(correlation_id, client_id, version, self.request)]

    def read(self, body: memoryview, version: int) -> fetch_response.FetchAnswer:
        """Batches as views of the response."""
        return fetch_response.parse_response(body, version)
