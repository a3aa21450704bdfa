"""Signs audit messages with the key of this sender, which is in a file.

The file is read again when it changes, so that a key can be replaced, or mended, while the program
runs. Without a usable key nothing is signed, and the caller keeps its messages.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from skidway import log
from skidway.audit.signing import signature
from skidway.audit.signing.identity import Identity
from skidway.audit.signing.key_file import KeyFile
from skidway.audit.signing.keys import KeyRefused, SenderKey, sender_keys_in
from skidway.audit.signing.verifier import Verifier
from skidway.clock import Clock

LOOK_EVERY_S: Final = 5.0

_WRONG: Final = "is that of {}, which may not sign {}"

_log = log.get(__name__)

Doubt = Callable[[Identity], str | None]
"""Says what of this sender's messages an identity may not send; None if it may send all."""


def require_key(signer: Signer | None, doubt: Doubt | None = None) -> None:
    """Raises KeyRefused if a signer has no usable key. doubt: what this key has to be good for,
    beside what the signer itself asks of its keys."""
    if signer is not None and (refusal := signer.refusal_for(doubt)) is not None:
        raise KeyRefused(refusal)


class Signer:
    """Owns the keys of one sender. Reads the file when it is asked for the first time."""

    def __init__(self, path: Path, doubt: Doubt, clock: Clock) -> None:
        self._file = KeyFile(path, self._usable)
        self._doubt = doubt
        self._clock = clock
        self._look_at = clock.monotonic()
        self._keys: Sequence[SenderKey] = ()
        self._own = Verifier()
        self._refusal: str | None = None

    @property
    def refusal(self) -> str | None:
        """Why no key can be used, as a sentence for an operator; None if one can."""
        if self._clock.monotonic() >= self._look_at:
            self._look_at = self._clock.monotonic() + LOOK_EVERY_S
            self._look()
        return self._refusal

    def refusal_for(self, doubt: Doubt | None) -> str | None:
        """Like `refusal`, with a further doubt."""
        if self.refusal is not None or doubt is None:
            return self.refusal
        identity = self._keys[-1].identity
        what = doubt(identity)
        return None if what is None else self._sentence(_WRONG.format(identity, what))

    @property
    def last_refusal(self) -> str | None:
        """What `refusal` said last. For other threads than the one that owns this object."""
        return self._refusal

    @property
    def identity(self) -> Identity:
        """The identity of this sender. Raises KeyRefused."""
        require_key(self)
        return self._keys[-1].identity

    @property
    def signature_bytes(self) -> int:
        """How many bytes a signature makes a record larger. Raises KeyRefused."""
        require_key(self)
        return signature.record_bytes(self._keys[-1])

    def sign(self, values: Sequence[bytes]) -> list[bytes]:
        """Returns a signature for each value. Raises KeyRefused."""
        require_key(self)
        return [signature.sign(self._keys[-1], value) for value in values]

    def is_own(self, value: bytes, header: bytes | None) -> bool:
        """Whether a message was signed with a key in the file. Raises KeyRefused."""
        require_key(self)
        return self._own.verify(value, header).flaw is None

    def _look(self) -> None:
        """Reads the file if it has changed."""
        known = self._refusal
        try:
            keys = self._file.changed()
            self._refusal = None
        except KeyRefused as error:
            keys, self._refusal = (), self._sentence(str(error))
        if keys is not None:
            self._keys = keys
            self._own.use(keys)
        if self._refusal not in (None, known):
            _log.error("audit_key_refused", reason=self._refusal)
        elif known is not None and self._refusal is None:
            _log.info("audit_key_usable", identity=str(self._keys[-1].identity))

    def _sentence(self, words: str) -> str:
        return f"The key of the audit messages ({self._file.path}) {words}."

    def _usable(self, text: str) -> Sequence[SenderKey]:
        keys = sender_keys_in(text)
        if doubt := self._doubt(keys[-1].identity):
            raise KeyRefused(_WRONG.format(keys[-1].identity, doubt))
        return keys
