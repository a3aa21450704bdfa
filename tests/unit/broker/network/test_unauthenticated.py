"""Clients that are not known yet have little time, little memory and few places."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skidway.broker.coordination.access_reader import Granted
from skidway.broker.network.listener_tls import ListenerTls
from skidway.broker.network.unauthenticated import (
    DEADLINE_S,
    HOG_RATIO,
    PATIENCE_S,
    Unauthenticated,
)
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
    since: float
    is_served: bool = False


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


Steps = st.lists(
    st.tuples(st.sampled_from("abcdef"), st.sampled_from(["come", "go", "tick", "step", "serve"]))
)


class Model:
    """Who holds a place, and since when its client has let the broker wait; beside the real one."""

    def __init__(self) -> None:
        self.places: Unauthenticated[Place] = Unauthenticated(LIMIT, lambda x: not x.is_served)
        self.held: list[Place] = []
        self.now = 0.0

    def run(self, step: str, address: str) -> None:
        if step == "come":
            self._come(address)
        elif step == "tick":
            self.now += PATIENCE_S / 2
            for each in self.places.late(self.now):
                assert each.began <= self.now - DEADLINE_S
                self._leave(each)
        elif self.held and step == "go":
            self._leave(self.held[-1])
        elif self.held:
            self.held[0].is_served = step == "serve"
            self.held[0].since = self.now
            self.places.stepped(self.held[0], self.now)

    def _come(self, address: str) -> None:
        assert self.places.is_full == (len(self.held) == LIMIT)
        if self.places.is_full:
            gives_way = self.places.gives_way(address, self.now)
            assert (gives_way is None) == (not self._may_give_way(address))
            if gives_way is None:
                return
            assert gives_way in self._may_give_way(address)
            self._leave(gives_way)
        self.held.append(Place(address, self.now, self.now))
        self.places.begin(self.held[-1], address, self.now)

    def _may_give_way(self, address: str) -> list[Place]:
        count = Counter(each.address for each in self.held)
        most = max(count.values())
        if most >= HOG_RATIO * (count[address] + 1):
            return [each for each in self.held if count[each.address] == most]
        slow = [x for x in self.held if not x.is_served and x.since <= self.now - PATIENCE_S]
        return [x for x in slow if x.since == min(each.since for each in slow)]

    def _leave(self, place: Place) -> None:
        self.places.end(place)
        self.held.remove(place)


@given(Steps)
def test_there_are_never_more_than_the_limit(steps: list[tuple[str, str]]) -> None:
    """Whoever comes and goes, the limit holds; one that gives way belongs to an address with far
    more than the newcomer's, or is the slowest of those that the broker waits for; and after the
    deadline nobody is left."""
    model = Model()
    for address, step in steps:
        model.run(step, address)
        assert len(model.places) == len(model.held) <= LIMIT
    assert set(model.places.late(model.now + DEADLINE_S)) == set(model.held)
