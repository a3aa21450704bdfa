"""The certificate files of a ZooKeeper server, as its JVM reads them: PEM files in dataDir that
only its user can read. `tls.pem` has key and certificate, `tls-ca.pem` the authorities.

ZooKeeper reads both again when they change (its settings client.certReload and
sslQuorumReloadCertFiles), but it would also take files that nobody can use. So this module looks at
the operator's files, and copies only good ones.
"""

from __future__ import annotations

import re
import ssl
from pathlib import Path
from typing import Final

from skidway import files
from skidway.errors import ConfigurationRefused, SkidwayError
from skidway.security.contexts import ClientAuth, Contexts, TlsFiles, server_context

LOOK_EVERY_S: Final = 1.0
_KEY: Final = re.compile(rb"-----BEGIN ((?:[A-Z]+ )?)PRIVATE KEY-----")


class ServerTls:
    """Keeps the copies in `dataDir` like the operator's files."""

    def __init__(self, data_dir: Path, given: TlsFiles, clients: ClientAuth) -> None:
        """Raises ConfigurationRefused if the files cannot be used."""
        self._given = given
        self._paths = paths(data_dir)
        self._contents: tuple[bytes, ...] = ()
        self._contexts = Contexts(lambda: self._made(clients), given)
        self._copied: ssl.SSLContext | None = None

    @property
    def problem(self) -> str:
        """Why the operator's files cannot be used now; empty if they can."""
        return self._contexts.problem

    def copy(self) -> None:
        """Copies the operator's files, if they are new and good. Raises SkidwayError if the copies
        cannot be written."""
        context = self._contexts.get()
        if context is self._copied:
            return
        try:
            for path, content in zip(self._paths, self._contents, strict=True):
                if content:
                    files.write_atomically(path, content, mode=0o600)
        except OSError as error:
            raise SkidwayError(f"cannot copy the certificates: {error.strerror}") from error
        self._copied = context

    def _made(self, clients: ClientAuth) -> ssl.SSLContext:
        context, ca = server_context(self._given, clients), self._given.ca
        self._contents = key_store(self._given), b"" if ca is None else ca.read_bytes()
        return context


def paths(data_dir: Path) -> tuple[Path, Path]:
    """Returns the paths of the copies: key with certificate, and authorities."""
    return data_dir.absolute() / "tls.pem", data_dir.absolute() / "tls-ca.pem"


def key_store(given: TlsFiles) -> bytes:
    """Returns a key with its certificate, as ZooKeeper reads them from one file. Raises
    ConfigurationRefused if the key's form is one that ZooKeeper cannot read."""
    assert given.certificate is not None
    certificate = given.certificate.read_bytes()
    key = b"" if given.key is None else given.key.read_bytes()
    text = key.rstrip() + b"\n" + certificate if key else certificate
    found = _KEY.search(text)
    if found is None or found[1]:
        file = given.key or given.certificate
        raise ConfigurationRefused(
            f"ssl.key.location: {file}: ZooKeeper reads keys in PKCS #8 only (BEGIN PRIVATE KEY);"
            f" openssl pkcs8 -topk8 -nodes -in {file} writes one"
        )
    return text
