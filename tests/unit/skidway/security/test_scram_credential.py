"""A server's credentials have Kafka's text, fit one password alone, and have bounds."""

from __future__ import annotations

import base64
import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skidway.security.sasl import SCRAM
from skidway.security.scram_credential import (
    CredentialInvalid,
    ScramCredential,
    of_salted_password,
    parse,
)

SALT = b"0123456789ab"
GOOD = {
    "salt": base64.b64encode(SALT).decode(),
    "stored_key": base64.b64encode(bytes(32)).decode(),
    "server_key": base64.b64encode(bytes(32)).decode(),
    "iterations": "4096",
}


def made(
    mechanism: str, password: str, salt: bytes = SALT, iterations: int = 4096
) -> ScramCredential:
    kind = "sha256" if mechanism == "SCRAM-SHA-256" else "sha512"
    salted = hashlib.pbkdf2_hmac(kind, password.encode(), salt, iterations)
    return of_salted_password(mechanism, salted, salt, iterations)


def text(**changed: str | None) -> str:
    return ",".join(
        f"{key}={value}" for key, value in (GOOD | changed).items() if value is not None
    )


def test_the_keys_are_those_of_rfc_7677() -> None:
    """The example of RFC 7677, section 3: the server's keys prove and check its messages."""
    salt = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
    found = made("SCRAM-SHA-256", "pencil", salt)
    assert base64.b64encode(found.stored_key) == b"WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY="
    assert base64.b64encode(found.server_key) == b"wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU="


@given(st.sampled_from(SCRAM), st.binary(min_size=12, max_size=40), st.integers(4096, 16_384))
def test_the_text_says_everything(mechanism: str, salt: bytes, iterations: int) -> None:
    """A credential is the same after it was written and read, and no log shows it."""
    credential = of_salted_password(mechanism, b"salted password", salt, iterations)
    assert parse(mechanism, credential.text()) == credential
    assert credential.text() not in repr(credential)
    assert str(credential.stored_key) not in repr(credential)


@pytest.mark.parametrize("mechanism", SCRAM)
def test_one_password_fits(mechanism: str) -> None:
    """A password is checked against what SCRAM stores."""
    credential = made(mechanism, "secret")
    assert credential.matches("secret")
    assert not credential.matches("Secret")
    assert not credential.matches("")


@pytest.mark.parametrize(
    "bad",
    [
        "", "x", text(salt=None), text(salt="!"), text(salt="AAAA"), text(iterations="many"),
        text(iterations="4095"), text(iterations="16385"), text(stored_key="AAAA"),
        text(server_key=None), text(more="1"),
    ],
)  # fmt: skip
def test_what_is_no_credential_is_refused(bad: str) -> None:
    """Texts that Kafka would not write are refused."""
    parse("SCRAM-SHA-256", text())
    with pytest.raises(CredentialInvalid):
        parse("SCRAM-SHA-256", bad)
    with pytest.raises(CredentialInvalid):
        parse("SCRAM-SHA-512", text())
    with pytest.raises(CredentialInvalid):
        parse("GSSAPI", text())
