"""The server's part of a login: who has the password gets in, and nobody learns who exists."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skidway.security.sasl import MECHANISMS, SCRAM, Login
from skidway.security.sasl_server import (
    Challenge,
    Check,
    LoginInvalid,
    Proved,
    ServerExchange,
    begin,
)
from skidway.security.scram_credential import ScramCredential, of_salted_password


def credential(mechanism: str, password: str) -> ScramCredential:
    kind, salt = ("sha256" if mechanism == "SCRAM-SHA-256" else "sha512"), b"0123456789ab"
    salted = hashlib.pbkdf2_hmac(kind, password.encode(), salt, 4096)
    return of_salted_password(mechanism, salted, salt, 4096)


USERS = {
    ("ada", "SCRAM-SHA-256"): credential("SCRAM-SHA-256", "secret"),
    ("ada", "SCRAM-SHA-512"): credential("SCRAM-SHA-512", "secret"),
    ("bob=,x", "SCRAM-SHA-512"): credential("SCRAM-SHA-512", "pass,word="),
}


def find(user: str, mechanism: str) -> ScramCredential | None:
    return USERS.get((user, mechanism))


def server(mechanism: str) -> ServerExchange:
    return begin(mechanism, find)


def log_in(mechanism: str, user: str, password: str) -> str:
    """Returns who the client has proved to be. Raises LoginInvalid."""
    client, other = Login(mechanism, user, password).exchange(), server(mechanism)
    step = other.receive(client.first())
    while isinstance(step, Challenge):
        message = client.answer(step.message)
        assert message is not None
        step = other.receive(message)
    if isinstance(step, Check):
        if not step.run():
            raise LoginInvalid("the password is wrong", step.user)
        return step.user
    assert client.answer(step.message) is None  # the client believes the server
    return step.user


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_the_right_password_gets_in(mechanism: str) -> None:
    """Each mechanism lets in who has the password, and nobody else."""
    assert log_in(mechanism, "ada", "secret") == "ada"
    for user, password in (("ada", "Secret"), ("nobody", "secret"), ("Ada", "secret")):
        with pytest.raises(LoginInvalid):
            log_in(mechanism, user, password)


def test_names_may_have_any_characters() -> None:
    """A name with the characters that SCRAM itself uses is the user's name."""
    assert log_in("SCRAM-SHA-512", "bob=,x", "pass,word=") == "bob=,x"
    assert log_in("PLAIN", "bob=,x", "pass,word=") == "bob=,x"
    with pytest.raises(LoginInvalid, match="no such user"):  # no credential for this mechanism
        log_in("SCRAM-SHA-256", "bob=,x", "pass,word=")


@pytest.mark.parametrize("mechanism", SCRAM)
def test_a_long_message_is_refused_unread(mechanism: str) -> None:
    """Names are normalised, which takes a time that grows with the square of their length, so a
    message of more than 1 KiB is refused before."""
    name = "a" + "\u0301\u0316" * 100_000
    with pytest.raises(LoginInvalid, match="bytes"):
        server(mechanism).receive(f"n,,n={name},r=x".encode())


@pytest.mark.parametrize(
    ("message", "why"),
    [
        (b"", "not of PLAIN"),
        (b"\0ada", "not of PLAIN"),
        (b"\0ada\0", "not of PLAIN"),
        (b"\0\0secret", "not of PLAIN"),
        (b"\0ada\0secret\0", "not of PLAIN"),
        (b"\0ada\0" + b"x" * 5000, "not of PLAIN"),
        (b"\0\xff\0secret", "not UTF-8"),
        (b"admin\0ada\0secret", "for another user"),
    ],
)
def test_a_bad_message_of_plain_is_refused(message: bytes, why: str) -> None:
    """What RFC 4616 does not allow is refused before the password is looked at."""
    with pytest.raises(LoginInvalid, match=why):
        server("PLAIN").receive(message)


MESSAGES = st.one_of(
    st.binary(max_size=60),
    st.sampled_from(
        [b"n,,n=ada,r=x", b"n,,n=ada,r=", b"y,,n=ada,r=x", b"p=tls-unique,,n=ada,r=x",
         b"n,,r=x,n=a", b"c=biws,r=x,p=AAAA", b"n,a=b,n=ada,r=x", b"n,,m=1,n=ada,r=x",
         b"n,,n==,r=x"]
    ),
)  # fmt: skip


@given(st.sampled_from(SCRAM), st.lists(MESSAGES, min_size=1, max_size=4))
def test_no_messages_without_a_password_prove_anything(mechanism: str, sent: list[bytes]) -> None:
    """Whatever somebody without a password sends, he is nobody, and gets no other error."""
    exchange = server(mechanism)
    for each in sent:
        try:
            step = exchange.receive(each)
        except LoginInvalid:
            return
        assert not isinstance(step, Proved)


@pytest.mark.parametrize("mechanism", SCRAM)
@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace(",r=", ",r=0"),
        lambda text: text.replace("c=biws", "c=eSws"),
        lambda text: text[:-9] + ("A" if text[-9] != "A" else "B") + text[-8:],
        lambda text: text + ",x=1",
    ],
)
def test_a_proof_is_good_for_its_own_login(mechanism: str, change: Callable[[str], str]) -> None:
    """A final message that was changed on the way, or belongs to another login, proves nothing."""
    client, other = Login(mechanism, "ada", "secret").exchange(), server(mechanism)
    first = client.first()
    step = other.receive(first)
    assert isinstance(step, Challenge)
    message = client.answer(step.message)
    assert message is not None
    with pytest.raises(LoginInvalid):
        other.receive(change(message.decode()).encode())
    replayed = server(mechanism)
    replayed.receive(first)
    with pytest.raises(LoginInvalid):
        replayed.receive(message)
