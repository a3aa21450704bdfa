"""The states of a connection with SASL: nothing but a login that is complete, and not over, lets a
request through."""

from __future__ import annotations

import dataclasses
import hashlib

import pytest

from skidway.broker.access.logins import Login, Logins, OutOfOrder, State, UnknownMechanism
from skidway.kafka.protocol.apis import ApiKey
from skidway.security.sasl import Login as ClientLogin
from skidway.security.sasl_server import Challenge, Check, LoginInvalid, Proved
from skidway.security.scram_credential import of_salted_password

SALT = b"0123456789ab"
LIFE_S = 10.0
ORDINARY = [each for each in ApiKey if "SASL" not in each.name and each is not ApiKey.API_VERSIONS]


@pytest.fixture
def logins() -> Logins:
    made = Logins(["SCRAM-SHA-256", "PLAIN"], int(LIFE_S * 1000))
    salted = hashlib.pbkdf2_hmac("sha256", b"secret", SALT, 4096)
    credential = of_salted_password("SCRAM-SHA-256", salted, SALT, 4096)
    made.users = {name: {"SCRAM-SHA-256": credential} for name in ("ada", "bob")}
    return made


def log_in(login: Login, now: float, user: str = "ada", password: str = "secret") -> Proved:
    client = ClientLogin("SCRAM-SHA-256", user, password).exchange()
    login.handshake("SCRAM-SHA-256", now)
    step = login.receive(client.first(), now)
    assert isinstance(step, Challenge)
    message = client.answer(step.message)
    assert message is not None
    step = login.receive(message, now)
    assert isinstance(step, Proved)
    return step


def admits_any(login: Login, now: float) -> bool:
    return any(login.admits(each, now) for each in ORDINARY)


def test_a_client_is_admitted_when_its_login_is_complete(logins: Logins) -> None:
    """Before and between the messages of its login, a client gets nothing but the login (and, at
    the beginning, the versions)."""
    login, client = Login(logins), ClientLogin("SCRAM-SHA-256", "ada", "secret").exchange()
    assert login.admits(ApiKey.API_VERSIONS, 0)
    assert not admits_any(login, 0)
    login.handshake("SCRAM-SHA-256", 0)
    assert not login.admits(ApiKey.API_VERSIONS, 0)
    step = login.receive(client.first(), 0)
    assert isinstance(step, Challenge)
    assert not admits_any(login, 0)
    assert login.identity is None
    login.receive(client.answer(step.message) or b"", 0)
    assert all(login.admits(each, 0) for each in ORDINARY)
    assert login.identity is not None
    assert (login.identity.principal, login.identity.user) == ("User:ada", "ada")


def test_a_password_that_is_checked_admits_nobody_before(logins: Logins) -> None:
    """While a thread checks the password of PLAIN, and if it is wrong, nothing is admitted."""
    for is_right in (True, False):
        login = Login(logins)
        login.handshake("PLAIN", 0)
        check = login.receive(b"\0ada\0secret", 0)
        assert isinstance(check, Check)
        assert not admits_any(login, 0)
        if is_right:
            assert login.checked(check, is_right, 0).user == "ada"
        else:
            with pytest.raises(LoginInvalid, match="wrong"):
                login.checked(check, is_right, 0)
        assert admits_any(login, 0) is is_right


def test_a_login_ends(logins: Logins) -> None:
    """After the end of its login a client has to log in again, as the same user; it may do so
    before the end, too (KIP-368)."""
    login = Login(logins)
    log_in(login, 0)
    assert login.session_ms == LIFE_S * 1000
    assert admits_any(login, LIFE_S - 0.001)
    assert not admits_any(login, LIFE_S)
    log_in(login, LIFE_S + 1)
    assert admits_any(login, 2 * LIFE_S)
    log_in(login, 2 * LIFE_S)
    with pytest.raises(LoginInvalid, match="another user"):
        log_in(login, 2 * LIFE_S + 5, user="bob")
    assert not admits_any(login, 2 * LIFE_S + 5)


def test_without_a_limit_a_login_does_not_end(logins: Logins) -> None:
    """connections.max.reauth.ms = 0 means for ever, and clients are told so by 0."""
    logins.session_ms_max = 0
    login = Login(logins)
    log_in(login, 0)
    assert login.session_ms == 0
    assert admits_any(login, 1e12)


def test_who_logs_in_again_is_held_to_order(logins: Logins) -> None:
    """A client may not log in again twice within a second, or by another mechanism, and gets
    nothing in the middle of it."""
    login = Login(logins)
    log_in(login, 0)
    log_in(login, 0.1)
    with pytest.raises(OutOfOrder, match="within a second"):
        login.handshake("SCRAM-SHA-256", 1)
    assert login.state is State.FAILED
    login = Login(logins)
    log_in(login, 0)
    with pytest.raises(OutOfOrder, match="by PLAIN"):
        login.handshake("PLAIN", 2)
    login = Login(logins)
    log_in(login, 0)
    login.handshake("SCRAM-SHA-256", 2)
    assert not admits_any(login, 2)


def test_what_is_out_of_order_ends_the_connection(logins: Logins) -> None:
    """Messages that come before, twice, or after a login that has failed are refused for ever."""
    login = Login(logins)
    with pytest.raises(OutOfOrder):
        login.receive(b"n,,n=ada,r=x", 0)
    with pytest.raises(OutOfOrder):
        login.handshake("SCRAM-SHA-256", 0)
    login = Login(logins)
    login.handshake("SCRAM-SHA-256", 0)
    with pytest.raises(OutOfOrder):
        login.handshake("SCRAM-SHA-256", 0)
    login = Login(logins)
    login.handshake("PLAIN", 0)
    login.receive(b"\0ada\0secret", 0)
    with pytest.raises(OutOfOrder):
        login.receive(b"\0ada\0secret", 0)
    login = Login(logins)
    with pytest.raises(UnknownMechanism):
        login.handshake("SCRAM-SHA-512", 0)
    assert not login.admits(ApiKey.API_VERSIONS, 0)


def test_a_password_that_was_replaced_meanwhile_lets_nobody_in(logins: Logins) -> None:
    """A credential counts at the end of a login, not at its beginning: a user who was removed, or
    got another password, between two messages does not get in."""
    users = logins.users
    other = dataclasses.replace(users["ada"]["SCRAM-SHA-256"], stored_key=bytes(32))
    for changed in ({}, {"ada": {"SCRAM-SHA-256": other}}):
        logins.users = users
        login, client = Login(logins), ClientLogin("SCRAM-SHA-256", "ada", "secret").exchange()
        login.handshake("SCRAM-SHA-256", 0)
        step = login.receive(client.first(), 0)
        assert isinstance(step, Challenge)
        logins.users = changed
        with pytest.raises(LoginInvalid, match="meanwhile"):
            login.receive(client.answer(step.message) or b"", 0)
        logins.users = users
        login = Login(logins)
        login.handshake("PLAIN", 0)
        check = login.receive(b"\0ada\0secret", 0)
        assert isinstance(check, Check)
        logins.users = changed
        with pytest.raises(LoginInvalid, match="meanwhile"):
            login.checked(check, True, 0)
        assert not admits_any(login, 0)
