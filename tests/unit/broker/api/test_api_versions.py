"""Tests the cached answers to ApiVersions requests. A client gets the same answers as without the
cache, only faster."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skidway.broker.api import api_versions as handler
from skidway.broker.api import registry
from skidway.broker.api.exchange import Exchange
from skidway.broker.kept_answers import KeptAnswers
from skidway.kafka.errors import ErrorCode, ProtocolError
from skidway.kafka.protocol import api_versions
from skidway.kafka.protocol.api_versions import ApiVersionsRequest, ApiVersionsResponse
from skidway.kafka.protocol.apis import ApiKey
from skidway.kafka.protocol.frames import response_body
from skidway.kafka.protocol.messages import decode, encode
from support.open_access import AUTHORIZER

CLIENTS = ("librdkafka", "apache-kafka-java", "-not a name-")
KNOWN = st.sampled_from(range(4))
UNKNOWN = st.integers(-(1 << 15), -1) | st.integers(4, (1 << 15) - 1)


class World:
    """A stand-in for those parts of the broker and of its loop that the handler of ApiVersions
    requests needs."""

    def __init__(self) -> None:
        ranges = registry.ranges()
        self.broker: Any = SimpleNamespace(
            api_ranges=ranges, api_versions_answers=KeptAnswers(lambda: (ranges,))
        )
        self.sent: list[Any] = []

    def fill(self, _connection: object, _slot: object, pieces: Any) -> None:
        self.sent.append(pieces)

    def ask(self, version: int, body: bytes) -> bytes:
        loop: Any = self
        connection: Any = SimpleNamespace(reserve=object)
        view = memoryview(body)
        handler.handle(
            self.broker,
            Exchange(loop, AUTHORIZER, connection, ApiKey.API_VERSIONS, version, 7, view),
        )
        frame = memoryview(b"".join(self.sent.pop()))[4:]
        # KIP-511: the response header of ApiVersions has no tagged fields in any version.
        return bytes(response_body(frame, ApiKey.API_VERSIONS, 0))


def said(version: int, name: str = "librdkafka") -> bytes:
    if version < 3:
        return b""
    request = ApiVersionsRequest(client_software_name=name, client_software_version="2.16.0")
    return encode(request, version)


@given(st.lists(st.tuples(KNOWN | UNKNOWN, st.sampled_from(CLIENTS)), max_size=12))
def test_each_gets_what_it_would_get_alone(asked: list[tuple[int, str]]) -> None:
    """The answer to a client's ApiVersions request is the same as if no other client had sent a
    request before."""
    together = World()
    for version, name in asked:
        body = said(version, name) if version in api_versions.VERSIONS else name.encode()
        assert together.ask(version, body) == World().ask(version, body)


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_the_second_who_asks_alike_gets_the_bytes_of_the_first(
    version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broker encodes the answer to ApiVersions requests only once for each version, however
    many clients connect."""
    world = World()
    first = world.ask(version, said(version))
    response = decode(ApiVersionsResponse, memoryview(first), version)
    assert (response.error_code, response.ranges()) == (0, registry.ranges())
    monkeypatch.setattr(api_versions, "answer", None)  # not called
    assert world.ask(version, said(version)) == first


@given(st.lists(st.tuples(UNKNOWN, st.binary(max_size=8)), min_size=2, max_size=8))
def test_one_answer_to_all_versions_that_are_not_known(asked: list[tuple[int, bytes]]) -> None:
    """All ApiVersions requests with an unknown version get one shared cached answer, so that such
    requests do not fill the memory. The broker does not look at the body of such a request
    (KIP-511)."""
    world = World()
    for version, body in asked:
        response = decode(ApiVersionsResponse, memoryview(world.ask(version, body)), 0)
        assert response.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert len(world.broker.api_versions_answers) == 1


def test_what_is_no_request_is_refused_each_time() -> None:
    """A request that cannot be parsed is refused each time, and no answer to it is cached."""
    world = World()
    for _ in range(2):
        with pytest.raises(ProtocolError):
            world.ask(3, b"\xff")
    assert not len(world.broker.api_versions_answers)
