"""What a server stores of a password (RFC 5802): enough to check a login by SCRAM, or a password,
and not enough to log in. The text is Kafka's, as in its ZooKeeper nodes:

    salt=BASE64,stored_key=BASE64,server_key=BASE64,iterations=4096
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from typing import Final

from skidway.dataclass import dataclass
from skidway.security.sasl import SCRAM

ITERATIONS_MIN: Final = 4_096
ITERATIONS_MAX: Final = 16_384
"""Kafka's limits. A client's login takes 4 ms of its time with the most."""
SALT_BYTES: Final = 32
SALT_BYTES_MIN: Final = 12
_FIELDS: Final = ("salt", "stored_key", "server_key", "iterations")


class CredentialInvalid(ValueError):
    """The text or the values are not a credential's."""


@dataclass(frozen=True, slots=True)
class ScramCredential:
    """One user's credential for one mechanism. Without a repr, so that no log has it."""

    mechanism: str
    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int

    def __repr__(self) -> str:
        return f"ScramCredential({self.mechanism}, {self.iterations} iterations)"

    def text(self) -> str:
        """Returns Kafka's text."""
        salt, stored_key, server_key = (
            base64.b64encode(each).decode()
            for each in (self.salt, self.stored_key, self.server_key)
        )
        return (
            f"salt={salt},stored_key={stored_key},server_key={server_key}"
            f",iterations={self.iterations}"
        )

    def matches(self, password: str) -> bool:
        """Returns whether this is the user's password. Takes 1 ms for each 4,096 iterations, most
        of it without Python's lock."""
        salted = salt_password(self.mechanism, password, self.salt, self.iterations)
        found = of_salted_password(self.mechanism, salted, self.salt, self.iterations)
        return hmac.compare_digest(found.stored_key, self.stored_key)


def salt_password(mechanism: str, password: str, salt: bytes, iterations: int) -> bytes:
    """Returns what a client sends of a password, Hi() of RFC 5802. As Apache Kafka's own clients,
    it takes the password's UTF-8 as it is (no SASLprep)."""
    return hashlib.pbkdf2_hmac(_hash(mechanism), password.encode(), salt, iterations)


def of_salted_password(
    mechanism: str, salted: bytes, salt: bytes, iterations: int
) -> ScramCredential:
    """Returns the credential for a password that a client has salted (KIP-554). Raises
    CredentialInvalid if the salt or the iterations are outside of the limits."""
    kind = _hash(mechanism)
    client_key = hmac.digest(salted, b"Client Key", kind)
    stored_key = hashlib.new(kind, client_key).digest()
    server_key = hmac.digest(salted, b"Server Key", kind)
    return _checked(ScramCredential(mechanism, salt, stored_key, server_key, iterations))


def parse(mechanism: str, text: str) -> ScramCredential:
    """Returns the credential that Kafka's text describes. Raises CredentialInvalid."""
    fields = dict(each.partition("=")[::2] for each in text.split(","))
    if sorted(fields) != sorted(_FIELDS):
        raise CredentialInvalid(f"its fields must be {', '.join(_FIELDS)}")
    try:
        salt, stored_key, server_key = (
            base64.b64decode(fields[each], validate=True) for each in _FIELDS[:3]
        )
        iterations = int(fields["iterations"])
    except (ValueError, binascii.Error) as error:
        raise CredentialInvalid(str(error)) from error
    return _checked(ScramCredential(mechanism, salt, stored_key, server_key, iterations))


def _checked(credential: ScramCredential) -> ScramCredential:
    size = hashlib.new(_hash(credential.mechanism)).digest_size
    if not ITERATIONS_MIN <= credential.iterations <= ITERATIONS_MAX:
        limits = f"{ITERATIONS_MIN} to {ITERATIONS_MAX}"
        raise CredentialInvalid(f"{credential.iterations} iterations, not {limits}")
    if len(credential.salt) < SALT_BYTES_MIN:
        raise CredentialInvalid(f"a salt of {len(credential.salt)} bytes, below {SALT_BYTES_MIN}")
    if {len(credential.stored_key), len(credential.server_key)} != {size}:
        raise CredentialInvalid(f"keys for {credential.mechanism} have {size} bytes")
    return credential


def _hash(mechanism: str) -> str:
    if mechanism not in SCRAM:
        raise CredentialInvalid(f"{mechanism} is not {' or '.join(SCRAM)}")
    return "sha256" if mechanism == "SCRAM-SHA-256" else "sha512"
