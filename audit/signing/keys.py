"""Keys of senders and of the audit, and the files that have them.

A file has a line for each key:

    NUMBER KEY            a master key
    NUMBER KEY IDENTITY   the key of a sender

NUMBER is that of the master key, from 1 to 255. KEY is 36 bytes in hex: the 32 bytes of the key,
and a checksum over the line, so that a line that was cut or changed is noticed. Empty lines and
lines that begin with `#` do not count. A file has one key or two: while a master key is replaced,
the old one and the new one. Senders sign with the key that has the greatest number.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import field
from typing import Final

from skidway.audit.signing.identity import Identity, IdentityInvalid
from skidway.dataclass import dataclass
from skidway.errors import SkidwayError

KEY_BYTES: Final = 32
NUMBER_MAX: Final = 255
KEYS_MAX: Final = 2
FILE_BYTES_MAX: Final = 64 * 1024

_CHECK_BYTES: Final = 4
_CONTEXT: Final = b"skidway audit message 1\0"
_DERIVED: Final = b"skidway audit sender key 1\0"
_CHECKED: Final = b"skidway audit key file 1\0"


class KeyRefused(SkidwayError):
    """Raised if a key, or a file with keys, cannot be used."""


@dataclass(frozen=True, slots=True)
class MasterKey:
    """A key of the audit, from which it derives the keys of all senders."""

    number: int
    secret: bytes

    def __repr__(self) -> str:
        return f"MasterKey({self.number})"

    def sender_key(self, identity: Identity) -> SenderKey:
        """Returns the key of a sender."""
        secret = hmac.digest(self.secret, _DERIVED + str(identity).encode(), hashlib.sha256)
        return SenderKey(self.number, secret, identity)


@dataclass(frozen=True, slots=True)
class SenderKey:
    """The key of a sender. number: that of the master key from which it was derived. context: the
    bytes that are signed before each message."""

    number: int
    secret: bytes
    identity: Identity
    context: bytes = field(init=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "context", _CONTEXT + str(self.identity).encode() + b"\0")

    def __repr__(self) -> str:
        return f"SenderKey({self.number}, {self.identity})"


def new_master_key(known: Iterable[MasterKey] = ()) -> MasterKey:
    """Returns a new random master key, with the number after those of the known ones. Raises
    KeyRefused if there are KEYS_MAX already, or if no number is left."""
    numbers = [each.number for each in known]
    if len(numbers) >= KEYS_MAX:
        raise KeyRefused(
            f"There are {KEYS_MAX} master keys already. Drop the old one before you make another."
        )
    number = max(numbers, default=0) + 1
    if number > NUMBER_MAX:
        raise KeyRefused(f"No master key can have a number above {NUMBER_MAX}.")
    return MasterKey(number, secrets.token_bytes(KEY_BYTES))


def text_of(keys: Iterable[MasterKey | SenderKey]) -> str:
    """Returns the lines of a file with these keys."""
    return "".join(f"{_line(each)}\n" for each in keys)


def master_keys_in(text: str) -> list[MasterKey]:
    """Returns the master keys in the text of a file, in ascending order of their numbers. Raises
    KeyRefused, with a sentence that begins with a verb."""
    found = [
        MasterKey(number, secret)
        for number, secret, identity in _lines(text)
        if _is(identity is None, "has the key of a sender, where master keys belong")
    ]
    return sorted(found, key=lambda x: x.number)


def sender_keys_in(text: str) -> list[SenderKey]:
    """Returns the keys of a sender in the text of a file, in ascending order of their numbers.
    Raises KeyRefused, with a sentence that begins with a verb."""
    found = []
    for number, secret, identity in _lines(text):
        if identity is None:
            raise KeyRefused("has a master key, which belongs only where a collector runs")
        found.append(SenderKey(number, secret, identity))
    _is(len({each.identity for each in found}) == 1, "has the keys of several senders")
    return sorted(found, key=lambda x: x.number)


def _line(key: MasterKey | SenderKey) -> str:
    identity = key.identity if isinstance(key, SenderKey) else None
    check = _check(key.number, key.secret, identity)
    words = [str(key.number), (key.secret + check).hex()]
    return " ".join(words if identity is None else [*words, str(identity)])


def _lines(text: str) -> Sequence[tuple[int, bytes, Identity | None]]:
    lines = [line.strip() for line in text.splitlines()]
    found = [_parsed(line) for line in lines if line and not line.startswith("#")]
    _is(bool(found), "has no key")
    _is(len(found) <= KEYS_MAX, f"has more than {KEYS_MAX} keys")
    _is(len({number for number, *_ in found}) == len(found), "has two keys of one number")
    return found


def _parsed(line: str) -> tuple[int, bytes, Identity | None]:
    words = line.split(" ", 2)
    number, hexed, name = (*words, "", "")[:3]
    try:
        secret = bytes.fromhex(hexed)
        identity = Identity.parse(name) if name else None
    except (ValueError, IdentityInvalid):
        raise KeyRefused("has a damaged key") from None
    is_number = number.isascii() and number.isdigit() and 1 <= int(number) <= NUMBER_MAX
    _is(is_number and len(secret) == KEY_BYTES + _CHECK_BYTES, "has a damaged key")
    key, check = secret[:KEY_BYTES], secret[KEY_BYTES:]
    _is(_check(int(number), key, identity) == check, "has a damaged key")
    return int(number), key, identity


def _check(number: int, secret: bytes, identity: Identity | None) -> bytes:
    """Returns the checksum of a line."""
    name = b"" if identity is None else str(identity).encode()
    data = _CHECKED + bytes((number,)) + secret + name
    return hashlib.sha256(data).digest()[:_CHECK_BYTES]


def _is(fits: bool, words: str) -> bool:
    if not fits:
        raise KeyRefused(words)
    return fits
