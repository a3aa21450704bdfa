"""The signature of an audit message: the value of the record header `skidway.mac`.

    signature = HMAC-SHA-256 (32 bytes)  key number (1 byte)  identity (UTF-8)

The identity is in the header, so that a message can be checked whose schema the reader does not
have. The HMAC covers the identity and the value of the record. It does not cover where the record
is, so a message can be repeated, but it then says what its sender has said.
"""

from __future__ import annotations

import hmac
from typing import Final

from skidway.audit.signing.identity import IDENTITY_BYTES_MAX, Identity, IdentityInvalid
from skidway.audit.signing.keys import SenderKey

HEADER: Final = b"skidway.mac"

_MAC_BYTES: Final = 32
_HEAD_BYTES: Final = _MAC_BYTES + 1
_LENGTHS_BYTES: Final = 8


def sign(key: SenderKey, value: bytes) -> bytes:
    """Returns the value of the header for a record with this value."""
    mac = hmac.digest(key.secret, key.context + value, "sha256")
    return mac + bytes((key.number,)) + str(key.identity).encode()


def record_bytes(key: SenderKey) -> int:
    """Returns at most how many bytes the header needs in a record."""
    return len(HEADER) + _HEAD_BYTES + len(str(key.identity).encode()) + _LENGTHS_BYTES


def parse(header: bytes) -> tuple[int, Identity] | None:
    """Returns the number of the key and the identity in a header's value; None if it is no
    signature."""
    if not _HEAD_BYTES < len(header) <= _HEAD_BYTES + IDENTITY_BYTES_MAX:
        return None
    try:
        return header[_MAC_BYTES], Identity.parse(header[_HEAD_BYTES:].decode())
    except (UnicodeDecodeError, IdentityInvalid):
        return None


def sender_in(header: bytes) -> bytes:
    """Returns the part of a header that all messages of a sender with one key have in common."""
    return header[_MAC_BYTES:]


def is_of(key: SenderKey, value: bytes, header: bytes) -> bool:
    """Whether the holder of this key has signed this value."""
    mac = hmac.digest(key.secret, key.context + value, "sha256")
    return hmac.compare_digest(mac, header[:_MAC_BYTES])
