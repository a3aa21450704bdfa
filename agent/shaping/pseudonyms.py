"""What `hash` writes in place of a text: the first 16 bytes, as hex digits, of HMAC-SHA-256 under
the agent's key.

The key is a secret of the company. Agents with the same key write the same digits for the same
text, so hashed fields can be compared and joined. Without the key nobody can find the text by
trying all possible texts. Recipes and records contain a fingerprint of the key, never the key.
"""

from __future__ import annotations

import hmac
from dataclasses import field
from pathlib import Path
from typing import Final

import pyarrow as pa

from skidway.dataclass import dataclass
from skidway.errors import ConfigurationRefused
from skidway.regular_file import open_regular

KEY_BYTES_MIN: Final = 16
KEY_BYTES_MAX: Final = 4096
PSEUDONYM_BYTES: Final = 16

FILE_BYTES_MAX: Final = 2 * KEY_BYTES_MAX
"""A key may have white space around it."""

_NAME = b"skidway hash key"
_taken: dict[str, HashKey] = {}


@dataclass(frozen=True, slots=True)
class HashKey:
    """The key of `hash`. Its fingerprint shows whether two keys are the same, without revealing
    them.
    """

    secret: bytes = field(repr=False)

    @property
    def fingerprint(self) -> str:
        """Sixteen hex digits, computed from the key: equal keys have equal fingerprints."""
        return hmac.digest(self.secret, _NAME, "sha256")[:8].hex()

    def hash(self, texts: pa.StringArray) -> pa.StringArray:
        """Returns, for each text, the digits that a rule `hash` writes in its place. A null stays
        null."""
        values = texts.dictionary_encode()
        names = [
            hmac.digest(self.secret, text.encode(), "sha256")[:PSEUDONYM_BYTES].hex()
            for text in values.dictionary.to_pylist()
        ]
        return pa.array(names, pa.string()).take(values.indices)


def read_key(path: Path) -> HashKey:
    """Reads the key from a file, without white space at its ends. Raises ConfigurationRefused if
    the file cannot be read, or if the key is too short or too long."""
    try:
        with open_regular(path) as file:
            return key_of(path, file.read(FILE_BYTES_MAX + 1))
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise ConfigurationRefused(f"hash.key.location: cannot read {path}: {reason}") from error


def take_key(path: Path, data: bytes) -> None:
    """Takes what the file of a key has as the key of that path. If this process has one, keeps it:
    a process makes no records with two keys. Raises ConfigurationRefused."""
    _taken.setdefault(str(path), key_of(path, data))


def taken_key(path: str) -> HashKey | None:
    """Returns the key that was taken for a path."""
    return _taken.get(path)


def key_of(path: Path, data: bytes) -> HashKey:
    """Returns the key in these bytes of a file. Raises ConfigurationRefused."""
    secret = data.strip()
    if not KEY_BYTES_MIN <= len(secret) <= KEY_BYTES_MAX:
        raise ConfigurationRefused(
            f"hash.key.location: {path} has {len(secret)} bytes; a key has {KEY_BYTES_MIN} to "
            f"{KEY_BYTES_MAX}, such as the output of `openssl rand -hex 32`"
        )
    return HashKey(secret)
