"""Clients that are not known yet have little time, little memory and few places."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skidway.broker.coordination.access_reader import Granted
from skidway.broker.network.listener_tls import ListenerTls
from skidway.broker.network.unauthenticated import DEADLINE_S, HOG_RATIO, Unauthenticated
from skidway.kafka.protocol.api_versions import ApiVersionsRequest
from skidway.kafka.protocol.apis import ApiKey
from skidway.kafka.protocol.frames import request_frame
from skidway.kafka.protocol.messages import encode
from skidway.kafka.protocol.metadata import MetadataRequest
from skidway.kafka.protocol.sasl_authenticate import SaslAuthenticateRequest
from skidway.kafka.protocol.sasl_handshake import SaslHandshakeRequest
from skidway.security.contexts import TlsFiles, client_context
from skidway.security.principals import PrincipalRules
from skidway.security.scram_credential import of_salted_password
from support.broker_core import BrokerCore, CoreClient, broker_core
from support.certificates import Authority

LIMIT, LOGIN_BYTES = 8, 2_000


@dataclass(eq=False)
class Place:
    """A connection in the place of a newcomer."""

    address: str
    began: float


class Site:
    """A broker core whose clients log in over TLS."""

    def __init__(self, core: BrokerCore, folder: Path) -> None:
        self.core = core
        authority = Authority(folder)
        own = authority.sign("server")
        files = TlsFiles(own.certificate, own.key, authority.certificate)
        self._tls = ListenerTls(files, "none", PrincipalRules("DEFAULT"))
        self._context = client_context(TlsFiles(ca=authority.certificate))

    def connect(self) -> CoreClient:
        return self.core.connect_tls(self._tls, self._context, with_sasl=True)

    def log_in(self, client: CoreClient) -> None:
        shake = SaslHandshakeRequest(mechanism="PLAIN")
        proof = SaslAuthenticateRequest(auth_bytes=b"\0ada\0secret")
        for request, version in ((shake, 1), (proof, 2)):
            key = request.API
            assert client.ask(request_frame(key, version, 1, "x", encode(request, version)))


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    salted = hashlib.pbkdf2_hmac("sha256", b"secret", b"0123456789ab", 4096)
    credential = of_salted_password("SCRAM-SHA-256", salted, b"0123456789ab", 4096)
    (tmp_path / "logs").mkdir()
    with broker_core(
        tmp_path / "logs", sasl_mechanisms=["PLAIN"], login_bytes_max=LOGIN_BYTES
    ) as core:
        core.grant(Granted({"ada": {"SCRAM-SHA-256": credential}}, ()))
        yield Site(core, tmp_path)


def large_request() -> bytes:
    body = encode(MetadataRequest(topics=None), 4)
    return request_frame(ApiKey.METADATA, 4, 1, "x" * LOGIN_BYTES, body)


def test_a_client_must_log_in_soon(site: Site) -> None:
    """Handshake and login together have ten seconds, however busily the client sends. A client that
    has logged in stays."""
    slow, known = site.connect(), site.connect()
    site.log_in(known)
    assert len(site.core.loop.unauthenticated) == 1
    for _ in range(11):
        slow.send(request_frame(ApiKey.API_VERSIONS, 0, 1, "x", encode(ApiVersionsRequest(), 0)))
        site.core.advance(1)
    slow.answers()
    assert slow.is_closed
    assert site.core.closed_for("late") == 1
    assert len(site.core.loop.unauthenticated) == 0
    assert known.ask(large_request()) is not None


def test_a_client_may_send_little_before_its_login(site: Site) -> None:
    """A frame above sasl.server.max.receive.size ends the connection before the login, and is
    served after it."""
    client = site.connect()
    assert client.ask(large_request()) is None
    assert client.is_closed
    assert site.core.closed_for("FrameTooLarge") == 1
    client = site.connect()
    site.log_in(client)
    assert client.ask(large_request()) is not None


Steps = st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["come", "go", "tick"])))


@given(Steps)
def test_there_are_never_more_than_the_limit(steps: list[tuple[str, str]]) -> None:
    """Whoever comes and goes, the limit holds, one that gives way belongs to an address with far
    more than the newcomer's, and after the deadline nobody is left."""
    waiting: Unauthenticated[Place] = Unauthenticated(LIMIT)
    held: list[Place] = []
    now = 0.0
    for address, step in steps:
        if step == "tick":
            now += 1
            for each in waiting.late(now):
                assert each.began <= now - DEADLINE_S
                waiting.end(each)
                held.remove(each)
        elif step == "go" and held:
            waiting.end(held.pop())
        elif step == "come" and waiting.has_room(address):
            gone = waiting.gives_way()
            if gone is not None:
                of_gone = sum(each.address == gone.address for each in held)
                own = sum(each.address == address for each in held)
                assert of_gone >= HOG_RATIO * (own + 1)
                waiting.end(gone)
                held.remove(gone)
            held.append(Place(address, now))
            waiting.begin(held[-1], address, now)
        assert len(waiting) == len(held) <= LIMIT
    assert set(waiting.late(now + DEADLINE_S)) == set(held)
