"""Over a connection with SASL, no sequence of frames reaches a handler without a principal."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skidway.broker.access.logins import Login
from skidway.broker.api import registry
from skidway.broker.api.exchange import Exchange
from skidway.broker.api.registration import Api
from skidway.broker.broker import Broker
from skidway.broker.coordination.access_reader import Granted
from skidway.broker.network.connection import Connection
from skidway.kafka.errors import ErrorCode
from skidway.kafka.protocol import fetch_request, fetch_response
from skidway.kafka.protocol.apis import ApiKey
from skidway.kafka.protocol.create_topics import CreatableTopic, CreateTopicsRequest
from skidway.kafka.protocol.frames import request_frame, response_body
from skidway.kafka.protocol.messages import Response, decode, encode
from skidway.kafka.protocol.metadata import MetadataRequest
from skidway.kafka.protocol.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from skidway.kafka.protocol.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from skidway.security.sasl import Exchange as ClientExchange
from skidway.security.sasl import Login as ClientLogin
from skidway.security.scram_credential import of_salted_password
from support.broker_core import BrokerCore, CoreClient, broker_core

SALT, LIFE_MS = b"0123456789ab", 10_000
METADATA = MetadataRequest(topics=None)
OPEN = {ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE}


@pytest.fixture
def core(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[BrokerCore]:
    salted = hashlib.pbkdf2_hmac("sha256", b"secret", SALT, 4096)
    credential = of_salted_password("SCRAM-SHA-256", salted, SALT, 4096)
    users = {name: {"SCRAM-SHA-256": credential} for name in ("ada", "bob")}
    with broker_core(
        tmp_path,
        sasl_mechanisms=["SCRAM-SHA-256", "PLAIN"],
        reauthentication_ms_max=LIFE_MS,
    ) as made:
        made.grant(Granted(users, ()))
        _watch_handlers(made, monkeypatch)
        yield made


def _watch_handlers(core: BrokerCore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets each handler note a client without a complete login that is not over."""
    core.__dict__["strangers"] = []

    def watched(api: Api) -> Api:
        def handle(broker: Broker, exchange: Exchange) -> None:
            login = exchange.connection.login
            if api.key not in OPEN and login is not None:
                ok = exchange.connection.identity.user in ("ada", "bob")
                if not ok or core.loop.now >= login.ends_at:
                    core.__dict__["strangers"].append(api.key)
            api.handle(broker, exchange)

        return Api(api.key, handle)

    monkeypatch.setattr(
        registry, "SERVED", {key: watched(api) for key, api in registry.SERVED.items()}
    )


def connected(core: BrokerCore) -> tuple[CoreClient, Connection]:
    """Returns a client of a listener with SASL, and the broker's end of its connection."""
    before = set(core.loop.connections)
    client = core.connect("SECURED")
    core.turn()
    [descriptor] = set(core.loop.connections) - before
    connection = core.loop.connections[descriptor]
    connection.login = Login(core.logins)
    return client, connection


def ask(client: CoreClient, request: SaslHandshakeRequest | SaslAuthenticateRequest) -> Response:
    kind, version = (
        (SaslHandshakeResponse, 1)
        if isinstance(request, SaslHandshakeRequest)
        else (SaslAuthenticateResponse, 2)
    )
    frame = client.ask(request_frame(request.API, version, 1, "x", encode(request, version)))
    assert frame is not None
    return decode(kind, response_body(memoryview(frame), request.API, version), version)


def authenticate(client: CoreClient, message: bytes) -> SaslAuthenticateResponse:
    found = ask(client, SaslAuthenticateRequest(auth_bytes=message))
    assert isinstance(found, SaslAuthenticateResponse)
    return found


def log_in(
    client: CoreClient,
    mechanism: str = "SCRAM-SHA-256",
    user: str = "ada",
    password: str = "secret",
) -> SaslAuthenticateResponse:
    """Returns the answer to the last message of a login."""
    exchange = ClientLogin(mechanism, user, "secret").exchange()
    answer = ask(client, SaslHandshakeRequest(mechanism=mechanism))
    assert isinstance(answer, SaslHandshakeResponse)
    assert answer.error_code == 0, answer
    message: bytes | None = exchange.first()
    while message is not None:
        found = authenticate(client, message)
        if found.error_code:
            return found
        message = exchange.answer(found.auth_bytes)
    return found


def is_served(client: CoreClient) -> bool:
    body = encode(METADATA, 4)
    return client.ask(request_frame(ApiKey.METADATA, 4, 1, "x", body)) is not None


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "PLAIN"])
def test_a_client_that_has_logged_in_is_served(core: BrokerCore, mechanism: str) -> None:
    """After its login a client is served under its name, for as long as the answer says."""
    client, connection = connected(core)
    found = log_in(client, mechanism)
    assert (found.error_code, found.session_lifetime_ms) == (0, LIFE_MS)
    assert connection.identity.principal == "User:ada"
    assert is_served(client)
    core.advance(LIFE_MS / 1000)
    assert not is_served(client)
    assert client.is_closed
    assert core.closed_for("NotAuthenticated") == 1


@pytest.mark.parametrize(("user", "password"), [("ada", "wrong"), ("nobody", "secret")])
@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "PLAIN"])
def test_a_login_that_fails_tells_little_and_late(
    core: BrokerCore, mechanism: str, user: str, password: str
) -> None:
    """A wrong password and an unknown user get the same answer, after a delay, and nothing more."""
    client, connection = connected(core)
    ask(client, SaslHandshakeRequest(mechanism=mechanism))
    exchange = ClientLogin(mechanism, user, password).exchange()
    message = exchange.first()
    if mechanism != "PLAIN" and user == "ada":
        message = exchange.answer(authenticate(client, message).auth_bytes) or b""
    request = encode(SaslAuthenticateRequest(auth_bytes=message), 2)
    client.send(request_frame(ApiKey.SASL_AUTHENTICATE, 2, 1, "x", request))
    core.advance(0)
    core.advance(0.099)
    assert client.answers() == []
    core.advance(0.01)
    [frame] = client.answers()
    body = response_body(memoryview(frame), ApiKey.SASL_AUTHENTICATE, 2)
    found = decode(SaslAuthenticateResponse, body, 2)
    assert found.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert found.error_message == "the user or the password is wrong"
    client.answers()
    assert client.is_closed
    assert connection.closed
    assert core.broker.access.log.logins == {(mechanism, "failed"): 1}


def test_an_unknown_mechanism_is_told_the_others(core: BrokerCore) -> None:
    """UNSUPPORTED_SASL_MECHANISM names the mechanisms, and ends the connection."""
    client, _ = connected(core)
    found = ask(client, SaslHandshakeRequest(mechanism="GSSAPI"))
    assert isinstance(found, SaslHandshakeResponse)
    assert found.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM
    assert found.mechanisms == ("SCRAM-SHA-256", "PLAIN")
    client.answers()
    assert client.is_closed


def test_an_old_handshake_is_refused(core: BrokerCore) -> None:
    """SaslHandshake 0 is offered for librdkafka 2.0.2, which then uses 1; who uses 0 is told, and
    put out."""
    client, _ = connected(core)
    body = encode(SaslHandshakeRequest(mechanism="PLAIN"), 0)
    frame = client.ask(request_frame(ApiKey.SASL_HANDSHAKE, 0, 1, "x", body))
    assert frame is not None
    answer = response_body(memoryview(frame), ApiKey.SASL_HANDSHAKE, 0)
    found = decode(SaslHandshakeResponse, answer, 0)
    assert found.error_code == ErrorCode.UNSUPPORTED_VERSION
    client.answers()
    assert client.is_closed


def test_a_listener_without_sasl_has_no_login(core: BrokerCore) -> None:
    """On other listeners a login is out of order, and the connection goes on."""
    client = core.connect()
    found = ask(client, SaslHandshakeRequest(mechanism="PLAIN"))
    assert isinstance(found, SaslHandshakeResponse)
    assert found.error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert authenticate(client, b"\0ada\0secret").error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert is_served(client)


def test_a_fetch_waits_no_longer_than_its_login(core: BrokerCore) -> None:
    """A Fetch that waits for records is answered without any when the login of its client is over,
    so nobody gets what is written later."""
    create = encode(CreateTopicsRequest(topics=(CreatableTopic(name="logs", num_partitions=1),)), 5)
    assert core.connect().ask(request_frame(ApiKey.CREATE_TOPICS, 5, 1, "x", create))
    client, _ = connected(core)
    log_in(client)
    wanted = [fetch_request.FetchTarget("logs", 0, 0, 1 << 20)]
    fetch = fetch_request.Fetch(wanted, 2 * LIFE_MS, 1, 1 << 20)
    client.send(fetch_request.write_request(1, "x", 11, fetch))
    core.advance(LIFE_MS / 1000 - 1)
    assert client.answers() == []
    core.advance(1)
    [answer] = client.answers()
    body = response_body(memoryview(answer), ApiKey.FETCH, 11)
    assert not fetch_response.parse_response(body, 11).partitions[0].records


def test_a_client_logs_in_again(core: BrokerCore) -> None:
    """A client that logs in again goes on under its name; as another it is refused."""
    client, connection = connected(core)
    log_in(client)
    core.advance(8)
    assert log_in(client).error_code == 0
    core.advance(8)
    assert is_served(client)
    core.advance(1)
    found = log_in(client, user="bob")
    assert found.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    client.answers()
    assert connection.closed


def test_a_user_who_is_removed_is_put_out(core: BrokerCore) -> None:
    """The connections of a user without credentials are closed, those of others stay."""
    (ada, _), (bob, _) = connected(core), connected(core)
    log_in(ada)
    log_in(bob, user="bob")
    users = {name: found for name, found in core.logins.users.items() if name != "ada"}
    core.grant(Granted(users, ()))
    assert not is_served(ada)
    assert is_served(bob)
    assert core.closed_for("user_removed") == 1


MOVES = st.sampled_from(
    ["handshake", "handshake plain", "first", "final", "stale final", "wrong final", "plain",
     "plain wrong", "bytes", "metadata", "versions", "produce", "second", "life"]
)  # fmt: skip


class Attacker:
    """Sends frames in any order, some of them right ones."""

    def __init__(self, core: BrokerCore) -> None:
        self._core = core
        self.client, self.connection = connected(core)
        self._exchange: ClientExchange = ClientLogin("SCRAM-SHA-256", "ada", "secret").exchange()
        self._wrong: ClientExchange = ClientLogin("SCRAM-SHA-256", "ada", "wrong").exchange()
        self._final = b"c=biws,r=x,p=AAAA"

    def move(self, name: str) -> None:
        if name in ("second", "life"):
            self._core.advance(1 if name == "second" else LIFE_MS / 1000)
            return
        if name.startswith("handshake"):
            mechanism = "PLAIN" if "plain" in name else "SCRAM-SHA-256"
            self._ask(
                ApiKey.SASL_HANDSHAKE, 1, encode(SaslHandshakeRequest(mechanism=mechanism), 1)
            )
        elif name == "first":
            self._exchange = ClientLogin("SCRAM-SHA-256", "ada", "secret").exchange()
            self._send(self._exchange.first())
        elif name == "metadata":
            self._ask(ApiKey.METADATA, 4, encode(METADATA, 4))
        elif name == "versions":
            self._ask(ApiKey.API_VERSIONS, 0, b"")
        elif name == "produce":
            self._ask(ApiKey.PRODUCE, 3, b"\xff\xff\0\1\0\0\0\1\0\0\0\0")
        else:
            self._send(self._message(name))

    def _message(self, name: str) -> bytes:
        fixed = {
            "stale final": b"c=biws,r=x,p=AAAA",
            "wrong final": self._final[:-4] + b"AAA=",
            "plain": b"\0ada\0secret",
            "plain wrong": b"\0ada\0wrong",
            "bytes": b"\xff\0\xff",
        }
        return fixed.get(name, self._final)

    def _send(self, message: bytes) -> None:
        request = SaslAuthenticateRequest(auth_bytes=message)
        frame = self._ask(ApiKey.SASL_AUTHENTICATE, 2, encode(request, 2))
        if frame is None:
            return
        body = response_body(memoryview(frame), ApiKey.SASL_AUTHENTICATE, 2)
        found = decode(SaslAuthenticateResponse, body, 2)
        if found.auth_bytes.startswith(b"r="):
            self._final = self._exchange.answer(found.auth_bytes) or self._final

    def _ask(self, key: ApiKey, version: int, body: bytes) -> bytes | None:
        if self.client.is_closed:
            return None
        self.client.send(request_frame(key, version, 1, "x", body))
        self._core.advance(0.1)
        return next(iter(self.client.answers()), None)


@settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(MOVES, max_size=14))
def test_no_sequence_of_frames_is_served_without_a_principal(
    core: BrokerCore, moves: list[str]
) -> None:
    """Whatever a client sends, in whatever order, a handler sees it only after a login that is
    complete and not over; and nothing is a bug."""
    attacker = Attacker(core)
    for each in moves:
        attacker.move(each)
    attacker.client.close()
    core.advance(0)
    assert core.__dict__["strangers"] == []
    assert core.closed_for("failed") == 0
    assert core.loop.traffic.failed_calls == 0


def test_a_login_that_is_renewed_serves_nothing_between(core: BrokerCore) -> None:
    """From its new SaslHandshake on, a client is not served, not even what it was served before
    without a further look; and it has as long as a new client to complete the login."""
    client, connection = connected(core)
    log_in(client)
    connection.memo = object()
    core.advance(2)
    ask(client, SaslHandshakeRequest(mechanism="SCRAM-SHA-256"))
    assert connection.memo is None
    assert len(core.loop.unauthenticated) == 1
    for _ in range(11):
        core.advance(1)
    assert core.closed_for("late") == 1
