"""Checks the names and passwords of users against a file that has a salted scrypt hash (RFC 7914)
of each password.

    # comment
    ada:$scrypt$ln=14,r=8,p=1$<salt>$<hash>

A user with several lines has several valid passwords. To change a password, add a line with the new
password, tell the clients, and then remove the old line.

Salt and hash are base64 without padding, as in the PHC string format. A check takes about 30 ms and
16 MB, so an attacker can guess only some dozens of passwords per second. If a password is correct,
the registry remembers it as a keyed digest (not as text), so only a client's first request needs
the slow check. When the file changes, the registry forgets all remembered passwords.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import re
import secrets
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from skidway import log
from skidway.errors import ConfigurationRefused
from skidway.regular_file import open_regular
from skidway.text_file import NotUtf8, decoded

LOG2_N: Final = 14
BLOCK: Final = 8
PARALLEL: Final = 1
SALT_BYTES: Final = 16
HASH_BYTES: Final = 32
KNOWN_MAX: Final = 1000
FILE_BYTES_MAX: Final = 1 << 20

_FORM = re.compile(
    r"\$scrypt\$ln=(?P<n>\d{1,2}),r=(?P<r>\d{1,2}),p=(?P<p>\d{1,2})"
    r"\$(?P<salt>[A-Za-z0-9+/]+)\$(?P<hash>[A-Za-z0-9+/]+)"
)
_log = log.get(__name__)


@dataclass(frozen=True, slots=True)
class Hash:
    """A password's hash, with its salt and cost parameters."""

    log2_n: int
    block: int
    parallel: int
    salt: bytes
    value: bytes

    @classmethod
    def of(cls, password: str) -> Hash:
        """Returns the hash of a password, with a new salt."""
        made = cls(LOG2_N, BLOCK, PARALLEL, secrets.token_bytes(SALT_BYTES), bytes(HASH_BYTES))
        return cls(LOG2_N, BLOCK, PARALLEL, made.salt, made._derived(password))

    @classmethod
    def read(cls, text: str) -> Hash:
        """Returns the hash that this text describes (see the module's docstring). Raises ValueError
        for any other text."""
        found = _FORM.fullmatch(text)
        if found is None:
            raise ValueError(text)
        cost, block, parallel = (int(found[name]) for name in ("n", "r", "p"))
        if not (10 <= cost <= 17 and 1 <= block <= 16 and 1 <= parallel <= 4):
            raise ValueError(text)
        return cls(cost, block, parallel, _bytes(found["salt"]), _bytes(found["hash"]))

    def __str__(self) -> str:
        """Returns the hash as text, as it is in the file."""
        made_with = f"ln={self.log2_n},r={self.block},p={self.parallel}"
        return f"$scrypt${made_with}${_text(self.salt)}${_text(self.value)}"

    @property
    def work(self) -> int:
        """How much work a check is, relative to other hashes."""
        return self.block * self.parallel << self.log2_n

    def fits(self, password: str) -> bool:
        """Returns whether `password` has this hash."""
        return hmac.compare_digest(self._derived(password), self.value)

    def _derived(self, password: str) -> bytes:
        cost = 1 << self.log2_n
        return hashlib.scrypt(
            password.encode(),
            salt=self.salt,
            n=cost,
            r=self.block,
            p=self.parallel,
            maxmem=256 * cost * self.block * self.parallel,
            dklen=len(self.value),
        )


@dataclass(frozen=True, slots=True)
class Table:
    """The hashes in a file, by user. nobody: no password has this hash, and no hash in the file is
    more work to check. checks: how many hashes the user with the most passwords has."""

    hashes: Mapping[str, Sequence[Hash]]
    nobody: Hash
    checks: int

    @classmethod
    def of(cls, hashes: Mapping[str, Sequence[Hash]]) -> Table:
        """Returns the table of these hashes."""
        usual = Hash(LOG2_N, BLOCK, PARALLEL, b"", b"")
        every = [each for known in hashes.values() for each in known]
        salt, value = secrets.token_bytes(SALT_BYTES), secrets.token_bytes(HASH_BYTES)
        nobody = replace(max(every, key=lambda x: x.work, default=usual), salt=salt, value=value)
        return cls(hashes, nobody, max(map(len, hashes.values()), default=1))

    def to_check(self, name: str) -> list[Hash]:
        """Returns the hashes against which to check a password of a user. Whoever the user is, and
        whether there is such a user, their number is the same."""
        own = list(self.hashes.get(name, ()))
        return own + [self.nobody] * (self.checks - len(own))


class Users:
    """The users in a file. When the file changes, it is read again. Several threads may use this
    object.

    Raises `ConfigurationRefused` for a file that cannot be used. If the file becomes unusable
    later, logs an error and keeps the users that it read before.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._key = os.urandom(32)
        self._known: OrderedDict[bytes, None] = OrderedDict()
        self._stamp = _stamp(path)
        self._table = Table.of(_read(path))

    def is_remembered(self, name: str, password: str) -> bool:
        """Returns whether this object remembers, from an earlier check, that this is a password of
        the user. This method is fast."""
        digest = self._digest(name, password)
        with self._lock:
            self._refresh()
            if digest in self._known:
                self._known.move_to_end(digest)
                return True
        return False

    def check(self, name: str, password: str) -> bool:
        """Returns whether the password belongs to the user. This method is slow. A wrong password
        is checked as often for an unknown user as for a known one, so that the duration does not
        reveal which users exist (if all hashes in the file have the same parameters)."""
        with self._lock:
            table = self._table
        good = any(each.fits(password) for each in table.to_check(name))
        with self._lock:
            if good and table is self._table:
                self._known[self._digest(name, password)] = None
                if len(self._known) > KNOWN_MAX:
                    self._known.popitem(last=False)
        return good

    def _refresh(self) -> None:
        try:
            stamp = _stamp(self._path)
            if stamp == self._stamp:
                return
            self._stamp = stamp
            self._table = Table.of(_read(self._path))
        except ConfigurationRefused as error:
            _log.error("registry_users_refused", reason=str(error))
            return
        self._known.clear()
        _log.info("registry_users_read", users=len(self._table.hashes))

    def _digest(self, name: str, password: str) -> bytes:
        text = f"{len(name)}:{name}{password}".encode()
        return hmac.digest(self._key, text, "sha256")


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


def _read(path: Path) -> dict[str, list[Hash]]:
    try:
        with open_regular(path) as file:
            content = file.read(FILE_BYTES_MAX + 1)
        if len(content) > FILE_BYTES_MAX:
            raise ConfigurationRefused(f"{path} is larger than {FILE_BYTES_MAX} bytes.")
        lines = decoded(content).splitlines()
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise ConfigurationRefused(f"authentication.users.file: {path}: {why}.") from error
    except NotUtf8 as error:
        raise ConfigurationRefused(f"authentication.users.file: {path}: {error}.") from error
    found: dict[str, list[Hash]] = {}
    for number, line in enumerate(lines, 1):
        if line.strip() and not line.startswith("#"):
            name, _, text = line.strip().partition(":")
            found.setdefault(name, []).append(_hash(f"{path}:{number}", name, text))
    return found


def _hash(where: str, name: str, text: str) -> Hash:
    try:
        return Hash.read(text if name else "")
    except ValueError:
        raise ConfigurationRefused(
            f"{where}: not USER:HASH as `skidway registry hash-password USER` prints it."
        ) from None


def _text(value: bytes) -> str:
    return base64.b64encode(value).decode().rstrip("=")


def _bytes(text: str) -> bytes:
    return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
