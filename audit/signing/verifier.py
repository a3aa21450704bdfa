"""Checks signatures, with the master keys of the audit, or with the keys of one sender."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Final, NamedTuple

from skidway.audit.signing import signature
from skidway.audit.signing.identity import Identity
from skidway.audit.signing.keys import MasterKey, SenderKey

KNOWN_MAX: Final = 1 << 16
"""The derived keys of at most this many senders stay in memory."""


class Flaw(StrEnum):
    """What is wrong with the signature of a message."""

    UNSIGNED = "unsigned"
    DAMAGED = "damaged signature"
    UNKNOWN_KEY = "unknown key"
    WRONG_SIGNATURE = "wrong signature"


class Verified(NamedTuple):
    """What a signature shows. identity: who claims to have signed; None if unknown. key: the number
    of the key. flaw: what is wrong; None if the identity has signed."""

    identity: Identity | None = None
    key: int = 0
    flaw: Flaw | None = None


class Verifier:
    """Owns keys, and remembers the keys that it derived from them."""

    def __init__(self, keys: Sequence[MasterKey | SenderKey] = ()) -> None:
        self.use(keys)

    def use(self, keys: Sequence[MasterKey | SenderKey]) -> None:
        """Uses these keys from now on."""
        self._keys = {key.number: key for key in keys}
        self._known: dict[bytes, tuple[SenderKey | None, Verified]] = {}

    def verify(self, value: bytes, header: bytes | None) -> Verified:
        """Checks the signature of a message. header: the value of its header signature.HEADER."""
        if header is None:
            return _UNSIGNED
        sender = signature.sender_in(header)
        known = self._known.get(sender)
        if known is None:
            if len(self._known) >= KNOWN_MAX:
                self._known.clear()
            known = self._known[sender] = self._key_of(header)
        key, found = known
        if key is None or signature.is_of(key, value, header):
            return found
        return found._replace(flaw=Flaw.WRONG_SIGNATURE)

    def _key_of(self, header: bytes) -> tuple[SenderKey | None, Verified]:
        """Returns the key with which a message has to be signed, and what a good signature shows.
        Returns no key if no signature can be good."""
        named = signature.parse(header)
        if named is None:
            return None, _DAMAGED
        number, identity = named
        key = self._keys.get(number)
        if isinstance(key, MasterKey):
            key = key.sender_key(identity)
        if key is None or key.identity != identity:
            return None, Verified(identity, number, Flaw.UNKNOWN_KEY)
        return key, Verified(identity, number)


_UNSIGNED: Final = Verified(flaw=Flaw.UNSIGNED)
_DAMAGED: Final = Verified(flaw=Flaw.DAMAGED)
